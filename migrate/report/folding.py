"""Reasons without the names of their items, so that identical reasons are one line with a count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from migrate.log import printable

_GAP: Final = "\N{HORIZONTAL ELLIPSIS}"
_NAMED: Final = {"user", "queue", "stream"}
_PUNCTUATION: Final = "'\",;:.()"


def folded(text: str, ids: Sequence[str], own: str = "") -> str:
    """The text of a reason and its known problems. own: the item's names, which are left out of the text."""
    shown = _without_names(text, own) if own else text
    return printable(shown) + (f" [{' '.join(ids)}]" if ids else "")


def sentence(text: str) -> str:
    """*text* with a full stop at its end."""
    return text if text.endswith(".") else f"{text}."


def _without_names(text: str, own: str) -> str:
    words = text.split(" ")
    for at, word in enumerate(words):
        name = word.strip(_PUNCTUATION)
        is_plain = name.isalpha() and name.islower()
        follows = at > 0 and words[at - 1] in _NAMED
        if (follows and not is_plain) or (len(name) > 2 and not is_plain and name in own):
            words[at] = word.replace(name, _GAP)
    return " ".join(words)
