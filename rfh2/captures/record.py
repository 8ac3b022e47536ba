"""One record of a capture, and what a format's reader needs to make them: counts, limits, and lines of text."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, Final, cast

from rfh2.captured import CapturedMessage
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS
from rfh2.errors import CaptureError

# A bound on the memory and disk that a compressed or abbreviated capture may take beyond the size of its file.
#
# A file of a few hundred kilobytes can hold a hundred megabytes of one character. The size of the file itself needs
# no bound, because the user has space for it.

VARIABLE: Final = "QPUBSUB_EXPANDED_BYTES"
"""The environment variable that sets another bound than ``DEFAULT_BYTES``."""

DEFAULT_BYTES: Final = 32 << 20
"""A message of 16 MB in hex, four times what a queue takes unless it is altered (MAXMSGL)."""

# What is on disk alone may be more, in proportion to the file: captures of many messages that are alike.
_TIMES: Final = 100


class TooLargeError(OSError):
    """Data that expands beyond the bound. It is an OSError, as whatever else keeps a file from being read further."""


def expanded_bytes() -> int:
    """The bound, in bytes. Raises CaptureError where the environment variable is no whole number above 0."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return DEFAULT_BYTES
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19 and int(text)):
        raise CaptureError(VARIABLE, None, f"{text!r} is not a number of bytes")
    return int(text)


def beyond(what: str, bound: int, *, packed: bool = False) -> str:
    """The clause that says that *what* is larger than the *bound*, and what to do. packed: in a compressed file."""
    otherwise = "decompress the file first, or set" if packed else "set"
    return f"{what} is more than {bound} bytes; {otherwise} {VARIABLE} to allow more"


class Ration:
    """What may be decompressed until the next record is there: it is all that a reader can be holding.

    bound: in bytes; None for no bound.
    """

    __slots__ = ("_bound", "_fed", "_on_disk", "_taken")

    def __init__(self, bound: int | None) -> None:
        self._bound, self._on_disk = bound, False
        self._fed = self._taken = 0

    def feed(self, size: int) -> None:
        """Count *size* bytes more of the compressed file."""
        self._fed += size

    def take(self, size: int) -> None:
        """Count *size* bytes more that came of them. Raises TooLargeError."""
        self._taken += size
        if self._bound is None or self._taken <= self._bound:
            return
        if not self._on_disk:
            raise TooLargeError(beyond("one record, decompressed,", self._bound, packed=True))
        if self._taken > _TIMES * self._fed:
            raise TooLargeError(beyond("the file, decompressed,", max(self._bound, _TIMES * self._fed), packed=True))

    def renew(self) -> None:
        """A record has been read."""
        self._taken = 0

    def lift(self) -> None:
        """The reader passes over any amount of data without holding it."""
        self._bound = None

    def on_disk(self) -> None:
        """Note that all data goes to disk before any of it is read."""
        self._on_disk = True


# The longest message that a queue can hold (MAXMSGL); data with a greater length is not a message.
MAX_MESSAGE_BYTES = 104_857_600
MAX_DESCRIPTOR_BYTES = 364


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """One record of a capture: a message, or the problem that there is instead of one; never both, never neither.

    source: the file. index: of the record in its file, from 0, bad records counted. position: where the record begins,
    as a line number from 1 in text formats, a byte offset in binary ones, a row number from 0 in Parquet.

    partial: with a problem, what is there of a message that is not whole; to be shown, never to be put or replayed.
    taken_for: what a format that searches for messages took the record for, in words; else empty.
    """

    source: str
    index: int
    message: CapturedMessage | None
    problem: CaptureError | None
    position: int
    partial: CapturedMessage | None = None
    taken_for: str = ""

    def __post_init__(self) -> None:
        if (self.message is None) == (self.problem is None):
            raise ValueError("a record is either a message or a problem")
        if self.partial is not None and self.problem is None:
            raise ValueError("what is there of a message is given with a problem only")


class Numbering:
    """Gives ``seq`` to messages of formats that have none: one more than any seen before, from 1."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 1

    def take(self) -> int:
        """The next number."""
        self._next += 1
        return self._next - 1

    def saw(self, seq: int) -> None:
        """Continue above *seq*, which is a message's own."""
        if seq >= self._next:
            self._next = seq + 1


@dataclass(frozen=True, slots=True)
class ReadingPosition:
    """What a reader is given beside the bytes: the name for its problems, and where its ``seq`` comes from.

    expanded_bytes: how much of a record may be made of data that the capture does not hold.
    """

    source: str
    numbering: Numbering
    expanded_bytes: int = DEFAULT_BYTES

    def problem(self, position: int | None, why: str, unit: str) -> CaptureError:
        """A problem at *position* of this source."""
        return CaptureError(self.source, position, why, unit)

    def message(
        self,
        body: bytes,
        md: bytes | None = None,
        *,
        queue: str = "",
        qmgr: str | None = None,
        user: str | None = None,
        time: datetime | None = None,
    ) -> CapturedMessage:
        """The next message of this source; its time, where the format has none, is the descriptor's put time."""
        return self._message(self.numbering.take(), body, md, queue, qmgr, user, time)

    def partial(
        self,
        body: bytes,
        md: bytes | None = None,
        *,
        queue: str = "",
        qmgr: str | None = None,
        user: str | None = None,
        time: datetime | None = None,
    ) -> CapturedMessage:
        """What is there of a message that is not whole; it takes no number."""
        return self._message(0, body, md, queue, qmgr, user, time)

    def _message(
        self,
        seq: int,
        body: bytes,
        md: bytes | None,
        queue: str,
        qmgr: str | None,
        user: str | None,
        time: datetime | None,
    ) -> CapturedMessage:
        return CapturedMessage(
            seq=seq,
            time=put_time(md) if time is None and md is not None else time,
            qmgr=qmgr,
            queue=queue,
            user=user,
            md_hex=None if md is None else md.hex(),
            body_hex=body.hex(),
        )


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A message of which only a part is in the capture: why, and that part."""

    problem: CaptureError
    partial: CapturedMessage


@dataclass(frozen=True, slots=True)
class TakenFor:
    """A record of a format that searches for messages, and what it was taken for, in words."""

    record: CapturedMessage | CaptureError | Incomplete
    what: str


Item = tuple[int, CapturedMessage | CaptureError | Incomplete | TakenFor]
"""What a reader yields: the position of a record, and the message or the problem there."""

Refusal = Callable[[CapturedMessage, CaptureError], None]
"""The function that a writer calls for a message that its format cannot hold; without it the writer stops there."""

Reader = Callable[[BinaryIO, ReadingPosition], Iterator[Item]]


def put_time(md: bytes) -> datetime | None:
    """PutDate and PutTime of the MQMD *md* (GMT, hundredths of a second), or None where they are no time."""
    # Sliced, not decoded: this is done for every message of a capture, and its other fields are not wanted here.
    text = str(md[304:320], ASCII_FIELDS if md[:4] == b"MD  " else EBCDIC_FIELDS)
    if len(text) != 16 or not text.isascii() or not text.isdecimal():
        return None
    try:
        moment = datetime(int(text[:4]), int(text[4:6]), int(text[6:8]), int(text[8:10]), int(text[10:12]), tzinfo=UTC)
        return moment + timedelta(seconds=int(text[12:14]), milliseconds=10 * int(text[14:]))
    except (ValueError, OverflowError):
        return None


# A stream of which the beginning was read already.


def prefixed(first: bytes, stream: BinaryIO) -> BinaryIO:
    """*first*, which was read already, and then the rest of *stream*, as one buffered stream that cannot seek."""
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, _Prefixed(first, stream)), 65_536))


class _Prefixed(io.RawIOBase):
    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._first, self._given = memoryview(first), 0
        # read1 gives what a pipe holds now, where read would wait for more.
        self._read = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if self._given < len(self._first):
            chunk = bytes(self._first[self._given : self._given + len(buffer)])
            self._given += len(chunk)
        else:
            chunk = self._read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


# A message of the greatest length in hex, with room for the other keys of a JSON line.
MAX_LINE_BYTES = 2 * (MAX_MESSAGE_BYTES + MAX_DESCRIPTOR_BYTES) + 1_048_576

_SKIP_BYTES = 1 << 20
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def numbered_lines(
    stream: BinaryIO, limit: int = MAX_LINE_BYTES, *, keep_ends: bool = False
) -> Iterator[tuple[int, bytes | None]]:
    """(line number from 1, line without its end) of each line; None for one of more than *limit* bytes.

    A UTF-8 byte order mark is dropped; UTF-16 with a mark, which PowerShell's ``>`` writes, becomes UTF-8.
    """
    first = stream.readline(limit + 1)
    if first.startswith(_UTF16_BOMS):
        yield from _utf16_lines(first, stream, limit, keep_ends)
        return
    number = 0
    line = first.removeprefix(codecs.BOM_UTF8)
    while line:
        number += 1
        if len(line) > limit and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(_SKIP_BYTES)
            yield number, None
        else:
            yield number, line if keep_ends else line.rstrip(b"\r\n")
        line = stream.readline(limit + 1)


def _utf16_lines(first: bytes, stream: BinaryIO, limit: int, keep_ends: bool) -> Iterator[tuple[int, bytes | None]]:
    number = 0
    text = io.TextIOWrapper(prefixed(first, stream), encoding="utf-16", errors="replace", newline="\n")
    line = text.readline(limit + 1)
    while line:
        number += 1
        if len(line) > limit and not line.endswith("\n"):
            while line and not line.endswith("\n"):
                line = text.readline(_SKIP_BYTES)
            yield number, None
        else:
            yield number, line.encode("utf-8") if keep_ends else line.encode("utf-8").rstrip(b"\r\n")
        line = text.readline(limit + 1)


def as_utf8(head: bytes) -> bytes:
    """*head*, the beginning of a text file, without its byte order mark and in UTF-8."""
    if head.startswith(_UTF16_BOMS):
        order = "utf-16-le" if head.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        return head[2:].decode(order, errors="replace").encode("utf-8")
    return head.removeprefix(codecs.BOM_UTF8)
