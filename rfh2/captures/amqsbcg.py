"""The listing that the sample programs amqsbcg and amqsbcgc print of a queue (wire formats 6.4). It is only read.

    AMQSBCG0 - starts here
     MQOPEN - 'SYSTEM.BROKER.DEFAULT.STREAM                    '
     MQGET of message number 1, CompCode:0 Reason:0
    ****Message descriptor****
      StrucId  : 'MD  '  Version : 2
      ...
    ****Message properties****
      None
    ****   Message      ****
     length - 132 of 132 bytes
    00000000:  5246 4820 0200 0000 8000 0000 2202 0000 'RFH ........"...'

Only the hex columns are read: the text beside them has dots for what does not print. Offsets and length must agree with
the bytes, so that what was cut shows. A listing that was made with properties taken into a message handle has them as
text, apart from the data and without their types: a message that has some is refused.

An MQMD put together from fields that a program printed as text, as dmpmqmsg and amqsbcg do.

Such text has lost the descriptor's own byte order and character set; what comes back is little-endian and ASCII.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import BinaryIO

from rfh2.captures.record import MAX_MESSAGE_BYTES, Incomplete, Item, ReadingPosition, numbered_lines
from rfh2.ccsid import ASCII_FIELDS
from rfh2.constants import MQCCSI_DEFAULT
from rfh2.errors import DecodeError
from rfh2.layouts import MQMD1, MQMD2
from rfh2.mqmd import Mqmd, decode_mqmd

SPANS: dict[str, tuple[int, int]] = {name: (offset, length) for name, offset, length in MQMD2.spans()}
"""IBM's name of each field to its (offset, length) in bytes."""

CHARACTERS = frozenset(
    {
        "StrucId",
        "Format",
        "ReplyToQ",
        "ReplyToQMgr",
        "UserIdentifier",
        "ApplIdentityData",
        "PutApplName",
        "PutDate",
        "PutTime",
        "ApplOriginData",
    }
)
BYTES = frozenset({"MsgId", "CorrelId", "AccountingToken", "GroupId"})
NUMBERS = frozenset(SPANS) - CHARACTERS - BYTES


class PrintedDescriptor:
    """Takes fields in any order; those that are never given keep the defaults of MQMD_DEFAULT, version 2."""

    def __init__(self) -> None:
        default = Mqmd(version=2, coded_char_set_id=MQCCSI_DEFAULT)
        self._data = bytearray(default.encode())
        for name in CHARACTERS - {"StrucId", "Format"}:
            offset, length = SPANS[name]
            self._data[offset : offset + length] = bytes(length)
        self._given: set[str] = set()

    def set(self, name: str, value: bytes) -> None:
        """Set the field *name* to a number, hex digits or characters, as its type has it. Raises ValueError."""
        if name in NUMBERS:
            self.set_number(name, value)
        elif name in BYTES:
            self.set_bytes(name, value)
        elif name in CHARACTERS:
            self.set_characters(name, value)
        else:
            raise ValueError(f"{name} is not a field of a message descriptor")

    def set_number(self, name: str, text: bytes) -> None:
        """Set the MQLONG *name* to the decimal *text*. Raises ValueError."""
        try:
            value = int(text).to_bytes(4, "little", signed=True)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name} is not a 32-bit number") from error
        self._put(name, value)

    def set_bytes(self, name: str, digits: bytes) -> None:
        """Set the first bytes of *name* to the hex *digits*, the others to zero. Raises ValueError."""
        try:
            value = bytes.fromhex(digits.decode("ascii"))
        except ValueError as error:
            raise ValueError(f"{name} is not hex") from error
        self._put(name, value.ljust(SPANS[name][1], b"\0"))

    def set_characters(self, name: str, text: bytes) -> None:
        """Set *name* to *text*, padded with blanks. Raises ValueError."""
        self._put(name, text.ljust(SPANS[name][1], b" "))

    def _put(self, name: str, value: bytes) -> None:
        offset, length = SPANS[name]
        if len(value) != length:
            raise ValueError(f"{name} is longer than {length} bytes")
        self._data[offset : offset + length] = value
        self._given.add(name)

    def missing(self) -> tuple[str, ...]:
        """The fields of this version that were not given."""
        end = MQMD1.size if self._version == 1 else MQMD2.size
        return tuple(name for name, (offset, _) in SPANS.items() if offset < end and name not in self._given)

    def finish(self) -> bytes:
        """The descriptor's bytes: 364, or 324 for version 1. Raises ValueError for another version."""
        version = self._version
        if version not in (1, 2):
            raise ValueError(f"Version is {version}, neither 1 nor 2")
        if version == 1:
            return bytes(self._data[: MQMD1.size])
        return bytes(self._data)

    def so_far(self) -> bytes | None:
        """The descriptor with the defaults in place of what is missing; None where nothing was given."""
        try:
            return self.finish() if self._given else None
        except ValueError:
            return None

    @property
    def _version(self) -> int:
        return int.from_bytes(self._data[4:8], "little", signed=True)


def printable(md: bytes) -> bytes:
    """*md* in the form that text can carry: little-endian, ASCII. Raises DecodeError where it is no MQMD."""
    mqmd, length = decode_mqmd(md)
    if length != len(md):
        raise DecodeError(length, "MQMD", f"{len(md) - length} bytes follow it")
    if (mqmd.order, mqmd.charset) == ("little", ASCII_FIELDS):
        return md
    return replace(mqmd, order="little", charset=ASCII_FIELDS).encode()


_START = re.compile(rb"AMQSBCG\w? - starts here")
_OPEN = re.compile(rb" MQOPEN - '(.*)'\s*\Z")
_GET = re.compile(rb"\s*MQGET of message number \d+")
_GET_FAILED = re.compile(rb"\s*MQGET \d+, failed with (.*)\Z")
_END = re.compile(rb"\s*(?:No more messages|MQCLOSE|MQDISC|MQDLTMH)\b")
_SECTION = re.compile(rb"\*{4}\s*(Message descriptor|Message properties|Message)\s*\*{4}")
_DESCRIPTOR = re.compile(rb"\*{4}\s*Message descriptor\s*\*{4}")
_LENGTH = re.compile(rb"\s*length - (\d+)(?: of (\d+))? bytes")
_OFFSET = re.compile(rb"[0-9A-F]{8}:")
# A value may hold quotes, even what looks like the next field. One expression for a line with two fields tries every
# division of the line; ``_strings`` looks once for the last place where the second field can begin.
_STRING = re.compile(rb"\s*+(\w++)\s*+: '")
_NEXT_STRING = re.compile(rb"'(?=\s++(\w++)\s*+: ')")
_NUMBER_BEHIND = re.compile(rb"\s++(\w++)\s*+: (-?\d++)\s*+\Z")
_HEX = re.compile(rb"\s*(\w+)\s*: X'([0-9A-Fa-f]*)'\s*\Z")
_HEX_BELOW = re.compile(rb"\s*X'([0-9A-Fa-f]*)'\s*\Z")
_NUMBERS = re.compile(rb"\s*(\w+)\s*: (-?\d+)(?:\s+(\w+)\s*: (-?\d+))?\s*\Z")


class _Part(Enum):
    HEAD = b""
    DESCRIPTOR = b"Message descriptor"
    PROPERTIES = b"Message properties"
    DATA = b"Message"


def is_amqsbcg(text: bytes) -> bool:
    """Whether *text*, without blank lines before it, begins as a listing does, or as a message in one."""
    return any(pattern.match(text) is not None for pattern in (_START, _GET, _DESCRIPTOR))


def read_amqsbcg(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each message of the listing, at the line that says that it was got; where that is not there, at its descriptor.

    A listing in which no message begins, and that does not say that the queue is empty either, gives a problem.
    """
    queue = ""
    message: _Message | None = None
    last, is_listing = 0, False
    for number, line in numbered_lines(stream):
        last = number
        if line is None:
            message = message or _Message(number, queue)
            message.fail(number, "the line is too long for an amqsbcg listing")
            continue
        if message is not None and _OFFSET.match(line):
            message.add(number, line)  # as are most lines by far
            continue
        opened = _OPEN.match(line)
        failed = _GET_FAILED.match(line)
        got = _GET.match(line)
        ended = _END.match(line)
        is_listing = is_listing or bool(failed or got or ended)
        if message is not None and (opened or failed or got or ended or _START.match(line)):
            yield message.item(reading)
            message = None
        if opened:
            queue = opened[1].rstrip(b" \0").decode("utf-8", errors="replace")
        elif failed:
            why = failed[1].strip().decode("ascii", errors="replace")
            yield number, reading.problem(number, f"the browse ended: {why}", "line")
        elif got:
            message = _Message(number, queue)
        elif message is not None:
            message.add(number, line)
        elif _DESCRIPTOR.match(line):
            message, is_listing = _Message(number, queue), True
            message.add(number, line)
    if message is not None:
        yield message.item(reading)
    elif last and not is_listing:
        yield 1, reading.problem(1, "no message of an amqsbcg listing begins here", "line")


class _Message:
    """The lines of one message as they come in; the first error stands."""

    def __init__(self, start: int, queue: str) -> None:
        self._start, self._queue = start, queue
        self._part = _Part.HEAD
        self._descriptor: PrintedDescriptor | None = None
        self._awaits_token = False
        self._data = bytearray()
        self._lengths: tuple[int, int] | None = None
        self._problem: tuple[int, str] | None = None

    def fail(self, line: int, why: str) -> None:
        """Note that the message cannot be read."""
        self._problem = self._problem or (line, why)

    def add(self, number: int, line: bytes) -> None:
        """Take one line of the message."""
        section = _SECTION.match(line) if line.startswith(b"****") else None
        if section is not None:
            self._part = _Part(section[1])
            if self._part is _Part.DESCRIPTOR:
                self._descriptor = PrintedDescriptor()
            return
        if not line.strip() or self._problem is not None:
            return
        try:
            if self._part is _Part.DESCRIPTOR and self._descriptor is not None:
                self._field(self._descriptor, line)
            elif self._part is _Part.PROPERTIES and line.strip() != b"None":
                raise ValueError("its properties are listed apart from its data; browse without PropOption 1 instead")
            elif self._part is _Part.DATA:
                self._dumped(line)
        except ValueError as error:
            self.fail(number, str(error))

    def _field(self, descriptor: PrintedDescriptor, line: bytes) -> None:
        if self._awaits_token:
            token = _HEX_BELOW.match(line)
            if token is None:
                raise ValueError("the value of AccountingToken is not on the line below its name")
            descriptor.set_bytes("AccountingToken", token[1])
            self._awaits_token = False
        elif line.strip() == b"AccountingToken :":
            self._awaits_token = True
        elif fields := fields_of_line(line):
            for name, value in fields:
                descriptor.set(name.decode("ascii", errors="replace"), value)
        elif not line.strip().startswith(b"**"):
            raise ValueError("not a line of a message descriptor")

    def _dumped(self, line: bytes) -> None:
        if not _OFFSET.match(line):
            length = _LENGTH.match(line)
            if length is None:
                raise ValueError("not a line of a dump")
            self._lengths = (int(length[1]), int(length[2] or length[1]))
            return
        offset, due = int(line[:8], 16), len(self._data)
        if offset != due:
            raise ValueError(f"the offset is {offset} where {due} is due: a line is missing or cut")
        digits, _, _ = line[9:].partition(b"'")
        try:
            self._data += bytes.fromhex(digits.decode("ascii"))
        except ValueError as error:
            raise ValueError("not hex") from error
        if len(self._data) > MAX_MESSAGE_BYTES:
            self._data.clear()
            raise ValueError("more data than any message can have")

    def item(self, reading: ReadingPosition) -> Item:
        """The message, or its problem."""
        if self._problem is None:
            try:
                md = self._finished()
                return self._start, reading.message(bytes(self._data), md, queue=self._queue)
            except ValueError as error:
                self._problem = (self._start, str(error))
        problem = reading.problem(*self._problem, "line")
        listed = None if self._descriptor is None else self._descriptor.so_far()
        if listed is None:
            return self._start, problem
        return self._start, Incomplete(problem, reading.partial(bytes(self._data), listed, queue=self._queue))

    def _finished(self) -> bytes:
        if self._descriptor is None or self._lengths is None:
            raise ValueError("the listing ends before the message's data")
        shown, length = self._lengths
        if len(self._data) != shown:
            raise ValueError(f"{len(self._data)} of {shown} bytes are there")
        if shown < length:
            raise ValueError(f"the program showed {shown} of {length} bytes; dmpmqmsg unloads messages whole")
        if missing := self._descriptor.missing():
            raise ValueError(f"the message descriptor lacks {missing[0]}")
        return self._descriptor.finish()


def fields_of_line(line: bytes) -> list[tuple[bytes, bytes]]:
    """The fields of a line of a descriptor, names and values: one or two; none where it is another line."""
    if fields := _strings(line):
        return fields
    if found := _HEX.match(line):
        return [(found[1], found[2])]
    if found := _NUMBERS.match(line):
        return [(found[1], found[2]), *([(found[3], found[4])] if found[3] else [])]
    return []


def _strings(line: bytes) -> list[tuple[bytes, bytes]]:
    """The fields of a line that begins with a string: one, or two if a string or a number follows. Else no field."""
    first = _STRING.match(line)
    end = line.rfind(b"'")
    if first is None or end < first.end():
        return []
    name, at = first[1], first.end()
    number = _NUMBER_BEHIND.match(line, end + 1)
    if number is not None:
        return [(name, line[at:end]), (number[1], number[2])]
    if line[end + 1 :].strip():
        return []
    seconds = deque(_NEXT_STRING.finditer(line, at, end), maxlen=1)
    if not seconds:
        return [(name, line[at:end])]
    second = seconds[0]
    return [(name, line[at : second.start()]), (second[1], line[line.index(b"'", second.end()) + 1 : end])]
