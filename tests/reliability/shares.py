"""Bridges that share a workload are killed and stopped, again and again: is a message lost, doubled, or out of order?

    python -m tests.reliability.shares 100

Three bridges (``qpubsub shares run``) work for four shares, while a program publishes numbered messages in each share,
on five topics in turn. In turn a bridge is killed (kill -9: the bridge alone, with which its processes die, or all of
them at once), stopped with all of its processes (SIGSTOP), or asked to end (SIGTERM). Then the others take over its
shares. It comes back - goes on, or another one is started - and gets its part again. At the end, each subscriber's
queue has each message once, and the messages of each topic in order. A takeover lasts from the signal until every share
has delivered what was published in it after the signal. Prints what was seen; the exit code is 1 where something was
lost, doubled or out of order.
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
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Final

from commands.config.home import PostgresqlHome
from commands.qmgr.store import Durability, QueueManagerStore, StoreBusyError
from tests.postgresql import postgresql_server
from tests.reliability.figures import median_and_longest
from tests.reliability.workload import put
from tests.shared_workload import BridgeProcess, active_in, board_of, bridge_of, make_workload, stream_of
from tests.waiting import PATIENCE_S, until

KINDS: Final = ("kill", "kill all", "stop", "end")
BRIDGES: Final = 3
SHARES: Final = 4
TOPICS: Final = 5


@dataclass(frozen=True)
class Figures:
    """What was seen. after_kill_s, after_stop_s, after_end_s: median and longest takeover. moved: shares that changed
    their bridge because of a signal."""

    takeovers: int
    moved: int
    after_kill_s: tuple[float, float]
    after_stop_s: tuple[float, float]
    after_end_s: tuple[float, float]
    published: int
    lost: int
    twice: int
    out_of_order: int
    seconds: float


class Publisher(threading.Thread):
    """Publishes numbers in one share, one in a unit of work, until it is stopped. published: how many are committed."""

    def __init__(self, home: PostgresqlHome, qmgr: str, pause_s: float) -> None:
        super().__init__(daemon=True)
        self._home, self._qmgr, self._pause_s = home, qmgr, pause_s
        self.ended, self.published = threading.Event(), 0

    def run(self) -> None:
        with QueueManagerStore.open(self._home, self._qmgr, durability=Durability.NORMAL) as store:
            while not self.ended.wait(self._pause_s):
                # A process may be stopped that has the database.
                with suppress(StoreBusyError):
                    number = self.published + 1
                    with store.unit_of_work() as unit:
                        psc = f"<Command>Publish</Command><Topic>t{number % TOPICS}</Topic>"
                        put(unit, stream_of(self._qmgr), psc, b"%d" % number)
                    self.published = number


class Trial:
    """The bridges, and what is published meanwhile."""

    def __init__(self, home: PostgresqlHome, place: Path, lease_s: float, pause_s: float) -> None:
        self.home, self._place, self._lease_s = home, place, lease_s
        self.names = make_workload(home, place, SHARES)
        self.publishers = {name: Publisher(home, name, pause_s) for name in self.names}
        self.bridges = [self._begin() for _ in range(BRIDGES)]
        self._stack = ExitStack()
        self._stores = {name: self._stack.enter_context(QueueManagerStore.open(home, name)) for name in self.names}

    def close(self) -> None:
        for publisher in self.publishers.values():
            publisher.ended.set()
        for bridge in self.bridges:
            bridge.end()
        self._stack.close()

    def holders(self) -> dict[str, int | None]:
        """The bridge that works for each share."""
        return {name: bridge_of(active_in(self.home, name)) for name in self.names}

    def is_spread(self) -> bool:
        """Whether each bridge has its part."""
        held = [list(self.holders().values()).count(bridge.pid) for bridge in self.bridges]
        return sorted(held) == sorted(SHARES // BRIDGES + (n < SHARES % BRIDGES) for n in range(BRIDGES))

    def takeover(self, bridge: BridgeProcess, kind: str) -> tuple[int, float]:
        """Take *bridge* out of service, and wait for the others: the shares that moved, and seconds."""
        begun, before = time.monotonic(), self.holders()
        number = {"kill": signal.SIGKILL, "kill all": signal.SIGKILL, "stop": signal.SIGSTOP, "end": signal.SIGTERM}[
            kind
        ]
        bridge.signal(number, alone=kind in ("kill", "end"))
        published = {name: publisher.published for name, publisher in self.publishers.items()}
        for name in self.names:
            until(lambda name=name: self._delivered(name) > published[name], f"a delivery in {name} after {kind}")
        mine = [name for name, holder in before.items() if holder == bridge.pid]
        return len(mine), time.monotonic() - begun

    def bring_back(self, bridge: BridgeProcess, kind: str) -> None:
        """Let it go on, or start another one in its place; wait until each has its part."""
        if kind == "stop":
            bridge.signal(signal.SIGCONT)
        else:
            bridge.process.wait(PATIENCE_S)
            self.bridges[self.bridges.index(bridge)] = self._begin()
        until(self.is_spread, "each bridge to have its part")

    def rest(self) -> dict[str, list[int]]:
        """When all is delivered: the numbers that came in each share, in their order."""
        for publisher in self.publishers.values():
            publisher.ended.set()
            publisher.join()
        for name, publisher in self.publishers.items():
            until(lambda name=name, p=publisher: self._delivered(name) >= p.published, f"the rest of {name}")
            until(lambda name=name: not self._stores[name].depth(stream_of(name)), f"the rest of {name}")
        return {
            name: [
                int(message.body.rpartition(b">")[2].strip()) for message in self._stores[name].browse(board_of(name))
            ]
            for name in self.names
        }

    def _delivered(self, name: str) -> int:
        return self._stores[name].depth(board_of(name))

    def _begin(self) -> BridgeProcess:
        return BridgeProcess(self.home, self._place, "--durability", "normal", lease_s=self._lease_s)


def trial(
    home: PostgresqlHome, place: Path, takeovers: int, lease_s: float, seed: int = 1, pause_s: float = 0.02
) -> Figures:
    """Take a bridge out of service *takeovers* times. pause_s: between two publications in a share."""
    began, chance, moved = time.monotonic(), random.Random(seed), 0
    took: dict[str, list[float]] = {"kill": [], "stop": [], "end": []}
    bridges = Trial(home, place, lease_s, pause_s)
    try:
        until(bridges.is_spread, "each bridge to have its part")
        for publisher in bridges.publishers.values():
            publisher.start()
        for kind in islice(cycle(KINDS), takeovers):
            time.sleep(chance.uniform(0.05, 0.5))
            bridge = chance.choice(bridges.bridges)
            count, seconds = bridges.takeover(bridge, kind)
            moved += count
            took[kind.partition(" ")[0]].append(seconds)
            bridges.bring_back(bridge, kind)
        came = bridges.rest()
        published = {name: publisher.published for name, publisher in bridges.publishers.items()}
    finally:
        bridges.close()
    return Figures(
        takeovers=takeovers,
        moved=moved,
        after_kill_s=median_and_longest(took["kill"]),
        after_stop_s=median_and_longest(took["stop"]),
        after_end_s=median_and_longest(took["end"]),
        published=sum(published.values()),
        lost=sum(len(set(range(1, count + 1)) - set(came[name])) for name, count in published.items()),
        twice=sum(len(numbers) - len(set(numbers)) for numbers in came.values()),
        out_of_order=sum(map(out_of_order, came.values())),
        seconds=round(time.monotonic() - began, 1),
    )


def out_of_order(numbers: Sequence[int]) -> int:
    """How many came before an earlier one of the same topic."""
    topics = defaultdict(list)
    for number in numbers:
        topics[number % TOPICS].append(number)
    return sum(later < earlier for topic in topics.values() for earlier, later in pairwise(topic))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where a message was lost, doubled or out of order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("takeovers", type=int, nargs="?", default=100)
    parser.add_argument("--lease", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with postgresql_server() as server, tempfile.TemporaryDirectory() as place:
        os.environ["XDG_STATE_HOME"] = place
        seen = trial(server.home(), Path(place), asked.takeovers, asked.lease, asked.seed)
    print(json.dumps(asdict(seen)))
    return int(bool(seen.lost or seen.twice or seen.out_of_order))


if __name__ == "__main__":
    sys.exit(main())
