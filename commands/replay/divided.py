"""A capture divided between processes, of which each replays the whole control plane and its share of publications.

    messages of the capture     C P P C P P P C P      C: control, P: plain publications
    share of the first process  C P P C       C
    share of the second         C     C P P P C P

A plain publication leaves nothing behind (``is_plain``), except that time passes with it; every other message
may, and is in each share. So in each process a message finds the state that it finds in a replay in one process. The
messages are divided in runs, which the processes get in turn; a message is *counted* in one share, whose process writes
its results. Put together in the order of the runs, these are what one process writes, byte for byte.

Things expire with the first message behind their time, whichever that is, as long as clocks do not go back. Where one
does, and something may have expired with a message that a process did not see, ``ClockWentBackError`` is raised: the
capture has to be replayed in one process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival
from commands.replay.arrivals import Arrivals
from rfh2.captured import CapturedMessage
from rfh2.ccsid import UTF8_CCSID
from rfh2.errors import QPubSubError
from rfh2.rfh2 import STRUC_ID

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


# Plain publications: separated from all that matters for subscriptions and retained publications by their bytes alone.
#
# A message that begins as nearly all publications do, with an MQRFH2 whose first folder is
# ``<psc><Command>Publish</Command>`` in UTF-8, and that has neither ``RetainPub``, nor a character reference, nor a
# PubOpt that may be a decimal sum anywhere in it, leaves nothing retained and deletes nothing.

_VERSIONS: Final = (b"\0\0\0\2", b"\2\0\0\0")
_UTF8: Final = (UTF8_CCSID.to_bytes(4, "big"), UTF8_CCSID.to_bytes(4, "little"))
_VERSION: Final = slice(4, 8)
_CCSID: Final = slice(32, 36)
_FOLDER_AT: Final = 40
_PLAIN: Final = b"<psc><Command>Publish</Command>"
# A start tag with more than its name, or a value that does not begin as a word does. JMS clients put the word None.
_MAYBE_SUM: Final = re.compile(rb"(^|[^/])PubOpt([^>]|>[^A-Za-z]|$)")


def is_plain(body: bytes) -> bool:
    """Whether a message on a stream queue is a Publish, or an error, that leaves nothing retained; else it may be."""
    return (
        body.startswith(_PLAIN, _FOLDER_AT)
        and body.startswith(STRUC_ID)
        and body[_VERSION] in _VERSIONS
        and body[_CCSID] in _UTF8
        and b"RetainPub" not in body
        and b"&#" not in body
        and not (b"PubOpt" in body and _MAYBE_SUM.search(body))
    )
