"""Saves the changes of a command in a unit of work, and puts the messages that it delivers.

Retained publications for a new subscription go the way of those that were just published (``commands.qmgr.delivery``).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from commands.broker.counts import Counting, Counts
from commands.broker.forward import Forwarder
from commands.broker.identifiers import Origin
from commands.broker.objects import Objects
from commands.broker.puts import PutKind
from commands.mqsc.answers import Answer, DefinitionDeleted, DefinitionStored
from commands.qmgr.backlog import Backlog
from commands.qmgr.delivery import Cause, Deliverer
from commands.qmgr.store.port import CountsMessages, UnitOfWork
from streams.operations import Delivery

# A queue manager gives a message without an identifier one of its own.
_NO_MSG_ID: Final = bytes(24)


class UnitQueues:
    """``QueueAdmin`` on a unit of work. A queue whose definition is not saved yet holds nothing."""

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit
        self.counters: Counting | None = unit.counters if isinstance(unit, CountsMessages) else None

    def depth(self, name: str) -> int:
        """How many messages are on the local queue."""
        return self._unit.depth(name) if self._unit.find_queue(name) is not None else 0

    def clear(self, name: str) -> int:
        """Take all messages off the local queue; returns how many there were."""
        return self._unit.clear_queue(name) if self._unit.find_queue(name) is not None else 0


class Keeper:
    """Keeps the changes of answers. backlog: of messages that no queue takes; None if nothing can be owed."""

    def __init__(self, backlog: Backlog | None = None) -> None:
        self._backlog = backlog
        self._warned: set[str] = set()  # transmission queues that nobody defined

    def keep(self, answer: Answer, objects: Objects, unit: UnitOfWork, now: datetime) -> None:
        """Save what *answer* says has changed, in order, and put what it delivers.

        now: UTC. Raises StoreError where something can be neither saved nor put: then the command must not count as
        done, and *objects* are to be loaded again.
        """
        forwarder = Forwarder(objects.qmgr.name, now, Origin.of(objects.qmgr.name, now))
        deliverer: Deliverer | None = None
        counts = Counts()
        for change in answer.changes:
            if isinstance(change, DefinitionStored):
                unit.save_definition(change.definition)
            elif isinstance(change, DefinitionDeleted):
                unit.delete_definition(change.kind, change.name)
            elif isinstance(change, Delivery):
                if deliverer is None:
                    deliverer = Deliverer(unit, objects, self._warned, self._backlog)
                put = deliverer.deliver(forwarder.put(change, _NO_MSG_ID, objects), Cause(now))
                if put is not None and put.kind is PutKind.PUBLICATION:
                    counts.add_delivered(change.subscription.sub_id, now)
                else:
                    counts.add_dead_letters(change.subscription.sub_id)
            else:
                unit.save_effects([change])
        if isinstance(unit, CountsMessages):
            unit.counters.add(counts)
