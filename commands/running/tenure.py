"""Which of several instances of ``run`` works for a queue manager. In a directory there is one: another one is refused.

In PostgreSQL there may be as many as wanted, on whatever machines they are, and the database decides:

    session      its lock is that of the processor; the server releases it when the session ends
    instance     asks the session for the epoch ten times in the lease's seconds
    server       ends a session that asks nothing for the lease's seconds: its instance is stopped, or cut off
    the next     has the lock, begins the next epoch, and is the processor; the others wait on

Each unit of work asks for the epoch (``PostgresqlDatabase.begin``), so an instance that was held up changes nothing
when it goes on. One that was stopped in the middle of a unit of work would keep all others waiting; the next instance
has the server end that session, which backs its unit of work out.

The active instance answers what ``status``, ``stop``, the console and DISPLAY CONN ask on other machines: they write a
question to the database, and it looks for questions when it asks for the epoch.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from commands.config.home import Home, PostgresqlHome
from commands.disk.errors import QueueManagerInUseError, StoreBusyError, SupersededError
from commands.disk.lock import LOOKED_AT_S, PROCESSOR_LOCK, HolderLock
from commands.qmgr.store import Durability
from commands.qmgr.store.database import PROCESSOR, Database, EngineError
from commands.qmgr.store.listeners import LISTENERS, answers
from commands.qmgr.store.opening import begin_epoch, connect_postgresql, directory_of, require_readable, take_over
from commands.qmgr.store.queue_manager import PATIENCE_S
from commands.running.journal import STATUS, here
from commands.running.listening import Heartbeat
from commands.terminal.stopping import stopping
from rfh2.errors import StoreError

if TYPE_CHECKING:
    from commands.qmgr.store.postgresql_database import PostgresqlDatabase

LEASE_S: Final = 3.0
_TICK_S: Final = 0.1
# A part of the lease: nothing is renewed meanwhile.
_LISTENERS_S: Final = 1.0
_RENEWALS: Final = 10
_PATIENCE_S: Final = 1.0
_TRIES: Final = 30
# The place of an instance whose worker is stopped (SIGSTOP) is given up after this time.
_STOPPED_S: Final = 1.0

Waiting = Callable[[Callable[[], str]], AbstractContextManager[None]]
"""Entered while an instance waits, with a function that says which one is active."""


class Tenure(Protocol):
    """An instance that is active, from the epoch that it began."""

    epoch: int

    def renew(self, works: bool = True) -> None:
        """Keep the place; call it often. Raises SupersededError once another instance took over.

        works: False where the worker is stopped.
        """

    def superseded(self) -> SupersededError:
        """The error to raise where the worker has seen that another instance took over."""

    def end(self) -> None:
        """Give the place up; nothing in a forked child."""


def tenure(home: Home, qmgr: str, durability: Durability, lease_s: float, waiting: Waiting | None) -> Tenure | None:
    """Be the active instance, as soon as no other one is; None if this one was asked to end before.

    waiting: None where it is not to wait. Raises QueueManagerInUseError where another one is active and this one does
    not wait, which it never does in a directory; StoreError.
    """
    require_readable(home, qmgr)
    if isinstance(home, PostgresqlHome):
        return _in_database(home, qmgr, lease_s, waiting)
    lock = HolderLock(directory_of(home, qmgr) / PROCESSOR_LOCK, with_directory=True)
    if not lock.take(time.monotonic() + LOOKED_AT_S):
        raise QueueManagerInUseError(qmgr, lock.holder())
    try:
        return _OfDirectory(lock, take_over(home, qmgr, durability, PATIENCE_S))
    except BaseException:
        lock.release()
        raise


class _OfDirectory:
    """The lock of the file system is all: who has it keeps it until its processes have ended."""

    def __init__(self, lock: HolderLock, epoch: int) -> None:
        self.epoch, self._lock, self._pid = epoch, lock, os.getpid()

    def renew(self, works: bool = True) -> None: ...

    def superseded(self) -> SupersededError:
        return SupersededError(str(self._lock.path.parent), self.epoch, self.epoch + 1)

    def end(self) -> None:
        if os.getpid() == self._pid:
            self._lock.release()


class _OfDatabase:
    """*database* has the lock."""

    def __init__(self, database: PostgresqlDatabase, epoch: int, lease_s: float) -> None:
        self.epoch = epoch
        self._database, self._pid, self._pause_s = database, os.getpid(), lease_s / _RENEWALS
        self._asked_s = self._worked_s = time.monotonic()

    def renew(self, works: bool = True) -> None:
        now = time.monotonic()
        if works:
            self._worked_s = now
        if now - self._asked_s < self._pause_s:
            return
        self._asked_s = now
        is_taken = False
        # Where the server is away, who has the lock when it is back is seen then.
        with suppress(EngineError, StoreError):
            is_taken = self._database.read_epoch() > self.epoch
            if now - self._worked_s > _STOPPED_S:
                self._database.unlock(PROCESSOR)
            elif not is_taken and not self._database.has_lock(PROCESSOR):
                self._database.try_lock(PROCESSOR)
            if not is_taken:
                for number, question in self._database.questions():
                    self._database.answer(number, _answer(self._database.directory, question))
        if is_taken:
            raise self.superseded()

    def superseded(self) -> SupersededError:
        return SupersededError(self._database.path, self.epoch, self.epoch + 1)

    def end(self) -> None:
        if os.getpid() == self._pid:
            self._database.close()


STOP: Final = "stop"
"""The question that asks an instance to end."""


def _answer(directory: Path, question: str) -> str:
    if question == STOP:
        os.kill(os.getpid(), signal.SIGTERM)
        return ""
    if question == STATUS:
        return json.dumps(here(directory))
    return json.dumps(answers(directory, question.removeprefix(LISTENERS), _LISTENERS_S))


def _in_database(home: PostgresqlHome, qmgr: str, lease_s: float, waiting: Waiting | None) -> Tenure | None:
    database = connect_postgresql(home, qmgr, _PATIENCE_S)
    try:
        database.require_activity(lease_s)
        if not database.try_lock(PROCESSOR):
            if waiting is None:
                raise QueueManagerInUseError(qmgr, database.holder(PROCESSOR))
            if not _waited(database, waiting):
                database.close()
                return None
        return _OfDatabase(database, _begun(database), lease_s)
    except EngineError as error:
        database.close()
        raise database.translated(error) from error
    except BaseException:
        database.close()
        raise


def _waited(database: PostgresqlDatabase, waiting: Waiting) -> bool:
    """Wait for the lock; whether it was got, and this instance was not asked to end before."""
    stop, heartbeat, active = threading.Event(), Heartbeat(), database.holder(PROCESSOR)

    def who() -> str:
        return f"process {active} is active" if active else "no instance is active"

    database.wait_in_line()
    with stopping(stop), waiting(who):
        while not stop.wait(_TICK_S):
            heartbeat.beat()
            with suppress(EngineError, StoreError):  # the server is away
                if database.try_lock(PROCESSOR):
                    database.leave_line()
                    return True
                active = database.holder(PROCESSOR)
    return False


def _begun(database: PostgresqlDatabase) -> int:
    """The epoch that is begun, even where an instance was stopped in the middle of a unit of work."""
    for _ in range(_TRIES):
        try:
            return begin_epoch(database)
        except StoreBusyError:
            database.end_idle(_PATIENCE_S)
    return begin_epoch(database)


def instances(database: Database) -> list[dict[str, Any]]:
    """The instances of ``run`` as ``status --json`` shows them: the active one, then those that wait."""
    return [
        {"mode": "standby" if number else "active", "pid": int(pid or 0), "host": host or None, "epoch": epoch}
        for number, holder in database.instances()
        for pid, _, host in (holder.partition(" on "),)
        for epoch in (None if number else database.read_epoch(),)
    ]
