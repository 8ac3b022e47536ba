"""Another ``run`` takes over, again and again: how long does it take, is a message lost, is one processed twice?

    python -m tests.reliability.takeovers 200

Two instances of ``run`` work for one queue manager in PostgreSQL, while a program publishes numbered messages. In turn,
the active instance is killed (all processes), stopped (SIGSTOP: all of its processes, its supervisor or its worker
alone) or asked to end (SIGTERM). One that was stopped goes on (SIGCONT) once the other one works, and has to wait. At
the end the subscriber's queue has each message once and in order, and no put was recorded by both instances. A takeover
lasts from the signal until the other instance has delivered what was published after it. Prints what was seen; the exit
code is 1 where something was lost or doubled, or where a takeover took longer than LONGEST_S.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Final

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import PostgresqlHome
from commands.qmgr.store import Durability, QueueManagerStore, StoreBusyError
from commands.qmgr.store.opening import connect_postgresql
from commands.running.tenure import instances
from tests.postgresql import postgresql_server
from tests.reliability.figures import median_and_longest
from tests.reliability.workload import CONTROL, STREAM, put
from tests.waiting import PATIENCE_S, until

KINDS: Final = ("kill", "stop", "end", "stop supervisor", "stop worker")
LONGEST_S: Final = 10.0
QUEUE: Final = "BOARD"


@dataclass(frozen=True)
class Figures:
    """What was seen. after_kill_s, after_end_s, after_stop_s: median and longest takeover. fenced: instances that went
    on after they were stopped, and waited. twice_recorded: puts that two instances recorded.
    """

    takeovers: int
    after_kill_s: tuple[float, float]
    after_end_s: tuple[float, float]
    after_stop_s: tuple[float, float]
    fenced: int
    published: int
    lost: int
    twice: int
    out_of_order: int
    twice_recorded: int
    seconds: float


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


class Publisher(threading.Thread):
    """Publishes numbers, one in a unit of work, until it is stopped. published: how many are committed.

    It tries again where the database is locked: an instance may be stopped that has it.
    """

    def __init__(self, home: PostgresqlHome, pause_s: float) -> None:
        super().__init__(daemon=True)
        self._home, self._pause_s = home, pause_s
        self.ended, self.published = threading.Event(), 0

    def run(self) -> None:
        with QueueManagerStore.open(self._home, "QM1", durability=Durability.NORMAL) as store:
            while not self.ended.wait(self._pause_s):
                with suppress(StoreBusyError):
                    with store.unit_of_work() as unit:
                        put(unit, STREAM, "<Command>Publish</Command><Topic>t</Topic>", b"%d" % (self.published + 1))
                    self.published += 1


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


def trial(
    home: PostgresqlHome, place: Path, takeovers: int, lease_s: float, seed: int = 1, pause_s: float = 0.01
) -> Figures:
    """Take over *takeovers* times. pause_s: between two publications."""
    began, chance = time.monotonic(), random.Random(seed)
    create(home)
    pair, publisher, back = Pair(home, place, "--lease", str(lease_s)), Publisher(home, pause_s), 0
    took: dict[str, list[float]] = {"kill": [], "end": [], "stop": []}
    try:
        with QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL) as store:
            until(lambda: store.depth(CONTROL) == 0, "the subscription")
            publisher.start()
            for kind in islice(cycle(KINDS), takeovers):
                time.sleep(chance.uniform(0.05, 0.5))
                start = time.monotonic()
                pair.take(kind)
                before = publisher.published
                until(lambda before=before: store.depth(QUEUE) > before, "a delivery after the takeover")
                took[kind.partition(" ")[0]].append(time.monotonic() - start)
                back += pair.bring_back()
            publisher.ended.set()
            publisher.join()
            until(lambda: store.depth(QUEUE) >= publisher.published and not store.depth(STREAM), "the rest")
            came = [int(message.body.rpartition(b">")[2].strip()) for message in store.browse(QUEUE)]
    finally:
        publisher.ended.set()
        pair.close()
    recorded = Counter(
        (put["seq"], put["n"])
        for each in pair.all
        for put in map(json.loads, each.record.read_text().splitlines() if each.record.exists() else ())
    )
    return Figures(
        takeovers=takeovers,
        after_kill_s=median_and_longest(took["kill"]),
        after_end_s=median_and_longest(took["end"]),
        after_stop_s=median_and_longest(took["stop"]),
        fenced=back,
        published=publisher.published,
        lost=len(set(range(1, publisher.published + 1)) - set(came)),
        twice=len(came) - len(set(came)),
        out_of_order=sum(later < earlier for earlier, later in pairwise(came)),
        twice_recorded=sum(count > 1 for count in recorded.values()),
        seconds=round(time.monotonic() - began, 1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where a message was lost or doubled, or where a takeover took too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("takeovers", type=int, nargs="?", default=200)
    parser.add_argument("--lease", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with postgresql_server() as server, tempfile.TemporaryDirectory() as place:
        os.environ["XDG_STATE_HOME"] = place
        seen = trial(server.home(), Path(place), asked.takeovers, asked.lease, asked.seed)
    print(json.dumps(asdict(seen)))
    broken = seen.lost or seen.twice or seen.out_of_order or seen.twice_recorded
    longest_s = max(seen.after_kill_s[1], seen.after_end_s[1], seen.after_stop_s[1])
    return int(bool(broken) or longest_s >= LONGEST_S)


if __name__ == "__main__":
    sys.exit(main())
