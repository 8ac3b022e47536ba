"""Hex dumps with offsets, and listings of amqsbcg, with anything around and before their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rfh2.captures.amqsbcg import SPANS, PrintedDescriptor, fields_of_line
from rfh2.captures.hextext import hex_column
from rfh2.captures.pasted_page import Page, Piece, begins_like_a_message
from rfh2.captures.record import MAX_MESSAGE_BYTES

# Hex dumps with offsets, whatever stands before the offset of each line.
#
# hexdump -C, xxd, od, Wireshark, PowerShell's Format-Hex, dumps in traces. The offset of a line is looked for, so
# that prompts, line numbers and time stamps before it do no harm. Each line has as many bytes as the next offset
# says. Words of 16 bits in host byte order (hexdump, od -x, od) are put right where a message appears.


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


# Listings of amqsbcg as people paste them: with prompts, quotes and other text around and before their lines.
#
# A field is known by its name and a line of the dump by the offset that is due, wherever in a line they stand. Mailers
# wrap lines: the end of a value, of the hex digits or of the text beside them may stand on the next line. What the
# author cut or left out is missing; the rest is given all the same, and said to be incomplete.

_SHAPE: Final = "a listing of amqsbcg"
_OPEN: Final = re.compile(r"\bMQOPEN - '([^']*+)")
_GET: Final = re.compile(r"\bMQGET of message number \d+")
_END: Final = re.compile(r"\b(?:No more messages|MQCLOSE|MQDISC|MQGET \d+, failed)\b|AMQSBCG\w? - starts here")
_SECTION: Final = re.compile(
    r"\*{0,4}\s*+\bMessage (descriptor|properties)\b\s*+\*{0,4}\s*+\Z|\*{3,4}\s*+Message\s*+\*{3,4}"
)
_FIELD: Final = re.compile(rf"\b(?:{'|'.join(SPANS)})\s{{0,20}}+:(?=\s|\Z)")
_NAME_ALONE: Final = re.compile(rf"\b(?:{'|'.join(SPANS)})\s{{0,20}}+:?\s*+\Z")
_REST_OF_TOKEN: Final = re.compile(r"\s*+[0-9A-Fa-f]*+'?\s*+")
_TOKEN_BEGINS: Final = re.compile(r"X'[0-9A-Fa-f]*+(?:'|\Z)")
_CUT_TOKEN: Final = re.compile(r"X'[0-9A-Fa-f]*+\Z")
_TOKEN: Final = re.compile(r"X'([0-9A-Fa-f]*+)'")
_LENGTH: Final = re.compile(r"\blength - (\d{1,9})(?: of (\d{1,9}))? bytes")
_ROW: Final = re.compile(r"(?<![0-9A-Za-z])([0-9A-Fa-f]{8}):[ \t]")
_LISTING_LEFT_OUT: Final = re.compile(r"[\s\[(<*]*+(?:\.{2,}|snip|cut)", re.IGNORECASE)
_MORE_DIGITS: Final = re.compile(r"\s*+(?:(?:[0-9A-Fa-f]{2}){1,2}(?=\s|\Z)\s*+)*(?:'|\Z)")
_ROW_DIGITS: Final = 32
_LISTING_ROOM: Final = 200  # how far into a line a field or an offset is looked for
_MOST_FOREIGN: Final = 12
"""Lines in a row that are no part of a listing, before it counts as ended."""


def find_listings(page: Page) -> Iterator[Piece]:
    """Each message of the listings on a page."""
    queue = ""
    message: _Message | None = None
    for index, line in enumerate(page.lines):
        if not line.strip():
            continue
        head = line[:_LISTING_ROOM]
        if opened := _OPEN.search(head):
            queue = opened[1].rstrip(" \0")
        section = _SECTION.search(head)
        begins = (section is not None and section[1] == "descriptor") or ("StrucId" in head and _begins(head))
        ends = opened or _GET.search(head) or _END.search(head)
        if message is not None and (ends or (begins and message.has_fields) or message.is_over):
            yield from message.pieces(page)
            message = None
        if message is None:
            if begins:
                message = _Message(index, queue)
                message.add(index, line)
            continue
        message.add(index, line)
    if message is not None:
        yield from message.pieces(page)


def _is_own(head: str) -> bool:
    """Whether a line begins something of a listing, so that it does not go on with the line before it."""
    patterns = (_SECTION, _FIELD, _ROW, _LENGTH, _OPEN, _GET, _END)
    return head.lstrip().startswith("** ") or any(pattern.search(head) for pattern in patterns)


def _with_rest(held: str, line: str) -> str:
    """A line and the one that it goes on with; a log may have put something before a token."""
    if _CUT_TOKEN.search(held):
        return held + line
    token = _TOKEN_BEGINS.search(line) if _NAME_ALONE.search(held) else None
    return f"{held} {line if token is None else line[token.start() :]}"


def _begins(head: str) -> bool:
    found = _FIELD.search(head)
    return found is not None and found[0].startswith("StrucId") and "MD" in head[found.end() : found.end() + 8]


class _Message:
    """The lines of one message as they come in."""

    def __init__(self, first: int, queue: str) -> None:
        self._first = self._last = first
        self._queue = queue
        self._descriptor = PrintedDescriptor()
        self._awaits_token = self._has_rows = self._is_closed = False
        self._foreign = 0
        # A line whose value or hex digits go on, if it was wrapped; whether the text beside the last digits may go on.
        self._wrapped: str | None = None
        self._lacks_text = False
        self._is_shortened = False
        self._data = bytearray()
        self._lengths: tuple[int, int] | None = None
        self._why: str | None = None
        self.has_fields = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more belongs to it."""
        whole = self._lengths is not None and len(self._data) >= self._lengths[0]
        return (
            whole and (self._has_rows or not self._lengths or not self._lengths[0])
        ) or self._foreign > _MOST_FOREIGN

    def add(self, index: int, line: str) -> None:
        """Take one line that is not blank."""
        lacks_text, self._lacks_text = self._lacks_text, False
        held, self._wrapped = self._wrapped, None
        if held is not None:
            if self._goes_on(held, line):
                line = _with_rest(held.rstrip(), line.strip())
            else:
                self._take(held)
        if self._is_wrapped(line):
            self._wrapped, self._last = line, index
            self._foreign = 0
        elif self._take(line):
            self._foreign, self._last = 0, index
        elif lacks_text and not _is_own(line[:_LISTING_ROOM]):
            self._last = index
        elif _LISTING_LEFT_OUT.match(line):
            self._is_shortened = True
            self._last = index
        else:
            self._foreign += 1

    def _is_wrapped(self, line: str) -> bool:
        """Whether a line may go on: with hex digits that are due, or with the end of a value."""
        head = line[:_LISTING_ROOM]
        if (row := _ROW.search(head)) is not None:
            rest = line[row.end() :]
            return "'" not in rest and 0 < len("".join(rest.split())) < _ROW_DIGITS
        if self._has_rows or (_FIELD.search(head) is None and _NAME_ALONE.search(head) is None):
            return False
        return line.count("'") % 2 == 1 or _NAME_ALONE.search(line) is not None

    def _goes_on(self, held: str, line: str) -> bool:
        if _is_own(line[:_LISTING_ROOM]):
            return False
        if _ROW.search(held[:_LISTING_ROOM]):
            return _MORE_DIGITS.match(line) is not None
        if _CUT_TOKEN.search(held.rstrip()):
            return _REST_OF_TOKEN.fullmatch(line) is not None
        return "'" in line or line.lstrip().startswith(":") or _NAME_ALONE.search(held) is not None

    def _take(self, line: str) -> bool:
        head = line[:_LISTING_ROOM]
        section = _SECTION.search(head)
        if section is not None:
            return True
        if self._awaits_token and (token := _TOKEN.search(line)):
            self._set(b"AccountingToken", token[1].encode())
            self._awaits_token = False
            return True
        if length := _LENGTH.search(head):
            self._lengths = int(length[1]), int(length[2] or length[1])
            return True
        row = _ROW.search(head)
        if row is not None and (self._has_rows or int(row[1], 16) == 0 or self._lengths is not None):
            return self._dumped(int(row[1], 16), line[row.end() :])
        field = None if self._has_rows else _FIELD.search(head)
        if field is None:
            return self._about_properties(line)
        rest = line[field.start() :].rstrip(" |\\")
        if rest.startswith("AccountingToken") and "X'" not in rest:
            self._awaits_token = True
            return True
        for name, value in fields_of_line(rest.encode("utf-8", "replace")):
            self._set(name, value)
        return True

    def _about_properties(self, line: str) -> bool:
        return line.strip() == "None" or line.strip().startswith("** ")

    def _set(self, name: bytes, value: bytes) -> None:
        try:
            self._descriptor.set(name.decode("ascii", "replace"), value)
            self.has_fields = True
        except ValueError as error:
            self._why = self._why or str(error)

    def _dumped(self, offset: int, rest: str) -> bool:
        self._has_rows = True
        if self._is_closed:
            return offset > len(self._data)
        if offset < len(self._data):
            self._is_closed = True
            return False
        if offset > len(self._data):
            self._is_closed = True
            self._why = self._why or f"the bytes from {len(self._data)} to {offset} are missing in the listing"
            return True
        text = rest.partition("'")[2].rstrip()
        self._lacks_text = len(text) <= _ROW_DIGITS // 2 or not text.endswith("'")
        digits = hex_column(rest.strip().encode("utf-8", "replace"), colon=True).decode("utf-8", "replace")
        digits = "".join(digits.split())
        try:
            self._data += bytes.fromhex(digits)
        except ValueError:
            self._is_closed = True
            self._why = self._why or f"the line at offset {offset} is not hex"
        if len(self._data) > MAX_MESSAGE_BYTES:
            self._is_closed = True
        return True

    def pieces(self, page: Page) -> Iterator[Piece]:
        """The message, or what is there of it; nothing where a heading stands alone."""
        if self._wrapped is not None:
            self._take(self._wrapped)
            self._wrapped = None
        if not (self.has_fields or self._data):
            return
        why = self._why
        shown, length = self._lengths or (len(self._data), len(self._data))
        missing = self._descriptor.missing()
        if self._is_shortened and (self._lengths is None or missing or len(self._data) != shown):
            why = "the listing is incomplete here: lines are wrapped or cut"
        if len(self._data) != shown and why is None:
            why = f"{len(self._data)} of {shown} bytes are there"
        elif shown < length and why is None:
            why = f"the program showed {shown} of {length} bytes; dmpmqmsg unloads messages whole"
        elif self._lengths is None and not self._data and why is None:
            why = "the listing ends before the message's data"
        elif missing and why is None:
            why = f"the message descriptor lacks {', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}"
        md = self._descriptor.so_far()
        start, end = page.starts[self._first], page.starts[self._last + 1] - 1
        yield Piece(start, end, _SHAPE, bytes(self._data), md, why, self._queue)
