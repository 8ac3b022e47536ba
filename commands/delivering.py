"""Putting what a command causes, and what becomes of it where its queue refuses (guide 6.5.1, 6.7.6).

refused                              then
publication, persistent response     dead-letter queue, with the reason
non-persistent response              as PSNPRES says: NORMAL, SAFE, DISCARD, KEEP
dead letter                          the command has to wait
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from commands.broker import Arrival, Broker
from commands.deadletter import dead_letter
from commands.puts import Completion, Outgoing, PutKind
from commands.queues.errors import QueueError
from commands.queues.port import PutsRemotely, UnitOfWork
from commands.repeats import Again
from commands.stamps import Origin
from commands.transmission import transmitted
from rfh2.constants import MQPER_PERSISTENT
from rfh2.errors import StoreError
from rfh2.message import Message
from rfh2.mqmd import Mqmd

_APPLICATION: Final = "qpubsub"
_MADE_FOR_TRANSMISSION: Final = "Made by qpubsub run: messages name this queue manager"


class UndeliverableError(StoreError):
    """A put that neither its queue nor the dead-letter queue took: the command has to wait.

    for_ever: PSNPRES asks for it to be tried until it works.
    """

    def __init__(self, why: str, for_ever: bool = False) -> None:
        super().__init__(why, for_ever)
        self.why, self.for_ever = why, for_ever

    def __str__(self) -> str:
        return self.why


class Deliverer:
    """Puts for one unit of work, with what *broker* knows of the queue manager.

    stranded: told the name of each transmission queue that nobody defined, when something is put there.
    """

    def __init__(self, unit: UnitOfWork, broker: Broker, stranded: Callable[[str], None] | None = None) -> None:
        self._unit, self._broker, self._stranded = unit, broker, stranded
        self._qmgr = broker.qmgr
        # Asked once: looking at a protocol costs as much as a put.
        self._routes = unit if isinstance(unit, PutsRemotely) else None

    def is_of(self, unit: UnitOfWork, broker: Broker) -> bool:
        """Whether it was made for these two."""
        return self._unit is unit and self._broker is broker

    def deliver(self, put: Outgoing, arrival: Arrival) -> Outgoing | None:
        """Put *put*, or what stands in for it, and return that; None where PSNPRES lets it be dropped.

        Raises UndeliverableError.
        """
        try:
            self._put(put, arrival)
        except QueueError as refusal:
            return self._refused(put, refusal, arrival)
        return put

    def deliver_again(self, again: Again, arrival: Arrival) -> list[Outgoing | None]:
        """Put the publications of *again*, all for this queue manager; what ``deliver`` says of those refused."""
        put, now = self._unit.put, arrival.now
        refused: list[Outgoing | None] = []
        for queue, md, body in zip(again.kept.queues, again.mds, again.bodies, strict=True):
            try:
                put(queue, md, body, time=now, application=_APPLICATION)
            except QueueError as refusal:
                message = Message(Mqmd.decode(md), (), body)
                whole = Outgoing(PutKind.PUBLICATION, self._qmgr, queue, message, body)
                refused.append(self._refused(whole, refusal, arrival))
        return refused

    def _put(self, put: Outgoing, arrival: Arrival) -> None:
        if self._routes is None and put.qmgr != self._qmgr:
            put = transmitted(put)
            self._have_transmission_queue(put.queue)
        mqmd = put.message.mqmd
        md, user = mqmd.encode(), mqmd.user_identifier or None
        if self._routes is not None:
            self._routes.put_remote(put.qmgr, put.queue, md, put.body, user=user, application=_APPLICATION)
            return
        self._unit.put(
            put.queue, md, put.body, time=arrival.now, user=user, application=_APPLICATION, expires_at=put.expires_at
        )

    def _have_transmission_queue(self, name: str) -> None:
        """Make the queue where there is none; one that no administrator defined is told of. Raises QueueError."""
        queue = self._unit.find_queue(name)
        if queue is None:
            made = self._unit.ensure_queue(name)
            queue = replace(made, transmission=True, description=_MADE_FOR_TRANSMISSION)
            self._unit.save_definition(queue)
        if self._stranded is not None and queue.description == _MADE_FOR_TRANSMISSION:
            self._stranded(queue.name)

    def _refused(self, put: Outgoing, refusal: QueueError, arrival: Arrival) -> Outgoing | None:
        response = put.kind is PutKind.RESPONSE
        may_go = response and put.message.mqmd.persistence != MQPER_PERSISTENT
        mode = self._broker.objects.qmgr.psnpres
        if may_go and mode == "DISCARD":
            return None
        if may_go and mode == "KEEP":
            raise UndeliverableError(str(refusal), for_ever=True)
        if put.kind is PutKind.DEADLETTER:
            raise UndeliverableError(str(refusal))
        instead = self._dead(put, refusal, arrival)
        try:
            self._put(instead, arrival)
        except QueueError as second:
            if may_go and mode == "NORMAL":
                return None
            why = f"{refusal}; the dead-letter queue does not take it: {second}"
            raise UndeliverableError(why, for_ever=response and mode == "SAFE") from second
        return instead

    def _dead(self, put: Outgoing, refusal: QueueError, arrival: Arrival) -> Outgoing:
        origin = Origin.of(self._qmgr, arrival.now)
        mqmd, body = dead_letter(put.message.mqmd, put.body, refusal.reason, put.queue, put.qmgr, origin)
        return replace(
            put,
            kind=PutKind.DEADLETTER,
            qmgr=self._qmgr,
            queue=self._broker.objects.qmgr.deadq,
            message=replace(put.message, mqmd=mqmd),
            body=body,
            completion=Completion.ERROR,
            reason=refusal.reason,
        )
