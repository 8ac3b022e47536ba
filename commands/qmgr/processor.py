"""The command processor: takes commands off the input queues, and commits all that each one causes with its get.

    begin ── get ── Broker.process ── save effects, put puts ── ... up to a batch ── commit

The broker's memory and the store always agree: if a unit of work fails, it is backed out, and the broker is loaded
again from the store. A message never waits for a batch to fill: a batch ends when the queues are empty, and earlier if
another process waits to put or to get.

If a message of a command can be put nowhere (``commands.qmgr.delivery``), the command is backed out and tried again,
with ever longer pauses. Earlier commands of the unit of work are kept, and later ones wait. If the queue manager has no
savepoints, the earlier commands are backed out too, and processed again without this one. Only a non-persistent command
is ever discarded, after PSRTYCNT tries, with PSNPMSG(DISCARD). A command becomes a dead letter if the bridge itself
fails on it, if it exceeds its budget, or if it ended processors before (``commands.qmgr.watchdog``). Every command is
processed under syncpoint, whatever PSSYNCPT says: this is what YES asks for, and more than IFPER does.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from commands.broker.authority import GroupsOf, no_groups
from commands.broker.budget import Budget
from commands.broker.exit_values import PublishExit
from commands.broker.puts import Put
from commands.disk.errors import SupersededError, UndeliverableError, UnitOfWorkFullError
from commands.qmgr.delivery import LONGEST_PAUSE_S, Backlog, RefusalLog
from commands.qmgr.execution import Batch, Execution
from commands.qmgr.link_port import CommandServer, TopicLink, TreeNotAskedError
from commands.qmgr.loaded import LoadedBroker
from commands.qmgr.observer import Committed, Observer, ProcessorTally, Unobserved, forget_unused_topics
from commands.qmgr.sending import report_expired
from commands.qmgr.store.port import CountsMessages, QueueManagerPort, StoredMessage, UnitOfWork
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from commands.qmgr.watchdog import ApartError, CommandLimits, NoWatchdog, Watchdog
from commands.terminal.counted import counted
from rfh2.errors import StoreError

_log = logging.getLogger("qpubsub.processor")

# The most commands in a unit of work; the most if another process waits for its commit; and the most bytes got and put
# in one, because the log of the database grows by as much.
BATCH = 1000
SHARED_BATCH = 100
BATCH_BYTES = 16 * 1024 * 1024
EXPIRY_SCAN = timedelta(seconds=60)


class Stop(Protocol):
    """Something that says when to stop: ``threading.Event`` is one."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class _StuckError(StoreError):
    """A command cannot be carried out in a unit of work without savepoints, so all of that is backed out.

    before: how many commands it had carried out before.
    """

    def __init__(self, before: int, message: StoredMessage, cause: Exception) -> None:
        super().__init__(before, message, cause)
        self.before, self.message, self.cause = before, message, cause


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """The limits of a processor."""

    batch: int = BATCH  # the most commands in a unit of work
    budget: Budget = field(default_factory=Budget)  # of one command
    longest_pause_s: float = LONGEST_PAUSE_S  # between two tries of ``run`` while the store fails


class Processor:
    """Processes the commands of one queue manager.

    clock: UTC now. record: called with each put when it is committed, and again if it raised StoreError. groups_of: the
    groups of a user, for authority records. committed: called with the totals so far, after each commit and repeatedly
    while there is nothing to do. link: to a topic tree elsewhere; None for the embedded one alone. watchdog: looks
    after the processor, and knows on which messages it ended before. backlog: of messages that can be put nowhere.
    command_servers: make the servers of administration commands, and of programs' subscriptions; without one, what is
    for it stays on its queue. observer: who measures the processor, if anybody does. publish_exit: called for each
    message for a subscriber.
    """

    def __init__(
        self,
        store: QueueManagerPort,
        clock: Callable[[], datetime],
        record: Callable[[Put], None] | None = None,
        *,
        settings: ProcessorSettings | None = None,
        groups_of: GroupsOf = no_groups,
        committed: Callable[[ProcessorTally], None] | None = None,
        link: TopicLink | None = None,
        watchdog: Watchdog | None = None,
        backlog: Backlog | None = None,
        command_servers: Sequence[Callable[[GroupsOf, Backlog], CommandServer]] = (),
        observer: Observer | None = None,
        publish_exit: PublishExit | None = None,
    ) -> None:
        self._settings = ProcessorSettings() if settings is None else settings
        self._limits = CommandLimits(self._settings.budget, NoWatchdog() if watchdog is None else watchdog)
        self._link = link
        self._observer: Observer = Unobserved() if observer is None else observer
        self._store, self._clock, self._record = store, clock, record
        self._committed = committed
        self._unrecorded: deque[Put] = deque()
        self._retries = False  # whether the next unit of work tries what is undelivered
        self._found_none = False  # whether the last unit of work has seen the input queues empty
        self._backlog = Backlog(clock, self._settings.longest_pause_s) if backlog is None else backlog
        logged: set[str] = set()
        self._loaded = LoadedBroker(
            meter=self._limits.meter,
            groups_of=groups_of,
            link=link,
            by_template=record is None,
            doubt=self._backlog.doubt,
            logged=logged,
            publish_exit=publish_exit,
        )
        servers = {server.queue: server for server in (made(groups_of, self._backlog) for made in command_servers)}
        self._admin_queues = tuple(servers)
        self._execution = Execution(
            loaded=self._loaded,
            limits=self._limits,
            clock=clock,
            backlog=self._backlog,
            records=record is not None,
            logged=logged,
            servers=servers,
            observer=observer,
        )
        self._refusals = RefusalLog()
        self.tally = ProcessorTally()

    def start(self) -> None:
        """Do what the start of a queue manager does.

        It deletes non-persistent retained publications (guide 8.5), and temporary dynamic queues with their
        subscriptions (guide 6.7.2). A queue stays if the program that made it is still connected to the database.
        """
        self._end_lost_connections()
        with self._store.unit_of_work() as unit:
            gone = unit.discard_nonpersistent_retained()
        if gone:
            _log.info("discarded at the restart: %s", counted(gone, "non-persistent retained publication"))
        try:
            with self._store.unit_of_work() as unit:
                self._execution.end_subscriptions(unit)
                self._execution.end_without_queue(unit)
        except BaseException:
            self._loaded.forget()
            raise
        self._discard_expired()

    def drain(self, stop: Stop | None = None) -> int:
        """Process until the input queues are empty or *stop* is set; returns how many commands there were.

        It first tries to deliver what subscribers have not got yet.
        """
        self._retries = True
        self._backlog.hasten()
        try:
            return self._drain(stop)
        finally:
            self._refusals.end()

    def _drain(self, stop: Stop | None) -> int:
        done = 0
        while stop is None or not stop.is_set():
            count = self._one_batch()
            done += count
            if (count == 0 or self._found_none) and not self._retries:
                break
            # Commands may come without end.
            self._retries = self._retries or self._backlog.is_due
        return done

    def run(self, stop: Stop, idle_s: float = 0.5) -> None:
        """Process, and wait for more, until *stop* is set. If the store fails, try again with ever longer pauses.

        From time to time it removes expired messages, also from queues from which no program gets. Raises
        SupersededError once another processor has taken over.
        """
        patience = 0.1
        looked = self._clock()
        while not stop.is_set():
            try:
                self._retries = self._backlog.is_due
                self._drain(stop)
                patience = 0.1
                if abs((now := self._clock()) - looked) >= EXPIRY_SCAN:
                    looked = now
                    self._discard_expired()
                    self._end_lost_connections()
                    self._forget_unused_topics()
                self._refusals.flush(now)
                self._report_progress()
                self._store.wait_for_change(idle_s)
            except SupersededError:
                raise
            except StoreError as error:
                _log.error("%s", error, extra={"next_try_s": patience})
                stop.wait(patience)
                patience = min(patience * 2, self._settings.longest_pause_s)
        self._refusals.end()

    @property
    def undelivered(self) -> int:
        """How many publications are kept because they could be put nowhere."""
        return self._backlog.messages

    def _discard_expired(self) -> None:
        now = self._clock()
        with self._store.unit_of_work() as unit:
            if isinstance(unit, EmbeddedUnitOfWork):
                report_expired(unit, now)
            gone = unit.discard_expired(now)
        if gone:
            _log.info("%d expired messages were taken off their queues", gone)

    def _end_lost_connections(self) -> None:
        gone = self._store.end_lost_connections()
        if gone:
            _log.info("%d temporary dynamic queues are gone with the programs that made them", gone)

    def _forget_unused_topics(self) -> None:
        with self._store.unit_of_work() as unit:
            gone = forget_unused_topics(unit, self._loaded.of(unit), self._clock())
        if gone:
            _log.info("%d topics that were not used for TREELIFE left the topic tree", gone)

    def _one_batch(self) -> int:
        self._record_puts()
        limit = self._settings.batch
        while True:
            try:
                done = self._unit_of_work(limit)
                if self._link is None or not self._link.fetch():
                    return done
                self._found_none = False
                if done:
                    return done
            except ApartError:
                limit = 1
            except UnitOfWorkFullError:
                if limit == 1:
                    raise
                limit //= 2
            except _StuckError as stuck:
                is_apart = isinstance(stuck.cause, ApartError)
                if is_apart:
                    self._limits.read_apart(stuck.message)
                if stuck.before or is_apart:
                    limit = stuck.before or 1  # those before it once more, and without it
                elif self._given_up_alone(stuck):
                    return 1
                else:
                    raise stuck.cause from None

    def _unit_of_work(self, limit: int) -> int:
        batch = Batch()
        self._observer.begun(batch.tally)
        waiting: UndeliverableError | ApartError | None = None
        self._found_none = False
        try:
            with self._store.unit_of_work() as unit:
                self._execution.end_subscriptions(unit)
                queues = self._queues(unit)
                asks = False
                if self._retries:
                    payment = self._backlog.retry(unit, self._loaded.of(unit).objects.qmgr)
                    # Without savepoints a command that always fails would undo this each time, so commit it first.
                    is_alone = payment.count > 0 and not unit.has_savepoints
                    self._retries = payment.more or is_alone
                    queues = () if is_alone else queues
                while queues and waiting is None and not asks and self._goes_on(unit, batch, limit):
                    message, changes = None, 0 if self._link is None else self._loaded.changes
                    try:
                        with unit.savepoint():
                            message = unit.get_next(queues)
                            if message is not None:
                                self._execution.carry_out(unit, message, batch)
                    except TreeNotAskedError:
                        asks = True  # the command stays, and is processed once the tree was asked
                        if self._loaded.changes != changes:
                            self._loaded.forget()
                        self._loaded.look_ahead(unit, SHARED_BATCH, self._execution.arrival)
                    except Exception as error:
                        self._loaded.forget()
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
                        self._found_none = unit.is_alone
                        break
                self._limits.idle()
                if isinstance(unit, CountsMessages):
                    unit.counters.add(batch.counts)
                version = unit.state_version
                self._observer.committing()
        except BaseException:
            self._limits.idle()
            self._observer.backed_out()
            self._backlog.doubt()
            self._loaded.forget()  # it may know of what was backed out
            raise
        self._loaded.is_at(version)
        self._count(batch)
        if isinstance(waiting, ApartError):
            self._limits.read_apart(waiting.message)
        if waiting is not None and batch.tally.commands == 0:
            raise waiting
        return batch.tally.commands

    def _queues(self, unit: UnitOfWork) -> tuple[str, ...]:
        """The queues to read now; neighbours first get what they have to know of the state that was loaded."""
        self._execution.arrange(unit)
        return (*self._loaded.queues(unit), *self._admin_queues)

    def _goes_on(self, unit: UnitOfWork, batch: Batch, limit: int) -> bool:
        """Whether *batch* takes another command."""
        done = batch.tally.commands
        if done >= limit or batch.size_bytes >= BATCH_BYTES or batch.suspect is not None or batch.redefined:
            return False
        if done and self._limits.must_end():
            return False
        return done == 0 or done % SHARED_BATCH > 0 or not unit.is_awaited

    def _given_up(
        self, unit: UnitOfWork, queues: tuple[str, ...], message: StoredMessage, error: Exception, batch: Batch
    ) -> UndeliverableError | None:
        """Remove *message*, which cannot be carried out, from its queue; the error it waits for, if it must stay.

        A fault of the bridge must not stop the queue: the message becomes a dead letter.
        """
        try:
            with unit.savepoint():
                if not isinstance(error, UndeliverableError):
                    self._execution.set_aside(unit, queues, message, error, batch)
                elif self._may_discard(unit, message, error):
                    self._execution.discard(unit, queues, message, error, batch)
                else:
                    return error
        except UndeliverableError as refusal:
            self._loaded.forget()
            return refusal
        return None

    def _given_up_alone(self, stuck: _StuckError) -> bool:
        """The same in a unit of work of its own, after the one with the command was backed out."""
        batch = Batch()
        try:
            with self._store.unit_of_work() as unit:
                self._execution.end_subscriptions(unit)
                queues = self._queues(unit)
                if self._given_up(unit, queues, stuck.message, stuck.cause, batch) is not None:
                    unit.backout()
                    return False
        except BaseException:
            self._loaded.forget()
            raise
        self._count(batch)
        return True

    def _may_discard(self, unit: UnitOfWork, message: StoredMessage, error: UndeliverableError) -> bool:
        """Whether its sender and PSNPMSG allow that the message is discarded (guide 6.5.1)."""
        qmgr = self._loaded.of(unit).objects.qmgr
        if message.persistent or error.for_ever or qmgr.psnpmsg != "DISCARD":
            return False
        return message.backout_count >= qmgr.psrtycnt

    def _count(self, batch: Batch) -> None:
        self.tally.add(batch.tally)
        self._observer.committed(Committed(batch.tally, batch.endings, batch.counts, batch.size_bytes))
        if batch.refusals:
            self._refusals.committed(batch.refusals, self._clock())
        if batch.suspect is not None:
            self._limits.done(batch.suspect)
        if self._link is not None:
            self._link.committed()
        self._unrecorded += batch.puts
        self._record_puts()
        if batch.tally.commands:
            self._report_progress()

    def _record_puts(self) -> None:
        """Record what is committed; if that fails, no command is processed until it succeeds."""
        while self._unrecorded and self._record is not None:
            self._record(self._unrecorded[0])
            self._unrecorded.popleft()

    def _report_progress(self) -> None:
        if self._committed is not None:
            self._committed(self.tally)


def _is_the_stores(error: Exception) -> bool:
    """Whether the error is not due to the message: the store failed, and will fail for other messages too."""
    return isinstance(error, StoreError) and not isinstance(error, UndeliverableError)
