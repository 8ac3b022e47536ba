"""An instance of ``run`` for one queue manager: it waits for its tenure, and is a supervisor and a worker then.

An instance whose place was taken ends its worker as soon as it notices, and waits again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from commands.config.home import Home
from commands.disk.errors import ServerAwayError, SupersededError
from commands.disk.lock import require_locks
from commands.disk.open_files import raise_limit
from commands.qmgr.store import Durability
from commands.qmgr.store.opening import directory_of
from commands.running.listening import Beside, Guardian, beside
from commands.running.service_manager import Heartbeat, notify
from commands.running.supervisor import supervised
from commands.running.tenure import Tenure, Waiting, tenure
from commands.running.work_page import WorkPage
from commands.terminal.console import Console, ExitCode
from commands.terminal.stopping import stopping

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
