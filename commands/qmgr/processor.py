"""The command processor: takes commands off the input queues, and commits all that each one causes with its get.

    begin ── get ── Broker.process ── save effects, put puts ── ... up to a batch ── commit

What the broker has in memory and what the store has on disk are one: a unit of work that fails is backed out, and the
broker is loaded again from the store. One message never waits for a batch to fill: a batch ends where the queues do,
and early where another process waits to put or to get.

Where something can be put nowhere (``commands.qmgr.delivery``) the command is backed out and tried again, ever more
slowly; what was done before it stands, and what comes after it waits. Where a queue manager has no savepoints, what was
done before it is backed out too, and done again without it. Only a non-persistent command is ever given up, after
PSRTYCNT tries, with PSNPMSG(DISCARD). A command that we ourselves fail on is set aside as a dead letter, and so is one
that takes more than its budget, or that ended the processor before (``commands.qmgr.guard``). Every command is
processed under syncpoint, whatever PSSYNCPT says: that is what YES asks for, and more than IFPER does.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from commands.broker.authority import GroupsOf, RecordedAuthority, no_groups
from commands.broker.budget import Budget
from commands.broker.core import Arrival, BrokerCore, Outcome
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, Objects
from commands.broker.puts import Outgoing, Put
from commands.broker.selection import Selection
from commands.headers.response import Completion
from commands.qmgr.backlog import Backlog
from commands.qmgr.delivery import Cause, Deliverer, UndeliverableError
from commands.qmgr.guard import ApartError, Guard, reason_of
from commands.qmgr.link_port import TopicLink, TreeNotAskedError, is_native
from commands.qmgr.linked_tree import LinkedTree
from commands.qmgr.publication_cache import CachedPuts, PublicationCache
from commands.qmgr.store.port import PutsRemotely, QueueManagerPort, StoredMessage, UnitOfWork
from commands.qmgr.tally import ProcessorTally
from commands.qmgr.watch import Unwatched, Watch
from rfh2.constants import MQRCCF_COMMAND_FAILED, MQRCCF_NO_RETAINED_MSG
from rfh2.errors import StoreError
from streams.namelists import QUEUE_NAMELIST, SUB_POINT_NAMELIST
from streams.topic_prefixes import collisions
from streams.topic_space import TopicSpace

_log = logging.getLogger("qpubsub.processor")

# Commands to a commit; to a commit that another process waits for; and what they may come to, got and put: the log of
# the database grows by as much.
BATCH = 1000
SHARED_BATCH = 100
BATCH_BYTES = 16 * 1024 * 1024
LONGEST_PAUSE_S = 30.0
EXPIRY_SCAN = timedelta(seconds=60)


class Stop(Protocol):
    """Something that says when to stop: ``threading.Event`` is one."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


@dataclass(slots=True)
class _Batch:
    """What one unit of work has done so far; it counts once that is committed. size_bytes: got and put.

    suspect: a message, now done, that ended a processor or took long to read; nothing comes after it.
    """

    tally: ProcessorTally = field(default_factory=ProcessorTally)
    puts: list[Put] = field(default_factory=list)
    size_bytes: int = 0
    suspect: StoredMessage | None = None


class _StuckError(StoreError):
    """A unit of work without savepoints came to a command that cannot be carried out: all of it is backed out.

    before: how many commands it had carried out by then.
    """

    def __init__(self, before: int, message: StoredMessage, cause: Exception) -> None:
        super().__init__(before, message, cause)
        self.before, self.message, self.cause = before, message, cause


class _LookedError(Exception):
    pass


class Processor:
    """Processes the commands of one queue manager.

    clock: UTC now. record: told each put, once it is
    committed, and again where it raised StoreError. batch: commands to a commit at most. groups_of: the
    groups of a user, for authority records. committed: told what was done so far, after each commit and again while
    there is nothing to do. link: to a topic tree elsewhere; the embedded one is all there is where None.
    longest_pause_s: between two tries of ``run`` while the store fails. budget: of one command. watch: who looks after
    the processor, and knows on which messages it ended before. backlog: of what can be put nowhere.
    """

    def __init__(
        self,
        store: QueueManagerPort,
        clock: Callable[[], datetime],
        record: Callable[[Put], None] | None = None,
        batch: int = BATCH,
        groups_of: GroupsOf = no_groups,
        committed: Callable[[ProcessorTally], None] | None = None,
        link: TopicLink | None = None,
        longest_pause_s: float = LONGEST_PAUSE_S,
        budget: Budget | None = None,
        watch: Watch | None = None,
        backlog: Backlog | None = None,
    ) -> None:
        self._guard = Guard(Budget() if budget is None else budget, Unwatched() if watch is None else watch)
        self._link = link
        self._longest_pause_s = longest_pause_s
        self._store, self._clock, self._record, self._batch_size = store, clock, record, batch
        self._committed = committed
        self._groups_of = groups_of
        self._broker: BrokerCore | None = None
        self._space: TopicSpace | None = None
        self._tree: LinkedTree | None = None
        self._repeats: PublicationCache | None = None
        self._version = -1
        self._deliverer: Deliverer | None = None
        self._logged: set[str] = set()
        self._unrecorded: deque[Put] = deque()
        self._pays = False  # whether the next unit of work tries what is owed
        self._backlog = Backlog(clock, longest_pause_s) if backlog is None else backlog
        self.tally = ProcessorTally()

    def start(self) -> None:
        """What a queue manager's start does: non-persistent retained publications are gone (guide 8.5)."""
        with self._store.unit_of_work() as unit:
            gone = unit.discard_nonpersistent_retained()
        if gone:
            _log.info("%d non-persistent retained publications did not outlive the restart", gone)
        self._discard_expired()

    def drain(self, stop: Stop | None = None) -> int:
        """Process until the input queues are empty or *stop* says so; returns how many commands there were.

        What is owed to subscribers is tried first.
        """
        self._pays = True
        return self._drain(stop)

    def _drain(self, stop: Stop | None) -> int:
        done = 0
        while stop is None or not stop.is_set():
            count = self._one_batch()
            if count == 0 and not self._pays:
                break
            done += count
        return done

    def run(self, stop: Stop, idle_s: float = 0.5) -> None:
        """Process, and wait for more, until *stop* is set. A failing store is tried again, ever more slowly.

        What has expired on queues that nobody gets from is taken off them now and then.
        """
        patience = 0.1
        looked = self._clock()
        while not stop.is_set():
            try:
                self._pays = self._backlog.is_due
                self._drain(stop)
                patience = 0.1
                if abs((now := self._clock()) - looked) >= EXPIRY_SCAN:
                    looked = now
                    self._discard_expired()
                self._report_progress()
                self._store.wait_for_change(idle_s)
            except StoreError as error:
                _log.error("%s", error, extra={"next_try_s": patience})
                stop.wait(patience)
                patience = min(patience * 2, self._longest_pause_s)

    @property
    def owed(self) -> int:
        """How many publications are kept because they could be put nowhere."""
        return self._backlog.messages

    def _discard_expired(self) -> None:
        with self._store.unit_of_work() as unit:
            gone = unit.discard_expired()
        if gone:
            _log.info("%d expired messages were taken off their queues", gone)

    def _one_batch(self) -> int:
        self._record_puts()
        limit = self._batch_size
        while True:
            try:
                done = self._unit_of_work(limit)
                if self._link is None or not self._link.fetch() or done:
                    return done
            except ApartError:
                limit = 1
            except _StuckError as stuck:
                is_apart = isinstance(stuck.cause, ApartError)
                if is_apart:
                    self._guard.read_apart(stuck.message)
                if stuck.before or is_apart:
                    limit = stuck.before or 1  # those before it once more, and without it
                elif self._given_up_alone(stuck):
                    return 1
                else:
                    raise stuck.cause from None

    def _unit_of_work(self, limit: int) -> int:
        batch = _Batch()
        waiting: UndeliverableError | ApartError | None = None
        try:
            with self._store.unit_of_work() as unit:
                queues = input_queues(self._loaded(unit))
                asks = False
                if self._pays:
                    self._pays = self._backlog.pay(unit, self._loaded(unit).objects.qmgr)
                while queues and waiting is None and not asks and self._goes_on(unit, batch, limit):
                    message, changes = None, self._space_changes()
                    try:
                        with unit.savepoint():
                            message = unit.get_next(queues)
                            if message is not None:
                                self._one(unit, message, batch)
                    except TreeNotAskedError:
                        asks = True  # the command stays, and is processed once the tree was asked
                        if self._space_changes() != changes:
                            self._broker = None
                        self._look_ahead(unit)
                    except Exception as error:
                        self._broker = None
                        if message is None or _is_the_stores(error):
                            raise
                        if not unit.has_savepoints:
                            raise _StuckError(batch.tally.commands, message, error) from error
                        waiting = (
                            error
                            if isinstance(error, ApartError)
                            else self._given_up(unit, queues, message, error, batch)
                        )
                    if message is None:
                        break
                self._guard.idle()
                version = unit.state_version
        except BaseException:
            self._guard.idle()
            self._backlog.doubt()
            self._broker = None  # it may know of what was backed out
            raise
        self._version = version
        self._count(batch)
        if isinstance(waiting, ApartError):
            self._guard.read_apart(waiting.message)
        if waiting is not None and batch.tally.commands == 0:
            raise waiting
        return batch.tally.commands

    def _goes_on(self, unit: UnitOfWork, batch: _Batch, limit: int) -> bool:
        """Whether *batch* takes another command."""
        done = batch.tally.commands
        if done >= limit or batch.size_bytes >= BATCH_BYTES or batch.suspect is not None:
            return False
        if done and self._guard.must_end():
            return False
        return done == 0 or done % SHARED_BATCH > 0 or not unit.is_awaited

    def _given_up(
        self, unit: UnitOfWork, queues: tuple[str, ...], message: StoredMessage, error: Exception, batch: _Batch
    ) -> UndeliverableError | None:
        """Take *message*, which cannot be carried out, off its queue after all: what it waits for, where it may not be.

        A fault of ours must not stop the queue: the message is set aside.
        """
        try:
            with unit.savepoint():
                if not isinstance(error, UndeliverableError):
                    self._set_aside(unit, queues, message, error, batch)
                elif self._may_discard(unit, message, error):
                    _take_again(unit, queues, message)
                    self._discarded(message, error, batch)
                else:
                    return error
        except UndeliverableError as refusal:
            self._broker = None
            return refusal
        return None

    def _given_up_alone(self, stuck: _StuckError) -> bool:
        """The same in a unit of work of its own, after the one that met the command was backed out."""
        batch = _Batch()
        try:
            with self._store.unit_of_work() as unit:
                queues = input_queues(self._loaded(unit))
                if self._given_up(unit, queues, stuck.message, stuck.cause, batch) is not None:
                    unit.backout()
                    return False
        except BaseException:
            self._broker = None
            raise
        self._count(batch)
        return True

    def _may_discard(self, unit: UnitOfWork, message: StoredMessage, error: UndeliverableError) -> bool:
        """Whether its sender and PSNPMSG allow for that (guide 6.5.1)."""
        qmgr = self._loaded(unit).objects.qmgr
        if message.persistent or error.for_ever or qmgr.psnpmsg != "DISCARD":
            return False
        return message.backout_count >= qmgr.psrtycnt

    def _discarded(self, message: StoredMessage, error: UndeliverableError, batch: _Batch) -> None:
        about = {"seq": message.seq, "queue": message.queue}
        _log.error("message %d on %s is discarded (PSNPMSG): %s", message.seq, message.queue, error, extra=about)
        batch.tally.add(ProcessorTally(commands=1, errors=1, discarded=1))

    def _set_aside(
        self, unit: UnitOfWork, queues: tuple[str, ...], message: StoredMessage, fault: Exception, batch: _Batch
    ) -> None:
        reason = reason_of(fault)
        named = MQRCCF_COMMAND_FAILED if reason is None else reason
        about = {"seq": message.seq, "queue": message.queue, "reason": named}
        if reason is None:
            why = f"internal error: {fault!r}"
            text = "message %d on %s: internal error"
            _log.error(text, message.seq, message.queue, extra=about, exc_info=fault)
        else:
            why = f"set aside: {fault}"
            _log.error("message %d on %s: %s", message.seq, message.queue, why, extra=about)
        _take_again(unit, queues, message)
        broker, arrival = self._loaded(unit), self._arrival(message)
        outcome = broker.set_aside(arrival, named, why)
        self._carry_out(unit, broker, arrival, outcome, batch, is_logged=reason is not None)
        batch.suspect = message

    def _loaded(self, unit: UnitOfWork) -> BrokerCore:
        if self._broker is None or unit.state_version != self._version:
            objects, subscriptions, retained = unit.load_state()
            self._backlog.doubt()
            space = TopicSpace(objects.topics, Selection())
            self._tree = None
            if self._link is not None:
                # Where the queues are elsewhere no program waits for this unit of work, and parts cannot be backed out.
                self._tree = LinkedTree(space, self._link, may_wait=not unit.has_savepoints)
                self._link.load(subscriptions)
            space.restore(subscriptions, retained, self._space)
            self._space = space
            self._log_collisions(objects)
            authority = RecordedAuthority(objects, self._groups_of)
            before = None if self._tree is None else self._tree.before
            self._broker = BrokerCore(objects, space, authority=authority, meter=self._guard.meter, before=before)
            self._repeats = (
                PublicationCache(self._broker, effects=True)
                if self._may_repeat(objects, isinstance(unit, PutsRemotely))
                else None
            )
            self._version = unit.state_version
        return self._broker

    def _look_ahead(self, unit: UnitOfWork) -> None:
        """Have the tree asked for all commands that wait on the control queue at once, not for one after the other."""
        broker, tree = self._loaded(unit), self._tree
        assert tree is not None
        with suppress(_LookedError), unit.savepoint():
            for _ in range(SHARED_BATCH):
                message = unit.get_next((CONTROL_QUEUE,))
                if message is None:
                    break
                for operation in broker.foreseen(self._arrival(message)):
                    tree.prefetch(operation)
            raise _LookedError  # all of them stay

    def _space_changes(self) -> int:
        return 0 if self._space is None else self._space.changes

    def _may_repeat(self, objects: Objects, puts_remotely: bool) -> bool:
        """Whether a publication like one before may be known by it.

        Not where each put is told, or goes into a tree elsewhere; nor where rights are checked: a user's groups change.
        """
        return self._record is None and self._link is None and not objects.authorities and not puts_remotely

    def _log_collisions(self, objects: Objects) -> None:
        """Log, once each, where streams and subscription points are not what they should be (guide 6.1)."""
        lists = objects.namelists
        for finding in collisions(lists.get(QUEUE_NAMELIST), lists.get(SUB_POINT_NAMELIST), objects.topics):
            if finding.text not in self._logged:
                self._logged.add(finding.text)
                _log.warning("%s", finding.text)

    def _arrival(self, message: StoredMessage) -> Arrival:
        return Arrival(message.seq, self._clock(), message.queue, message.md, message.body, message.user)

    def _one(self, unit: UnitOfWork, message: StoredMessage, batch: _Batch) -> None:
        broker, arrival = self._loaded(unit), self._arrival(message)
        reading = self._guard.reading_of(message, is_first=not batch.tally.commands)

        def work() -> Outcome | CachedPuts:
            if self._tree is not None:
                return broker.trace(arrival, reading)
            if reading is not None or self._repeats is None:
                return broker.process(arrival, reading)
            return self._repeats.process(arrival)

        outcome = self._guard.work_out(message, reading, work)
        if reading is not None:
            batch.suspect = message
        if isinstance(outcome, CachedPuts):
            self._repeat(unit, broker, arrival, outcome, batch)
            return
        for retained in unit.save_effects(outcome.effects):
            broker.space.retain(retained)
        self._carry_out(unit, broker, arrival, outcome, batch)
        self._version = unit.state_version

    def _delivering(self, unit: UnitOfWork, broker: BrokerCore) -> Deliverer:
        deliverer = self._deliverer
        if deliverer is None or not deliverer.is_of(unit, broker.objects):
            deliverer = self._deliverer = Deliverer(unit, broker.objects, self._logged, self._backlog)
        return deliverer

    def _repeat(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival, again: CachedPuts, batch: _Batch) -> None:
        size_bytes = sum(map(len, again.bodies))
        self._guard.meter.changed(len(again.bodies))
        self._guard.meter.made(size_bytes)
        refused = self._delivering(unit, broker).deliver_again(again, Cause(arrival.now, arrival.md))
        tally = batch.tally
        tally.commands += 1
        tally.publications += len(again.bodies) - len(refused)
        for put in refused:
            if put is not None:
                tally.put(put.kind)
        batch.size_bytes += len(arrival.body) + size_bytes

    def _carry_out(
        self,
        unit: UnitOfWork,
        broker: BrokerCore,
        arrival: Arrival,
        outcome: Outcome,
        batch: _Batch,
        is_logged: bool = False,
    ) -> None:
        """Put what came of one command; it counts once all of it is put. is_logged: the failure was logged before."""
        deliverer, cause = self._delivering(unit, broker), Cause(arrival.now, arrival.md)
        done = [(n, deliverer.deliver(put, cause)) for n, put in enumerate(outcome.puts)]
        outgoing = self._for_tree(arrival, outcome)
        for put in outgoing:
            deliverer.deliver(put, cause)
        tally = batch.tally
        tally.commands += 1
        tally.linked += len(outgoing)
        batch.size_bytes += len(arrival.body)
        for n, put_ in done:
            if put_ is not None:
                tally.put(put_.kind)
                batch.size_bytes += len(put_.body)
                if self._record is not None:
                    batch.puts.append(Put.of(arrival.seq, n, put_))
        for what in outcome.lost:
            _log.warning(
                "message %d on %s: not told to %s", arrival.seq, arrival.queue, what, extra={"seq": arrival.seq}
            )
        if outcome.completion is Completion.ERROR:
            tally.errors += 1
        if outcome.completion is Completion.ERROR and not is_logged:
            about = {"seq": arrival.seq, "queue": arrival.queue, "reason": outcome.reason}
            level = logging.INFO if outcome.reason == MQRCCF_NO_RETAINED_MSG else logging.WARNING
            _log.log(level, "message %d on %s: %s", arrival.seq, arrival.queue, outcome.why, extra=about)

    def _for_tree(self, arrival: Arrival, outcome: Outcome) -> tuple[Outgoing, ...]:
        """What has to go into the linked topic tree; nothing of what came from there."""
        if self._tree is None or outcome.trace is None:
            return ()
        outgoing = self._tree.after(outcome.trace)
        return () if arrival.md is not None and is_native(arrival.md) else outgoing

    def _count(self, batch: _Batch) -> None:
        self.tally.add(batch.tally)
        if batch.suspect is not None:
            self._guard.done(batch.suspect)
        if self._link is not None:
            self._link.committed()
        self._unrecorded += batch.puts
        self._record_puts()
        if batch.tally.commands:
            self._report_progress()

    def _record_puts(self) -> None:
        """Record what is committed; where that fails, no command is processed before it works."""
        while self._unrecorded and self._record is not None:
            self._record(self._unrecorded[0])
            self._unrecorded.popleft()

    def _report_progress(self) -> None:
        if self._committed is not None:
            self._committed(self.tally)


def input_queues(broker: BrokerCore) -> tuple[str, ...]:
    """The queues that the queued interface reads now: none where PSMODE keeps it from running (guide 6.3)."""
    if broker.objects.qmgr.psmode != "ENABLED":
        return ()
    namelist = broker.objects.namelists.get(QUEUE_NAMELIST)
    streams = namelist.names if namelist is not None else (DEFAULT_STREAM,)
    return (CONTROL_QUEUE, *streams)


def _take_again(unit: UnitOfWork, queues: tuple[str, ...], message: StoredMessage) -> None:
    again = unit.get_next(queues)
    assert again is not None
    assert (again.queue, again.body) == (message.queue, message.body)


def _is_the_stores(error: Exception) -> bool:
    """Whether it is no matter of the message: the store failed, and will for others too."""
    return isinstance(error, StoreError) and not isinstance(error, UndeliverableError)
