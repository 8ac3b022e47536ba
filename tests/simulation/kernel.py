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
import hashlib
import heapq
import os
import random
import sqlite3
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_MOST_TURNS: Final = 5_000_000


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
        self.held_until = max(self.held_until, self.kernel.now + seconds)


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
        _KERNELS[:] = [self]

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


def now() -> Kernel:
    """The kernel that the simulated modules are of."""
    return _KERNELS[0]
