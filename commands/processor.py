"""The command processor: takes commands off the input queues, and commits all that each one causes with its get.

    begin ── get ── Broker.process ── save effects, put puts ── ... up to a batch ── commit

What the broker has in memory and what the store has on disk are one: a unit of work that fails is backed out, and the
broker is loaded again from the store. One message never waits for a batch to fill: a batch ends where the queues do.

Delivery that fails is decided here, by what guide 6.5.1 and 6.7.6 say of it: a publication that its queue refuses goes
to the dead-letter queue with the reason; a response as PSNPRES says. Where even the dead-letter queue refuses, the
command is backed out and tried again, ever more slowly; what was done before it stands, and what comes after it waits.
Where a queue manager has no savepoints, what was done before it is backed out too, and done again without it.
Only a non-persistent command is ever given up, after PSRTYCNT tries, with PSNPMSG(DISCARD). Every command is processed
under syncpoint, whatever PSSYNCPT says: that is what YES asks for, and more than IFPER does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Protocol

from commands.authority import GroupsOf, RecordedAuthority, no_groups
from commands.broker import Arrival, Broker, Outcome
from commands.deadletter import dead_letter
from commands.live.linked_space import LinkedTopicSpace
from commands.objects import CONTROL_QUEUE, DEFAULT_STREAM, Objects
from commands.puts import Completion, Outgoing, Put, PutKind
from commands.queues.errors import QueueError
from commands.queues.port import PutsRemotely, QueueManagerPort, StoredMessage, UnitOfWork
from commands.selection import selects
from commands.stamps import Origin
from commands.topics_port import TopicLink, is_native
from commands.transmission import transmitted
from rfh2.constants import MQPER_PERSISTENT, MQRCCF_COMMAND_FAILED, MQRCCF_NO_RETAINED_MSG
from rfh2.errors import StoreError
from streams.namelists import QUEUE_NAMELIST, SUB_POINT_NAMELIST
from streams.places import collisions
from streams.topic_space import TopicSpace

_log = logging.getLogger("qpubsub.processor")

BATCH = 200
_APPLICATION = "qpubsub"


class Stop(Protocol):
    """Something that says when to stop: ``threading.Event`` is one."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


@dataclass(slots=True)
class Tally:
    """What a processor has done since it started."""

    commands: int = 0
    publications: int = 0
    responses: int = 0
    dead_letters: int = 0
    errors: int = 0
    discarded: int = 0
    linked: int = 0

    def as_dict(self) -> dict[str, int]:
        """Name and count, in order."""
        return {field_.name: getattr(self, field_.name) for field_ in fields(self)}

    def add(self, other: Tally) -> None:
        """Count what *other* counted as well."""
        for field_ in fields(self):
            setattr(self, field_.name, getattr(self, field_.name) + getattr(other, field_.name))


@dataclass(slots=True)
class _Batch:
    """What one unit of work has done so far; it counts once that is committed."""

    tally: Tally = field(default_factory=Tally)
    puts: list[Put] = field(default_factory=list)

    def add(self, part: _Batch) -> None:
        """One command more."""
        self.tally.add(part.tally)
        self.puts += part.puts


class UndeliverableError(StoreError):
    """A put that neither its queue nor the dead-letter queue took: the command has to wait.

    for_ever: PSNPRES asks for it to be tried until it works.
    """

    def __init__(self, why: str, for_ever: bool = False) -> None:
        super().__init__(why, for_ever)
        self.why, self.for_ever = why, for_ever

    def __str__(self) -> str:
        return self.why


class _StuckError(StoreError):
    """A unit of work without savepoints came to a command that has to wait: all of it is backed out.

    before: how many commands it had carried out by then.
    """

    def __init__(self, before: int, message: StoredMessage | None, cause: UndeliverableError) -> None:
        super().__init__(before, message, cause)
        self.before, self.message, self.cause = before, message, cause


class Processor:
    """Processes the commands of one queue manager.

    clock: UTC now. record: told each put, once it is committed. batch: commands to a commit at most. groups_of: the
    groups of a user, for authority records. committed: told what was done so far, after each commit. link: to a topic
    tree elsewhere; the embedded one is all there is where None.
    """

    def __init__(
        self,
        store: QueueManagerPort,
        clock: Callable[[], datetime],
        record: Callable[[Put], None] | None = None,
        batch: int = BATCH,
        groups_of: GroupsOf = no_groups,
        committed: Callable[[Tally], None] | None = None,
        link: TopicLink | None = None,
    ) -> None:
        self._link = link
        self._store, self._clock, self._record, self._batch_size = store, clock, record, batch
        self._committed = committed
        self._groups_of = groups_of
        self._broker: Broker | None = None
        self._space: TopicSpace | None = None
        self._version = -1
        self._routes: PutsRemotely | None = None
        self._told: set[str] = set()
        self.tally = Tally()

    def start(self) -> None:
        """What a queue manager's start does: non-persistent retained publications are gone (guide 8.5)."""
        with self._store.unit_of_work() as unit:
            gone = unit.discard_nonpersistent_retained()
        if gone:
            _log.info("%d non-persistent retained publications did not outlive the restart", gone)

    def drain(self, stop: Stop | None = None) -> int:
        """Process until the input queues are empty or *stop* says so; returns how many commands there were."""
        done = 0
        while stop is None or not stop.is_set():
            count = self._one_batch()
            if count == 0:
                break
            done += count
        return done

    def run(self, stop: Stop, idle_s: float = 0.5) -> None:
        """Process, and wait for more, until *stop* is set. A failing store is tried again, ever more slowly."""
        patience = 0.1
        while not stop.is_set():
            try:
                self.drain(stop)
                patience = 0.1
                self._store.wait_for_change(idle_s)
            except StoreError as error:
                _log.error("%s; the next try is in %.1f seconds", error, patience)
                stop.wait(patience)
                patience = min(patience * 2, 30.0)

    def _one_batch(self) -> int:
        limit = self._batch_size
        while True:
            try:
                return self._unit_of_work(limit)
            except _StuckError as stuck:
                if stuck.before:
                    limit = stuck.before  # those before it once more, and without it
                elif self._discarded_alone(stuck):
                    return 1
                else:
                    raise stuck.cause from None

    def _unit_of_work(self, limit: int) -> int:
        batch = _Batch()
        waiting: UndeliverableError | None = None
        try:
            with self._store.unit_of_work() as unit:
                self._routes = unit if isinstance(unit, PutsRemotely) else None
                queues = input_queues(self._loaded(unit))
                while batch.tally.commands < limit and queues and waiting is None:
                    message = None
                    try:
                        with unit.savepoint():
                            message = unit.get_next(queues)
                            if message is not None:
                                self._one(unit, message, batch)
                    except UndeliverableError as error:
                        self._broker = None
                        if not unit.has_savepoints:
                            raise _StuckError(batch.tally.commands, message, error) from error
                        if not self._gives_up(unit, queues, message, error, batch):
                            waiting = error
                    if message is None:
                        break
                version = unit.state_version
        except BaseException:
            self._broker = None  # it may know of what was backed out
            raise
        self._version = version
        self._count(batch)
        if waiting is not None and batch.tally.commands == 0:
            raise waiting
        return batch.tally.commands

    def _gives_up(
        self,
        unit: UnitOfWork,
        queues: tuple[str, ...],
        message: StoredMessage | None,
        error: UndeliverableError,
        batch: _Batch,
    ) -> bool:
        """Discard a command that cannot be carried out, if its sender and PSNPMSG allow for it; whether it was."""
        if message is None or not self._may_discard(unit, message, error):
            return False
        with unit.savepoint():
            again = unit.get_next(queues)
            assert again is not None
            assert (again.queue, again.body) == (message.queue, message.body)
        self._discarded(message, error, batch)
        return True

    def _discarded_alone(self, stuck: _StuckError) -> bool:
        """The same in a unit of work of its own, after the one that met the command was backed out."""
        batch = _Batch()
        try:
            with self._store.unit_of_work() as unit:
                queues = input_queues(self._loaded(unit))
                if not self._gives_up(unit, queues, stuck.message, stuck.cause, batch):
                    unit.backout()
                    return False
        except BaseException:
            self._broker = None
            raise
        self._count(batch)
        return True

    def _may_discard(self, unit: UnitOfWork, message: StoredMessage, error: UndeliverableError) -> bool:
        qmgr = self._loaded(unit).objects.qmgr
        if message.persistent or error.for_ever or qmgr.psnpmsg != "DISCARD":
            return False
        return message.backout_count >= qmgr.psrtycnt

    def _discarded(self, message: StoredMessage, error: UndeliverableError, batch: _Batch) -> None:
        about = {"seq": message.seq, "queue": message.queue}
        _log.error("message %d on %s is discarded (PSNPMSG): %s", message.seq, message.queue, error, extra=about)
        batch.add(_Batch(Tally(commands=1, errors=1, discarded=1)))

    def _loaded(self, unit: UnitOfWork) -> Broker:
        if self._broker is None or unit.state_version != self._version:
            objects, subscriptions, retained = unit.load_state()
            if self._link is None:
                space = TopicSpace(objects.topics, selects)
            else:
                space = LinkedTopicSpace(objects.topics, selects, self._link)
                self._link.follow(subscriptions)
            space.restore(subscriptions, retained, self._space)
            self._space = space
            self._tell_collisions(objects)
            authority = RecordedAuthority(objects, self._groups_of)
            self._broker = Broker(self._store.name, objects=objects, space=space, authority=authority)
        return self._broker

    def _tell_collisions(self, objects: Objects) -> None:
        """Log, once each, where streams and subscription points are not what they should be (guide 6.1)."""
        lists = objects.namelists
        for finding in collisions(lists.get(QUEUE_NAMELIST), lists.get(SUB_POINT_NAMELIST), objects.topics):
            if finding.text not in self._told:
                self._told.add(finding.text)
                _log.warning("%s", finding.text)

    def _one(self, unit: UnitOfWork, message: StoredMessage, batch: _Batch) -> None:
        arrival = Arrival(message.seq, self._clock(), message.queue, message.md, message.body, message.user)
        part = _Batch()
        broker = self._loaded(unit)
        outcome = self._processed(unit, broker, arrival)
        unit.save_effects(outcome.effects)
        for n, put in enumerate(outcome.puts):
            done = self._put(unit, broker, put, arrival)
            if done is not None:
                _tallied(part.tally, done.kind)
                if self._record is not None:
                    part.puts.append(Put.of(arrival.seq, n, done))
        for put in self._for_tree(message):
            self._put(unit, broker, put, arrival)
            part.tally.linked += 1
        self._version = unit.state_version
        part.tally.commands = 1
        part.tally.errors = int(outcome.completion is Completion.ERROR)
        batch.add(part)
        if outcome.completion is Completion.ERROR:
            about = {"seq": message.seq, "queue": message.queue, "reason": outcome.reason}
            level = logging.INFO if outcome.reason == MQRCCF_NO_RETAINED_MSG else logging.WARNING
            _log.log(level, "message %d on %s: %s", message.seq, message.queue, outcome.why, extra=about)

    def _for_tree(self, message: StoredMessage) -> tuple[Outgoing, ...]:
        """What has to go into the linked topic tree; nothing of what came from there."""
        if not isinstance(self._space, LinkedTopicSpace):
            return ()
        outgoing = self._space.take_outgoing()
        return () if is_native(message.md) else outgoing

    def _processed(self, unit: UnitOfWork, broker: Broker, arrival: Arrival) -> Outcome:
        try:
            return broker.process(arrival)
        except Exception as error:
            # A fault of ours must not stop the queue: the message is set aside, and memory is read anew from the store.
            about = {"seq": arrival.seq, "queue": arrival.queue, "reason": MQRCCF_COMMAND_FAILED}
            _log.exception("message %d on %s: internal error", arrival.seq, arrival.queue, extra=about)
            self._broker = None
            return self._loaded(unit).set_aside(arrival, MQRCCF_COMMAND_FAILED, f"internal error: {error!r}")

    def _put(self, unit: UnitOfWork, broker: Broker, put: Outgoing, arrival: Arrival) -> Outgoing | None:
        """Put *put*, or what stands in for it, and return that; None where PSNPRES lets it be dropped."""
        local = put if put.qmgr == broker.qmgr or self._routes is not None else transmitted(put)
        try:
            _put_to(unit, self._routes, local, arrival)
        except QueueError as refusal:
            instead = self._instead(broker, put, refusal, arrival)
            if instead is None:
                return None
            try:
                _put_to(unit, self._routes, instead, arrival)
            except QueueError as second:
                if put.kind is PutKind.RESPONSE and _may_drop(broker, put):
                    return None
                safe = put.kind is PutKind.RESPONSE and broker.objects.qmgr.psnpres == "SAFE"
                raise UndeliverableError(
                    f"{refusal}; the dead-letter queue does not take it: {second}", safe
                ) from second
            return instead
        return put

    def _instead(self, broker: Broker, put: Outgoing, refusal: QueueError, arrival: Arrival) -> Outgoing | None:
        """What becomes of a put that its queue refused; None where it is to be dropped (PSNPRES)."""
        mode = broker.objects.qmgr.psnpres
        non_persistent = put.message.mqmd.persistence != MQPER_PERSISTENT
        if put.kind is PutKind.RESPONSE and non_persistent:
            if mode == "DISCARD":
                return None
            if mode == "KEEP":
                raise UndeliverableError(str(refusal), for_ever=True)
        if put.kind is PutKind.DEADLETTER:
            raise UndeliverableError(str(refusal))
        origin = Origin.of(broker.qmgr, arrival.now)
        mqmd, body = dead_letter(put.message.mqmd, put.body, refusal.reason, put.queue, put.qmgr, origin)
        return replace(
            put,
            kind=PutKind.DEADLETTER,
            qmgr=broker.qmgr,
            queue=broker.objects.qmgr.deadq,
            message=replace(put.message, mqmd=mqmd),
            body=body,
            completion=Completion.ERROR,
            reason=refusal.reason,
        )

    def _count(self, batch: _Batch) -> None:
        self.tally.add(batch.tally)
        if self._link is not None:
            self._link.committed()
        if self._record is not None:
            for put in batch.puts:
                self._record(put)
        if self._committed is not None and batch.tally.commands:
            self._committed(self.tally)


def input_queues(broker: Broker) -> tuple[str, ...]:
    """The queues that the queued interface reads now: none where PSMODE keeps it from running (guide 6.3)."""
    if broker.objects.qmgr.psmode != "ENABLED":
        return ()
    namelist = broker.objects.namelists.get(QUEUE_NAMELIST)
    streams = namelist.names if namelist is not None else (DEFAULT_STREAM,)
    return (CONTROL_QUEUE, *streams)


def _put_to(unit: UnitOfWork, routes: PutsRemotely | None, put: Outgoing, arrival: Arrival) -> None:
    md, user = put.message.mqmd.encode(), put.message.mqmd.user_identifier or None
    if routes is not None:
        routes.put_remote(put.qmgr, put.queue, md, put.body, user=user, application=_APPLICATION)
        return
    unit.put(put.queue, md, put.body, time=arrival.now, user=user, application=_APPLICATION, expires_at=put.expires_at)


def _may_drop(broker: Broker, put: Outgoing) -> bool:
    """Whether a response that nothing takes may be dropped: a non-persistent one, with PSNPRES(NORMAL)."""
    return broker.objects.qmgr.psnpres == "NORMAL" and put.message.mqmd.persistence != MQPER_PERSISTENT


def _tallied(tally: Tally, kind: PutKind) -> None:
    if kind is PutKind.PUBLICATION:
        tally.publications += 1
    elif kind is PutKind.RESPONSE:
        tally.responses += 1
    else:
        tally.dead_letters += 1
