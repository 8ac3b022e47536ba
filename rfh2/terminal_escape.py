"""Text from messages made safe for a terminal: control characters in it must have no effect.

``visible`` is for a value in its place among others, ``harmless`` for a whole line on its way to a terminal.
"""

from __future__ import annotations

import re
from typing import Final

# Control characters but the tab; line ends of Unicode's own; what turns the direction of writing round, so that a line
# reads as another; halves of surrogate pairs, which no encoding has room for. Zero-width joiners and marks of direction
# are left: languages are written with them.
_DRIVING: Final = re.compile("[\0-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """*text* in one line, with what no terminal should see escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def drives_terminal(text: str) -> bool:
    """Whether *text* has a character that a terminal obeys instead of showing it; a line end is one."""
    return not text.isprintable() and _DRIVING.search(text) is not None


def harmless(text: str) -> str:
    """*text* in one line, with each character that drives a terminal as ``\\u001b``.

    The escapes are JSON's: a line of JSON stays JSON, and means the same.
    """
    return _DRIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if drives_terminal(text) else text


_SHOWN_CHARACTERS = 256


def one_line(text: str) -> str:
    """*text* without control characters, which would end the line or move the cursor."""
    return "".join(c if c.isprintable() else "." for c in text)


def printable(text: str) -> str:
    """*text* as far as a log can show it; a long one lacks its middle, because a sentence ends with what to do."""
    half = _SHOWN_CHARACTERS // 2
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:half]}... ({len(text)} characters) ...{text[-half:]}"
    return "".join(c if c.isprintable() else "." for c in text)
