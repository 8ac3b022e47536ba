"""Three bridges that share mosquitto as their topic tree; all four are killed at random moments. Is anything lost?

    python -m tests.reliability.shared_tree_kills --kills 200

At each of QM1, QM2, QM3 a program publishes numbered messages at QoS 1, every fourth retained, and another one
subscribes and unsubscribes to what its neighbour publishes; a queue at each gets everything. Meanwhile ``run --topics``
of one of them, all of its processes or the worker alone, or mosquitto is killed with SIGKILL and started again. At the
end

- each publication is once, and in order, on the queue of the queue manager where it was published;
- it is at least once on the queues of the others; first copies are in the order of the publisher;
- mosquitto and all three retain the same;
- mosquitto sends each bridge what its subscriptions select, and nothing else: a native program tries every topic.

Prints what was seen; the exit code is 1 where that is not so.

mosquitto answers for a publication and writes it to its file a moment later. What it had answered for and not written
is gone if it is killed in between, and no client can know. So the bridges reach it through a proxy that holds back
everything for a moment, and drops what it holds when mosquitto is killed: an answer that a bridge gets is for something
written.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from commands.network.topology import Position, Topology
from rfh2 import decode
from tests.commands.links.mosquitto import Mosquitto, Native
from tests.commands.links.proxy import Proxy
from tests.reliability.network_kills import (
    TOPICS,
    Observed,
    Program,
    Run,
    create,
    end,
    last_retained,
    out_of_order,
    paused,
)
from tests.reliability.workload import CONTROL
from tests.waiting import until

QMGRS: Final = ("QM1", "QM2", "QM3")
OUTGOING: Final = "SYSTEM.QPUBSUB.OUTGOING"
_BROKER: Final = "mosquitto"
# It writes after each change (mosquitto.conf(5)); without this, every half hour.
_SETTINGS: Final = ("autosave_interval 1", "autosave_on_changes true")
_HELD_S: Final = 0.2
_PATIENCE_S: Final = 180.0
_PROBE: Final = "probe"


@dataclass(frozen=True)
class Figures:
    """What was seen. delivered: to all queues. lost: on any of them. doubled: on the publisher's own queue, where
    nothing may be. twice: on queues of others, where QoS 1 allows it. different: topics that are not retained as they
    have to be, anywhere, and subscriptions that get what they should not, or not what they should.
    """

    kills: int
    of_mosquitto: int
    published: int
    delivered: int
    lost: int
    doubled: int
    twice: int
    out_of_order: int
    different: int
    dead_letters: int
    seconds: float

    @property
    def is_good(self) -> bool:
        return not any((self.lost, self.doubled, self.out_of_order, self.different, self.dead_letters))


class _Tree:
    """mosquitto behind its proxy."""

    def __init__(self, directory: Path) -> None:
        self.broker = Mosquitto(directory, *_SETTINGS)
        self._proxy = Proxy(self.broker.port)
        self._proxy.delay_s = _HELD_S
        self.broker.start()
        self._proxy.start()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self._proxy.port}"

    def kill(self) -> None:
        """Kill it, with all that is on its way to and from it, and start it again."""
        self._proxy.drops = True
        self.broker.stop(signal.SIGKILL)
        self._proxy.cut()
        self._proxy.drops = False
        self.broker.start()

    def close(self) -> None:
        self._proxy.stop()
        self.broker.stop()


def trial(directory: Path, kills: int, seed: int = 1, pause_s: float = 0.05) -> Figures:
    """Kill *kills* times, chosen by *seed*, and count. pause_s: between two publications of a program."""
    began, chance = time.monotonic(), random.Random(seed)
    home = directory / "qmgrs"
    create(home, Topology(tuple(map(Position, QMGRS))))
    tree = _Tree(directory / _BROKER)
    runs = {qmgr: Run(home, qmgr, "--topics", tree.url) for qmgr in QMGRS}
    neighbours = dict(zip(QMGRS, QMGRS[1:] + QMGRS[:1], strict=True))
    programs = {qmgr: Program(home, qmgr, pause_s, below=neighbours[qmgr]) for qmgr in QMGRS}
    observed = Observed(home, Topology(tuple(map(Position, QMGRS))))
    of_mosquitto = 0
    try:
        until(lambda: _are_connected(home), "the bridges to have subscribed")
        for program in programs.values():
            program.start()
        for _ in range(kills):
            time.sleep(chance.uniform(0.1, 2.0))
            victim = chance.choice((*QMGRS, _BROKER))
            if victim == _BROKER:
                tree.kill()
                of_mosquitto += 1
            else:
                runs[victim].kill(worker_alone=chance.random() < 0.5)
        paused(programs)
        expected = {(qmgr, n) for qmgr, each in programs.items() for n in range(1, each.published + 1)}
        _settled(observed, expected)
        delivered = {qmgr: observed.delivered(qmgr) for qmgr in QMGRS}
        assert all(observed.topics(qmgr) == each.topics for qmgr, each in programs.items()), "a subscription is lost"
        different = _different(observed, tree.broker, last_retained(programs))
        different += _probed(observed, tree.broker)
        dead_letters = observed.dead_letters()
    finally:
        end(programs, runs)
        observed.close()
        tree.close()
    times = {qmgr: Counter(came) for qmgr, came in delivered.items()}
    own = {qmgr: sum(count - 1 for (by, _), count in each.items() if by == qmgr) for qmgr, each in times.items()}
    return Figures(
        kills=kills,
        of_mosquitto=of_mosquitto,
        published=len(expected),
        delivered=sum(map(len, delivered.values())),
        lost=sum(len(expected - set(came)) for came in delivered.values()),
        doubled=sum(own.values()),
        twice=sum(each.total() - len(each) for each in times.values()) - sum(own.values()),
        out_of_order=sum(out_of_order(list(dict.fromkeys(came))) for came in delivered.values()),
        different=different,
        dead_letters=dead_letters,
        seconds=round(time.monotonic() - began, 1),
    )


def _are_connected(home: Path) -> bool:
    """Whether mosquitto has the filter of each bridge."""
    with suppress(OSError, ValueError):
        states = [json.loads((home / qmgr / "mqtt.json").read_text()) for qmgr in QMGRS]
        return all("#" in state["acknowledged"] for state in states)
    return False


def _settled(observed: Observed, expected: set[tuple[str, int]]) -> None:
    """Wait until all that was published is everywhere, and for what is on its way at that moment."""

    def is_settled() -> bool:
        return observed.is_quiet(OUTGOING) and all(set(observed.delivered(qmgr)) >= expected for qmgr in QMGRS)

    end = time.monotonic() + _PATIENCE_S
    while not is_settled() and time.monotonic() < end:  # what is missing then is counted
        time.sleep(0.5)
    time.sleep(2)


def _different(observed: Observed, broker: Mosquitto, wanted: dict[str, bytes]) -> int:
    """The topics that mosquitto or a queue manager does not retain as *wanted* says."""
    native = Native(broker, "reader", "#")
    with suppress(AssertionError):
        until(lambda: {m.topic: m.payload for m in native.messages if m.retain}.keys() >= wanted.keys(), timeout_s=20)
    there = {message.topic: message.payload for message in native.messages if message.retain}
    native.close()
    return sum(len(held.items() ^ wanted.items()) for held in (there, *map(observed.retained, QMGRS)))


def _probed(observed: Observed, broker: Mosquitto) -> int:
    """The subscriptions of the second queues that do not get what a native program publishes, or get too much."""
    native = Native(broker, "prober")
    topics = [f"{qmgr}/{n}" for qmgr in QMGRS for n in range(TOPICS)]
    for topic in topics:
        native.insist(topic, f"{_PROBE} {topic}")
    wanted = {qmgr: observed.topics(qmgr) for qmgr in QMGRS}

    def found(qmgr: str) -> set[str]:
        store = observed.stores[qmgr]
        if store.find_queue("OTHER") is None:
            return set()
        texts = [decode(each.body, each.md).body.decode() for each in store.browse("OTHER")]
        return {text.removeprefix(f"{_PROBE} ") for text in texts if text.startswith(_PROBE)}

    with suppress(AssertionError):
        until(lambda: all(found(qmgr) >= wanted[qmgr] for qmgr in QMGRS), timeout_s=30)
    until(lambda: observed.is_quiet(CONTROL), "the probes to be processed")
    native.close()
    return sum(len(found(qmgr) ^ wanted[qmgr]) for qmgr in QMGRS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where something was lost, doubled or different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="where to work, and to leave the logs; else a temporary one")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        seen = trial(asked.directory or Path(temporary), asked.kills, asked.seed)
    print(json.dumps(asdict(seen)))
    return int(not seen.is_good)


if __name__ == "__main__":
    sys.exit(main())
