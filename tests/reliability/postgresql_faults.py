"""Bridges on PostgreSQL, and the server itself, fail again and again: is a message lost, doubled, out of order?

    python -m tests.reliability.postgresql_faults 450 --promotions 50

Two instances of ``run`` work for one queue manager, while a program publishes numbers and has the store find out what
became of a commit whose connection was lost. In turn

    kill run        the active instance is killed (kill -9)
    stop run        it is stopped (SIGSTOP), and goes on once the other one works
    cut             the server ends all sessions, wherever they are: in the middle of a commit, too
    kill server     the server is killed (kill -9, all of its processes) and started again
    stop server     pg_ctl stop -m immediate, and started again

With --promotions there are two servers after that, the second one with a synchronous copy. The first one is killed, and
the second one promoted; the next copy is made of that. At the end the subscriber has each number once and in order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Final

import psycopg

from commands.config.home import PostgresqlHome
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import processor_of
from rfh2.errors import StoreError
from tests.postgresql import PostgresqlServer, postgresql_server
from tests.reliability.figures import median_and_longest
from tests.reliability.takeovers import QUEUE, Instance, create
from tests.reliability.workload import STREAM, put
from tests.waiting import until

KINDS: Final = ("kill run", "stop run", "cut", "kill server", "stop server")
LEASE: Final = ("--lease", "1", "--durability", "full")
# For so long the store tries to find out what became of a commit.
_PATIENCE_S: Final = 120.0
_CUT: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE 'qpubsub%' AND pid <> pg_backend_pid()"""


@dataclass(frozen=True)
class Figures:
    """What was seen. seconds_to_delivery: from a fault to a delivery after it, median and longest."""

    faults: dict[str, int]
    seconds_to_delivery: tuple[float, float]
    published: int
    failed_units: int
    unknown_units: int
    lost: int
    twice: int
    out_of_order: int
    seconds: float


class Publisher(threading.Thread):
    """Publishes numbers, one in a unit of work. published: how many are committed; failed: how many were not.

    unknown: what the store could not find out.
    """

    def __init__(self, home: PostgresqlHome) -> None:
        super().__init__(daemon=True)
        self._home = home
        self.ended = threading.Event()
        self.published = self.failed = self.unknown = 0

    def run(self) -> None:
        while not self.ended.is_set():
            with suppress(StoreError), QueueManagerStore.open(self._home, "QM1", patience_s=_PATIENCE_S) as store:
                while not self.ended.wait(0.005):
                    self._publish(store)

    def _publish(self, store: QueueManagerStore) -> None:
        try:
            with store.unit_of_work() as unit:
                put(unit, STREAM, "<Command>Publish</Command><Topic>t</Topic>", b"%d" % (self.published + 1))
        except StoreError as error:
            self.failed += 1
            self.unknown += "look at the queues" in str(error)
            time.sleep(0.02)
        else:
            self.published += 1


class Trial:
    """Two instances and a publisher. home: reaches the server that works."""

    def __init__(self, home: PostgresqlHome, place: Path) -> None:
        self.home, self._place, self._made = home, place, 0
        create(home)
        self.instances = [self._begin(), self._begin()]
        self.publisher = Publisher(home)

    def _begin(self) -> Instance:
        self._made += 1
        return Instance(self.home, self._place, f"instance-{self._made}", *LEASE)

    def active(self) -> Instance | None:
        """The instance that works."""
        with suppress(StoreError):
            holder = (processor_of(self.home, "QM1") or "").partition(" ")[0]
            return next((each for each in self.instances if str(each.pid) == holder), None)
        return None

    def wait_for_active(self) -> Instance:
        until(lambda: self.active() is not None, "an instance that works")
        return self.active() or self.wait_for_active()

    def depth(self, queue: str) -> int:
        """How many messages are on *queue*; -1 while the server is away."""
        with suppress(StoreError), QueueManagerStore.open(self.home, "QM1") as store:
            return store.depth(queue)
        return -1

    def of_run(self, kind: str) -> None:
        """Kill or stop the active instance."""
        active = self.wait_for_active()
        os.killpg(active.pid, signal.SIGKILL if kind == "kill run" else signal.SIGSTOP)
        if kind == "stop run":
            until(lambda: self.active() not in (None, active), "the other instance to work")
            os.killpg(active.pid, signal.SIGCONT)

    def mend(self) -> bool:
        """Start others for the instances that have ended."""
        for at, each in enumerate(self.instances):
            if each.has_ended:
                each.end()
                self.instances[at] = self._begin()
        return True

    def wait_for_delivery(self) -> float:
        """Wait until something was delivered that is published from now on: seconds."""
        begun, before = time.monotonic(), self.publisher.published
        until(lambda: self.publisher.published > before, "a publication")
        until(lambda: self.mend() and self.depth(QUEUE) > before, "a delivery")
        return time.monotonic() - begun

    def came(self) -> list[int]:
        """When all is delivered: the numbers, in their order."""
        self.publisher.ended.set()
        self.publisher.join()
        until(lambda: self.depth(STREAM) == 0 and self.depth(QUEUE) >= self.publisher.published, "the rest")
        with QueueManagerStore.open(self.home, "QM1") as store:
            return [int(message.body.rpartition(b">")[2].strip()) for message in store.browse(QUEUE)]

    def close(self) -> None:
        self.publisher.ended.set()
        for each in self.instances:
            each.end()


def of_server(server: PostgresqlServer, kind: str) -> None:
    """Let the server or its sessions fail."""
    if kind == "cut":
        with psycopg.connect(server.home().url, autocommit=True) as session:
            session.execute(_CUT)
        return
    server.kill() if kind == "kill server" else server.stop("immediate")
    server.start()


def trial(server: PostgresqlServer, place: Path, faults: int, seed: int = 1) -> Figures:
    """Let something fail *faults* times."""
    with ExitStack() as stack:
        it = Trial(server.home(), place)
        stack.callback(it.close)

        def fail(kind: str) -> None:
            it.of_run(kind) if kind.endswith("run") else of_server(server, kind)

        return _tried(it, list(islice(cycle(KINDS), faults)), fail, seed)


def replica_trial(place: Path, faults: int, seed: int = 1) -> Figures:
    """Kill the server and promote its copy *faults* times."""
    with ExitStack() as stack:
        servers = [stack.enter_context(postgresql_server(synchronous_standby_names="'*'"))]
        servers.append(stack.enter_context(postgresql_server(copy_of=servers[0])))
        sockets = ",".join(str(each.data.parent) for each in servers)
        home = PostgresqlHome(f"postgresql://tester@/postgres?host={sockets}&target_session_attrs=read-write")
        it = Trial(home, place)
        stack.callback(it.close)

        def fail(_kind: str) -> None:
            servers[0].kill()
            servers[1].promote()
            servers.reverse()
            servers[1].copy(servers[0])

        return _tried(it, ["promote"] * faults, fail, seed)


def _tried(it: Trial, kinds: Sequence[str], fail: Callable[[str], None], seed: int) -> Figures:
    began, chance, took = time.monotonic(), random.Random(seed), list[float]()
    it.wait_for_active()
    it.publisher.start()
    for kind in kinds:
        time.sleep(chance.uniform(0.05, 0.5))
        begun = time.monotonic()
        fail(kind)
        it.mend()
        it.wait_for_delivery()
        took.append(time.monotonic() - begun)
    came, published = it.came(), it.publisher.published
    return Figures(
        faults=dict(Counter(kinds)),
        seconds_to_delivery=median_and_longest(took),
        published=published,
        failed_units=it.publisher.failed,
        unknown_units=it.publisher.unknown,
        lost=len(set(range(1, published + 1)) - set(came)),
        twice=len(came) - len(set(came)),
        out_of_order=sum(later < earlier for earlier, later in pairwise(came)),
        seconds=round(time.monotonic() - began, 1),
    )


def _together(first: Figures, second: Figures) -> Figures:
    """Of both; the longest is that of both, the median that of the first."""
    longest = max(first.seconds_to_delivery[1], second.seconds_to_delivery[1])
    summed = ("published", "failed_units", "unknown_units", "lost", "twice", "out_of_order", "seconds")
    return Figures(
        faults={**first.faults, **second.faults},
        seconds_to_delivery=(first.seconds_to_delivery[0], longest),
        **{name: round(getattr(first, name) + getattr(second, name), 1) for name in summed},
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where a message was lost, doubled or out of order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", type=int, nargs="?", default=450)
    parser.add_argument("--promotions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with ExitStack() as stack:
        one, two = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        os.environ["XDG_STATE_HOME"] = str(one)
        with postgresql_server() as server:
            seen = trial(server, one, asked.faults, asked.seed)
        if asked.promotions:
            os.environ["XDG_STATE_HOME"] = str(two)
            seen = _together(seen, replica_trial(two, asked.promotions, asked.seed))
    print(json.dumps(asdict(seen)))
    return int(bool(seen.lost or seen.twice or seen.out_of_order or seen.unknown_units))


if __name__ == "__main__":
    sys.exit(main())
