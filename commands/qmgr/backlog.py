"""Publications that neither their queue nor the dead-letter queue takes: kept, so that other subscribers need not wait.

    put refused ── dead letter refused ── kept, in the unit of work of the command ── tried again, ever more slowly
                                            │ what comes later for the same queue is kept behind it
                                            └─> its queue, the dead-letter queue, or expired

The number and size of what is kept are bounded. Beyond the bound, the command and all commands behind it wait until a
message can be delivered. If PSNPMSG is DISCARD, a non-persistent publication is discarded after PSRTYCNT tries (guide
6.5.1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from commands.broker.objects import QueueManager
from commands.broker.puts import DeadLetters
from commands.disk.errors import GONE, QueueError
from commands.qmgr.store.messages import StoredMessage
from commands.qmgr.store.port import (
    KeepsUndelivered,
    PutsRemotely,
    Undelivered,
    UnitOfWork,
)
from rfh2.mqmd import Mqmd

_log = logging.getLogger("qpubsub.processor")

MOST_MESSAGES: Final = 100_000
MOST_BYTES: Final = 1_000_000_000
# The lane of messages that already are dead letters.
DEAD_LETTERS: Final = ""
_PAGE: Final = 500
_FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 30.0


def lane_of(queue: str, qmgr: str = "") -> str:
    """The name of the lane of what is undelivered for *queue* at *qmgr*; *qmgr* is "" for this queue manager."""
    return f"{queue}@{qmgr}" if qmgr else queue  # no name of an object has an @


def destination(lane: str) -> tuple[str, str]:
    """The queue and the queue manager of a lane."""
    queue, _, qmgr = lane.partition("@")
    return queue, qmgr


@dataclass(frozen=True, slots=True)
class Retried:
    """The result of one try. count: how many are kept no longer. more: whether more could be delivered at once."""

    count: int = 0
    more: bool = False


@dataclass(slots=True)
class _Pace:
    """When a lane is tried again: *pause_s* seconds after *tried*; at once where that is None."""

    pause_s: float = _FIRST_PAUSE_S
    tried: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        # Someone may have set the clock back.
        return self.tried is None or abs((now - self.tried).total_seconds()) >= self.pause_s


class Backlog:
    """The messages that one processor owes.

    Each queue has its own pace. One that takes some messages and refuses the next is being read: it is tried again
    soon, or a short queue would get no more in each long pause than it holds.

    clock: UTC now. longest_pause_s: the longest pause between two tries. most_messages, most_bytes: the most that may
    be undelivered in all.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        longest_pause_s: float,
        most_messages: int = MOST_MESSAGES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._clock, self._longest_pause_s = clock, longest_pause_s
        self._most_messages, self._most_bytes = most_messages, most_bytes
        self._messages = self._bytes = 0
        self._is_counted = False
        self._paces: dict[str, _Pace] = {}
        self._page = _PAGE
        self._trying = 0  # number tried in a unit of work that may fail as a whole
        self._may_have = True  # an earlier processor may have left messages
        self._logged: set[str] = set()

    @property
    def is_due(self) -> bool:
        """Whether it should be tried now."""
        if not self._may_have or not self._paces:
            return self._may_have
        now = self._clock()
        return any(pace.is_due(now) for pace in self._paces.values())

    def hasten(self) -> None:
        """The next try is of all queues."""
        for pace in self._paces.values():
            pace.tried = None

    @property
    def messages(self) -> int:
        """How many are undelivered: as of the last try, with those added since."""
        return self._messages

    def doubt(self) -> None:
        """Forget the counts: a unit of work was backed out, or another process has changed what is undelivered."""
        self._may_have, self._is_counted = True, False
        if self._trying:
            self._page, self._trying = max(1, self._trying // 2), 0

    def takes(self, undelivered: Undelivered, size_bytes: int) -> bool:
        """Whether there is room for one more."""
        if not self._is_counted:
            self._count(undelivered)
        return self._messages < self._most_messages and self._bytes + size_bytes <= self._most_bytes

    def add(self, undelivered: Undelivered, queue: str, message: StoredMessage, why: str) -> None:
        """Owe *message* to *queue* from now on. Raises QueueError where there is no room to keep it."""
        undelivered.keep(
            queue,
            message.md,
            message.body,
            time=message.time,
            user=message.user,
            expires_at=message.expires_at,
            persistent=message.persistent,
        )
        self._messages += 1
        self._bytes += len(message.body)
        if queue not in self._paces:
            self._paces[queue] = _Pace(tried=self._clock())
        self._may_have = True
        if queue not in self._logged:
            self._logged.add(queue)
            text = "publications for %s are kept until they can be delivered, and other subscribers get theirs: %s"
            _log.error(text, _named(queue), why, extra={"queue": queue})

    def retry(self, unit: UnitOfWork, qmgr: QueueManager) -> Retried:
        """Deliver what can be delivered, up to a page for each queue whose pause is over.

        A unit of work without savepoints also has a limit of size (MAXUMSGS): it delivers one page for all queues. If
        one fails, the next pages are half as large, as long as there are more messages.
        """
        if not self._may_have or not isinstance(unit, KeepsUndelivered):
            self._may_have = False
            return Retried()
        undelivered, count, more, is_limited = unit.undelivered, 0, False, not unit.has_savepoints
        self._trying = 0
        queues = sorted(undelivered.queues())
        share = max(1, self._page // max(1, len(queues))) if is_limited else _PAGE
        for queue in queues:
            if is_limited and count >= self._page:
                more = True
                break
            pace, now = self._paces.setdefault(queue, _Pace()), self._clock()
            if not pace.is_due(now):
                continue
            delivered, refusal = self._retry_one(unit, undelivered, queue, share, qmgr)
            count += delivered
            more = more or (delivered > 0 and refusal is None)
            pace.tried = None if delivered > 0 and refusal is None else now
            pace.pause_s = _FIRST_PAUSE_S if delivered else min(pace.pause_s * 2, self._longest_pause_s)
            if refusal is not None and not delivered:
                if queue not in self._logged:
                    self._logged.add(queue)
                    text = "%s: publications that were kept cannot be delivered yet: %s"
                    _log.error(text, _named(queue), refusal, extra={"queue": queue})
                most = qmgr.psrtycnt if qmgr.psnpmsg == "DISCARD" else None
                if given_up := undelivered.tried(queue, most):
                    text = "%s: %d non-persistent publications are discarded (PSNPMSG)"
                    _log.error(text, _named(queue), given_up, extra={"queue": queue})
        left = undelivered.queues()
        for queue in self._logged - left:
            _log.info("%s: nothing is kept for it any more", _named(queue))
        self._logged &= left
        self._paces = {queue: pace for queue, pace in self._paces.items() if queue in left}
        self._count(undelivered)
        self._may_have = bool(left)
        self._page = self._page if more else _PAGE
        return Retried(count, more)

    def _count(self, undelivered: Undelivered) -> None:
        self._messages, self._bytes = undelivered.total() if undelivered.queues() else (0, 0)
        self._is_counted = True

    def _retry_one(
        self, unit: UnitOfWork, undelivered: Undelivered, queue: str, most: int, qmgr: QueueManager
    ) -> tuple[int, QueueError | None]:
        """How many of the first *most* for *queue* were delivered, and the error that refused the next one."""
        delivered, now = 0, self._clock()
        messages = iter(undelivered.first(queue, most, now))
        while True:
            try:
                message = next(messages, None)
            except QueueError as unreadable:
                return delivered, unreadable
            if message is None:
                return delivered, None
            self._trying += 0 if unit.has_savepoints else 1
            if message.expires_at is None or message.expires_at > now:
                refusal = _delivered(unit, undelivered, queue, message, qmgr, now)
                if refusal is not None:
                    return delivered, refusal
            undelivered.remove(message)
            delivered += 1


def _delivered(
    unit: UnitOfWork, undelivered: Undelivered, lane: str, message: StoredMessage, qmgr: QueueManager, now: datetime
) -> QueueError | None:
    """Put *message* on the queue of *lane* or the dead-letter queue; the latter's error if neither takes it.

    If the temporary dynamic queue of a message no longer exists, the message is dropped (guide 6.7.2).
    """
    mqmd, body = replace(Mqmd.decode(message.md), backout_count=0), message.body

    def refusal_of(name: str, at: str = "") -> QueueError | None:
        try:
            if at and isinstance(unit, PutsRemotely):
                unit.put_remote(at, name, mqmd.encode(), body, user=message.user)
            else:
                unit.put(name, mqmd.encode(), body, time=now, user=message.user, expires_at=message.expires_at)
        except QueueError as refusal:
            return refusal
        return None

    if lane != DEAD_LETTERS:
        queue, at = destination(lane)
        refusal = refusal_of(queue, at)
        if refusal is None or (refusal.reason in GONE and undelivered.is_temporary(lane)):
            return None
        letter = DeadLetters(qmgr.name, qmgr.deadq).put(mqmd, body, refusal.reason, queue, now, qmgr=at or None)
        mqmd, body = letter.mqmd, letter.body
    return refusal_of(qmgr.deadq)


def _named(queue: str) -> str:
    return "the dead-letter queue" if queue == DEAD_LETTERS else f"queue {queue}"
