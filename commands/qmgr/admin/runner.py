"""Runs MQSC statements on an embedded queue manager: each change is in its database when the answer is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from commands.broker.authority import GroupsOf
from commands.broker.connections import Listeners, NoListeners
from commands.broker.counts import Counting, Counts
from commands.broker.descriptor import Origin
from commands.broker.forward import Forwarder
from commands.broker.objects import Objects, QueueManager
from commands.broker.puts import PutKind
from commands.broker.selection import Selection
from commands.mqsc.administration import Administration, Alone, Neighbour, Neighbours
from commands.mqsc.answers import (
    Answer,
    DefinitionDeleted,
    DefinitionStored,
    failed,
    not_authorized,
    not_found,
    refusal,
)
from commands.mqsc.execute import execute
from commands.mqsc.pcf.rights import Rights
from commands.mqsc.script import Statement, lines_of, statements
from commands.network.cluster_topics import RepositoryEntry
from commands.network.topology import Refresh, Relation
from commands.qmgr.backlog import LONGEST_PAUSE_S, Backlog
from commands.qmgr.delivery import Cause, Deliverer
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.database import HasDatabase
from commands.qmgr.store.listeners import AskedListeners
from commands.qmgr.store.neighbours import NeighbourRecord, NeighbourRecords
from commands.qmgr.store.port import CountsMessages, HasPrograms, KnowsNeighbours, UnitOfWork
from rfh2.errors import CommandError, StoreError
from streams.operations import Delivery
from streams.topic_space import TopicSpace

# Saves the changes of a command in a unit of work, and puts the messages that it delivers.
#
# Retained publications for a new subscription go the way of those that were just published
# (``commands.qmgr.delivery``).

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

    def has_uncommitted(self, name: str) -> bool:
        """Whether the unit of work of a program has messages of the local queue, put or got."""
        return isinstance(self._unit, HasPrograms) and self._unit.has_uncommitted(name)

    def in_doubt(self) -> Sequence[tuple[int, bytes]]:
        """The branches of global transactions that are prepared: numbers and XIDs."""
        return self._unit.in_doubt() if isinstance(self._unit, HasPrograms) else ()


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


# The neighbours that a queue manager of a home has recorded, as DISPLAY PUBSUB and REFRESH see them.


def neighbours_of(unit: UnitOfWork) -> Neighbours:
    """Those of the queue manager that *unit* works on."""
    return RecordedNeighbours(unit.neighbours) if isinstance(unit, KnowsNeighbours) else Alone()


def listeners_of(unit: UnitOfWork) -> Listeners:
    """Those of the queue manager that *unit* works on."""
    return AskedListeners(unit.database) if isinstance(unit, HasDatabase) else NoListeners()


def recorded(qmgr: QueueManager, records: Iterable[NeighbourRecord]) -> tuple[Neighbour, ...]:
    """The parent that the definition *qmgr* names, and the children of *records*."""
    known = {each.qmgr: each for each in records if not each.cluster}
    shown = []
    if qmgr.parent:
        record = known.get(qmgr.parent)
        # Without a record, no command processor has worked since PARENT was altered.
        is_parent = record is not None and record.relation is Relation.PARENT
        status = record.status.value if record is not None and is_parent else "INACTIVE"
        shown.append(Neighbour(qmgr.parent, Relation.PARENT, status))
    children = (each for each in known.values() if each.relation is Relation.CHILD)
    return (*shown, *(Neighbour(each.qmgr, each.relation, each.status.value) for each in children))


def recorded_members(records: Iterable[NeighbourRecord]) -> tuple[Neighbour, ...]:
    """The members of clusters among *records*."""
    return tuple(
        Neighbour(each.qmgr, each.relation, each.status.value, each.cluster) for each in records if each.cluster
    )


class RecordedNeighbours:
    """Those that an embedded queue manager has recorded. records: as one unit of work sees them."""

    def __init__(self, records: NeighbourRecords) -> None:
        self._records = records

    def of(self, qmgr: QueueManager) -> tuple[Neighbour, ...]:
        return recorded(qmgr, self._records.all())

    def members(self) -> tuple[Neighbour, ...]:
        return recorded_members(self._records.all())

    def refresh_proxies(self) -> int:
        return self._records.ask_refresh(Refresh.PROXIES)

    def refresh_cluster(self, cluster: str) -> int:
        return self._records.ask_refresh(Refresh.ALL, cluster=cluster)

    def repository(self) -> Sequence[RepositoryEntry]:
        return self._records.repository()


def executed(statement: Statement, rights: Rights, administration: Administration) -> Answer:
    """The answer to a command of MQSC; what the user may not do or see is refused as MQSC does."""
    try:
        if statement.command is not None:
            rights.check(statement.command)
    except CommandError as error:
        return refusal(not_authorized(error.why))
    answer = execute(statement, administration)
    if statement.command is None or not answer.objects or not rights.checks:
        return answer
    visible = tuple(rights.visible(statement.command, answer.objects))
    return replace(answer, objects=visible) if visible else refusal(not_found())


class StatementRunner:
    """Carries statements out on *store*; it loads the queue manager again when another program has changed it.

    user: the administrator. groups_of: the groups of a user. clock: UTC.
    """

    def __init__(self, store: QueueManagerStore, user: str, groups_of: GroupsOf, clock: Callable[[], datetime]) -> None:
        self._store, self._user, self._groups_of, self._clock = store, user, groups_of, clock
        self._known: tuple[int, Administration] | None = None
        self._backlog = Backlog(clock, LONGEST_PAUSE_S)
        self._keeper = Keeper(self._backlog)

    def run(self, some: Sequence[Statement], as_user: str | None = None) -> list[tuple[Statement, Answer]]:
        """Some statements in one unit of work; their answers are true once this returns.

        as_user: the user whose authorities count; None for the administrator, who may do everything.
        """
        try:
            self._backlog.doubt()
            with self._store.unit_of_work() as unit:
                answers = [(statement, self._one(unit, statement, as_user)) for statement in some]
                version = unit.state_version
        except BaseException:
            self._known = None
            raise
        if self._known is not None:
            self._known = (version, self._known[1])
        return answers

    def run_script(self, text: str) -> list[tuple[Statement, Answer]]:
        """All statements of a script in one unit of work."""
        return self.run(list(statements(lines_of(text))))

    def _one(self, unit: UnitOfWork, statement: Statement, as_user: str | None) -> Answer:
        administration = self._administration(unit)
        administration.user = self._user if as_user is None else as_user
        try:
            with unit.savepoint():
                if as_user is None:
                    answer = execute(statement, administration)
                else:
                    answer = executed(statement, Rights(administration), administration)
                self._keeper.keep(answer, administration.objects, unit, administration.now)
        except StoreError as error:
            # Memory knows of what was backed out.
            self._known = None
            return refusal(failed(f"{error}."))
        self._known = (unit.state_version, administration)
        return answer

    def _administration(self, unit: UnitOfWork) -> Administration:
        now = self._clock()
        if self._known is None or self._known[0] != unit.state_version:
            objects, subscriptions, retained = unit.load_state()
            space = TopicSpace(objects.topics, Selection())
            space.restore(subscriptions, retained)
            administration = Administration.of(objects, space, now, UnitQueues(unit), self._user, self._groups_of)
        else:
            administration = self._known[1]
            administration.now, administration.queues = now, UnitQueues(unit)
        administration.neighbours, administration.listeners = neighbours_of(unit), listeners_of(unit)
        return administration
