"""Captured messages as they arrive: in the order of ``seq``, each at its queue manager and at its time.

The order of every engine is that of ``seq``, and of the queue managers' names where several have the same ``seq``. In
one queue manager a ``seq`` belongs to one message: an exact copy is passed over, since captures that are sent at least
once have such copies, and a different message with the same ``seq`` is an error, because their order is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from commands.broker.outcome import Arrival
from commands.broker.times import EPOCH
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

DEFAULT_QMGR: Final = "QM1"
"""The queue manager of messages that name none."""


class OutOfOrderError(QPubSubError):
    """A message has a lower ``seq`` than the one before it: the capture has to be sorted first."""


class RepeatedSeqError(QPubSubError):
    """Two different messages of a queue manager have the same ``seq``, so their order is not known."""

    @classmethod
    def of(cls, seq: int, qmgr: str) -> RepeatedSeqError:
        """The error of message *seq* at *qmgr*."""
        return cls(
            f"seq {seq} is that of two different messages at queue manager {qmgr}: give the messages of each capture "
            "the qmgr at which they were captured, or number them in the order of their arrival"
        )


def in_order(messages: Iterable[CapturedMessage], *, monotonic_clock: bool = False) -> Iterator[CapturedMessage]:
    """*messages*, which are in the order of ``seq``, with those of one seq in the order of queue managers.

    Exact copies come once. monotonic_clock: a message with an earlier time than the one before it at its queue manager
    gets the time of that one. Raises RepeatedSeqError. A seq that decreases is for the one who processes them to
    notice.
    """
    ordered = _ordered(messages)
    return _never_earlier(ordered) if monotonic_clock else ordered


def _never_earlier(messages: Iterable[CapturedMessage]) -> Iterator[CapturedMessage]:
    latest: dict[str, datetime] = {}
    for message in messages:
        qmgr = message.qmgr or DEFAULT_QMGR
        if message.time is None or message.time >= latest.get(qmgr, message.time):
            latest[qmgr] = message.time or latest.get(qmgr, EPOCH)
            yield message
        else:
            yield message.model_copy(update={"time": latest[qmgr]})


def _ordered(messages: Iterable[CapturedMessage]) -> Iterator[CapturedMessage]:
    held: list[CapturedMessage] = []
    for message in messages:
        if held and message.seq != held[0].seq:
            yield from held if len(held) == 1 else _by_queue_manager(held)
            held.clear()
        held.append(message)
    yield from _by_queue_manager(held)


def _by_queue_manager(messages: list[CapturedMessage]) -> Iterator[CapturedMessage]:
    """*messages*, which have one seq."""
    first: dict[str, CapturedMessage] = {}
    for message in messages:
        qmgr = message.qmgr or DEFAULT_QMGR
        if _contents(first.setdefault(qmgr, message)) != _contents(message):
            raise RepeatedSeqError.of(message.seq, qmgr)
    for qmgr in sorted(first):
        yield first[qmgr]


def _contents(message: CapturedMessage) -> tuple[object, ...]:
    md = None if message.md_hex is None else bytes.fromhex(message.md_hex)
    return message.time, message.queue, message.user, md, bytes.fromhex(message.body_hex)


class Arrivals:
    """What captured messages become, one after another."""

    def __init__(self) -> None:
        self._last = -1
        self._times: dict[str, datetime] = {}

    def of(self, message: CapturedMessage) -> tuple[str, Arrival]:
        """The queue manager of *message*, and its arrival there. Raises OutOfOrderError.

        A message without a time has the time of the message before it at its queue manager.
        """
        seq, time = message.seq, message.time
        if seq < self._last:
            raise OutOfOrderError(f"seq {seq} comes after seq {self._last}")
        self._last = seq
        qmgr = message.qmgr or DEFAULT_QMGR
        if time is None:
            time = self._times.get(qmgr, EPOCH)
        else:
            self._times[qmgr] = time
        # Not message.md and message.body, which the message would keep: most messages are read this once.
        md = None if message.md_hex is None else bytes.fromhex(message.md_hex)
        return qmgr, Arrival(seq, time, message.queue, md, bytes.fromhex(message.body_hex), message.user)
