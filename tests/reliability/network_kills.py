"""Three queue managers as a network, each a process; they are killed at random moments. Is anything lost or doubled?

    python -m tests.reliability.network_kills --kills 200

The network is a line, QM1 - QM2 - QM3; or QM2 and QM3 are children of QM1; or all are in one cluster; or two are, and
the third is the child of one. At each queue manager a program publishes numbered messages, every fourth retained, and
another one subscribes and unsubscribes; a queue at each gets everything. Meanwhile ``run`` of one of them is killed
with SIGKILL, all of its processes or the worker alone, and is started again. At the end every queue has each
publication once, those of a publisher in order; all have the same retained publications; and the proxy subscriptions
are those that the subscriptions need. Prints what was seen; the exit code is 1 where that is not so.

With --restore QM2, the database of QM2 is replaced, after two thirds of the kills, by a backup from after one third.
Its own queue lacks what came in between, except what is retained, which it gets late and once; all else has to be as
without that.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from commands.broker.objects import ClusterChannel, LocalQueue, QueueManager
from commands.network.topology import Position, Topology
from commands.qmgr.flow_messages import INTER_QMGR_QUEUES
from commands.qmgr.store import Durability, QueueManagerStore, StoreBusyError
from commands.qmgr.store.opening import DATABASE, directory_of
from rfh2 import decode
from streams.topic_objects import BASE_DEFAULTS
from tests.reliability.workload import CONTROL, STREAM, put
from tests.waiting import until

QUEUE: Final = "BOARD"
LINE: Final = Topology((Position("QM1"), Position("QM2", "QM1"), Position("QM3", "QM2")))
TREE: Final = Topology((Position("QM1"), Position("QM2", "QM1"), Position("QM3", "QM1")))
CLUSTER: Final = Topology(tuple(Position(qmgr, clusters=("C",)) for qmgr in ("QM1", "QM2", "QM3")))
MIXED: Final = Topology((Position("QM1", clusters=("C",)), Position("QM2", clusters=("C",)), Position("QM3", "QM2")))
SHAPES: Final = {"line": LINE, "tree": TREE, "cluster": CLUSTER, "mixed": MIXED}
TOPICS: Final = 20
RETAINED: Final = 4
"""Each so many publications of a program one is retained."""
_NAP_S: Final = 0.01


@dataclass(frozen=True)
class Figures:
    """What was seen. lost, twice, out_of_order: of what the queues have. different: retained publications and proxy
    subscriptions that are not as they have to be.
    """

    kills: int
    published: int
    delivered: int
    lost: int
    twice: int
    out_of_order: int
    different: int
    dead_letters: int
    seconds: float


class Run:
    """``run`` for one queue manager, which is started again after it was killed. options: more of them."""

    def __init__(self, home: Path, qmgr: str, *options: str) -> None:
        self._home, self._qmgr, self._options = home, qmgr, options
        self._process = self._started()

    def kill(self, worker_alone: bool) -> None:
        """Kill its worker, which the supervisor starts again, or all of its processes, and start it again."""
        if worker_alone:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            if children:
                return
        self.end()
        self._process = self._started()

    def end(self) -> None:
        """End all of its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "commands.cli", "run", "-m", self._qmgr, "--home", str(self._home)]
        command += ["--durability", "normal", "--log", str(self._home / f"{self._qmgr}.log"), *self._options]
        with (self._home / f"{self._qmgr}.out").open("ab") as talk:
            return subprocess.Popen(command, stdout=talk, stderr=talk, start_new_session=True)


class Program(threading.Thread):
    """Publishes at one queue manager, and subscribes and unsubscribes there, until it is stopped.

    published: how many publications are committed. topics: what its second queue is subscribed to. below: where the
    topics of that queue are.
    """

    def __init__(
        self,
        home: Path,
        qmgr: str,
        pause_s: float,
        published: int = 0,
        topics: Iterable[str] = (),
        below: str = "s",
    ) -> None:
        super().__init__(daemon=True)
        self._home, self._qmgr, self._pause_s, self._below = home, qmgr, pause_s, below
        self._chance = random.Random(f"{qmgr} {published}")
        self.ended, self.published = threading.Event(), published
        self.topics: set[str] = set(topics)

    def run(self) -> None:
        with QueueManagerStore.open(self._home, self._qmgr, durability=Durability.NORMAL) as store:
            while not self.ended.wait(self._pause_s):
                with suppress(StoreBusyError):
                    self._work(store)

    def _work(self, store: QueueManagerStore) -> None:
        topic, subscribed = f"{self._qmgr}/{self.published % TOPICS}", f"{self._below}/{self._chance.randrange(TOPICS)}"
        word = "Deregister" if subscribed in self.topics else "Register"
        with store.unit_of_work() as unit:
            option = "<PubOpt>RetainPub</PubOpt>" if self.published % RETAINED == 0 else ""
            data = f"{self._qmgr} {self.published + 1}".encode()
            put(unit, STREAM, f"<Command>Publish</Command>{option}<Topic>{topic}</Topic>", data)
            if self.published % 5 == 0:
                command = {"Register": "RegSub", "Deregister": "DeregSub"}[word]
                put(unit, CONTROL, f"<Command>{command}</Command><Topic>{subscribed}</Topic><QName>OTHER</QName>")
        if self.published % 5 == 0:
            self.topics ^= {subscribed}
        self.published += 1


def create(home: Path, topology: Topology) -> None:
    """The queue managers, each with a queue that is subscribed to everything.

    Those in clusters have the root of the topic tree there.
    """
    for each in topology.positions:
        QueueManagerStore.create(home, QueueManager(each.qmgr, parent=each.parent)).close()
        with QueueManagerStore.open(home, each.qmgr) as store, store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(QUEUE))
            for cluster in each.clusters:
                unit.save_definition(ClusterChannel(f"{cluster}.{each.qmgr}", cluster=cluster))
                unit.save_definition(replace(BASE_DEFAULTS, cluster=cluster))
            put(unit, CONTROL, f"<Command>RegSub</Command><Topic>#</Topic><QName>{QUEUE}</QName>")


class Observed:
    """The queue managers of the network, read beside their processes."""

    def __init__(self, home: Path, topology: Topology) -> None:
        self._links, self._home = topology.links(), home
        self.stores = {qmgr: QueueManagerStore.open(home, qmgr, durability=Durability.NORMAL) for qmgr in self._links}

    def close(self) -> None:
        for store in self.stores.values():
            store.close()

    def back_up(self, qmgr: str, copy: Path) -> None:
        with closing(sqlite3.connect(copy)) as connection:
            self.stores[qmgr].database.connection.backup(connection)

    def restore(self, qmgr: str, copy: Path) -> None:
        """Have *copy* as the database of a queue manager, of which no program works."""
        self.stores[qmgr].close()
        path = directory_of(self._home, qmgr) / DATABASE
        for each in path.parent.glob(f"{DATABASE}*"):
            each.unlink()
        copy.rename(path)
        self.stores[qmgr] = QueueManagerStore.open(self._home, qmgr, durability=Durability.NORMAL)

    def topics(self, qmgr: str) -> set[str]:
        """What its second queue is subscribed to."""
        return {each.topic_string for each in self.stores[qmgr].load_state()[1] if each.dest_queue == "OTHER"}

    def neighbours(self, qmgr: str) -> set[str]:
        return {link.neighbour for link in self._links[qmgr]}

    def proxies(self, qmgr: str) -> set[tuple[str, str]]:
        """The proxy subscriptions at a queue manager: whose, and to what."""
        subscriptions = self.stores[qmgr].load_state()[1]
        return {(each.dest_qmgr, each.topic_string) for each in subscriptions if each.is_proxy}

    def is_connected(self) -> bool:
        """Whether everybody has asked all neighbours for everything."""
        return all({(other, "#") for other in self.neighbours(qmgr)} <= self.proxies(qmgr) for qmgr in self.stores)

    def is_quiet(self, *others: str) -> bool:
        """Whether nothing waits for a queue manager, and nothing on the queues *others*."""
        queues = (CONTROL, STREAM, *INTER_QMGR_QUEUES, *others)
        return not any(
            store.find_queue(queue) is not None and store.depth(queue)
            for qmgr, store in self.stores.items()
            for queue in (*queues, *self.neighbours(qmgr))
        )

    def delivered(self, qmgr: str) -> list[tuple[str, int]]:
        """Publisher and number of all that its queue has, in order."""
        bodies = [decode(message.body, message.md).body.decode() for message in self.stores[qmgr].browse(QUEUE)]
        return [(publisher, int(number)) for publisher, number in (body.split() for body in bodies)]

    def retained(self, qmgr: str) -> dict[str, bytes]:
        """Topic and data of what it retains."""
        store = self.stores[qmgr]
        with store.one_moment():
            return {each.topic_string: each.publication.message.body for each in store.load_state()[2]}

    def dead_letters(self) -> int:
        return sum(store.depth("SYSTEM.DEAD.LETTER.QUEUE") for store in self.stores.values())

    def wanted(self, at: str, by: str, topics: dict[str, set[str]]) -> set[str]:
        """The proxy subscriptions that queue manager *by* needs at *at*: for itself, and for those behind it.

        Behind a member of a cluster are those of its hierarchy.
        """
        (came_by,) = {link.cluster for link in self._links[by] if link.neighbour == at}
        behind, waiting = {by}, [by]
        while waiting:
            further = {link.neighbour for link in self._links[waiting.pop()] if not (came_by and link.cluster)}
            waiting += further - behind - {at}
            behind |= further - {at}
        return {"#", *(topic for qmgr in behind for topic in topics[qmgr])}


def end(programs: Mapping[str, Program], runs: Mapping[str, Run]) -> None:
    """End all of them, whatever has become of the trial."""
    for program in programs.values():
        program.ended.set()
    for run in runs.values():
        run.end()


def trial(
    home: Path,
    kills: int,
    topology: Topology = LINE,
    seed: int = 1,
    pause_s: float = 0.05,
    restored: str | None = None,
) -> Figures:
    """Kill *kills* times. pause_s: between two publications of a program. restored: who gets a backup meanwhile."""
    began, chance = time.monotonic(), random.Random(seed)
    create(home, topology)
    qmgrs = [each.qmgr for each in topology.positions]
    runs = {qmgr: Run(home, qmgr) for qmgr in qmgrs}
    programs = {qmgr: Program(home, qmgr, pause_s) for qmgr in qmgrs}
    observed = Observed(home, topology)
    try:
        until(observed.is_connected, "the network")
        missing: Counter[tuple[str, int]] = Counter()
        for program in programs.values():
            program.start()
        for done in range(kills):
            if restored is not None and done in (kills // 3, kills * 2 // 3):
                before = paused(programs)
                _settled(observed, sum(before.values()))
                if done == kills // 3:
                    at_backup = before
                    observed.back_up(restored, home / "backup")
                else:
                    runs[restored].end()
                    observed.restore(restored, home / "backup")
                    runs[restored] = Run(home, restored)
                    lost = {qmgr: range(at_backup[qmgr] + 1, before[qmgr] + 1) for qmgr in qmgrs}
                    missing = Counter((qmgr, n) for qmgr, numbers in lost.items() for n in numbers)
                for qmgr in qmgrs:
                    programs[qmgr] = Program(home, qmgr, pause_s, before[qmgr], observed.topics(qmgr))
                    programs[qmgr].start()
            time.sleep(chance.uniform(0.1, 1.5))
            runs[chance.choice(sorted(runs))].kill(worker_alone=chance.random() < 0.5)
        paused(programs)
        expected = Counter((qmgr, n) for qmgr, each in programs.items() for n in range(1, each.published + 1))
        _settled(observed, expected.total(), {restored: missing.total()})
        delivered = {qmgr: observed.delivered(qmgr) for qmgr in qmgrs}
        topics = {qmgr: observed.topics(qmgr) for qmgr in programs}
        assert all(topics[qmgr] == each.topics for qmgr, each in programs.items()), "a subscription is lost"
        retained = [observed.retained(qmgr) for qmgr in qmgrs]
        last = last_retained(programs)
        different = sum(found != last for found in retained)
        for qmgr in qmgrs:
            needed = {(by, each) for by in observed.neighbours(qmgr) for each in observed.wanted(qmgr, by, topics)}
            different += len(observed.proxies(qmgr) ^ needed)
        dead_letters = observed.dead_letters()
    finally:
        end(programs, runs)
        observed.close()

    def due(qmgr: str) -> Counter[tuple[str, int]]:
        return expected - missing if qmgr == restored else expected

    return Figures(
        kills=kills,
        published=sum(expected.values()),
        delivered=sum(map(len, delivered.values())),
        lost=sum((due(qmgr) - Counter(came)).total() for qmgr, came in delivered.items()),
        twice=sum((Counter(came) - expected).total() for came in delivered.values()),
        out_of_order=sum(out_of_order([n for n in came if n in due(qmgr)]) for qmgr, came in delivered.items()),
        different=different,
        dead_letters=dead_letters,
        seconds=round(time.monotonic() - began, 1),
    )


def last_retained(programs: dict[str, Program]) -> dict[str, bytes]:
    """Topic and data of what has to be retained, after all that the programs have published."""
    return {
        f"{qmgr}/{n % TOPICS}": f"{qmgr} {n + 1}".encode()
        for qmgr, each in programs.items()
        for n in range(0, each.published, RETAINED)
    }


def paused(programs: dict[str, Program]) -> dict[str, int]:
    """End the programs; how many publications of each are committed."""
    for program in programs.values():
        program.ended.set()
        program.join()
    return {qmgr: program.published for qmgr, program in programs.items()}


def _settled(observed: Observed, published: int, less: dict[str | None, int] | None = None) -> None:
    """Wait until nothing waits anywhere, and for what is between two queue managers at that moment.

    less: what the queue of one of them lacks of what was published.
    """
    lacks = less or {}

    def is_settled() -> bool:
        quiet = observed.is_quiet()
        whole = all(store.depth(QUEUE) >= published - lacks.get(qmgr, 0) for qmgr, store in observed.stores.items())
        return quiet and whole

    end = time.monotonic() + 120
    while not is_settled() and time.monotonic() < end:
        time.sleep(_NAP_S)
    time.sleep(1)


def out_of_order(came: Sequence[tuple[str, int]]) -> int:
    by_publisher: dict[str, list[int]] = {}
    for publisher, number in came:
        by_publisher.setdefault(publisher, []).append(number)
    return sum(later < earlier for numbers in by_publisher.values() for earlier, later in pairwise(numbers))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where something was lost, doubled or different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--shape", choices=SHAPES, default="line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--restore", metavar="QMGR", choices=[each.qmgr for each in LINE.positions])
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        seen = trial(Path(home), asked.kills, SHAPES[asked.shape], asked.seed, restored=asked.restore)
    print(json.dumps(asdict(seen)))
    return int(bool(seen.lost or seen.twice or seen.out_of_order or seen.different or seen.dead_letters))


if __name__ == "__main__":
    sys.exit(main())
