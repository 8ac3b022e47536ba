"""What trials of topic trees share: programs, faults of bridge and network, and what was seen afterwards.

Publications are numbers as text; each has the topic of its number modulo ``TOPICS``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Final

from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import decode
from tests.commands.links.proxy import Proxy
from tests.reliability.workload import CONTROL, STREAM, put
from tests.waiting import PATIENCE_S, until

TOPICS: Final = 5
Traffic = tuple[set[str], list[str]]
"""What was published one way, and what came."""


@dataclass(frozen=True)
class Figures:
    """What was seen, inward (native to legacy) and outward. faults: how often each kind was chosen.

    late: that came after a later one on the same topic.
    """

    faults: dict[str, int]
    published: int
    lost_in: int
    lost_out: int
    twice_in: int
    twice_out: int
    late_in: int
    late_out: int
    seconds: float

    @classmethod
    def of(
        cls,
        kinds: Sequence[str],
        inward: tuple[set[str], list[str]],
        outward: tuple[set[str], list[str]],
        seconds: float,
    ) -> Figures:
        """Count. inward, outward: what was published, and what came."""
        (wanted_in, came), (wanted_out, heard) = inward, outward
        return cls(
            faults={kind: kinds.count(kind) for kind in sorted(set(kinds))},
            published=len(wanted_in) + len(wanted_out),
            lost_in=len(wanted_in - set(came)),
            lost_out=len(wanted_out - set(heard)),
            twice_in=len(came) - len(set(came)),
            twice_out=len(heard) - len(set(heard)),
            late_in=_late(came),
            late_out=_late(heard),
            seconds=round(seconds, 1),
        )

    @property
    def is_good(self) -> bool:
        return not any((self.lost_in, self.lost_out, self.twice_in, self.twice_out, self.late_in, self.late_out))


class Programs:
    """A native and a legacy program, which publish until they are told to stop: ``in/N`` and ``out/N``.

    speak: has the native one publish on a topic, and returns when the tree has it. home: of QM1. pause_s: between two
    publications. patience_s: how long the last one may take.
    """

    def __init__(self, speak: Callable[[str, str], object], home: Path, pause_s: float, patience_s: float) -> None:
        self._native, self._home, self._pause_s, self._patience_s = speak, home, pause_s, patience_s
        self._stop = threading.Event()
        self.spoken: list[str] = []
        self.put: list[str] = []
        self._threads = [threading.Thread(target=self._speak), threading.Thread(target=self._put)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(self._patience_s)
            assert not thread.is_alive(), "a program is stuck"

    def _speak(self) -> None:
        while not self._stop.wait(self._pause_s):
            number = str(len(self.spoken))
            self._native(f"in/{int(number) % TOPICS}", number)
            self.spoken.append(number)

    def _put(self) -> None:
        with QueueManagerStore.open(self._home, "QM1", durability=Durability.NORMAL) as store:
            while not self._stop.wait(self._pause_s):
                number = str(len(self.put))
                topic = f"<Topic>out/{int(number) % TOPICS}</Topic>"
                with store.unit_of_work() as unit:
                    psc = f"<Command>Publish</Command>{topic}"
                    put(unit, STREAM, psc, number.encode(), priority=0)
                self.put.append(number)


class BridgeProcess:
    """The bridge as a person runs it. home: of QM1. url: of the tree."""

    def __init__(self, home: Path, url: str) -> None:
        self._log = (home / "run.log").open("ab")
        self._command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(home)]
        self._command += ["--topics", url, "--durability", "normal"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL, start_new_session=True
        )

    def kill(self) -> None:
        """The supervisor and its worker, at the same moment."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE_S)
            self._process = None

    def restart(self, random: Random) -> None:
        """Kill it, and start it again."""
        self.kill()
        time.sleep(random.uniform(0.0, 0.2))
        self.start()
        # What follows comes also while it begins, but mostly while it works.
        time.sleep(random.choice((0.5, 2.5, 2.5)))


def subscribe(store: QueueManagerStore) -> None:
    """Subscribe to all that the native program publishes, once the bridge is there."""
    with store.unit_of_work() as unit:
        put(unit, CONTROL, "<Command>RegSub</Command><Topic>in/#</Topic><QName>S</QName>")
    until(lambda: store.load_state()[1] and not store.depth(CONTROL), "the RegSub")


def came_to(store: QueueManagerStore) -> list[str]:
    """What the native program published, as the subscriber has got it."""
    return [decode(each.body, each.md).body.decode() for each in store.browse("S")] if store.find_queue("S") else []


def break_network(kind: str, between: Proxy, random: Random) -> None:
    """Have a ``cut``, a ``drop`` or a ``delay``."""
    if kind == "cut":
        between.cut()
    elif kind == "drop":
        between.drops = True
        time.sleep(random.uniform(0.01, 0.2))
        between.cut()
        between.drops = False
    else:
        assert kind == "delay"
        between.delay_s = random.uniform(0.02, 0.3)
        time.sleep(random.uniform(0.1, 0.5))
        between.delay_s = 0.0


def _late(payloads: list[str]) -> int:
    highest: dict[int, int] = {}
    late = 0
    for number in map(int, dict.fromkeys(payloads)):
        late += number < highest.get(number % TOPICS, -1)
        highest[number % TOPICS] = max(number, highest.get(number % TOPICS, -1))
    return late


def main(trial: Callable[[Path, int, int], Figures], about: str) -> None:
    """Run *trial* as the command line says, and print what it saw; the exit code is 1 where a promise was broken."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("faults", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        figures = trial(Path(temporary), options.faults, options.seed)
    shown = asdict(figures)
    print(json.dumps({f"{kind}s": count for kind, count in shown.pop("faults").items()} | shown))
    sys.exit(not figures.is_good)
