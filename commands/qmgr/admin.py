"""Runs MQSC statements on an embedded queue manager: each change is in its database when the answer is given.

The command server: PCF commands on SYSTEM.ADMIN.COMMAND.QUEUE, carried out as MQSC's are, and answered.

    message ── decode_pcf ── reading.read ──> commands of MQSC     or CommandError
            ── rights.check ── execute.carry_out ── Keeper.keep     changes, in the unit of work of the get
            ── writing ──> responses, one an object, as they are put

The responses to an inquiry are made one by one while they are put: 100,000 subscriptions take no more memory than a
few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Final

from commands.broker.authority import GroupsOf
from commands.broker.connections import Listeners, NoListeners
from commands.broker.core import BrokerCore
from commands.broker.counts import Counting, Counts
from commands.broker.descriptor import Ids, Origin
from commands.broker.forward import Forwarder
from commands.broker.objects import ADMIN_COMMAND_QUEUE, Objects, QueueManager
from commands.broker.outcome import Arrival
from commands.broker.puts import Outgoing, PutKind
from commands.broker.respond import is_due, reply_descriptor
from commands.broker.selection import Selection
from commands.headers.response import Completion
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
from commands.mqsc.execute import carry_out, execute
from commands.mqsc.pcf import writing
from commands.mqsc.pcf.reading import Request, read
from commands.mqsc.pcf.rights import Rights
from commands.mqsc.script import Command, Statement, lines_of, statements
from commands.network.cluster_topics import RepositoryEntry
from commands.network.topology import Refresh, Relation
from commands.qmgr.delivery import LONGEST_PAUSE_S, Backlog, Cause, Deliverer
from commands.qmgr.link_port import Administered
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.database import HasDatabase
from commands.qmgr.store.listeners import AskedListeners
from commands.qmgr.store.neighbours import KnowsNeighbours, NeighbourRecord, NeighbourRecords
from commands.qmgr.store.port import CountsMessages, HasPrograms, ListsQueues, UnitOfWork
from rfh2.ccsid import ENCODINGS, UTF8_CCSID, ByteOrder
from rfh2.constants import (
    MQEI_UNLIMITED,
    MQRO_PASS_DISCARD_AND_EXPIRY,
)
from rfh2.errors import CommandError, DecodeError, StoreError
from rfh2.message import decode
from rfh2.mqmd import Mqmd, name_of
from rfh2.pcf import FORMATS, Pcf, decode_pcf
from rfh2.pcf_admin_names import MQRCCF_MD_FORMAT_ERROR
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


_QUEUES: Final = ("QUEUE", "QLOCAL", "QSTATUS")
_FORMAT: Final = "MQADMIN"


class PcfCommandServer:
    """The command server of one queue manager. groups_of: the groups of a user. backlog: of what can be put nowhere."""

    queue = ADMIN_COMMAND_QUEUE
    kind = "PCF"

    def __init__(self, groups_of: GroupsOf, backlog: Backlog) -> None:
        self._groups_of, self._keeper = groups_of, Keeper(backlog)

    def carry_out(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival) -> Administered:
        """Do what the message asks for; a message that is no PCF is answered with 3023, or is a dead letter."""
        ids = Ids(broker.qmgr, arrival.seq)
        try:
            message = decode(arrival.body, arrival.md)
            if name_of(message.body_format) not in FORMATS:
                why = f"Format is {message.body_format!r}, not MQADMIN"
                raise CommandError(MQRCCF_MD_FORMAT_ERROR, why=why)
            pcf = decode_pcf(message.body, message.body_ccsid, message.body_offset)
        except (DecodeError, CommandError) as error:
            return self._unreadable(broker, arrival, error, ids)
        answered = _Answered(broker.qmgr, arrival.now, message.mqmd, pcf.order, ids)
        try:
            request = read(pcf, broker.objects)
            objects = self._objects(unit, request, broker.objects)
            administration = self._administration(unit, objects, broker.space, arrival, message.mqmd, ids)
            rights = Rights(administration)
            if request.escaped is not None:
                answers = [executed(request.escaped, rights, administration)]
                responses = writing.escaped(request, answers[-1], pcf.order)
            else:
                for command in request.commands:
                    rights.check(command)
                answers = [self._done(command, rights, administration, request) for command in request.commands]
                responses = writing.success(pcf.command, request.about, answers[-1].found, pcf.order)
        except CommandError as error:
            puts = answered.puts(writing.failure(pcf.command, error, pcf.order), Completion.ERROR)
            return Administered(puts, Completion.ERROR, reason=error.reason, why=str(error))
        completion = Completion.OK if answers[-1].ok else Completion.ERROR
        changes = [change for answer in answers for change in answer.changes]
        for answer in answers:
            self._keeper.keep(answer, broker.objects, unit, arrival.now)
        redefined = any(isinstance(change, DefinitionStored | DefinitionDeleted) for change in changes)
        # What members are to get again is read when the state is loaded.
        redefined = redefined or request.about.target == "CLUSTER"
        resubscribed = any(not isinstance(c, DefinitionStored | DefinitionDeleted | Delivery) for c in changes)
        return Administered(answered.puts(responses, completion), completion, redefined, resubscribed)

    @staticmethod
    def _objects(unit: UnitOfWork, request: Request, objects: Objects) -> Objects:
        """*objects* with the queues that have come into being by being named since they were loaded.

        For Inquire commands a copy that has all of them; else those that the command names are taken in.
        """
        if request.about.verb == "DISPLAY":
            if request.about.target in _QUEUES and isinstance(unit, ListsQueues):
                objects = copy(objects)
                objects.queues = {found.name: found for found in unit.local_queues()}
            return objects
        for command in request.commands:
            destination = command.keyword("DEST")
            named = [command.name] if command.target == "QLOCAL" and command.name is not None else []
            for value in (*named, *((destination.values or ()) if destination is not None else ())):
                found = None if value.text in objects.queues else unit.find_queue(value.text)
                if found is not None and found.name == value.text:
                    objects.queues[found.name] = found
        return objects

    def _administration(
        self, unit: UnitOfWork, objects: Objects, space: TopicSpace, arrival: Arrival, mqmd: Mqmd, ids: Ids
    ) -> Administration:
        user = name_of(mqmd.user_identifier) if arrival.user is None else arrival.user

        def new_sub_id() -> bytes:
            sub_id = ids()
            while space.subscription(sub_id) is not None:
                sub_id = ids()
            return sub_id

        queues, neighbours, listeners = UnitQueues(unit), neighbours_of(unit), listeners_of(unit)
        return Administration(
            objects, space, arrival.now, queues, new_sub_id, user, self._groups_of, neighbours, listeners
        )

    @staticmethod
    def _done(command: Command, rights: Rights, administration: Administration, request: Request) -> Answer:
        """The result of one command. Raises CommandError if it failed."""
        answer = carry_out(command, administration)
        if not answer.ok:
            error = writing.refused(answer, request.about)
            if request.about.names and error.reason == request.about.not_found:
                return answer  # a list of no names
            raise error
        if request.about.target in _QUEUES:
            answer = replace(answer, found=tuple(answer.found))  # its depths are those before the responses are put
        if command.verb != "DISPLAY" or not rights.checks:
            return answer
        visible = rights.visible(command, answer.found)
        first = next(visible, None)
        if first is None and not request.about.names:
            raise CommandError(request.about.not_found, why="there is none that the user may display")
        return replace(answer, found=() if first is None else chain([first], visible))

    def _unreadable(
        self, broker: BrokerCore, arrival: Arrival, error: DecodeError | CommandError, ids: Ids
    ) -> Administered:
        """Answer the message if it asks for an answer and can be read; otherwise make it a dead letter."""
        reason, why = error.reason, str(error)
        try:
            mqmd = Mqmd() if arrival.md is None else Mqmd.decode(arrival.md)
        except DecodeError:
            mqmd = Mqmd()
        answered = _Answered(broker.qmgr, arrival.now, mqmd, mqmd.order, ids)
        failed = writing.failure(0, CommandError(reason, why=why), mqmd.order)
        puts = answered.puts(failed, Completion.ERROR)
        first = next(puts, None)
        puts = iter(broker.set_aside(arrival, reason, why).puts) if first is None else chain([first], puts)
        return Administered(puts, Completion.ERROR, reason=reason, why=why)


class _Answered:
    """Makes the responses to one message into puts."""

    def __init__(self, qmgr: str, now: datetime, command: Mqmd, order: ByteOrder, ids: Ids) -> None:
        self._qmgr, self._now, self._command, self._order, self._ids = qmgr, now, command, order, ids

    def puts(self, responses: Iterator[Pcf], completion: Completion) -> Iterator[Outgoing]:
        """A put for each response; none where the message asks for none, or names no queue for it."""
        command = self._command
        queue = name_of(command.reply_to_q)
        if not queue or not is_due(command, completion):
            return
        qmgr = name_of(command.reply_to_qmgr) or self._qmgr
        origin = Origin.of(self._qmgr, self._now)
        expiry = command.expiry if command.report & MQRO_PASS_DISCARD_AND_EXPIRY else MQEI_UNLIMITED
        made = Mqmd(encoding=ENCODINGS[self._order], coded_char_set_id=UTF8_CCSID, format=_FORMAT)
        for response in responses:
            described = reply_descriptor(
                command, made, self._ids(), expiry, command.priority, command.persistence, origin
            )
            yield Outgoing(
                PutKind.RESPONSE,
                qmgr,
                queue,
                described.encode(),
                response.encode(),
                completion=completion,
                reason=response.reason,
            )
