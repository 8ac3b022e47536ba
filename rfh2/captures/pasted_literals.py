"""String literals with escapes: of Python (``b'RFH \\x02...'``), C, Go, Ruby, JavaScript and JSON.

Literals that stand one behind another are one, as in Python and C, and so are those joined by ``+``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rfh2.captures.pasted_page import Page
from rfh2.captures.pasted_piece import Piece, begins_like_a_message
from rfh2.patterns import repeated

# Only literals that can begin with a StrucId, in letters or escaped.
_BEGINNING: Final = re.compile(
    r"(?<![\\\w])(?:[bB]|u8)?(?P<quote>[\"'])(?=(?:MD  |RFH |DLH |XQH |MDE |TSH[ MC]|\\(?:x|u00)?[0-9A-Fa-f]{2}))"
)


def _inside(quote: str) -> re.Pattern[str]:
    plain = rf"[^{quote}\\\n]"
    escaped = repeated(rf"\\[^\n]{plain}*+")
    return re.compile(rf"{plain}*+{escaped}(?P<end>{quote})?")


_INSIDE: Final = {quote: _inside(quote) for quote in ("'", '"')}
_JOINED: Final = re.compile(r"\s{0,200}+(?:[+.&\\]\s{0,200}+)?(?:[bB]|u8)?(?P<quote>[\"'])")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u00([0-9A-Fa-f]{2})|([0-7]{1,3})|(.))")
_SPECIAL: Final = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_UNFINISHED: Final = "the literal has no closing quote"


def find_literals(page: Page) -> Iterator[Piece]:
    """Each literal that begins as a message does."""
    text = page.text
    at = 0
    while (found := _BEGINNING.search(text, at)) is not None:
        parts, end, why = _literal(text, found)
        data = _unescaped("".join(parts))
        if data is not None and begins_like_a_message(data):
            if data.endswith(b"...") and len(data) > 8:
                data, why = data[:-3], why or "its author left out the rest"
            yield Piece(found.start(), end, "a string literal", data, why=why)
        at = max(end, found.end())


def _literal(text: str, found: re.Match[str]) -> tuple[list[str], int, str | None]:
    """The contents of a literal and of those joined to it, where they end, and what is missing."""
    parts: list[str] = []
    opened: re.Match[str] | None = found
    end = found.end()
    while opened is not None:
        inside = _INSIDE[opened["quote"]].match(text, opened.end())
        assert inside is not None
        parts.append(inside[0][: -1 if inside["end"] else None])
        end = inside.end()
        if not inside["end"]:
            return parts, end, _UNFINISHED
        opened = _JOINED.match(text, end)
    return parts, end, None


def _unescaped(text: str) -> bytes | None:
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _character(found: re.Match[str]) -> str:
    if digits := found[1] or found[2]:
        return chr(int(digits, 16))
    if found[3]:
        return chr(int(found[3], 8) & 0xFF)
    return _SPECIAL.get(found[4], found[4])
