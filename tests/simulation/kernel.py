"""Processes of the program in one process of the system, in simulated time: one thread at a time, chosen from a seed.

The program's own threads run, but each waits for its turn. A turn ends where a thread waits (threading, queue, time,
select, a socket) or where a database begins or commits a unit of work; who goes on then is chosen at random. Where
everybody waits, the clock goes on to the next moment at which somebody does not. ``stand_in`` puts these simulated
modules under the names by which the program's modules know the real ones; nothing of the program is changed for this.

A process that is killed is never given a turn again, and what it had open is closed as the system would do it: its
transactions are rolled back, its locks are free, its peers see the end of its connections. No ``finally`` of it runs.
"""

from __future__ import annotations

import _thread
import datetime as real_datetime
import hashlib
import heapq
import logging
import os
import queue
import random
import sqlite3
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, Final

from commands.qmgr.store.sqlite_database import SqliteDatabase

BEGINS: Final = real_datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=real_datetime.UTC)
_MOST_TURNS: Final = 5_000_000
# A commit takes time, so that nobody can be busy for ever at one moment.
_COMMIT_S: Final = 0.000_5


class SimulationError(Exception):
    """The simulation cannot go on: nobody waits for anything that will come, or it goes on without end."""


class _OverError(BaseException):
    """The simulation is over; nothing handles this."""


class Process:
    """Some of the tasks, which are killed or held up together. ahead_s: how far its wall clock is off."""

    def __init__(self, kernel: Kernel, name: str, number: int) -> None:
        self.kernel, self.name, self.pid = kernel, name, 1_000 + number
        self.is_dead, self.held_until, self.ahead_s = False, 0.0, 0.0
        self.descriptors: set[int] = set()
        self.closes: list[Callable[[], None]] = []
        self.connections: list[sqlite3.Connection] = []
        kernel.processes.append(self)

    def start(self, target: Callable[[], object], name: str = "main") -> Task:
        """A task of it."""
        return Task(self.kernel, self, name, target)

    def kill(self) -> None:
        """As kill -9 does."""
        self.is_dead = True
        self.kernel.note("killed", self.name)
        self.kernel.tasks = [each for each in self.kernel.tasks if each.process is not self]
        for close in self.closes:
            close()
        for connection in self.connections:
            with suppress(sqlite3.Error):
                connection.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors, self.closes = set(), []
        if self.kernel.current.process is self:
            self.kernel.give_up_turn()

    @staticmethod
    def is_open(connection: sqlite3.Connection) -> bool:
        """Whether it is not closed."""
        with suppress(sqlite3.ProgrammingError):
            return connection.total_changes >= 0
        return False

    def hold(self, seconds: float) -> None:
        """As SIGSTOP does, and SIGCONT after so many seconds."""
        self.kernel.note("held up", self.name, seconds)
        self.held_until = self.kernel.now + seconds


class Task:
    """A thread, and what it waits for."""

    def __init__(self, kernel: Kernel, process: Process, name: str, target: Callable[[], object] | None) -> None:
        kernel.made += 1
        self.process, self.name, self.number, self.target = process, f"{process.name}/{name}", kernel.made, target
        self.ready: Callable[[], bool] | None = None
        self.deadline: float | None = 0.0
        self.turn, self.ended = _thread.allocate_lock(), _thread.allocate_lock()
        self.turn.acquire()
        self.is_done = False
        kernel.tasks.append(self)
        if target is not None:
            self.ended.acquire()
            kernel.begun.append(self)
            _thread.start_new_thread(self._run, (kernel, target))

    def _run(self, kernel: Kernel, target: Callable[[], object]) -> None:
        self.turn.acquire()
        try:
            if not kernel.is_over:
                target()
        except SystemExit:
            pass
        except BaseException:
            if not kernel.is_over:
                kernel.broken.append(f"{self.name} ended by a fault: {traceback.format_exc()}")
        self.is_done = True
        if not kernel.is_over:
            kernel.begun.remove(self)
            kernel.tasks.remove(self)
            kernel.choose().turn.release()
        self.ended.release()

    def can_go(self, now: float) -> bool:
        if self.process.held_until > now:
            return False
        return (self.deadline is not None and self.deadline <= now) or (self.ready is not None and self.ready())

    def goes_at(self) -> float | None:
        return None if self.deadline is None else max(self.deadline, self.process.held_until)


class Kernel:
    """The simulated machine. The thread that makes it is its first task, the plan's."""

    def __init__(self, seed: int, shows: bool = False) -> None:
        self.chance, self.now, self.turns, self.made = random.Random(seed), 0.0, 0, 0
        self.full_until = 0.0
        self.tasks: list[Task] = []
        self.begun: list[Task] = []
        self.is_over = False
        self.commits: dict[str, int] = {}
        self.on_begin: Callable[[str], None] = lambda path: None
        self.on_commit: Callable[[str], None] = lambda path: None
        self.broken: list[str] = []
        self._digest, self._shows = hashlib.sha256(), shows
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self.processes: list[Process] = []
        self._replaced: list[tuple[Any, str, object]] = []
        self.plan = self.process("plan")
        self.current = self.first = Task(self, self.plan, "main", None)
        self._error: Exception | None = None
        random.seed(seed)
        use(self)

    def process(self, name: str) -> Process:
        """A new one."""
        return Process(self, name, len(self.processes))

    def replace(self, where: Any, **by: object) -> None:
        """Have these attributes until ``end``."""
        for name, value in by.items():
            self._replaced.append((where, name, getattr(where, name)))
            setattr(where, name, value)

    def end(self) -> None:
        """Nothing goes on."""
        for process in self.processes:
            if process is not self.plan and not process.is_dead:
                process.kill()
        self.is_over = True
        for task in self.begun:  # those of killed processes still wait; their threads must not pile up
            task.turn.release()
            task.ended.acquire()
        for where, name, value in reversed(self._replaced):
            setattr(where, name, value)

    def note(self, *what: object) -> None:
        """Add to the trace, of which the digest is made."""
        line = f"{self.now:.6f} {self.current.name}: {' '.join(map(str, what))}"
        self._digest.update(line.encode())
        if self._shows:
            print(line)

    @property
    def digest(self) -> str:
        """Of the whole trace."""
        return self._digest.hexdigest()[:16]

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        """Have *act* done at this moment, by whoever has the turn; it must not wait."""
        self.made += 1
        heapq.heappush(self._timers, (seconds, self.made, act))

    def sleep(self, seconds: float) -> None:
        self.wait(None, seconds)

    def step(self) -> None:
        """Others may go on here."""
        self.wait(None, 0.0)

    def wait(self, ready: Callable[[], bool] | None, timeout_s: float | None) -> bool:
        """Wait until *ready*, at most so long; whether it is."""
        if self.is_over:
            raise _OverError
        task = self.current
        task.ready, task.deadline = ready, None if timeout_s is None else self.now + max(timeout_s, 0.0)
        chosen = self.choose()
        if chosen is not task:
            chosen.turn.release()
            task.turn.acquire()
            if self.is_over:
                raise _OverError
        if self._error is not None and task is self.first:
            raise self._error
        return ready is None or ready()

    def give_up_turn(self) -> None:
        """For ever: the task that has the turn is dead."""
        task = self.current
        self.choose().turn.release()
        task.turn.acquire()
        raise _OverError

    def choose(self) -> Task:
        """Who has the next turn."""
        self.turns += 1
        if self.turns > _MOST_TURNS:
            return self._stop(SimulationError("it goes on without end"))
        while True:
            while self._timers and self._timers[0][0] <= self.now:
                heapq.heappop(self._timers)[2]()
            now = self.now
            ready = [task for task in self.tasks if task.can_go(now)]
            if ready:
                chosen = ready[0] if len(ready) == 1 else ready[int(self.chance.random() * len(ready))]
                self._digest.update(b"%d" % chosen.number)
                self.current = chosen
                return chosen
            moments = [at for task in self.tasks if (at := task.goes_at()) is not None]
            moments += [task.process.held_until for task in self.tasks if task.process.held_until > now]
            moments += [self._timers[0][0]] if self._timers else []
            if not moments:
                return self._stop(SimulationError("everybody waits for ever"))
            self.now = min(moments)

    def _stop(self, error: Exception) -> Task:
        self._error, self.current = error, self.first
        return self.first


_KERNELS: list[Kernel] = []


def use(kernel: Kernel) -> None:
    """From now on the simulated modules are of *kernel*."""
    _KERNELS[:] = [kernel]


def _now() -> Kernel:
    return _KERNELS[0]


# threading


class Lock:
    """threading.Lock."""

    def __init__(self) -> None:
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        timeout_s = None if timeout < 0 else timeout
        if self._held and not (blocking and _now().wait(lambda: not self._held, timeout_s)):
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
        me = _now().current
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
        _now().wait(lambda: told[0], timeout)
        self._lock.acquire()
        if not told[0]:
            self._waiting.remove(told)
        return told[0]

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        end = None if timeout is None else _now().now + timeout
        while not (found := predicate()):
            left = None if end is None else end - _now().now
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
            _now().wait(self.is_set, timeout)
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
        self.task = _now().current.process.start(partial(self._target, *self._args, **self._kwargs), self.name)

    def is_alive(self) -> bool:
        return self.task is not None and not self.task.is_done

    def join(self, timeout: float | None = None) -> None:
        _now().wait(lambda: not self.is_alive(), timeout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thread) and self.task is other.task

    def __hash__(self) -> int:
        return id(self)


def _current_thread() -> Thread:
    thread = Thread(lambda: None, _now().current.name)
    thread.task = _now().current
    return thread


class SimpleQueue:
    """queue.SimpleQueue, queue.Queue."""

    def __init__(self, maxsize: int = 0) -> None:
        del maxsize
        self._items: deque[Any] = deque()

    def put(self, item: object) -> None:
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._items and (not block or not _now().wait(lambda: bool(self._items), timeout)):
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
        kernel = _now()
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
    _now().current.process.descriptors.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    _now().current.process.descriptors.discard(descriptor)
    os.close(descriptor)


def _urandom(count: int) -> bytes:
    return _now().chance.randbytes(count)


def _connect(*args: Any, **named: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(*args, **{**named, "check_same_thread": False})
    _now().current.process.connections.append(connection)
    return connection


def _monotonic() -> float:
    return 1_000.0 + _now().now


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
        get_ident=lambda: _now().current.number,
    ),
    time: Stand(
        time,
        monotonic=_monotonic,
        perf_counter=_monotonic,
        process_time=lambda: 0.0,
        thread_time=lambda: 0.0,
        time=_time,
        sleep=lambda seconds: _now().sleep(seconds),
    ),
    queue: Stand(queue, SimpleQueue=SimpleQueue, Queue=SimpleQueue),
    os: Stand(
        os,
        open=_open,
        close=_close,
        urandom=_urandom,
        getpid=lambda: _now().current.process.pid,
        _exit=lambda _code: _now().current.process.kill(),
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
    _now().step()
    _begin(database, lasting, waits)
    _now().on_begin(database.path)


def _committed(database: SqliteDatabase) -> None:
    kernel = _now()
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
    kernel = _now()
    before = kernel.commits.get(database.path, 0)
    return kernel.wait(lambda: kernel.commits.get(database.path, 0) != before, left_s)


def _logged(logger: logging.Logger, record: logging.LogRecord) -> None:
    if logger.name.startswith("qpubsub"):
        _now().note("log", record.levelname, record.getMessage())


def begin_simulating() -> None:
    """Once in a process of the system: databases, and what is logged, are of the simulation."""
    SqliteDatabase.begin, SqliteDatabase.commit = _begun, _committed  # type: ignore[method-assign]
    SqliteDatabase.heard = _heard  # type: ignore[method-assign]
    logging.Logger.callHandlers = _logged  # type: ignore[method-assign]
    logging.getLogger("qpubsub").setLevel(logging.INFO)
    sys.unraisablehook = lambda _: None  # coroutines of killed processes end when their loops are gone
