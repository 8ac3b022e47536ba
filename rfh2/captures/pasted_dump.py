"""Hex dumps with offsets, whatever stands before the offset of each line.

hexdump -C, xxd, od, Wireshark, PowerShell's Format-Hex, dumps in traces. The offset of a line is looked for, so that
prompts, line numbers and time stamps before it do no harm. Each line has as many bytes as the next offset says. Words
of 16 bits in host byte order (hexdump, od -x, od) are put right where a message appears.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rfh2.captures.pasted_page import Page
from rfh2.captures.pasted_piece import Piece, begins_like_a_message

_FIRST: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:0[xX])?(0{4,16})[hH]?[:|]?[ \t]{1,8}+[|:]?[ \t]{0,3}+"
    r"(?=[0-9A-Fa-f]{2}[ -]?[0-9A-Fa-f]{2}[ -]?[0-9A-Fa-f]{2})"
)
_HEX_BEFORE: Final = re.compile(r"(?:^|[ \t:])(?:[0-9A-Fa-f]{2}){1,4}[ \t]*\Z")
_OFFSET: Final = re.compile(r"(?<![0-9A-Za-z])(?:0[xX])?([0-9A-Fa-f]{4,16})[hH]?(?=[:|\s]|\Z)")
_GROUP: Final = re.compile(r"[ \t|-]{0,4}+((?:[0-9A-Fa-f]{2}){1,16})(?![0-9A-Za-z])")
_OCTAL_WORD: Final = re.compile(r"[ \t]{0,3}+([01][0-7]{5})(?![0-9A-Za-z])")
_LEFT_OUT: Final = re.compile(r"[\s\[(<]*+(?:\.{2,}|snip|cut)", re.IGNORECASE)
_TEXT_COLUMN: Final = re.compile(r"(?<=[0-9A-Fa-f])(?:[ \t]{3,}|[ \t]++[|>'])")
_BEHIND_OFFSET: Final = ":|hH \t"

_LINE_BYTES: Final = 64
"""No dump has more in a line."""
_ROOM: Final = 120  # how far into a line an offset is looked for
_MOST_BYTES: Final = 1 << 22  # of a whole dump, with what ``*`` stands for


def find_dumps(page: Page) -> Iterator[Piece]:
    """Each dump that begins at offset 0 and is a message, or has two lines at least."""
    at = 0
    while at < len(page.lines):
        line = page.lines[at]
        first = _FIRST.search(line, 0, _ROOM + 40)
        if first is None or _HEX_BEFORE.search(line[max(0, first.start() - 12) : first.start()]):
            at += 1
            continue
        rows, end, why = _rows(page.lines, at, first)
        data, cut = _joined(rows)
        if begins_like_a_message(data) or (len(rows) > 1 and data):
            yield Piece(page.starts[at], page.starts[end] - 1, "a hex dump", data, why=why or cut)
        at = end


@dataclass(frozen=True, slots=True)
class _Row:
    """offset: of its first byte. rest: what stands behind the offset. repeats: whether ``*`` stands before the row."""

    offset: int
    rest: str
    repeats: bool = False


def _rows(lines: tuple[str, ...], start: int, first: re.Match[str]) -> tuple[list[_Row], int, str | None]:
    """The rows of a dump, the index of the line behind them, and what is missing, if its author left something out."""
    rows = [_Row(0, lines[start][first.end(1) :])]
    width, radix = len(first[1]), 0
    at, end, repeats, blanks = start + 1, start + 1, False, 0
    while at < len(lines) and blanks < 2:
        line = lines[at]
        at += 1
        if line.strip() in ("", "*"):
            repeats, blanks = repeats or bool(line.strip()), blanks + (not line.strip())
            continue
        if not blanks and _is_text(line, rows[-1], lines[at] if at < len(lines) else ""):
            end = at
            continue
        if _LEFT_OUT.match(line):
            return rows, at, "its author left out the rest of the dump"
        found = _next_row(line, rows[-1], width, radix, repeats)
        if found is None:
            break
        radix, row = found
        rows.append(row)
        end, repeats, blanks = at, False, 0
        if row.offset > _MOST_BYTES or not row.rest.strip(" |:"):
            break
    return rows, end, None


def _is_text(line: str, row: _Row, following: str) -> bool:
    """Whether *line* is the end of the text beside *row*, which a mailer wrapped. following: the line behind it."""
    data, end = _bytes(row.rest, None)
    text = row.rest[end:].strip(" |<>'")
    if not data or len(text) + len(line.strip()) > 2 * len(data) or _OFFSET.match(line.lstrip()):
        return False
    due = re.match(rf"\W*(?:0[xX])?0*{row.offset + len(data):x}[hH]?(?:[:|\s]|\Z)", following, re.IGNORECASE)
    return due is not None or 0 < len(text) < len(data) - len(line.strip(" |<>'")) + 1


def _next_row(line: str, before: _Row, width: int, radix: int, repeats: bool) -> tuple[int, _Row] | None:
    """The row of a line, and the radix of its offset; None for a line without an offset that can follow *before*."""
    radices = (radix,) if radix else (16, 8) if width == 7 else (16,)
    due = 0 if radix else len(_bytes(before.rest, None)[0])
    for found in _OFFSET.finditer(line, 0, _ROOM):
        if len(found[1]) != width:
            continue
        offsets = {base: int(found[1], base) for base in radices if base == 16 or not re.search("[89A-Fa-f]", found[1])}
        if len(offsets) > 1:  # the offset that agrees with the bytes of the first line
            offsets = {base: offset for base, offset in offsets.items() if offset == due} or offsets
        for base, offset in offsets.items():
            if offset > before.offset and (repeats or offset <= before.offset + 16 * _LINE_BYTES):
                return base, _Row(offset, line[found.end() :], repeats)
    return None


def _joined(rows: list[_Row]) -> tuple[bytes, str | None]:
    """The bytes of the rows, and what is missing of them."""
    data = bytearray()
    column = 0
    for row, following in pairwise(rows):
        size = following.offset - row.offset
        piece, end = _bytes(row.rest, min(size, _LINE_BYTES))
        column = column or end
        if following is rows[-1] and not following.rest.strip(" |:") and len(piece) == size + 1:
            # A word of 16 bits holds the last byte, and a null in front of it or behind it.
            return _in_order(bytes(data + piece))[: following.offset], None
        data += piece[:size]
        if following.repeats and piece and not size % len(piece):
            data += piece * (size // len(piece) - 1)
        if len(data) != following.offset:
            return _in_order(bytes(data)), f"the bytes from {len(data)} to {following.offset} are missing in the dump"
    last = rows[-1]
    if last.rest.strip(" |:"):
        data += _last_bytes(last.rest, column)
    return _in_order(bytes(data)), None


def _in_order(data: bytes) -> bytes:
    """*data*, with the bytes of each word changed round where it is a message then."""
    if begins_like_a_message(data):
        return data
    padded = data + b"\0" * (len(data) % 2)
    swapped = bytearray(len(padded))
    swapped[::2], swapped[1::2] = padded[1::2], padded[::2]
    return bytes(swapped[: len(data)]) if begins_like_a_message(bytes(swapped[:8])) else data


def _bytes(rest: str, size: int | None) -> tuple[bytes, int]:
    """The first *size* bytes of a line behind its offset, up to the end of a word, and where they end.

    size: None for all up to what looks like text.
    """
    at = len(rest) - len(rest.lstrip(_BEHIND_OFFSET))
    group = _OCTAL_WORD if _OCTAL_WORD.match(rest, at) and _is_octal(rest) else _GROUP
    data = bytearray()
    while size is None or len(data) < size:
        found = group.match(rest, at)
        if found is None or (data and size is None and found.start(1) - found.start() > 2):
            break
        data += bytes.fromhex(found[1]) if group is _GROUP else int(found[1], 8).to_bytes(2, "big")
        at = found.end()
    return bytes(data), at


def _is_octal(rest: str) -> bool:
    return all(len(word) == 6 and word.isdecimal() for word in rest.split()[:8])


def _last_bytes(rest: str, column: int) -> bytes:
    """The bytes of the last line: as many as its own text column shows, else all before where such a column begins."""
    limited = rest[:column] if column else rest
    at = len(rest) - len(rest.lstrip(_BEHIND_OFFSET))
    if _OCTAL_WORD.match(rest, at) and _is_octal(rest):
        return _bytes(rest, None)[0]
    data = bytearray()
    shown: bytes | None = None
    while len(data) < _LINE_BYTES and (found := _GROUP.match(limited, at)) is not None:
        data += bytes.fromhex(found[1])
        at = found.end()
        text = "".join(chr(byte) if 0x20 < byte < 0x7F else "." for byte in data)
        tail = rest[at:].strip()
        if not tail or tail.strip("|<>'\"").replace(" ", ".").strip(".") == text.strip("."):
            shown = bytes(data)
    if shown is not None:
        return shown
    cut = _TEXT_COLUMN.search(limited, len(rest) - len(rest.lstrip(_BEHIND_OFFSET)))
    return _bytes(limited[: cut.start()] if cut else limited, None)[0]
