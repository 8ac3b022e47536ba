"""Subscribers on temporary dynamic queues that come and go under load: what is left of them, and what others notice.

    python -m tests.reliability.dynamic 10000

Each subscriber opens a model queue, registers, gets what is published while it is there, and goes: some close their
queue first, others just end their connection. One subscriber to another topic stays.
"""

from __future__ import annotations

import gc
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from commands.broker.objects import QueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, OpenQueue, ProgramConnection, QueueManagerStore
from tests.reliability.workload import put

MODEL = "SYSTEM.JMS.TEMPQ.MODEL"
CONTROL, STREAM, DEAD = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.DEAD.LETTER.QUEUE"
AT_ONCE = 50
_TABLES = ("definitions", "subscriptions", "temporary_subscriptions", "ended_subscriptions", "connections", "messages")


@dataclass(frozen=True, slots=True)
class ComeAndGo:
    """What came of it.

    missed: publications that a subscriber did not get, or got twice. left: rows more than before, by table. before_ms,
    during_ms: medians of processor time, from the put of a publication to its delivery to the subscriber who stays.
    before_calls, during_calls: medians of the calls of functions for that, which no other program shakes. grown_bytes:
    by which this process's memory grew during the second half.
    """

    subscribers: int
    publications: int
    missed: int
    dead_letters: int
    left: dict[str, int]
    before_ms: float
    during_ms: float
    before_calls: float
    during_calls: float
    grown_bytes: int
    seconds: float


def come_and_go(home: Path, count: int) -> ComeAndGo:
    """Have *count* subscribers come and go, at most ``AT_ONCE`` of them at a time."""
    QueueManagerStore.create(home, QueueManager("QM1")).close()

    def opened() -> QueueManagerStore:
        return QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL)

    with opened() as programs, opened() as store:
        return _Run(programs, Processor(store, lambda: datetime.now(UTC))).of(count)


class _Run:
    def __init__(self, programs: QueueManagerStore, processor: Processor) -> None:
        self._programs, self._processor = programs, processor
        self._there: deque[tuple[ProgramConnection, OpenQueue, int]] = deque()
        self._to_all = self._to_one = self._missed = 0

    def of(self, count: int) -> ComeAndGo:
        self._command(CONTROL, "<Command>RegSub</Command><Topic>steady</Topic><QName>STAYS</QName>")
        self._processor.drain()
        before = [self._publish_to_one(_seconds) for _ in range(200)]
        before_calls = [self._publish_to_one(_calls) for _ in range(10)]
        rows, start, half = self._rows(), time.monotonic(), 0
        during, during_calls = [], []
        for n in range(count):
            self._come()
            if n % 10 == 9:
                self._command(STREAM, "<Command>Publish</Command><Topic>load/a</Topic>")
                self._to_all += 1
                during.append(self._publish_to_one(_seconds))
            if n % 100 == 99:
                during_calls.append(self._publish_to_one(_calls))
            if len(self._there) > AT_ONCE:
                self._go()
            if n == count // 2:
                half = _memory()
        grown = _memory() - half
        while self._there:
            self._go()
        self._processor.drain()
        seconds = time.monotonic() - start
        with self._programs.unit_of_work() as unit:
            self._missed += self._to_one - unit.clear_queue("STAYS")
            dead = unit.depth(DEAD)
        left = {table: number - rows[table] for table, number in self._rows().items()}
        left["messages"] += len(before) + len(before_calls)
        return ComeAndGo(
            count,
            self._to_all + self._to_one,
            self._missed,
            dead,
            {table: number for table, number in left.items() if number},
            1000 * statistics.median(before),
            1000 * statistics.median(during),
            statistics.median(before_calls),
            statistics.median(during_calls),
            grown,
            seconds,
        )

    def _come(self) -> None:
        connection = self._programs.connect()
        opened = connection.open(MODEL, "LOAD.*")
        psc = f"<Command>RegSub</Command><RegOpt>NonPers</RegOpt><Topic>load/#</Topic><QName>{opened.name}</QName>"
        self._command(CONTROL, psc)
        self._there.append((connection, opened, self._to_all))

    def _go(self) -> None:
        connection, opened, there_since = self._there.popleft()
        self._missed += abs(self._to_all - there_since - self._programs.depth(opened.name))
        if self._to_all % 2:
            connection.close(opened)
        connection.disconnect()

    def _publish_to_one(self, measured: Callable[[Callable[[], None]], float]) -> float:
        """Publish for the subscriber who stays, when nothing else waits; what it took until it is there."""
        self._processor.drain()
        self._to_one += 1

        def publish() -> None:
            self._command(STREAM, "<Command>Publish</Command><Topic>steady</Topic>")
            self._processor.drain()

        return measured(publish)

    def _command(self, queue: str, psc: str) -> None:
        with self._programs.unit_of_work() as unit:
            put(unit, queue, psc, persistence=0)

    def _rows(self) -> dict[str, int]:
        execute = self._programs.database.connection.execute
        return {table: execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES}


def _seconds(work: Callable[[], None]) -> float:
    """Seconds of processor time that *work* takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _calls(work: Callable[[], None]) -> float:
    """How many functions *work* calls."""
    events = itertools.count()
    sys.setprofile(lambda *_: next(events))
    try:
        work()
    finally:
        sys.setprofile(None)
    return next(events) / 2


def _memory() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def main() -> int:
    """Print what came of it; 1 where something was missed or left, or where it takes more and more."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as directory:
        found = come_and_go(Path(directory), count)
    print(json.dumps(asdict(found)))
    dearer = found.during_calls >= 1.1 * found.before_calls or (count >= 4_000 and found.grown_bytes >= 10_000_000)
    return int(bool(found.missed or found.dead_letters or found.left or dearer))


if __name__ == "__main__":
    sys.exit(main())
