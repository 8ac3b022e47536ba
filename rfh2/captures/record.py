"""One record of a capture, and what a format's reader needs to make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.limits import DEFAULT_BYTES
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS
from rfh2.errors import CaptureError

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
