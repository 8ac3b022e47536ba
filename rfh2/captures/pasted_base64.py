"""Base64, in one line or folded as mail and PEM fold it, of a message or of its hex text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from rfh2.captures.pasted_page import Page
from rfh2.captures.pasted_piece import BEGINNINGS, Piece, begins_like_a_message
from rfh2.patterns import repeated

_HEX_BEGINNINGS: Final = tuple(
    dict.fromkeys(text.encode() for data in BEGINNINGS for text in (data.hex(), data.hex().upper()))
)


def _encoded(data: bytes) -> str:
    """The characters that base64 of anything that begins with *data* begins with."""
    return re.escape(base64.b64encode(data)[: len(data) * 8 // 6].decode())


_BEGINNING: Final = re.compile(
    rf"(?<![A-Za-z0-9+/_-])(?:{'|'.join(dict.fromkeys(map(_encoded, (*BEGINNINGS, *_HEX_BEGINNINGS))))})"
)
_DIGIT: Final = "[A-Za-z0-9+/_-]"
_ESCAPED: Final = repeated(rf"\\/{_DIGIT}*+")
_RUN: Final = re.compile(rf"(?:{_DIGIT}|\\/){_DIGIT}*+{_ESCAPED}={{0,2}}+")
_MARKS: Final = r"[\"'+,]*+"
_INDENT: Final = r"[ \t\"']"
_LINE_ENDS: Final = repeated(rf"\\[rn]{_MARKS}")
_PLUSES: Final = repeated(rf"\+{_INDENT}++")
_FOLD: Final = re.compile(rf"{_MARKS}{_LINE_ENDS}[ \t]*+\n{_INDENT}*+{_PLUSES}(?={_DIGIT})")
_NARROWEST: Final = 20


def find_base64(page: Page) -> Iterator[Piece]:
    """Each run of base64 whose bytes, or the hex digits in it, begin as a message does."""
    text = page.text
    at = 0
    while (found := _BEGINNING.search(text, at)) is not None:
        digits, at = _run(text, found.start())
        whole = len(digits) // 4 * 4
        try:
            data = binascii.a2b_base64(digits[:whole])
            rest = binascii.a2b_base64(digits[whole:] + "=" * (4 - len(digits) % 4)) if len(digits) % 4 > 1 else b""
        except binascii.Error:
            continue
        data += rest
        shape, why = "base64", "the last characters of the base64 are missing" if len(digits) % 4 == 1 else None
        with suppress(ValueError):
            data, shape = bytes.fromhex(data.decode("ascii")), "base64 of hex text"
        if begins_like_a_message(data):
            why = why or ("its author left out the rest" if text.startswith("...", at) else None)
            yield Piece(found.start(), at, shape, data, why=why)


def _run(text: str, start: int) -> tuple[str, int]:
    """The digits from *start* on, without line ends, and where they end. All lines but the last are equally long."""
    parts: list[str] = []
    at, width = start, 0
    while (run := _RUN.match(text, at)) is not None:
        parts.append(run[0])
        at = run.end()
        width = width or len(run[0])
        fold = _FOLD.match(text, at)
        if fold is None or len(run[0]) != width or width < _NARROWEST or run[0].endswith("="):
            break
        following = _RUN.match(text, fold.end())
        if following is None or len(following[0]) > width or _goes_on(text, following.end()):
            break
        at = fold.end()
    digits = "".join(parts).replace("\\/", "/").replace("-", "+").replace("_", "/").rstrip("=")
    return digits, at


def _goes_on(text: str, at: int) -> bool:
    """Whether something else than base64 stands in the rest of the line."""
    return re.compile(r"[\"'\\,;)]{0,4}\s*?(?:\n|\Z)|\.\.\.|\\n").match(text, at) is None
