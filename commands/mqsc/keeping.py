"""From an answer to a unit of work: what a command has changed is saved, what it delivers is put.

A retained publication that a new subscription's queue refuses goes to the dead-letter queue, as one that was just
published would.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from commands.broker.dead_letter import dead_letter
from commands.broker.forward import Forwarder
from commands.broker.identifiers import Origin
from commands.broker.objects import Objects
from commands.broker.puts import Outgoing, PutKind
from commands.broker.transmission import transmitted
from commands.mqsc.answers import Answer, DefinitionDeleted, DefinitionStored
from commands.qmgr.store.errors import QueueError
from commands.qmgr.store.port import UnitOfWork
from rfh2.message import Message
from streams.operations import Delivery

_APPLICATION: Final = "qpubsub mqsc"
# A queue manager gives a message without an identifier one of its own.
_NO_MSG_ID: Final = bytes(24)


class UnitQueues:
    """``QueueAdmin`` on a unit of work. A queue whose definition is not saved yet holds nothing."""

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit

    def depth(self, name: str) -> int:
        """How many messages are on the local queue."""
        return self._unit.depth(name) if self._unit.find_queue(name) is not None else 0

    def clear(self, name: str) -> int:
        """Take all messages off the local queue; returns how many there were."""
        return self._unit.clear_queue(name) if self._unit.find_queue(name) is not None else 0


def keep(answer: Answer, objects: Objects, unit: UnitOfWork, now: datetime) -> None:
    """Save what *answer* says has changed, in order, and put what it delivers.

    now: UTC. Raises StoreError where that cannot be: then the command must not count as done.
    """
    deliverer = _Deliverer(objects, unit, now)
    for change in answer.changes:
        if isinstance(change, DefinitionStored):
            unit.save_definition(change.definition)
        elif isinstance(change, DefinitionDeleted):
            unit.delete_definition(change.kind, change.name)
        elif isinstance(change, Delivery):
            deliverer.deliver(change)
        else:
            unit.save_effects([change])


class _Deliverer:
    def __init__(self, objects: Objects, unit: UnitOfWork, now: datetime) -> None:
        self._objects, self._unit, self._now = objects, unit, now
        self._origin = Origin.of(objects.qmgr.name, now)
        self._forwarder = Forwarder(objects.qmgr.name, now, self._origin)

    def deliver(self, delivery: Delivery) -> None:
        """Put one retained publication for a new subscription. Raises QueueError where nothing takes it."""
        subscription, qmgr = delivery.subscription, self._objects.qmgr
        queue = self._objects.queue(subscription.dest_queue)
        default = int(queue is not None and queue.def_persistent)
        message, body = self._forwarder.forward(delivery, _NO_MSG_ID, default)
        expires_at = delivery.publication.expires_at
        put = Outgoing(
            PutKind.PUBLICATION,
            subscription.dest_qmgr,
            subscription.dest_queue,
            message,
            body,
            delivery.topic_string,
            subscription.name,
            expires_at=expires_at,
        )
        try:
            self._put(put if put.qmgr == qmgr.name else transmitted(put))
        except QueueError as refusal:
            mqmd, dead = dead_letter(message.mqmd, body, refusal.reason, put.queue, put.qmgr, self._origin)
            letter = Outgoing(PutKind.DEADLETTER, qmgr.name, qmgr.deadq, Message(mqmd), dead, expires_at=expires_at)
            self._put(letter)

    def _put(self, put: Outgoing) -> None:
        self._unit.put(
            put.queue,
            put.message.mqmd.encode(),
            put.body,
            time=self._now,
            user=put.message.mqmd.user_identifier or None,
            application=_APPLICATION,
            expires_at=put.expires_at,
        )
