"""Which of several instances of ``run`` works for a queue manager in PostgreSQL, on whatever machines they are.

    session      its lock is that of the processor; the server releases it when the session ends
    instance     asks the session for the epoch ten times in the lease's seconds
    server       ends a session that asks nothing for the lease's seconds: its instance is stopped, or cut off
    the next     has the lock, begins the next epoch, and is the processor

Each unit of work asks for the epoch (``PostgresqlDatabase.begin``), so an instance that was held up changes nothing
when it goes on. One that was stopped in the middle of a unit of work would keep all others waiting; the next instance
has the server end that session, which backs its unit of work out.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from commands.config.home import PostgresqlHome
from commands.disk.errors import QueueManagerInUseError, StoreBusyError, SupersededError
from commands.qmgr.store.database import Database, EngineError
from commands.qmgr.store.opening import begin_epoch, connect_postgresql
from commands.running.lease import STOPPED_S
from commands.terminal.stopping import stopping
from rfh2.errors import StoreError

if TYPE_CHECKING:
    from commands.qmgr.store.postgresql_database import PostgresqlDatabase

_TICK_S: Final = 0.1
_RENEWALS: Final = 10
_PATIENCE_S: Final = 1.0
_TRIES: Final = 5


class DatabaseTenure:
    """An instance that is active (as ``Tenure``), from the epoch that it began; *database* has the lock."""

    took_over = ""

    def __init__(self, database: PostgresqlDatabase, epoch: int, lease_s: float) -> None:
        self.epoch = epoch
        self._database, self._pid, self._pause_s = database, os.getpid(), lease_s / _RENEWALS
        self._asked_s = self._worked_s = time.monotonic()

    def renew(self, works: bool = True) -> None:
        """Keep the place; call it often. Raises SupersededError once another instance took over.

        works: False where the worker is stopped: then the place is given up after STOPPED_S.
        """
        now = time.monotonic()
        if works:
            self._worked_s = now
        if now - self._asked_s < self._pause_s:
            return
        self._asked_s = now
        try:
            found = self._database.read_epoch()
            if found > self.epoch:
                raise self.superseded(found)
            if now - self._worked_s > STOPPED_S:
                self._database.unlock(0)
            elif not self._database.has_lock(0):
                self._database.try_lock(0)
        except SupersededError:
            raise
        except (EngineError, StoreError):
            pass  # the server is away; who has the lock when it is back is seen then

    def superseded(self, found: int | None = None) -> SupersededError:
        """The error to raise where the worker has seen that another instance took over. found: its epoch."""
        return SupersededError(self._database.path, self.epoch, self.epoch + 1 if found is None else found)

    def end(self) -> None:
        """Give the place up; nothing in a forked child."""
        if os.getpid() == self._pid:
            self._database.close()


def tenure(
    home: PostgresqlHome,
    qmgr: str,
    lease_s: float,
    waiting: Callable[[Callable[[], str]], AbstractContextManager[None]] | None,
) -> DatabaseTenure | None:
    """Be the active instance, as soon as no other one is; None if this one was asked to end before.

    waiting: entered while it waits, with a function that says which instance is active; None where it is not to wait.
    Raises QueueManagerInUseError where another one is active and this one is not to wait; StoreError.
    """
    database = connect_postgresql(home, qmgr, _PATIENCE_S)
    try:
        database.require_activity(lease_s)
        stop = threading.Event()

        def active() -> str:
            with suppress(EngineError, StoreError):
                return f"process {database.holder()} is active"
            return "the server cannot be reached"

        if not database.try_lock(0):
            if waiting is None:
                raise QueueManagerInUseError(qmgr, database.holder())
            with stopping(stop), waiting(active):
                while not _locked(database):
                    if stop.wait(_TICK_S):
                        database.close()
                        return None
        return DatabaseTenure(database, _begun(database), lease_s)
    except BaseException:
        database.close()
        raise


def _locked(database: PostgresqlDatabase) -> bool:
    try:
        return database.try_lock(0)
    except (EngineError, StoreError):
        return False  # the server is away


def _begun(database: PostgresqlDatabase) -> int:
    """The epoch that is begun, even where an instance was stopped in the middle of a unit of work."""
    for _ in range(_TRIES):
        try:
            return begin_epoch(database)
        except StoreBusyError:
            database.end_idle(_PATIENCE_S)
    return begin_epoch(database)


def instances(database: Database) -> list[dict[str, Any]]:
    """The active instance, as ``lease.instances``; with the machine that it is on."""
    pid, _, host = cast("PostgresqlDatabase", database).holder().partition(" on ")
    if not pid:
        return []
    return [{"mode": "active", "pid": int(pid), "host": host, "epoch": database.read_epoch()}]
