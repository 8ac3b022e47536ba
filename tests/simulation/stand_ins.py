"""What stands in for modules of Python while a simulation runs, and for what the store does with time and disks."""

from __future__ import annotations

import datetime as real_datetime
import logging
import os
import queue
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, Final

from commands.qmgr.store.sqlite_database import SqliteDatabase
from tests.simulation.kernel import Task, now

BEGINS: Final = real_datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=real_datetime.UTC)
# A commit takes time, so that nobody can be busy for ever at one moment.
_COMMIT_S: Final = 0.000_5

# threading


class Lock:
    """threading.Lock."""

    def __init__(self) -> None:
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        timeout_s = None if timeout < 0 else timeout
        if self._held and not (blocking and now().wait(lambda: not self._held, timeout_s)):
            return False
        self._held = True
        return True

    def release(self) -> None:
        self._held = False

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """threading.RLock."""

    def __init__(self) -> None:
        super().__init__()
        self._owner: Task | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = now().current
        if self._owner is not me:
            if not super().acquire(blocking, timeout):
                return False
            self._owner = me
        self._count += 1
        return True

    def release(self) -> None:
        self._count -= 1
        if not self._count:
            self._owner = None
            super().release()


class Condition:
    """threading.Condition."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = RLock() if lock is None else lock
        self._waiting: list[list[bool]] = []
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        told = [False]
        self._waiting.append(told)
        self._lock.release()
        now().wait(lambda: told[0], timeout)
        self._lock.acquire()
        if not told[0]:
            self._waiting.remove(told)
        return told[0]

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        end = None if timeout is None else now().now + timeout
        while not (found := predicate()):
            left = None if end is None else end - now().now
            if left is not None and left <= 0:
                break
            self.wait(left)
        return found

    def notify(self, n: int = 1) -> None:
        for told in self._waiting[:n]:
            told[0] = True
        del self._waiting[:n]

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class Event:
    """threading.Event."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            now().wait(self.is_set, timeout)
        return self._set


class Thread:
    """threading.Thread."""

    def __init__(
        self,
        target: Callable[..., object],
        name: str = "thread",
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        daemon: bool | None = None,
    ) -> None:
        self._target, self.name, self._args, self._kwargs, self.daemon = target, name, args, kwargs or {}, daemon
        self.task: Task | None = None

    def start(self) -> None:
        self.task = now().current.process.start(partial(self._target, *self._args, **self._kwargs), self.name)

    def is_alive(self) -> bool:
        return self.task is not None and not self.task.is_done

    def join(self, timeout: float | None = None) -> None:
        now().wait(lambda: not self.is_alive(), timeout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thread) and self.task is other.task

    def __hash__(self) -> int:
        return id(self)


def _current_thread() -> Thread:
    thread = Thread(lambda: None, now().current.name)
    thread.task = now().current
    return thread


class SimpleQueue:
    """queue.SimpleQueue, queue.Queue."""

    def __init__(self, maxsize: int = 0) -> None:
        del maxsize
        self._items: deque[Any] = deque()

    def put(self, item: object) -> None:
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._items and (not block or not now().wait(lambda: bool(self._items), timeout)):
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)


# time, datetime, os, sqlite3


class _DatetimeType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, real_datetime.datetime)


class Datetime(real_datetime.datetime, metaclass=_DatetimeType):
    """datetime.datetime, by the simulated wall clock."""

    @classmethod
    def now(cls, tz: real_datetime.tzinfo | None = None) -> Any:
        kernel = now()
        there = BEGINS + real_datetime.timedelta(seconds=kernel.now + kernel.current.process.ahead_s)
        return there.astimezone(tz)


class Stand(ModuleType):
    """A module that stands in for *real*, but for what is *given*."""

    def __init__(self, real: ModuleType, **given: object) -> None:
        super().__init__(real.__name__)
        self._real = real
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _open(*args: Any, **named: Any) -> int:
    descriptor = os.open(*args, **named)
    now().current.process.descriptors.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    now().current.process.descriptors.discard(descriptor)
    os.close(descriptor)


def _urandom(count: int) -> bytes:
    return now().chance.randbytes(count)


def _connect(*args: Any, **named: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(*args, **{**named, "check_same_thread": False})
    now().current.process.connections.append(connection)
    return connection


def _monotonic() -> float:
    return 1_000.0 + now().now


def _time() -> float:
    return float(Datetime.now(real_datetime.UTC).timestamp())


STANDS: Final[dict[object, object]] = {
    threading: Stand(
        threading,
        Lock=Lock,
        RLock=RLock,
        Condition=Condition,
        Event=Event,
        Thread=Thread,
        current_thread=_current_thread,
        main_thread=lambda: None,
        get_ident=lambda: now().current.number,
    ),
    time: Stand(
        time,
        monotonic=_monotonic,
        perf_counter=_monotonic,
        process_time=lambda: 0.0,
        thread_time=lambda: 0.0,
        time=_time,
        sleep=lambda seconds: now().sleep(seconds),
    ),
    queue: Stand(queue, SimpleQueue=SimpleQueue, Queue=SimpleQueue),
    os: Stand(
        os,
        open=_open,
        close=_close,
        urandom=_urandom,
        getpid=lambda: now().current.process.pid,
        _exit=lambda _code: now().current.process.kill(),
    ),
    sqlite3: Stand(sqlite3, connect=_connect),
    real_datetime.datetime: Datetime,
    time.monotonic: _monotonic,
}
"""What stands in for what, in the modules of the program and of paho."""


_SIMULATED: Final = (
    "commands.",
    "paho.mqtt.client",
    "tests.commands.listener.mqi_client",
    "tests.reliability.listener_kills",
)


def stand_in() -> None:
    """Have the program's modules, as far as they are loaded, use what is simulated."""
    for name, module in list(sys.modules.items()):
        if not name.startswith(_SIMULATED):
            continue
        for known, value in list(vars(module).items()):
            with suppress(TypeError):
                if value in STANDS:
                    setattr(module, known, STANDS[value])


_begin, _commit = SqliteDatabase.begin, SqliteDatabase.commit


def _begun(database: SqliteDatabase, lasting: bool = True, waits: bool = True) -> None:
    now().step()
    _begin(database, lasting, waits)
    now().on_begin(database.path)


def _committed(database: SqliteDatabase) -> None:
    kernel = now()
    kernel.step()
    if kernel.now < kernel.full_until and kernel.current.process is not kernel.plan:
        database.rollback()
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full
    _commit(database)
    kernel.commits[database.path] = kernel.commits.get(database.path, 0) + 1
    kernel.on_commit(database.path)
    kernel.now += kernel.chance.random() * _COMMIT_S
    kernel.note("commit")
    kernel.step()


def _heard(database: SqliteDatabase, nap_s: float, left_s: float) -> bool:
    del nap_s
    kernel = now()
    before = kernel.commits.get(database.path, 0)
    return kernel.wait(lambda: kernel.commits.get(database.path, 0) != before, left_s)


def _logged(logger: logging.Logger, record: logging.LogRecord) -> None:
    if logger.name.startswith("qpubsub"):
        now().note("log", record.levelname, record.getMessage())


def begin_simulating() -> None:
    """Once in a process of the system: databases, and what is logged, are of the simulation."""
    SqliteDatabase.begin, SqliteDatabase.commit = _begun, _committed  # type: ignore[method-assign]
    SqliteDatabase.heard = _heard  # type: ignore[method-assign]
    logging.Logger.callHandlers = _logged  # type: ignore[method-assign]
    logging.getLogger("qpubsub").setLevel(logging.INFO)
    sys.unraisablehook = lambda _: None  # coroutines of killed processes end when their loops are gone
