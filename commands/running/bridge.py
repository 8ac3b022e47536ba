"""The bridge of ``run``: a queue manager, its processor, and all that works beside it, opened and closed as one.

    bridge = Bridge(console, RunSettings(qmgr="QM1", home=home))
    with bridge:                    # opens the queue manager, its link and its channels; starts the processor
        bridge.drain()              # until the queues are empty; or bridge.serve(), until ``bridge.stop`` is set
    print(bridge.summary, bridge.exit_code())

``fork`` before that makes it an instance: a supervisor, which watches, and a worker, which goes on with the bridge.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from commands.config.home import Home, PostgresqlHome
from commands.config.settings import Config, ConfigError, exposed_secrets
from commands.disk import files
from commands.disk.errors import ServerAwayError, SupersededError
from commands.disk.lock import require_locks
from commands.disk.open_files import raise_limit
from commands.links.opening import Places
from commands.listener.server import Listener, listener_of, serve
from commands.monitoring.opening import Monitoring
from commands.monitoring.server import Health, Phase
from commands.qmgr.admin import PcfCommandServer
from commands.qmgr.delivery import LONGEST_PAUSE_S, STRANDED_HELP, is_stranding
from commands.qmgr.event_numbers import ENDED, LOST_OWNERSHIP, STARTED
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.mqi.subscription_server import SubscriptionServer
from commands.qmgr.observer import ProcessorTally
from commands.qmgr.processor import BATCH, Processor, ProcessorSettings
from commands.qmgr.store import Durability
from commands.qmgr.store.opening import directory_of
from commands.running.journal import Events, Journal, LogFile, Recorder, last_status, reporting
from commands.running.listening import Beside, Guardian, Heartbeat, Service, beside, notify
from commands.running.mqsc_scripts import ScriptDirectory
from commands.running.publish_exits import PublishExits
from commands.running.run_settings import RunSettings
from commands.running.supervisor import AWAY, SupervisedWatchdog, supervised
from commands.running.tenure import LEASE_S, Tenure, Waiting, tenure
from commands.running.work_page import WorkPage
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping

_log = logging.getLogger("qpubsub.run")

# One command may make 50,000 puts. With Python's own threshold (700), a third of the time for them would go into
# looking through their objects for cycles, of which there are none.
GARBAGE_THRESHOLD: Final = 10_000


class Bridge:
    """One bridge. also: servers beside it, such as the console. Raises ConfigError where the settings cannot be used.

    As a context, it raises StoreError, SystemUnsuitableError, PublishExitError, OSError where something cannot be
    opened. ``stop`` ends ``serve`` and ``drain``; SIGTERM and SIGINT set it, where the main thread opens the bridge.
    """

    def __init__(self, console: Console, settings: RunSettings, also: Sequence[Beside] = ()) -> None:
        self._console, self._settings = console, settings
        given, config = settings, settings.config
        listener = listener_of(config.listener, given.listen, given.home, given.qmgr, given.durability, given.groups_of)
        reported = partial(reporting, console, given.log, given.log_format)
        beside = also if listener is None else (listener_beside(listener), *also)
        self._servers = tuple(replace(each, reported=reported) for each in beside)
        self._monitoring = Monitoring.of(config, given.metrics, given.tracing)
        self._places = Places.of(given.home, given.qmgr, config, given.queues, given.topics, given.durability)
        self._waits = isinstance(given.home, PostgresqlHome) and not given.once
        if given.lease is not None and not isinstance(given.home, PostgresqlHome):
            raise ConfigError("--lease", "it needs a home in PostgreSQL; in a directory no other run takes over")
        self._worker: Worker | None = None
        self._opened = ExitStack()
        self._is_unsettled = False  # the topic tree had time, and did not give and take all
        self.stop = threading.Event()
        self.link: ManagedLink | None = None

    def fork(self) -> int | None:
        """Be an instance: None in the worker, which goes on with the bridge; the exit code in the supervisor.

        Raises QueueManagerInUseError, SupersededError, StoreError, ListenError (``instances.instance``).
        """
        given = self._settings
        plan = Plan(
            home=given.home,
            qmgr=given.qmgr,
            durability=given.durability,
            lease_s=given.lease or LEASE_S,
            time_s=given.budget.time_s,
            takes_hangup=given.log is not None,
            servers=self._servers,
            waiting=partial(self._monitoring.standing_by, given.qmgr, self._console) if self._waits else None,
            lost=self._log_lost_ownership,
        )
        begun = instance(self._console, plan)
        if not isinstance(begun, Worker):
            return begun
        self._worker, self._places = begun, replace(self._places, epoch=begun.epoch)
        gc.set_threshold(GARBAGE_THRESHOLD)
        return None

    def __enter__(self) -> Self:
        for exposed in exposed_secrets(self._settings.config):
            self._console.warn(exposed)
        try:
            with ExitStack() as stack:
                self._open(stack)
                self._opened = stack.pop_all()
        except ServerAwayError:
            if self._worker is None or not self._waits:
                raise
            os._exit(AWAY)  # the supervisor waits for the server
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._health.phase = Phase.ENDING
            text = "queued publish/subscribe ended for queue manager %s"
            _log.info(text, self._settings.qmgr, extra=_for_the_log(ENDED))
        self._opened.__exit__(kind, error, trace)

    def _open(self, stack: ExitStack) -> None:
        console, given, places = self._console, self._settings, self._places
        page = None if self._worker is None else self._worker.page
        manager = places.manager()
        stack.enter_context(manager)
        stack.enter_context(manager.processor_lock())
        record = None if given.record is None else stack.enter_context(closing(Recorder(given.record))).write
        with places.store() as store:
            directory, self._dead_letter_queue = store.directory, places.definition(store).deadq
            if store.is_open_to_others:
                console.warn(files.warning(directory))
        places.prepare()
        self.link = link = places.link(self._dead_letter_queue)
        watchdog = None if page is None else SupervisedWatchdog(page, self.stop, directory)
        ended_on = None if watchdog is None else watchdog.last_ended_on(directory)
        errors = [] if ended_on is None else last_status(directory).get("last_errors", [])
        log_file = None if given.log is None else LogFile(given.log, given.log_format, console.lines)
        journal = Journal(console, directory, log_file, None if page is None else os.getppid(), errors)
        self._health = Health(given.qmgr, journal, given.budget.time_s, link)
        observer = stack.enter_context(
            self._monitoring.observing(given.qmgr, places.store, journal, journal.beside, self._health, link, console)
        )
        is_embedded = places.queues is None
        self._processor = Processor(
            manager,
            lambda: datetime.now(UTC),
            record,
            settings=ProcessorSettings(
                batch=BATCH if is_embedded else given.config.queues.batch,
                budget=given.budget,
                longest_pause_s=LONGEST_PAUSE_S if is_embedded else given.config.queues.reconnect_s,
            ),
            groups_of=given.groups_of,
            committed=journal.batch,
            link=link,
            watchdog=watchdog,
            command_servers=(PcfCommandServer, SubscriptionServer) if is_embedded else (),
            observer=observer,
            publish_exit=stack.enter_context(PublishExits(given.config.publish_exit)).of(given.qmgr),
        )
        if link is not None:
            journal.watch(link)
        self._channels = places.channels(given.groups_of)
        stack.enter_context(journal.following())
        stack.enter_context(stopping(self.stop))
        scripts = given.config.mqsc.directory
        if scripts is not None:
            stack.enter_context(ScriptDirectory(scripts, places.store, given.groups_of).watched())
        self._start_channels(stack)
        self._start_link(stack)
        if watchdog is not None:
            stack.enter_context(watchdog.watched())
        if ended_on is not None:
            _log.error("%s", ended_on)
        self._processor.start()
        self._health.phase = Phase.RUNNING
        notify(f"READY=1\nSTATUS=queue manager {given.qmgr}: processing commands")
        text = "queued publish/subscribe started for queue manager %s"
        _log.info(text, given.qmgr, extra=_for_the_log(STARTED))

    def _start_channels(self, stack: ExitStack) -> None:
        """Carry messages for other queue managers of the home; ``drain`` does it itself."""
        if self._channels is None:
            return
        if self._settings.once:
            stack.enter_context(closing(self._channels))
            return
        self._channels.start(ended=self.stop.set)
        stack.callback(self._channels.stop)

    def _start_link(self, stack: ExitStack) -> None:
        if self.link is None:
            return
        self.link.start(ended=self.stop.set)
        stack.callback(self.link.stop)
        # A moment for the connection: a RegSub processed without one would be greeted late.
        end = time.monotonic() + self._settings.config.topics.patience_s
        while not self.stop.is_set() and not self.link.wait_up(0.1) and time.monotonic() < end:
            pass

    @property
    def listening(self) -> tuple[str, ...]:
        """HOST:PORT of each server beside the worker of an instance: of MQ clients first, where there is --listen."""
        return () if self._worker is None else self._worker.listening

    def serve(self) -> None:
        """Process commands, and wait for more, until ``stop`` is set."""
        self._console.say(f"queue manager {self._settings.qmgr}: waiting for commands; stop with Ctrl-C")
        self._processor.run(self.stop)

    def drain(self) -> None:
        """Process what there is here and in the topic tree; carry what is for other queue managers of the home."""
        while True:
            self._processor.drain(self.stop)
            if self._channels is not None:
                self._channels.carry()
            if self.link is None:
                return
            # What came from there meanwhile are commands here, and those may cause more to go there.
            if not self.link.settle(self.stop):
                self._is_unsettled = True
                return
            if self._processor.drain(self.stop) == 0:
                return

    @property
    def tally(self) -> ProcessorTally:
        """What was processed so far."""
        return self._processor.tally

    @property
    def summary(self) -> str:
        """One line about ``tally``."""
        tally = self.tally
        to_tree = f", {counted(tally.linked, 'publication')} for the topic tree" if tally.linked else ""
        delivered = counted(tally.publications, "publication delivered", "publications delivered")
        return (
            f"{counted(tally.commands, 'command')} ({tally.errors:,} in error): {delivered}, "
            f"{counted(tally.responses, 'response')}, {counted(tally.dead_letters, 'dead letter')}{to_tree}"
        )

    def exit_code(self) -> ExitCode:
        """How the bridge ended; what is left to do is said."""
        console, link, once, undelivered = self._console, self.link, self._settings.once, self._processor.undelivered
        is_unsettled = self._is_unsettled and not self.stop.is_set()
        if is_unsettled and link is not None:
            console.say(f"publications to or from the topic tree still wait: {link.trouble or 'it was too slow'}")
        faults = [each.fault for each in (link, self._channels) if each is not None and each.fault]
        if faults:
            console.warn(f"ended by a fault: {faults[0]}")
            return ExitCode.INTERNAL
        refused = 0 if link is None else link.refused
        if refused:
            which = counted(refused, "publication")
            console.say(f"the topic tree refused {which}: see {self._dead_letter_queue}")
        if once and undelivered:
            console.say(f"not delivered yet: {counted(undelivered, 'publication')}; qpubsub status shows for whom")
        stranded = self._say_what_is_stranded() if once and self._places.queues is None else False
        problems = self.tally.dead_letters or refused or is_unsettled or stranded or (once and undelivered)
        return ExitCode.PROBLEMS if problems else ExitCode.DONE

    def _say_what_is_stranded(self) -> bool:
        """Whether messages are on transmission queues that no channel reads; it is said on which."""
        with self._places.store() as store:
            queues = [queue for queue in store.overview().queues if queue.depth and is_stranding(queue.definition)]
        for queue in queues:
            name, what = queue.definition.name, counted(queue.depth, "message")
            self._console.warn(f"transmission queue {name} holds {what} for that queue manager: {STRANDED_HELP}")
        return bool(queues)

    def _log_lost_ownership(self, error: SupersededError) -> None:
        """Another instance has taken over; the worker, which had the log, was ended by force."""
        given = self._settings
        file = None if given.log is None else LogFile(given.log, given.log_format, self._console.lines)
        events = Events(self._console, file)
        # One that does not wait again ends with this error, which says it to people.
        about = {"numbers": (LOST_OWNERSHIP,), "is_told": not self._waits}
        events.emit(_log.makeRecord(_log.name, logging.ERROR, __file__, 0, "%s", (error,), None, extra=about))
        if file is not None:
            file.close()


def _for_the_log(number: int) -> dict[str, Any]:
    """An event for the log alone: the console says it in other words."""
    return {"numbers": (number,), "is_told": True}


# An instance of ``run`` for one queue manager: it waits for its tenure, and is a supervisor and a worker then.
#
# An instance whose place was taken ends its worker as soon as it notices, and waits again.

_AWAY_S: Final = 0.5
_AWAY_SAID_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What an instance is to do when it is active, and how it waits.

    lease_s: its session may be silent for so long. time_s, takes_hangup: of ``supervised``. servers: what runs beside
    the worker. waiting: where another instance may be waited for. lost: called when another instance has taken over.
    """

    home: Home
    qmgr: str
    durability: Durability
    lease_s: float
    time_s: float
    takes_hangup: bool
    servers: tuple[Beside, ...]
    waiting: Waiting | None
    lost: Callable[[SupersededError], None]


@dataclass(frozen=True, slots=True)
class Worker:
    """What the worker of an active instance gets. listening: HOST:PORT of each server beside it."""

    page: WorkPage
    epoch: int
    listening: tuple[str, ...] = ()


def instance(console: Console, plan: Plan) -> Worker | int:
    """Be an instance: its worker in the worker, the exit code in the supervisor at the end.

    Raises QueueManagerInUseError where another instance is active and this one is not to wait; SupersededError where
    another one took over and this one is not to wait; StoreError, ListenError. An instance that may wait also waits for
    the server of the database.
    """
    require_locks(f"queue manager {plan.qmgr}")
    raise_limit()
    if plan.takes_hangup:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # while there is no worker, no log is open
    directory = directory_of(plan.home, plan.qmgr)
    waiting = None if plan.waiting is None else partial(_waiting, console, plan.qmgr, plan.waiting)
    away = _Away(console)
    while True:
        held: Tenure | None = None
        try:
            held = tenure(plan.home, plan.qmgr, plan.durability, plan.lease_s, waiting)
            if held is None:
                return ExitCode.DONE
            guardians: list[Guardian] = []
            with ExitStack() as servers:
                for server in plan.servers:
                    guardians.append(servers.enter_context(beside(server, held.renew)))
                    console.say(f"queue manager {plan.qmgr}: {server.told.format(guardians[-1].where)}")
                outcome = supervised(console, directory, plan.time_s, plan.takes_hangup, held, guardians)
                if isinstance(outcome, WorkPage):
                    return Worker(outcome, held.epoch, tuple(each.where for each in guardians))
            return outcome
        except SupersededError as error:
            plan.lost(error)
            if plan.waiting is None:
                raise
        except ServerAwayError as error:
            if plan.waiting is None:
                raise
            if not away.waited(error):
                return ExitCode.DONE
        finally:
            if held is not None:
                held.end()


class _Away:
    """The server is away: said once, until it was there for a while."""

    def __init__(self, console: Console) -> None:
        self._console, self._heartbeat, self._said_s = console, Heartbeat(), -_AWAY_SAID_S

    def waited(self, error: ServerAwayError) -> bool:
        """Wait a moment; whether this instance was not asked to end meanwhile."""
        if time.monotonic() - self._said_s >= _AWAY_SAID_S:
            self._said_s = time.monotonic()
            self._console.warn(f"{error}; it is tried again")
        self._heartbeat.beat()
        stop = threading.Event()
        with stopping(stop):
            return not stop.wait(_AWAY_S)


@contextmanager
def _waiting(console: Console, qmgr: str, waiting: Waiting, active: Callable[[], str]) -> Iterator[None]:
    with waiting(active):
        console.say(f"queue manager {qmgr}: running as standby; {active()}")
        notify(f"READY=1\nSTATUS=queue manager {qmgr}: standby")
        yield


def openings(home: Home, qmgr: str, config: Config) -> Iterator[tuple[str, Callable[[], object]]]:
    """What a bridge makes of *config* before it connects to anything, part by part, with the key that each is about.

    The key is "" where the error names it. Each raises ConfigError.
    """
    for name, alone in (("queues", Config(queues=config.queues)), ("topics", Config(topics=config.topics))):
        yield f"{name}.url", partial(Places.of, home, qmgr, alone, None, None)
    yield "", partial(listener_of, config.listener, None, home, qmgr, Durability.FULL)
    for alone in (Config(metrics=config.metrics), Config(tracing=config.tracing)):
        yield "", partial(Monitoring.of, alone, None, None)


def listener_beside(make: Callable[[], Listener]) -> Beside:
    """The listener that *make* gives."""

    def service() -> Service:
        listener = make()
        return Service(listener.where, "--listen", partial(serve, listener))

    return Beside("listener", service, "listening on {}")
