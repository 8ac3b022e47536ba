"""Two instances of ``run`` that work for one queue manager in PostgreSQL, of which one waits.

``tests.reliability.postgresql_faults`` takes the active one out of service again and again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import PostgresqlHome
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import connect_postgresql
from commands.running.tenure import instances
from tests.reliability.workload import CONTROL, put
from tests.waiting import PATIENCE_S, until

QUEUE: Final = "BOARD"


class Instance:
    """``run``, in a session of its own. place, name: of the files with its log, talk and puts.

    environment: beside that of the test.
    """

    def __init__(
        self,
        home: PostgresqlHome,
        place: Path,
        name: str,
        *options: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.record, self.log, self._talk = (place / f"{name}.{kind}" for kind in ("jsonl", "log", "out"))
        command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", home.url]
        command += ["--durability", "normal", "--record", str(self.record), "--log", str(self.log), *options]
        with self._talk.open("ab") as talk:
            told = {**os.environ, **(environment or {})}
            self.process = subprocess.Popen(command, stdout=talk, stderr=talk, env=told, start_new_session=True)

    @property
    def pid(self) -> int:
        """Of the supervisor, which is the group of all of its processes too."""
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether its supervisor has ended."""
        return self.process.poll() is not None

    @property
    def said(self) -> str:
        """What it has said to people."""
        return self._talk.read_text()

    def worker(self) -> int:
        """The process id of the worker, without a listener the only child."""
        (child,) = children_of(self.pid)
        return child

    def end(self) -> None:
        """End all of its processes, stopped ones too."""
        if not self.has_ended:
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


class Pair:
    """The instances for QM1 in *home*. place: of their files. options, environment: of both."""

    def __init__(
        self, home: PostgresqlHome, place: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._home, self._place, self._options, self._environment, self._made = home, place, options, environment, 0
        self._database = connect_postgresql(home, "QM1", 1.0)
        self.all: list[Instance] = []
        self.active = self.begin()
        until(lambda: self._mode(self.active) == "active", "the first instance to be active")
        self.standby = self.begin()
        self.wait_for_standby()

    def begin(self) -> Instance:
        self._made += 1
        name = f"instance-{self._made}"
        self.all.append(Instance(self._home, self._place, name, *self._options, environment=self._environment))
        return self.all[-1]

    def wait_for_standby(self) -> None:
        until(lambda: self._mode(self.standby) == "standby", "the other one to wait")

    def take(self, kind: str) -> None:
        """Take the active instance out of service; returns when the other one has begun its epoch."""
        before = self._database.read_epoch()
        if kind == "kill":
            os.killpg(self.active.pid, signal.SIGKILL)
            self.active.process.wait()
        elif kind == "end":
            os.kill(self.active.pid, signal.SIGTERM)
        elif kind == "stop":
            os.killpg(self.active.pid, signal.SIGSTOP)
        else:
            os.kill(self.active.pid if kind == "stop supervisor" else self.active.worker(), signal.SIGSTOP)
        until(lambda: self._database.read_epoch() > before, f"the standby to take over ({kind})")
        if kind == "end":
            self.active.process.wait(PATIENCE_S)

    def bring_back(self) -> bool:
        """Let the instance that was stopped go on, or begin another one: the standby. Whether it was the same one."""
        old, self.active = self.active, self.standby
        goes_on = not old.has_ended
        if goes_on:
            for stopped in {old.pid, *children_of(old.pid)}:
                with_signal(stopped, signal.SIGCONT)
        self.standby = old if goes_on else self.begin()
        self.wait_for_standby()
        return goes_on

    def close(self) -> None:
        for each in self.all:
            each.end()
        self._database.close()

    def _mode(self, instance: Instance) -> str | None:
        assert not instance.has_ended, "an instance ended by itself"
        return {each["pid"]: each["mode"] for each in instances(self._database)}.get(instance.pid)


def children_of(pid: int) -> list[int]:
    """The processes that process *pid* has started and that have not ended, the oldest first."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def with_signal(pid: int, number: signal.Signals) -> None:
    """Send it, if there is such a process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def create(home: PostgresqlHome) -> None:
    """QM1 with a subscriber to all topics."""
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(LocalQueue(QUEUE))
        put(unit, CONTROL, f"<Command>RegSub</Command><Topic>#</Topic><QName>{QUEUE}</QName>")
