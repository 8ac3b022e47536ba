"""Puts the messages that a command causes, and handles those that their queue refuses (guide 6.5.1, 6.7.6).

refused                              then
publication, temporary queue gone    the subscription goes too, and the publication is dropped (guide 6.7.2)
publication, persistent response     dead-letter queue, with the reason
non-persistent response              as PSNPRES says: NORMAL, SAFE, DISCARD, KEEP
publication, by both                 kept for its queue (``qmgr.backlog``); where that cannot be, the command waits
dead letter                          the command waits
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from commands.broker.objects import LocalQueue, Objects
from commands.broker.outcome import Arrival
from commands.broker.puts import DeadLetters, Outgoing, PutKind
from commands.disk.errors import GONE, MessageRefusedError, QueueError, UndeliverableError
from commands.qmgr.backlog import DEAD_LETTERS, Backlog, lane_of
from commands.qmgr.sending import transmitted
from commands.qmgr.store.messages import StoredMessage
from commands.qmgr.store.port import KeepsUndelivered, PutsAlike, PutsRemotely, UnitOfWork
from commands.templates.parts import APPLICATION
from rfh2.constants import MQPER_PERSISTENT
from rfh2.mqi_constants import MQRC_XMIT_Q_USAGE_ERROR
from rfh2.mqmd import Mqmd

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
