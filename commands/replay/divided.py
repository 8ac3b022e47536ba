"""A capture divided between processes, of which each replays the whole control plane and its share of publications.

    messages of the capture     C P P C P P P C P      C: control, P: plain publications
    share of the first process  C P P C       C
    share of the second         C     C P P P C P

A plain publication leaves nothing behind (``plain_publications``), except that time passes with it; every other message
may, and is in each share. So in each process a message finds the state that it finds in a replay in one process. The
messages are divided in runs, which the processes get in turn; a message is *counted* in one share, whose process writes
its results. Put together in the order of the runs, these are what one process writes, byte for byte.

Things expire with the first message behind their time, whichever that is, as long as clocks do not go back. Where one
does, and something may have expired with a message that a process did not see, ``ClockWentBackError`` is raised: the
capture has to be replayed in one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival
from commands.replay.arrivals import Arrivals
from commands.replay.plain_publications import is_plain
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

_RUN_MESSAGES: Final = 500
_RUN_BYTES: Final = 2 << 20


class ClockWentBackError(QPubSubError):
    """A message has an earlier time than the one before it at its queue manager."""


class SharedMessage(NamedTuple):
    """A message in a share. counted: whether this process writes its results. The rest is that of ``Arrival``."""

    counted: bool
    qmgr: str
    seq: int
    now: datetime
    queue: str
    md: bytes | None
    body: bytes
    user: str | None

    @property
    def arrival(self) -> Arrival:
        """Its arrival."""
        return Arrival(self.seq, self.now, self.queue, self.md, self.body, self.user)


class Share(NamedTuple):
    """What a process has to do next. counted: how many of its messages are."""

    messages: list[SharedMessage]
    counted: int


def shares(messages: Iterable[CapturedMessage], processes: int) -> Iterator[Share]:
    """The shares of *processes* in turn, until all *messages* are in one.

    Raises OutOfOrderError, and ClockWentBackError.
    """
    arrivals, latest = Arrivals(), dict[str, datetime]()
    waiting: list[list[SharedMessage]] = [[] for _ in range(processes)]
    turn = count = size = 0
    for message in messages:
        qmgr, arrival = arrivals.of(message)
        seq, now, queue, md, body, user = (
            arrival.seq,
            arrival.now,
            arrival.queue,
            arrival.md,
            arrival.body,
            arrival.user,
        )
        before = latest.get(qmgr)
        if before is not None and now < before:
            raise ClockWentBackError(f"seq {seq} is earlier than the message before it")
        latest[qmgr] = now
        # What the setup defined begins with the first message of a queue manager.
        if before is None or queue == CONTROL_QUEUE or not is_plain(body):
            other = SharedMessage(False, qmgr, seq, now, queue, md, body, user)
            for number, share in enumerate(waiting):
                if number != turn:
                    share.append(other)
        waiting[turn].append(SharedMessage(True, qmgr, seq, now, queue, md, body, user))
        count += 1
        size += len(body)
        if count >= _RUN_MESSAGES or size >= _RUN_BYTES:
            yield Share(waiting[turn], count)
            waiting[turn] = []
            turn, count, size = (turn + 1) % processes, 0, 0
    if count:
        yield Share(waiting[turn], count)
