"""Three queue managers as a network, each with its bridge: a line, a tree, a cluster, or a cluster with a child.

At each a program publishes, and subscribes and unsubscribes. Meanwhile bridges are killed, stopped, or their clocks
set, and a database is full or locked for a while, so that channels wait, and go on in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from commands.links import channels
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.opening import DATABASE, directory_of
from rfh2.errors import StoreError
from tests.reliability.network_kills import QUEUE, RETAINED, SHAPES, TOPICS, Observed, create, out_of_order
from tests.reliability.workload import CONTROL, STREAM
from tests.simulation.faults import Fate, Life, Profile, disk_full, some_time
from tests.simulation.kernel import Kernel, Process
from tests.simulation.world import HOME, PATIENCE_S, bridge_of, put_command, until

WEIGHTS: Final = {"kill": 4, "hold": 3, "jump": 1, "full": 1, "lock": 2}
_COUNT: Final = 15


class NetworkWorld:
    """``World``."""

    def __init__(self, kernel: Kernel, faults_every_s: float) -> None:
        self._kernel, self._chance = kernel, kernel.chance
        topology = SHAPES[self._chance.choice(sorted(SHAPES))]
        create(HOME, topology)
        # The real one looks at times of files.
        kernel.replace(
            channels,
            _seen=lambda _home, name: (kernel.commits.get(str(directory_of(HOME, name) / DATABASE), 0),),
        )
        self._observed = Observed(HOME, topology)
        self._published = dict.fromkeys(self._observed.stores, 0)
        self._topics: dict[str, set[str]] = {qmgr: set() for qmgr in self._published}
        self._programs = len(self._published)
        self._lives = {qmgr: Life(kernel, qmgr, partial(self._bridge, qmgr)) for qmgr in self._published}
        self._fate = Fate(
            kernel,
            Profile(faults_every_s, WEIGHTS),
            {
                "kill": lambda: self._one().kill(),
                "hold": lambda: self._one().hold(),
                "jump": lambda: self._one().jump(),
                "full": lambda: disk_full(kernel),
                "lock": self._lock,
            },
        )

    @property
    def faults(self) -> int:
        return self._fate.count

    def _one(self) -> Life:
        return self._lives[self._chance.choice(sorted(self._lives))]

    def _bridge(self, qmgr: str, _process: Process) -> None:
        with bridge_of(qmgr) as bridge:
            bridge.serve()

    def _lock(self) -> float:
        """A program keeps a database locked."""
        seconds, qmgr = some_time(self._kernel), self._chance.choice(sorted(self._lives))

        def program() -> None:
            opened = QueueManagerStore.open(HOME, qmgr, durability=Durability.NORMAL)
            with suppress(StoreError), opened as store, store.unit_of_work() as unit:
                self._kernel.sleep(seconds)
                unit.backout()

        self._kernel.plan.start(program, "locks")
        return seconds + 1.0

    def _program(self, qmgr: str) -> None:
        store = self._observed.stores[qmgr]
        for n in range(_COUNT):
            option = "<PubOpt>RetainPub</PubOpt>" if n % RETAINED == 0 else ""
            psc = f"<Command>Publish</Command>{option}<Topic>{qmgr}/{n % TOPICS}</Topic>"
            put_command(self._kernel, store, STREAM, psc, f"{qmgr} {n + 1}".encode())
            self._published[qmgr] += 1
            if n % 3 == 0:
                topic = f"s/{self._chance.randrange(TOPICS)}"
                word = "DeregSub" if topic in self._topics[qmgr] else "RegSub"
                where = f"<Topic>{topic}</Topic><QName>OTHER</QName>"
                put_command(self._kernel, store, CONTROL, f"<Command>{word}</Command>{where}")
                self._topics[qmgr] ^= {topic}
            self._kernel.sleep(self._chance.expovariate(2))
        self._programs -= 1

    def run(self) -> None:
        until(self._kernel, PATIENCE_S, self._observed.is_connected)
        for qmgr in self._published:
            self._kernel.plan.start(partial(self._program, qmgr), f"program {qmgr}")
        self._kernel.wait(lambda: self._programs == 0, None)
        self._fate.end()
        self._kernel.full_until = 0.0
        for life in self._lives.values():
            life.heal()

    def amiss(self) -> Iterator[str]:
        observed = self._observed
        expected = Counter((qmgr, n) for qmgr, count in self._published.items() for n in range(1, count + 1))

        def is_settled() -> bool:
            depths = [store.depth(QUEUE) for store in observed.stores.values()]
            return observed.is_quiet() and min(depths) >= expected.total()

        is_over = until(self._kernel, PATIENCE_S, is_settled, 5.0)
        self._kernel.sleep(5.0)
        yield from self._kernel.broken
        if not is_over:
            yield "it does not settle"
        last = {
            f"{qmgr}/{n % TOPICS}": f"{qmgr} {n + 1}".encode()
            for qmgr, count in self._published.items()
            for n in range(0, count, RETAINED)
        }
        for qmgr in observed.stores:
            came = observed.delivered(qmgr)
            if Counter(came) != expected:
                lost, more = expected - Counter(came), Counter(came) - expected
                yield f"{qmgr} lacks {sorted(lost)[:5]}, and has too often {sorted(more)[:5]}"
            if out_of_order(came):
                yield f"{qmgr} has publications out of order"
            if observed.retained(qmgr) != last:
                yield f"{qmgr} retains {sorted(set(observed.retained(qmgr).items()) ^ set(last.items()))[:6]}"
            if observed.topics(qmgr) != self._topics[qmgr]:
                yield f"{qmgr}: subscriptions are lost"
            needed = {
                (by, each)
                for by in observed.neighbours(qmgr)
                for each in observed.wanted(qmgr, by, {name: observed.topics(name) for name in observed.stores})
            }
            if observed.proxies(qmgr) != needed:
                yield f"{qmgr}: proxy subscriptions {sorted(observed.proxies(qmgr) ^ needed)[:6]} are not as needed"
        if observed.dead_letters():
            yield f"{observed.dead_letters()} dead letters"
