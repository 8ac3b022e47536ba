"""How a selection string is refused: MQRCCF_FILTER_ERROR, with the place (guide 6.7.4, 6.7.8)."""

from __future__ import annotations

from rfh2.constants import MQRCCF_FILTER_ERROR
from rfh2.errors import CommandError


class Refusal(Exception):  # noqa: N818 (never leaves this package: compile_selector turns it into a CommandError)
    """Why a selection string is not taken, and where; the text itself is added by compile_selector.

    at: 1-based position of the first character that is to blame.
    """

    def __init__(self, at: int, why: str) -> None:
        super().__init__(at, why)
        self.at, self.why = at, why


def filter_error(text: str, refusal: Refusal) -> CommandError:
    """The refusal as the command's error: reason 3150, the position in words, the Filter as the tag to blame."""
    why = f"selection string, at character {refusal.at}: {refusal.why}"
    return CommandError(MQRCCF_FILTER_ERROR, why=why, tags=(("Filter", text),))
