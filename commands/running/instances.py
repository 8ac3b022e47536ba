"""Instances of ``run`` for one queue manager: one is active, and with ``--standby`` another one waits to take over.

As a multi-instance queue manager of IBM MQ does. A standby takes over when the active instance

    has ended, in any way           its lock of the processor is free: at once
    is stopped (SIGSTOP)            the system says so (``commands.running.lease``): after a second
    is held up in another way       its lease runs out: after the lease's seconds

An instance whose place was taken ends its worker as soon as it notices. It waits as the standby then, or ends.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from commands.config.home import Home, PostgresqlHome
from commands.disk.errors import QueueManagerInUseError, StoreBusyError, SupersededError
from commands.disk.lock import LOOKED_AT_S, PROCESSOR_LOCK, HolderLock, require_locks
from commands.disk.open_files import raise_limit
from commands.qmgr.store import Durability
from commands.qmgr.store.opening import directory_of, require_readable, take_over
from commands.qmgr.store.queue_manager import PATIENCE_S
from commands.running.database_tenure import DatabaseTenure, tenure
from commands.running.lease import STANDBY_LOCK, Lease, LeaseWatch, Tenure, end_by_force, read_lease
from commands.running.listening import Beside, beside
from commands.running.service_manager import Heartbeat, notify
from commands.running.supervisor import supervised
from commands.running.work_page import WorkPage
from commands.terminal.console import Console, ExitCode
from commands.terminal.stopping import stopping

_TICK_S: Final = 0.1
# So long a write transaction of somebody else may take before the instance that is held up counts as its owner.
_PATIENCE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """What an instance is to do when it is active, and how it waits.

    standby: whether it waits while another instance is active. lease_s: how long its lease lasts. time_s, takes_hangup:
    of ``supervised``. servers: what runs beside the worker. takes_places: whether it needs what only one process
    can have, such as a port or a queue that is opened exclusively. waiting: entered while it waits, with a function
    that says which instance is active. lost: called when another instance has taken over.
    """

    home: Home
    qmgr: str
    durability: Durability
    standby: bool
    lease_s: float
    time_s: float
    takes_hangup: bool
    servers: tuple[Beside, ...]
    takes_places: bool
    waiting: Callable[[Callable[[], str]], AbstractContextManager[None]]
    lost: Callable[[SupersededError], None]


@dataclass(frozen=True, slots=True)
class Worker:
    """What the worker of an active instance gets. took_over: a line about the instance before; "" for none.

    listening: HOST:PORT of each server beside it.
    """

    page: WorkPage
    epoch: int
    took_over: str
    listening: tuple[str, ...] = ()


def instance(console: Console, plan: Plan) -> Worker | int:
    """Be an instance: its worker in the worker, the exit code in the supervisor at the end.

    Raises QueueManagerInUseError where another instance is active and this one is not to wait, or another one waits
    already; SupersededError where another one took over and this one is not to wait; StoreError, ListenError.
    """
    require_locks(f"queue manager {plan.qmgr}")
    raise_limit()
    directory = directory_of(plan.home, plan.qmgr)
    if isinstance(plan.home, PostgresqlHome):
        require_readable(plan.home, plan.qmgr)  # makes the directory, too
    if plan.takes_hangup:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # while there is no worker, no log is open
    while True:
        held = _active(console, plan, directory)
        if held is None:
            return ExitCode.DONE
        try:
            listening: list[str] = []
            with ExitStack() as servers:
                for server in plan.servers:
                    listening.append(servers.enter_context(beside(server, held.renew)))
                    console.say(f"queue manager {plan.qmgr}: {server.told.format(listening[-1])}")
                outcome = supervised(console, directory, plan.time_s, plan.takes_hangup, held)
                if isinstance(outcome, WorkPage):
                    return Worker(outcome, held.epoch, held.took_over, tuple(listening))
            return outcome
        except SupersededError as error:
            plan.lost(error)
            if not plan.standby:
                raise
        finally:
            held.end()


def _active(console: Console, plan: Plan, directory: Path) -> Tenure | DatabaseTenure | None:
    """This instance's tenure as soon as it is active; None if it was asked to end before."""
    if not isinstance(plan.home, PostgresqlHome):
        return _Candidate(console, plan, directory).wait()

    def waiting(active: Callable[[], str]) -> AbstractContextManager[None]:
        console.say(f"queue manager {plan.qmgr}: running as standby; {active()}")
        return plan.waiting(active)

    return tenure(plan.home, plan.qmgr, plan.lease_s, waiting if plan.standby else None)


class _Candidate:
    """An instance that is not active."""

    def __init__(self, console: Console, plan: Plan, directory: Path) -> None:
        self._console, self._plan, self._directory = console, plan, directory
        self._lock = HolderLock(directory / PROCESSOR_LOCK, with_directory=True)
        self._watch = LeaseWatch(directory)
        self._is_renewed = self._is_without_lock = self._has_warned = False

    def wait(self) -> Tenure | None:
        """Wait until this instance is active; None if it was asked to end before."""
        plan = self._plan
        require_readable(plan.home, plan.qmgr)
        tenure = self._tried(time.monotonic() + LOOKED_AT_S)
        if tenure is not None:
            return tenure
        standby, stop = HolderLock(self._directory / STANDBY_LOCK), threading.Event()
        if plan.standby and not standby.take(time.monotonic() + LOOKED_AT_S):
            raise QueueManagerInUseError(plan.qmgr, f"{self._lock.holder()}, and process {standby.holder()} is standby")
        try:
            with stopping(stop), plan.waiting(self._active) if plan.standby else nullcontext():
                if plan.standby:
                    self._console.say(f"queue manager {plan.qmgr}: running as standby; {self._active()}")
                    notify(f"READY=1\nSTATUS=queue manager {plan.qmgr}: standby")
                heartbeat = Heartbeat()
                while not stop.wait(_TICK_S):
                    heartbeat.beat()
                    tenure = self._tried()
                    if tenure is not None:
                        return tenure
                    if not plan.standby and (self._is_renewed or not self._is_without_lock):
                        raise QueueManagerInUseError(plan.qmgr, self._lock.holder())
        finally:
            standby.release()
        return None

    def _active(self) -> str:
        """Which instance is active, for people."""
        lease = read_lease(self._directory)
        holder = self._lock.holder() if lease is None or lease.ended else str(lease.pid)
        return f"process {holder} is active" if holder else "another instance is active"

    def _tried(self, deadline: float = 0.0) -> Tenure | None:
        """Take the place of the active instance if it has ended, or does not renew its lease."""
        lease, watch = self._watch.look(), self._watch
        self._is_renewed = watch.has_changed
        # An instance that took over from one that is held up may not have the lock, and be active all the same.
        self._is_without_lock = lease is not None and not (lease.locked or lease.ended)
        if lease is not None and self._is_without_lock:
            if watch.has_run_out:
                self._lock.take()
                return self._take_from(lease)
            self._lock.release()
            return None
        if self._lock.take(deadline):
            return self._begin(lease)
        # Who has the lock and is not the one of the lease keeps none: an earlier version.
        if lease is None or lease.ended or not watch.has_run_out or self._lock.holder() != str(lease.pid):
            return None
        return self._take_from(lease)

    def _begin(self, lease: Lease | None) -> Tenure | None:
        """Begin as the holder of the lock, which the active instance has released; None if it is to be tried again."""
        try:
            epoch = self._new_epoch(_PATIENCE_S if self._plan.standby else PATIENCE_S)
        except StoreBusyError:
            if self._plan.standby:
                return None  # some other program has the database for long
            raise
        ended = lease is not None and lease.ended
        before = "" if lease is None or ended else f"process {lease.pid}, which did not end in order"
        return Tenure(self._directory, self._lock, epoch, self._plan.lease_s, before)

    def _take_from(self, lease: Lease) -> Tenure | None:
        """Take the place of an instance that is held up, and may have the lock; None if it is to be tried again."""
        plan, who = self._plan, f"process {lease.pid}, {self._watch.reason}"
        if plan.takes_places and end_by_force(lease):
            return None  # the lock is free as soon as the last of its processes has ended
        try:
            epoch = self._new_epoch(_PATIENCE_S, lease.epoch)
        except StoreBusyError:
            # It was stopped in the middle of a unit of work, which only its end backs out.
            if not end_by_force(lease) and not self._has_warned:
                self._has_warned = True
                text = "holds the database, and cannot be ended from here; end it"
                self._console.warn(f"queue manager {plan.qmgr}: {who}, {text}")
            return None
        except SupersededError:
            return None
        return Tenure(self._directory, self._lock, epoch, plan.lease_s, who)

    def _new_epoch(self, patience_s: float, seen: int | None = None) -> int:
        return take_over(self._plan.home, self._plan.qmgr, self._plan.durability, patience_s, seen)
