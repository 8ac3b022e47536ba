"""The queue unload format of dmpmqmsg and of its ancestor qload (wire formats 6.3).

    * DMPMQMSG Version:8.0 Created:Wed Jan  3 09:44:17 2024
    * Qmgr  = QM1
    * Queue = SYSTEM.BROKER.DEFAULT.STREAM

    A VER 2              an attribute of the MQMD; or N for a message without one
    A RPT 0
    X 5246482002000000   data in hex, in as many lines as it takes; a column of text in <> may follow
    S "data as text"     with ~ before each " and ~
    T data as text       and a line end behind it

A message is a run of A lines (or N) and a run of data lines; blank lines do not matter, nor do lines that begin with
``*``, except that those with Qmgr and Queue hold for the messages behind them. Files may be joined end to end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.amqsbcg import BYTES, NUMBERS, SPANS, PrintedDescriptor, printable
from rfh2.captures.record import MAX_MESSAGE_BYTES, Item, ReadingPosition, Refusal, numbered_lines
from rfh2.errors import CaptureError, DecodeError
from rfh2.folders import repeated

# In the order in which they are written; ApplIdentityData and ApplOriginData as hex, as is the tools' default.
_ATTRIBUTES: dict[str, str] = {
    "VER": "Version",
    "RPT": "Report",
    "MST": "MsgType",
    "EXP": "Expiry",
    "FDB": "Feedback",
    "ENC": "Encoding",
    "CCS": "CodedCharSetId",
    "FMT": "Format",
    "PRI": "Priority",
    "PER": "Persistence",
    "MSI": "MsgId",
    "COI": "CorrelId",
    "BOC": "BackoutCount",
    "RTQ": "ReplyToQ",
    "RTM": "ReplyToQMgr",
    "USR": "UserIdentifier",
    "ACC": "AccountingToken",
    "AIX": "ApplIdentityData",
    "PAT": "PutApplType",
    "PAN": "PutApplName",
    "PTD": "PutDate",
    "PTT": "PutTime",
    "AOX": "ApplOriginData",
    "GRP": "GroupId",
    "MSQ": "MsgSeqNumber",
    "OFF": "Offset",
    "MSF": "MsgFlags",
    "ORL": "OriginalLength",
}
_AS_CHARACTERS = {"AID": "ApplIdentityData", "AOD": "ApplOriginData"}
_AS_HEX = frozenset({"AIX", "AOX", *(code for code, name in _ATTRIBUTES.items() if name in BYTES)})

_HEADER = re.compile(rb"\* (?:DMPMQMSG|QLOAD)\b")
_FIRST_ATTRIBUTE = re.compile(rb"A (?:VER|RPT) -?\d+[^\S\n]*+$", re.MULTILINE)
# Where two neighbours match blanks, the first takes them all (``*+``): to try each division takes the square.
_ORIGIN = re.compile(rb"\*\s*+(Qmgr|Queue)\s*+=(.*)\Z", re.DOTALL)
_HEX_LINE = re.compile(rb"\s*+([0-9A-Fa-f]*+)\s*+(?:<.*)?\Z", re.DOTALL)
_MARKED = repeated('~["~][^"~]*+')
_QUOTED = re.compile(rf'"([^"~]*+{_MARKED})"\s*+\Z'.encode())
_ESCAPED = re.compile(rb'~(["~])')
_LINE_BYTES = 25


def is_qload(text: bytes) -> bool:
    """Whether *text*, without blank lines before it, begins as an unload file does, with its header or without."""
    return _HEADER.match(text) is not None or _FIRST_ATTRIBUTE.match(text) is not None


_BREAKS = re.compile("[\\x00-\\x1f\\x85\\u2028\\u2029]")


def read_qload(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each message of *stream*, at the line of its first attribute."""
    origin: dict[bytes, str] = {}
    message: _Message | None = None
    for number, whole in numbered_lines(stream, keep_ends=True):
        line = b"?" if whole is None else whole.rstrip(b"\r\n")
        if line.startswith(b"*") or not line.strip():
            found = _ORIGIN.match(line)
            if message is not None and (found is not None or message.is_complete):
                # Only a data line could still belong to it, and no tool writes a blank line before one.
                yield message.item(reading)
                message = None
            if found is not None:
                origin[found[1]] = found[2].strip().decode("utf-8", errors="replace")
            continue
        if message is None or message.is_followed_by(line):
            if message is not None:
                yield message.item(reading)
            message = _Message(number, origin.get(b"Queue", ""), origin.get(b"Qmgr") or None)
        message.add(number, line, ended=whole is None or whole.endswith(b"\n"))
    if message is not None:
        yield message.item(reading)


class _Message:
    """The lines of one message as they come in; the first error stands, and the rest of the message is not read."""

    def __init__(self, start: int, queue: str, qmgr: str | None) -> None:
        self._start, self._queue, self._qmgr = start, queue, qmgr
        self._descriptor: PrintedDescriptor | None = None
        self._begun = False
        self._codes: set[bytes] = set()
        self._has_data = False
        self._data = bytearray()
        self._problem: tuple[int, str] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether a blank line now ends the message."""
        return self._has_data or not self._begun

    def is_followed_by(self, line: bytes) -> bool:
        """Whether *line* begins another message."""
        if line[:2] not in (b"A ", b"N"):
            return False
        # A message whose data lines are missing shows by the next one's first attribute.
        return self.is_complete or (line[2:5] in (b"VER", b"RPT") and line[2:5] in self._codes) or line == b"N"

    def add(self, number: int, line: bytes, *, ended: bool) -> None:
        """Take one line that is neither blank nor a comment. ended: whether it has its line end."""
        try:
            if line == b"N" and not self._begun:
                self._begun = True
            elif line.startswith(b"A ") and not self._has_data:
                self._begun = True
                self._descriptor = self._descriptor or PrintedDescriptor()
                self._attribute(self._descriptor, line[2:5], line[6:])
            elif line[:1] in (b"X", b"S", b"T") and line[1:2] in (b" ", b"") and self._begun:
                self._has_data = True
                self._data += self._piece(line, ended=ended)
                if len(self._data) > MAX_MESSAGE_BYTES:
                    self._data.clear()
                    raise ValueError("more data than any message can have")
            else:
                raise ValueError("not an attribute line, nor a data line of a message")
        except ValueError as error:
            self._problem = self._problem or (number, str(error))

    def _attribute(self, descriptor: PrintedDescriptor, code: bytes, value: bytes) -> None:
        self._codes.add(code)
        key = code.decode("ascii", errors="replace")
        name = _ATTRIBUTES.get(key) or _AS_CHARACTERS.get(key)
        if name is None:
            raise ValueError(f"{key} is not an attribute")
        if not value:
            return
        if name in NUMBERS:
            descriptor.set_number(name, value)
        elif key in _AS_HEX:
            descriptor.set_bytes(name, value.rstrip())
        else:
            descriptor.set_characters(name, value)

    def _piece(self, line: bytes, *, ended: bool) -> bytes:
        kind, text = line[:1], line[2:]
        if not ended:
            # A file that was cut off would otherwise give a shorter message without notice.
            raise ValueError("the file ends within a data line")
        if kind == b"T":
            return text + b"\n"
        if kind == b"X":
            digits = _HEX_LINE.match(text)
            if digits is None or len(digits[1]) % 2:
                raise ValueError("not hex")
            return bytes.fromhex(digits[1].decode("ascii"))
        text = text.lstrip(b" ")
        if not text.startswith(b'"'):
            return text.rstrip(b" ")
        quoted = _QUOTED.match(text)
        if quoted is None:
            raise ValueError('not a string: " and ~ follow a ~, and a " ends it')
        return _ESCAPED.sub(rb"\1", quoted[1])

    def item(self, reading: ReadingPosition) -> Item:
        """The message, or its problem."""
        if self._problem is None and not self._has_data:
            self._problem = (self._start, "no data lines: an empty message has one without data")
        if self._problem is None:
            try:
                md = None if self._descriptor is None else self._descriptor.finish()
                return self._start, reading.message(bytes(self._data), md, queue=self._queue, qmgr=self._qmgr)
            except ValueError as error:
                self._problem = (self._start, str(error))
        return self._start, reading.problem(*self._problem, "line")


def write_qload(messages: Iterable[CapturedMessage], target: BinaryIO, refused: Refusal) -> int:
    """Write *messages* as dmpmqmsg does, with a line that names the queue wherever it changes. Returns how many.

    Refuses a message whose MQMD cannot be put into lines, or whose queue or queue manager cannot be named in one.
    """
    target.write(b"* DMPMQMSG Version:8.0\n")
    origin: tuple[str | None, str] | None = None
    count = 0
    for message in messages:
        try:
            attributes = b"N\n" if message.md is None else b"".join(_attribute_lines(message))
            names = _origin_lines(message)
        except CaptureError as error:
            refused(message, error)
            continue
        if origin != (message.qmgr, message.queue):
            origin = (message.qmgr, message.queue)
            target.write(names)
        target.write(attributes)
        body = message.body
        for at in range(0, max(len(body), 1), _LINE_BYTES):
            target.write(b"X " + body[at : at + _LINE_BYTES].hex().upper().encode("ascii") + b"\n")
        target.write(b"\n")
        count += 1
    return count


def _origin_lines(message: CapturedMessage) -> bytes:
    for name in (message.qmgr or "", message.queue):
        # A line break in a name would begin lines of its own: attributes, data, further messages.
        if name != name.strip() or _BREAKS.search(name):
            raise CaptureError("qload", None, f"message {message.seq}: no line can hold the name {name!r}")
    return f"* Qmgr  = {message.qmgr or ''}\n* Queue = {message.queue}\n\n".encode()


def _attribute_lines(message: CapturedMessage) -> Iterator[bytes]:
    try:
        md = printable(message.md or b"")
    except DecodeError as error:
        raise CaptureError("qload", None, f"the MQMD of message {message.seq} cannot be written: {error}") from error
    for code, name in _ATTRIBUTES.items():
        offset, length = SPANS[name]
        field = md[offset : offset + length]
        if not field:
            return
        yield b"A %s %s\n" % (code.encode("ascii"), _value(message, code, name, field))


def _value(message: CapturedMessage, code: str, name: str, field: bytes) -> bytes:
    if name in NUMBERS:
        return b"%d" % int.from_bytes(field, "little", signed=True)
    if code in _AS_HEX:
        return field.hex().upper().encode("ascii")
    if not field.strip(b"\0"):
        return b""  # which reads as nulls again
    if b"\n" in field or b"\r" in field:
        raise CaptureError("qload", None, f"{name} of message {message.seq} holds a line end; use jsonl or parquet")
    return field
