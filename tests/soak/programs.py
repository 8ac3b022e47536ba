"""The programs around a processor in a long run: each a process of its own, to be killed at any time.

    python -m tests.soak.programs produce HOME PRODUCER FIRST RATE      until SIGTERM; prints the next number
    python -m tests.soak.programs consume HOME QUEUE                    until SIGTERM
    python -m tests.soak.programs empty HOME QUEUE...                   until SIGTERM

What a consumer has seen of the numbers is a message on a queue, got and put in the unit of work of its other messages:
so a kill neither loses nor doubles it.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2 import Mqmd, QPubSubError, decode
from rfh2.errors import StoreError
from tests.reliability.workload import STREAM
from tests.soak.load import mixed

DEEP: Final = 3_000
_AT_ONCE, _MOST = 25, 200
_PAUSE_S: Final = 0.05
_MD: Final = Mqmd(format="MQSTR", persistence=1).encode()


@dataclass(slots=True)
class Seen:
    """What one subscriber has seen of the publications of each producer, which are numbered from 0.

    wanted: the next number of each producer. missing: numbers that were passed over and have not come since. late: how
    many of those came after all. twice: how many came again.
    """

    wanted: dict[str, int] = field(default_factory=dict)
    missing: list[tuple[str, int]] = field(default_factory=list)
    got: int = 0
    late: int = 0
    twice: int = 0

    def note(self, producer: str, number: int) -> None:
        """Number *number* of *producer* has come."""
        self.got += 1
        wanted = self.wanted.get(producer, 0)
        if number >= wanted:
            self.missing += [(producer, each) for each in range(wanted, number)]
            self.wanted[producer] = number + 1
        elif (producer, number) in self.missing:
            self.missing.remove((producer, number))
            self.late += 1
        else:
            self.twice += 1

    def lost(self, published: dict[str, int]) -> int:
        """How many have not come. published: how many each producer has published."""
        return len(self.missing) + sum(count - self.wanted.get(each, 0) for each, count in published.items())

    @classmethod
    def of(cls, text: bytes) -> Seen:
        """What ``json`` made."""
        state: dict[str, Any] = json.loads(text)
        return cls(**{**state, "missing": [(producer, number) for producer, number in state["missing"]]})

    def json(self) -> bytes:
        """As the body of a message."""
        return json.dumps(asdict(self)).encode()


def seen_queue(queue: str) -> str:
    """The queue with what the consumer of *queue* has seen."""
    return f"SEEN.{queue}"


def seen_of(store: QueueManagerStore, queue: str) -> Seen:
    """What it has seen so far."""
    name = seen_queue(queue)
    kept = [message.body for message in store.browse(name)] if store.find_queue(name) is not None else []
    return Seen.of(kept[0]) if kept else Seen()


def latencies(home: Path, queue: str) -> Path:
    """The file with a line for each unit of work of the consumer: Unix time, median and longest delay in ms."""
    return home.parent / f"latency.{queue}"  # beside the disk that is full now and then


def publication(producer: str, number: int) -> bytes:
    """The data of one publication."""
    return json.dumps([producer, number, time.time()]).encode().ljust(200)


class _Stop:
    """Set by SIGTERM."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


def produce(home: Path, producer: str, first: int, per_s: float) -> int:
    """Put the mixed load until SIGTERM, *per_s* messages a second; 0 for as many as are processed. The next number."""
    stop, chance, number = _Stop(), random.Random(f"{producer} {first}"), first
    begun, count = time.monotonic(), 0
    with QueueManagerStore.open(home, "QM1") as store:
        while not stop.asked:
            ahead_s = count / per_s - (time.monotonic() - begun) if per_s else 0.0
            if ahead_s < -1:
                begun, count = time.monotonic(), 0  # what was missed while nothing could be put is not made up for
            if ahead_s > 0 or store.depth(STREAM) > DEEP:
                time.sleep(max(_PAUSE_S / 5, min(ahead_s, _PAUSE_S)))
                continue
            made = number
            try:
                with store.unit_of_work() as unit:
                    for _ in range(_AT_ONCE):
                        made += mixed(unit, int(producer), publication(producer, made), chance)
            except StoreError:
                time.sleep(_PAUSE_S)
                continue
            number, count = made, count + _AT_ONCE
    return number


def consume(home: Path, queue: str) -> None:
    """Get from *queue* until SIGTERM."""
    stop = _Stop()
    with QueueManagerStore.open(home, "QM1") as store, latencies(home, queue).open("a") as written:
        while not stop.asked:
            try:
                if store.find_queue(queue) is None or not store.depth(queue):
                    store.wait_for_change(_PAUSE_S)
                    continue
                with store.unit_of_work() as unit:
                    delays = _consume_some(unit, queue)
            except QPubSubError:
                time.sleep(_PAUSE_S)
                continue
            if delays:
                written.write(f"{time.time():.3f} {median(delays):.1f} {max(delays):.1f}\n")
                written.flush()


def empty(home: Path, *queues: str) -> None:
    """Remove all messages of *queues* until SIGTERM, without a look at them."""
    stop = _Stop()
    with QueueManagerStore.open(home, "QM1") as store:
        while not stop.asked:
            try:
                with store.unit_of_work() as unit:
                    for queue in queues:
                        if unit.find_queue(queue) is not None:
                            unit.clear_queue(queue)
            except StoreError:
                pass
            time.sleep(10 * _PAUSE_S)


def _consume_some(unit: UnitOfWork, queue: str) -> list[float]:
    """The delays in milliseconds of the messages that were got."""
    name = seen_queue(queue)
    unit.ensure_queue(name)
    kept = unit.get(name)
    seen, delays = Seen() if kept is None else Seen.of(kept.body), []
    while len(delays) < _MOST and (message := unit.get(queue)) is not None:
        producer, number, put_at = json.loads(decode(message.body, message.md).body)
        seen.note(producer, number)
        delays.append(1000 * (time.time() - put_at))
    unit.put(name, _MD, seen.json())
    return delays


if __name__ == "__main__":
    verb, where, *names = sys.argv[1:]
    match verb:
        case "produce":
            print(produce(Path(where), names[0], int(names[1]), float(names[2])))
        case "consume":
            consume(Path(where), *names)
        case "empty":
            empty(Path(where), *names)
