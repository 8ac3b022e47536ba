"""Which messages of a capture a verb reads or shows: ``--where``, ``--since``, ``--until``, ``--seq``, ``--limit``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.explain.selection.values import NAMES, MessageValues, moment
from commands.explain.selection.where import SelectionError, Where, compile_where
from rfh2.captured import HIGHEST_SEQ, CapturedMessage
from rfh2.captures import CaptureRecord

__all__ = [
    "EVERYTHING",
    "NAMES",
    "Choosing",
    "MessageSelection",
    "MessageValues",
    "SelectionError",
    "SeqRanges",
    "Where",
    "compile_where",
    "moment",
]


# A selection of captured messages: all conditions have to be true of a message.


@dataclass(frozen=True, slots=True)
class SeqRanges:
    """Numbers of messages. ranges: first and last of each range, both included.

    >>> 12 in SeqRanges.parse("3,10-20,500-"), 21 in SeqRanges.parse("3,10-20,500-")
    (True, False)
    """

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> SeqRanges:
        """Numbers and ranges with commas between them; a range can lack its first or its last. Raises ValueError."""
        return cls(tuple(_range(part.strip()) for part in text.split(",")))

    def __contains__(self, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self.ranges)

    @property
    def only(self) -> int | None:
        """The number, where it is just one."""
        first, last = self.ranges[0]
        return first if len(self.ranges) == 1 and first == last else None


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (first or last) or not all(part.isascii() and part.isdecimal() for part in (first, last) if part):
        raise ValueError(f"{text!r} is not a number or a range such as 10-20")
    low = int(first) if first else 0
    high = low if not dash else int(last) if last else HIGHEST_SEQ
    if high < low:
        raise ValueError(f"{text!r}: the range ends before it begins")
    return low, high


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """The messages that a verb reads or shows.

    where: a condition. since: not earlier. until: earlier than this. seqs: of these numbers. limit: the first so many
    of those that the others select. A message without a time is in no span of time.
    """

    where: Where | None = None
    since: datetime | None = None
    until: datetime | None = None
    seqs: SeqRanges | None = None
    limit: int | None = None

    @property
    def has_conditions(self) -> bool:
        """Whether something is asked of each message."""
        return not (self.where is None and self.since is None and self.until is None and self.seqs is None)

    @property
    def is_all(self) -> bool:
        """Whether every message is selected."""
        return self.limit is None and not self.has_conditions

    @property
    def texts(self) -> tuple[str | None, ...]:
        """The conditions and the limit as texts; equal for selections that are equal, on every machine."""
        where = None if self.where is None else self.where.text
        times = (None if at is None else at.isoformat() for at in (self.since, self.until))
        return where, *times, *(None if each is None else repr(each) for each in (self.seqs, self.limit))

    def selects(self, message: CapturedMessage) -> bool:
        """Whether all conditions are true of *message*. The limit is not among them."""
        if self.seqs is not None and message.seq not in self.seqs:
            return False
        if self.since is not None or self.until is not None:
            time = message.time or MessageValues(message).time
            if time is None:
                return False
            if (self.since is not None and time < self.since) or (self.until is not None and time >= self.until):
                return False
        return self.where is None or self.where.selects(message)

    def of_records(self, records: Iterable[CaptureRecord]) -> Iterator[CaptureRecord]:
        """The records whose messages are selected, in order, up to the limit.

        Records that cannot be read are passed on, and do not count: the caller reports them, or shows them.
        """
        left = self.limit
        has_conditions = self.has_conditions
        for record in records:
            message = record.message
            if message is None:
                yield record
            elif not has_conditions or self.selects(message):
                yield record
                if left is not None:
                    left -= 1
                    if not left:
                        return


class Choosing:
    """For a verb that needs every message, and shows those that are selected."""

    def __init__(self, selection: MessageSelection) -> None:
        self._selection = selection
        self._left = selection.limit

    @property
    def is_over(self) -> bool:
        """Whether no further message will be chosen, because there were as many as the limit allows."""
        return self._left == 0

    def chooses(self, message: CapturedMessage) -> bool:
        """Whether this message, the next one of the capture, is one of them."""
        if self._left == 0 or not (self._selection.is_all or self._selection.selects(message)):
            return False
        if self._left is not None:
            self._left -= 1
        return True


EVERYTHING: Final = MessageSelection()
