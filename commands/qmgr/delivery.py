"""Puts the messages that a command causes, and handles those that their queue refuses (guide 6.5.1, 6.7.6).

refused                              then
publication, temporary queue gone    the subscription goes too, and the publication is dropped (guide 6.7.2)
publication, persistent response     dead-letter queue, with the reason
non-persistent response              as PSNPRES says: NORMAL, SAFE, DISCARD, KEEP
publication, by both                 kept for its queue (``Backlog``); where that cannot be, the command waits
dead letter                          the command waits

Says which queues refused messages that then went to the dead-letter queue: at once, and then a sum a minute.

A queue may refuse thousands of messages a second. A line for each would fill the log, and no line would leave an
operator to find the dead letters by chance.

Publications that neither their queue nor the dead-letter queue takes: kept, so that other subscribers need not wait.

    put refused ── dead letter refused ── kept, in the unit of work of the command ── tried again, ever more slowly
                                            │ what comes later for the same queue is kept behind it
                                            └─> its queue, the dead-letter queue, or expired

The number and size of what is kept are bounded. Beyond the bound, the command and all commands behind it wait until a
message can be delivered. If PSNPMSG is DISCARD, a non-persistent publication is discarded after PSRTYCNT tries (guide
6.5.1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from commands.broker.objects import LocalQueue, Objects, QueueManager
from commands.broker.outcome import Arrival
from commands.broker.puts import DeadLetters, Outgoing, PutKind
from commands.disk.errors import GONE, UndeliverableError
from commands.qmgr.event_numbers import DEAD_LETTER, RESPONSE_FAILED
from commands.qmgr.sending import transmitted
from commands.qmgr.store.port import (
    KeepsUndelivered,
    PutsAlike,
    PutsRemotely,
    StoredMessage,
    Undelivered,
    UnitOfWork,
)
from commands.templates.parts import APPLICATION
from rfh2.constants import MQPER_PERSISTENT
from rfh2.errors import MessageRefusedError, QueueError
from rfh2.mqi_constants import MQRC_XMIT_Q_USAGE_ERROR
from rfh2.mqmd import Mqmd

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


_log = logging.getLogger("qpubsub.processor")

_STRANDED: Final = (
    "messages for queue manager %s are on transmission queue %s, which was not defined, and no channel takes them from"
    " there; this is queue manager %s. Where programs mean this one, have them name it, or no queue manager, in"
    " ReplyToQMgr, QMgrName and DESTQMGR"
)
STRANDED_HELP: Final = "no channel takes them; if the capture is from there, put it again with qpubsub put --as"
"""The warning about such a queue, for people."""
_MADE_FOR_NEIGHBOUR: Final = "Made by qpubsub run: to a neighbour in the network"
_MADE_FOR_TRANSMISSION: Final = "Made by qpubsub run: messages name this queue manager"


def is_stranding(queue: LocalQueue) -> bool:
    """Whether *queue* is a transmission queue that was never defined, so that no channel takes its messages."""
    return queue.transmission and queue.description == _MADE_FOR_TRANSMISSION


def for_neighbour(name: str) -> LocalQueue:
    """The transmission queue to a neighbour in the network, where the administrator defined none."""
    return LocalQueue(name, description=_MADE_FOR_NEIGHBOUR, transmission=True, def_persistent=True)


@dataclass(slots=True)  # not frozen: there is one for each message
class Cause:
    """The cause of a put. now: UTC. md: the descriptor of the command message; None where no message caused it.

    user: who put the command message. What answers it, or takes its place, is his too, whatever name its descriptor
    has: on some queues it would be a command again.
    """

    now: datetime
    md: bytes | None = None
    user: str | None = None

    @classmethod
    def of(cls, arrival: Arrival) -> Cause:
        """The message that arrived."""
        return cls(arrival.now, arrival.md, arrival.user)

    def user_of(self, put: Outgoing) -> str | None:
        """Who puts *put*, where that is not the user in its descriptor: a subscriber has its publications."""
        return None if put.kind is PutKind.PUBLICATION else self.user

    @property
    def persistent(self) -> bool:
        """Whether the command message is."""
        return self.md is not None and Mqmd.decode(self.md).persistence == MQPER_PERSISTENT


class Deliverer:
    """Puts for one unit of work, by the definitions in *objects*.

    warned: names of transmission queues for which a warning was logged. backlog: None where nothing can be kept.
    """

    def __init__(
        self,
        unit: UnitOfWork,
        objects: Objects,
        warned: set[str] | None = None,
        backlog: Backlog | None = None,
    ) -> None:
        self._unit, self._objects, self._backlog = unit, objects, backlog
        self._warned = set() if warned is None else warned
        self._qmgr = objects.qmgr.name
        # Asked only once, because a check against a protocol takes as long as a put.
        self._routes = unit if isinstance(unit, PutsRemotely) else None
        self._alike = unit.put_alike if isinstance(unit, PutsAlike) else None
        self._undelivered = unit.undelivered if backlog is not None and isinstance(unit, KeepsUndelivered) else None
        self._is_behind = self._undelivered is not None and bool(self._undelivered.queues())
        self._ended: list[bytes] = []

    def take_ended(self) -> list[bytes]:
        """The sub_ids of subscriptions whose temporary dynamic queue was found deleted since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def is_of(self, unit: UnitOfWork, objects: Objects) -> bool:
        """Whether it was made for these two."""
        return self._unit is unit and self._objects is objects

    def deliver(self, put: Outgoing, cause: Cause) -> Outgoing | None:
        """Put *put*, or a dead letter in its place, and return what was put; None where it is dropped.

        A response is dropped as PSNPRES says, a publication if its subscriptions ended with their queue. Raises
        UndeliverableError.
        """
        if self._is_behind and self._is_kept_behind(put, cause):
            return put
        try:
            self._put(put, cause, cause.user_of(put))
        except QueueError as refusal:
            return self._refused(put, refusal, cause)
        return put

    def deliver_all(self, puts: Sequence[Outgoing], cause: Cause) -> Sequence[Outgoing | None]:
        """Put *puts* in order; of each what ``deliver`` returns.

        *puts* itself where a template made them and their queues took all of them.
        """
        alike, delivered, n, count = self._alike, list[Outgoing | None](), 0, len(puts)
        if alike is not None and count and puts[0].accepted is not None and not self._is_behind:
            n = alike(puts, 0, cause.now)
            if n == count:
                return puts
            delivered += puts[:n]
            delivered.append(self.deliver(puts[n], cause))
            n += 1
        while n < count:
            if alike is not None and puts[n].accepted is not None and not self._is_behind:
                begin, n = n, alike(puts, n, cause.now)
                delivered += puts[begin:n]
                if n == count:
                    break
            delivered.append(self.deliver(puts[n], cause))
            n += 1
        return delivered

    def _is_kept_behind(self, put: Outgoing, cause: Cause) -> bool:
        """Keep *put* behind the messages that are already kept for its queue; False where there are none."""
        assert self._undelivered is not None
        lane = self._lane(put)
        if put.kind is not PutKind.PUBLICATION or lane not in self._undelivered.queues():
            return False
        self._keep_back(put, cause, f"queue {lane}: something is kept for it already")
        return True

    def _lane(self, put: Outgoing) -> str:
        """The queue to which *put* is kept for: its own, or the transmission queue if this queue manager has that."""
        if put.qmgr == self._qmgr:
            return put.queue
        return put.qmgr if self._routes is None else lane_of(put.queue, put.qmgr)

    def _keep_back(self, put: Outgoing, cause: Cause, why: str) -> None:
        """Keep *put*, a publication, until its queue takes it. Raises UndeliverableError where it cannot be kept."""
        backlog, undelivered = self._backlog, self._undelivered
        if backlog is None or undelivered is None:
            raise UndeliverableError(why)
        lane = self._lane(put)
        if put.qmgr != self._qmgr and self._routes is None:
            put = transmitted(put)
        if not backlog.takes(undelivered, len(put.body)):
            raise UndeliverableError(f"{why}; no more undelivered publications can be kept")
        mqmd = put.mqmd
        persistent = mqmd.persistence == MQPER_PERSISTENT or cause.persistent
        user = mqmd.user_identifier or None
        kept = StoredMessage(0, put.queue, cause.now, user, put.md, put.body, persistent, 0, put.expires_at)
        try:
            backlog.add(undelivered, lane, kept, why)
        except QueueError as full:
            raise UndeliverableError(f"{why}; it cannot be kept for its subscriber: {full}") from full
        self._is_behind = True

    def _put(self, put: Outgoing, cause: Cause, user: str | None) -> None:
        if self._routes is None and put.qmgr != self._qmgr:
            put = transmitted(put)
            self._have_transmission_queue(put.queue)
        if self._routes is not None:
            named = user or put.mqmd.user_identifier or None
            self._routes.put_remote(put.qmgr, put.queue, put.md, put.body, user=named, application=APPLICATION)
            return
        self._unit.put(
            put.queue,
            put.md,
            put.body,
            time=cause.now,
            user=user,
            application=APPLICATION,
            expires_at=put.expires_at,
        )

    def _have_transmission_queue(self, name: str) -> None:
        """Make the queue if it does not exist; warn once of one that was never defined.

        Raises QueueError, 2092 where the queue manager's name is that of another queue, or of an alias.
        """
        queue = self._unit.find_queue(name)
        if queue is None:
            made = self._unit.ensure_queue(name)
            queue = replace(made, transmission=True, description=_MADE_FOR_TRANSMISSION)
            self._unit.save_definition(queue)
            self._objects.put(queue)
        elif not queue.transmission:
            why = f"it is not a transmission queue, so nothing can be sent to queue manager {name}"
            raise QueueError(MQRC_XMIT_Q_USAGE_ERROR, name, why)
        if queue.description == _MADE_FOR_TRANSMISSION and name not in self._warned:
            self._warned.add(name)
            _log.warning(_STRANDED, name, name, self._qmgr)

    def _refused(self, put: Outgoing, refusal: QueueError, cause: Cause) -> Outgoing | None:
        if put.temporary and refusal.reason in GONE:
            self._ended += put.temporary
            return None
        response = put.kind is PutKind.RESPONSE
        may_go = response and put.mqmd.persistence != MQPER_PERSISTENT
        mode = self._objects.qmgr.psnpres
        if may_go and mode == "DISCARD":
            return None
        if may_go and mode == "KEEP":
            raise UndeliverableError(str(refusal), for_ever=True)
        if put.kind is PutKind.DEADLETTER:
            raise UndeliverableError(str(refusal))
        instead = self._dead(put, refusal, cause)
        try:
            self._put(instead, cause, cause.user_of(put))
        except QueueError as second:
            if may_go and mode == "NORMAL":
                return None
            why = f"{refusal}; the dead-letter queue does not take it: {second}"
            if put.kind is PutKind.PUBLICATION:
                # If the queue can never take a message, that message must not delay those behind it.
                never = isinstance(refusal, MessageRefusedError)
                self._keep_back(instead._replace(queue=DEAD_LETTERS) if never else put, cause, why)
                return put
            raise UndeliverableError(why, for_ever=response and mode == "SAFE") from second
        return instead

    def _dead(self, put: Outgoing, refusal: QueueError, cause: Cause) -> Outgoing:
        letters = DeadLetters(self._qmgr, self._objects.qmgr.deadq)
        mqmd, reason = put.mqmd, refusal.reason
        letter = letters.put(mqmd, put.body, reason, put.queue, cause.now, qmgr=put.qmgr, expires_at=put.expires_at)
        return letter._replace(topic=put.topic, sub_name=put.sub_name)


_EVERY: Final = timedelta(minutes=1)
# Queues are named by messages: their number must not fill the memory.
_MOST_KNOWN: Final = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that is a dead letter instead. queue: which refused it; reason: why."""

    kind: PutKind
    queue: str
    reason: int | None


@dataclass(slots=True)
class _Known:
    due: datetime
    count: int = 0


class RefusalLog:
    """For one processor."""

    def __init__(self) -> None:
        self._known: dict[Refusal, _Known] = {}

    def committed(self, refusals: Mapping[Refusal, int], now: datetime) -> None:
        """Note the refusals of a unit of work that is committed."""
        for refusal, count in refusals.items():
            known = self._known.get(refusal)
            if known is None:
                if len(self._known) >= _MOST_KNOWN:
                    self.end()
                known = self._known[refusal] = _Known(now)
            known.count += count
        self.flush(now)

    def flush(self, now: datetime) -> None:
        """Log what is due."""
        for refusal, known in list(self._known.items()):
            # The clock may have been set back.
            if known.count and (now >= known.due or known.due - now > _EVERY):
                self._say(refusal, known.count)
                known.due, known.count = now + _EVERY, 0
            elif not known.count and now >= known.due:
                del self._known[refusal]

    def end(self) -> None:
        """Log all that was not logged: the processor ends."""
        for refusal, known in self._known.items():
            if known.count:
                self._say(refusal, known.count)
        self._known.clear()

    @staticmethod
    def _say(refusal: Refusal, count: int) -> None:
        is_response = refusal.kind is PutKind.RESPONSE
        numbers = (RESPONSE_FAILED, DEAD_LETTER) if is_response else (DEAD_LETTER,)
        what = f"{refusal.kind.value}{'' if count == 1 else 's'}"
        about = {"queue": refusal.queue, "reason": refusal.reason, "count": count, "numbers": numbers}
        text = "queue %s refused %d %s with reason %s: put on the dead-letter queue"
        _log.warning(text, refusal.queue, count, what, refusal.reason, extra=about)
