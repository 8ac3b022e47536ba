"""Arrays of numbers, as programs and debuggers print bytes: C, Java, C#, Go, JavaScript, JSON, PowerShell.

``{0x52, 0x46, 0x48, 0x20}``, ``[82, 70, 72, 32]``, ``(byte) -39``, ``'R', 'F'``, one number a line. An array begins
with the four bytes of a StrucId, in any of these forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rfh2.captures.pasted_page import Page
from rfh2.captures.pasted_piece import BEGINNINGS, Piece
from rfh2.patterns import repeated

_COMMENT: Final = r"(?:/\*[^*\n]{0,80}+\*/|//[^\n]{0,120}+(?=\n))"
_CAST: Final = r"(?:\((?:byte|sbyte|char|uint8_t|unsigned char)\)[ ]?)?"
_COMMENTS: Final = repeated(rf"{_COMMENT}[ \t]*+")
_BLANK: Final = rf"[ \t]*+{_COMMENTS}"
# Two line ends in a row end an array.
_BETWEEN: Final = rf"(?:{_BLANK}[,;]{_BLANK}\n?{_BLANK}|{_BLANK}\n{_BLANK}|[ \t]++){_CAST}"
_NUMBER: Final = re.compile(
    r"(?:0[xX](?P<hex>[0-9A-Fa-f]{1,2})|(?P<decimal>-?[0-9]{1,3})|"
    r"'(?:\\x(?P<escaped>[0-9A-Fa-f]{1,2})|\\(?P<octal>[0-7]{1,3})|\\(?P<special>[^x0-7\n])|(?P<plain>[^'\\\n]))')"
    r"(?:u8|[uUlL]{1,2})?(?![\w.])"
)
_NEXT: Final = re.compile(_BETWEEN)
_LEFT_OUT: Final = re.compile(r"[\s,]*+(?:\.{2,}|/\* ?\.{2,}|<Buffer|more)")
_SPECIAL: Final = {"n": 10, "r": 13, "t": 9, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11}


def _forms(byte: int) -> str:
    forms = [rf"0[xX]0?{byte:x}(?![0-9A-Fa-f])", rf"0[xX]{byte:02X}", rf"{byte}(?![0-9.])"]
    if byte > 0x7F:
        forms.append(rf"-{256 - byte}(?![0-9.])")
    if 0x20 <= byte < 0x7F and chr(byte) not in "'\\":
        forms.append(f"'{re.escape(chr(byte))}'")
    return f"(?:{'|'.join(forms)})(?:u8|[uUlL])?"


_BEGINNING: Final = re.compile(
    rf"(?<![\w.'-]){_CAST}(?:{'|'.join(_BETWEEN.join(map(_forms, beginning)) for beginning in BEGINNINGS)})"
)


def find_arrays(page: Page) -> Iterator[Piece]:
    """Each array that begins as a message does."""
    text = page.text
    at = 0
    while (found := _BEGINNING.search(text, at)) is not None:
        data, at, why = _array(text, found.start())
        if len(data) >= 8:
            yield Piece(found.start(), at, "an array of bytes", data, why=why)
        at = max(at, found.end())


def _array(text: str, at: int) -> tuple[bytes, int, str | None]:
    cast = re.compile(_CAST).match(text, at)
    assert cast is not None
    at = end = cast.end()
    data = bytearray()
    while (number := _NUMBER.match(text, at)) is not None:
        value = _value(number)
        if not -128 <= value <= 255:
            break
        data.append(value & 0xFF)
        end = number.end()
        between = _NEXT.match(text, end)
        if between is None:
            break
        at = between.end()
    return bytes(data), end, "its author left out the rest" if _LEFT_OUT.match(text, end) else None


def _value(number: re.Match[str]) -> int:
    if number["decimal"]:
        return int(number["decimal"])
    if digits := number["hex"] or number["escaped"]:
        return int(digits, 16)
    if number["octal"]:
        return int(number["octal"], 8)
    return _SPECIAL.get(number["special"], 256) if number["special"] else ord(number["plain"])
