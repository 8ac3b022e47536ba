"""Text with slots: output of which some parts are put in for each message.

While a template is made, a slot is a text that stands for its value, and passes through the same code as the value
would. The characters around its number occur in nothing else that is in a template (``Template.of`` refuses that).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

_OPEN, _BARE, _CLOSE = "⟦", "⟦=", "⟧"
_SLOT: Final = re.compile(rf'"{_BARE}(\d+){_CLOSE}"|{_OPEN}(\d+){_CLOSE}')


def slot(number: int) -> str:
    """What stands for value *number* of those that ``Template.filled`` is given."""
    return f"{_OPEN}{number}{_CLOSE}"


def bare_slot(number: int) -> str:
    """The same in JSON, for a value that is no string, or has its quotes."""
    return f"{_BARE}{number}{_CLOSE}"


def without_slots(text: str) -> tuple[str, int]:
    """*text* without its slots, and how many they were."""
    return _SLOT.subn("", text)


class Template(NamedTuple):
    """Text with slots, ready to be filled."""

    form: str
    values: Callable[[Sequence[object]], tuple[object, ...]]

    @classmethod
    def of(cls, text: str) -> Template | None:
        """The template that *text* is, which has two slots or more; None where it has characters of slots elsewhere."""
        constant = without_slots(text)[0]
        if _OPEN in constant or _CLOSE in constant:
            return None
        numbers = [int(bare or quoted) for bare, quoted in _SLOT.findall(text)]
        return cls(_SLOT.sub("%s", text.replace("%", "%%")), itemgetter(*numbers))

    def filled(self, values: Sequence[object]) -> str:
        """The text with its slots filled from *values*, by number."""
        return self.form % self.values(values)
