"""Listings of amqsbcg as people paste them: with prompts, quotes and other text around and before their lines.

A field is known by its name and a line of the dump by the offset that is due, wherever in a line they stand. Mailers
wrap lines: the end of a value, of the hex digits or of the text beside them may stand on the next line. What the author
cut or left out is missing; the rest is given all the same, and said to be incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rfh2.captures.amqsbcg import fields_of_line
from rfh2.captures.hextext import hex_column
from rfh2.captures.pasted_page import Page
from rfh2.captures.pasted_piece import Piece
from rfh2.captures.printed_fields import SPANS, PrintedDescriptor
from rfh2.captures.record import MAX_MESSAGE_BYTES

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
_LEFT_OUT: Final = re.compile(r"[\s\[(<*]*+(?:\.{2,}|snip|cut)", re.IGNORECASE)
_MORE_DIGITS: Final = re.compile(r"\s*+(?:(?:[0-9A-Fa-f]{2}){1,2}(?=\s|\Z)\s*+)*(?:'|\Z)")
_ROW_DIGITS: Final = 32
_ROOM: Final = 200  # how far into a line a field or an offset is looked for
_MOST_FOREIGN: Final = 12
"""Lines in a row that are no part of a listing, before it counts as ended."""


def find_listings(page: Page) -> Iterator[Piece]:
    """Each message of the listings on a page."""
    queue = ""
    message: _Message | None = None
    for index, line in enumerate(page.lines):
        if not line.strip():
            continue
        head = line[:_ROOM]
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


def _joined(held: str, line: str) -> str:
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
                line = _joined(held.rstrip(), line.strip())
            else:
                self._take(held)
        if self._is_wrapped(line):
            self._wrapped, self._last = line, index
            self._foreign = 0
        elif self._take(line):
            self._foreign, self._last = 0, index
        elif lacks_text and not _is_own(line[:_ROOM]):
            self._last = index
        elif _LEFT_OUT.match(line):
            self._is_shortened = True
            self._last = index
        else:
            self._foreign += 1

    def _is_wrapped(self, line: str) -> bool:
        """Whether a line may go on: with hex digits that are due, or with the end of a value."""
        head = line[:_ROOM]
        if (row := _ROW.search(head)) is not None:
            rest = line[row.end() :]
            return "'" not in rest and 0 < len("".join(rest.split())) < _ROW_DIGITS
        if self._has_rows or (_FIELD.search(head) is None and _NAME_ALONE.search(head) is None):
            return False
        return line.count("'") % 2 == 1 or _NAME_ALONE.search(line) is not None

    def _goes_on(self, held: str, line: str) -> bool:
        if _is_own(line[:_ROOM]):
            return False
        if _ROW.search(held[:_ROOM]):
            return _MORE_DIGITS.match(line) is not None
        if _CUT_TOKEN.search(held.rstrip()):
            return _REST_OF_TOKEN.fullmatch(line) is not None
        return "'" in line or line.lstrip().startswith(":") or _NAME_ALONE.search(held) is not None

    def _take(self, line: str) -> bool:
        head = line[:_ROOM]
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
            why = "its author left out a part of the listing"
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
