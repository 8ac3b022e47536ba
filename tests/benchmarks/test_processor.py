"""Commands a second end to end and durable: get, process, deliver, respond, commit; and how long one message takes.

The floor is the same SQLite work without our logic, in the same run: the same rows taken and put by bare statements,
with the same commits and the same synchronous setting. Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands.broker.objects import AuthorityRecord, QueueManager
from commands.broker.selection import Selection
from commands.qmgr.processor import BATCH, Processor, ProcessorSettings
from commands.qmgr.store import Durability, QueueManagerStore, UnitOfWork
from rfh2 import Folder, Mqmd, Rfh2
from streams.operations import SubscriptionAdded
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
TOPICS = 500


class Traffic(StrEnum):
    """What is published: equal headers, with a number in each, retained, with a response to each, or by a JMS client.

    The last has folders of its own in each message, and 1 KiB of data; the others have 200 bytes, and every tenth asks
    for a response. AUTHORITY is NUMBERED under authority records.
    """

    ALIKE = "alike"
    NUMBERED = "numbered"
    RETAINED = "retained"
    ANSWERED = "answered"
    AUTHORITY = "authority"
    JMS = "JMS"


class Worker(Protocol):
    """A thread or a process."""

    def start(self) -> None: ...
    def join(self) -> None: ...


def put(unit: UnitOfWork, queue: str, psc: str, *folders: str, size: int = 200, **mqmd: object) -> None:
    """A command with *size* bytes of data."""
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    header = Rfh2(tuple(Folder.of(text) for text in (f"<psc>{psc}</psc>", *folders)), format="MQSTR")
    unit.put(queue, md.encode(), header.encode() + b"x" * size)


def put_publication(unit: UnitOfWork, n: int, traffic: Traffic) -> None:
    """Publication *n*."""
    topic = f"t/{n % TOPICS}"
    option = "<PubOpt>RetainPub</PubOpt>" if traffic is Traffic.RETAINED else ""
    psc = f"<Command>Publish</Command>{option}<Topic>{topic}</Topic>"
    if traffic is Traffic.JMS:
        jms = f"<jms><Dst>topic://{topic}</Dst><Tms>{1_767_225_600_000 + n}</Tms><Cid>order-{n}</Cid><Dlv>2</Dlv></jms>"
        numbers = f"<order dt='i8'>{n}</order><price dt='r8'>{n / 8}</price>"
        usr = f"<usr>{numbers}<region>EMEA</region><desk>{n % 7}</desk></usr>"
        put(unit, STREAM, psc, "<mcd><Msd>jms_text</Msd></mcd>", jms, usr, size=1024)
        return
    asks: dict[str, Any] = {"msg_type": 1, "reply_to_q": "REPLY"} if traffic is Traffic.ANSWERED or n % 10 == 0 else {}
    number = "" if traffic is Traffic.ALIKE else f"<SeqNum>{n}</SeqNum>"
    put(unit, STREAM, psc + number, **asks)


def _loaded(
    home: Path, commands: int, subscribers: int, durability: Durability, traffic: Traffic = Traffic.ALIKE
) -> QueueManagerStore:
    """A queue manager with that to do."""
    store = QueueManagerStore.create(home, QueueManager("QM1"), durability=durability)
    with store.unit_of_work() as unit:
        for n in range(subscribers):
            put(unit, CONTROL, f"<Command>RegSub</Command><Topic>#</Topic><QName>S{n}</QName>")
    Processor(store, lambda: NOW).drain()
    with store.unit_of_work() as unit:
        if traffic is Traffic.AUTHORITY:
            for user in ("app", "ann", "bob"):
                unit.save_definition(AuthorityRecord("TOPIC", "SYSTEM.BASE.TOPIC", "PRINCIPAL", user, ("PUB", "SUB")))
        for n in range(commands):
            put_publication(unit, n, traffic)
    return store


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds for a number of commands: on the clock on the wall, and of the processor's work."""

    commands: int
    wall_s: float
    cpu_s: float

    @classmethod
    def by(cls, commands: int, work: Callable[[], object]) -> Took:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        return cls(commands, time.perf_counter() - wall, time.process_time() - cpu)

    @property
    def rate(self) -> float:
        return self.commands / self.wall_s

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / self.commands * 1e6


def _least(runs: list[Took]) -> Took:
    """The best of several: other work on the machine only ever adds."""
    return Took(runs[0].commands, min(run.wall_s for run in runs), min(run.cpu_s for run in runs))


def _bare(
    path: Path, commands: int, subscribers: int, durability: Durability, batch: int, traffic: Traffic = Traffic.ALIKE
) -> Took:
    """The same rows, statements and commits, with nothing around them."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute(f"PRAGMA synchronous = {durability.value}")
    connection.execute("CREATE TABLE m (seq INTEGER PRIMARY KEY AUTOINCREMENT, queue, rank, time, user, md, body)")
    connection.execute("CREATE INDEX i ON m (queue, rank)")
    insert = "INSERT INTO m (queue, rank, time, user, md, body) VALUES (?, 9, ?, 'app', ?, ?)"
    take = "DELETE FROM m WHERE seq = (SELECT seq FROM m WHERE queue = ? ORDER BY rank, seq LIMIT 1) RETURNING md, body"
    md, body = bytes(324), bytes(1430 if traffic is Traffic.JMS else 320)
    every = 1 if traffic is Traffic.ANSWERED else commands if traffic is Traffic.JMS else 10
    connection.execute("BEGIN")
    connection.executemany(insert, (("IN", n, md, body) for n in range(commands)))
    connection.execute("COMMIT")

    def moved() -> None:
        for start in range(0, commands, batch):
            connection.execute("BEGIN IMMEDIATE")
            for n in range(start, min(start + batch, commands)):
                ((md, body),) = connection.execute(take, ("IN",)).fetchall()
                for subscriber in range(subscribers):
                    connection.execute(insert, (f"S{subscriber}", n, md, body))
                if n % every == 0:
                    connection.execute(insert, ("REPLY", n, md, body))
            connection.execute("COMMIT")

    took = Took.by(commands, moved)
    connection.close()
    return took


CASES = [
    pytest.param(1, BATCH, Durability.FULL, 10_000, Traffic.JMS, id="1-subscriber-batched-FULL-JMS"),
    pytest.param(10, BATCH, Durability.FULL, 3000, Traffic.JMS, id="10-subscribers-batched-FULL-JMS"),
    pytest.param(1, BATCH, Durability.FULL, 10_000, Traffic.NUMBERED, id="1-subscriber-batched-FULL-numbered"),
    pytest.param(10, BATCH, Durability.FULL, 3000, Traffic.NUMBERED, id="10-subscribers-batched-FULL-numbered"),
    pytest.param(1, BATCH, Durability.FULL, 10_000, Traffic.ANSWERED, id="1-subscriber-batched-FULL-answered"),
    pytest.param(1, BATCH, Durability.FULL, 10_000, Traffic.AUTHORITY, id="1-subscriber-batched-FULL-authority"),
    pytest.param(1, BATCH, Durability.FULL, 10_000, Traffic.RETAINED, id="1-subscriber-batched-FULL-retained"),
    pytest.param(1, BATCH, Durability.FULL, 20_000, Traffic.ALIKE, id="1-subscriber-batched-FULL"),
    pytest.param(1, BATCH, Durability.NORMAL, 20_000, Traffic.ALIKE, id="1-subscriber-batched-NORMAL"),
    pytest.param(10, BATCH, Durability.FULL, 5000, Traffic.ALIKE, id="10-subscribers-batched-FULL"),
    pytest.param(10, BATCH, Durability.NORMAL, 5000, Traffic.ALIKE, id="10-subscribers-batched-NORMAL"),
    pytest.param(1, 1, Durability.FULL, 2000, Traffic.ALIKE, id="1-subscriber-a-commit-each-FULL"),
    pytest.param(1, 1, Durability.NORMAL, 3000, Traffic.ALIKE, id="1-subscriber-a-commit-each-NORMAL"),
    pytest.param(10, 1, Durability.FULL, 1500, Traffic.ALIKE, id="10-subscribers-a-commit-each-FULL"),
    pytest.param(10, 1, Durability.NORMAL, 1500, Traffic.ALIKE, id="10-subscribers-a-commit-each-NORMAL"),
]


@pytest.mark.parametrize(("subscribers", "batch", "durability", "commands", "traffic"), CASES)
def test_commands_end_to_end(
    benchmark: BenchmarkFixture,
    tmp_path: Path,
    subscribers: int,
    batch: int,
    durability: Durability,
    commands: int,
    traffic: Traffic,
) -> None:
    if benchmark.disabled:
        commands = 200
    floors: list[Took] = []
    runs: list[Took] = []

    def filled() -> tuple[tuple[QueueManagerStore], dict[str, object]]:
        floors.append(_bare(tmp_path / f"floor{len(runs)}", commands, subscribers, durability, batch, traffic))
        return (_loaded(tmp_path / str(len(runs)), commands, subscribers, durability, traffic),), {}

    def drained(store: QueueManagerStore) -> None:
        processor = Processor(store, lambda: NOW, settings=ProcessorSettings(batch=batch))
        runs.append(Took.by(commands, processor.drain))
        assert processor.tally.commands == commands
        assert processor.tally.publications == commands * subscribers
        store.close()

    benchmark.pedantic(drained, setup=filled, rounds=4)  # type: ignore[no-untyped-call]
    best, floor = _least(runs), _least(floors)
    print(
        f"\n{subscribers} subscribers, {batch} to a commit, synchronous={durability.value}, {traffic}: "
        f"{best.rate:,.0f} commands/s, {best.rate * subscribers:,.0f} deliveries/s; bare SQLite {floor.rate:,.0f}; "
        f"ratio {best.rate / floor.rate:.2f}; processor time {best.cpu_us:.0f} us a command, "
        f"bare SQLite {floor.cpu_us:.0f}, ratio {floor.cpu_us / best.cpu_us:.2f}"
    )


def test_one_message_on_an_idle_processor(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """From before the put of a command to the response being on its queue, the processor waiting in a thread."""
    home = tmp_path / "qm"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    stop = threading.Event()

    def processing() -> None:
        with QueueManagerStore.open(home, "QM1") as store:
            Processor(store, lambda: NOW).run(stop)

    thread = threading.Thread(target=processing)
    thread.start()
    took_ms: list[float] = []
    try:
        with QueueManagerStore.open(home, "QM1") as store:

            def asked() -> None:
                begun = time.perf_counter()
                with store.unit_of_work() as unit:
                    psc = "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>"
                    put(unit, CONTROL, psc, msg_type=1, reply_to_q="REPLY")
                while store.find_queue("REPLY") is None or not store.depth("REPLY"):
                    store.wait_for_change(1.0)
                took_ms.append((time.perf_counter() - begun) * 1000)
                with store.unit_of_work() as unit:
                    assert unit.get("REPLY") is not None
                time.sleep(0.02)

            benchmark.pedantic(asked, rounds=100)  # type: ignore[no-untyped-call]
    finally:
        stop.set()
        thread.join()
    if len(took_ms) > 2:
        deciles = statistics.quantiles(took_ms, n=100)
        print(f"\none command on an idle processor, FULL: p50 {deciles[49]:.1f} ms, p99 {deciles[98]:.1f} ms")


@pytest.mark.nightly
def test_start_with_100_000_subscriptions(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.save_effects(
                SubscriptionAdded(Subscription(n.to_bytes(24, "big"), f"t/{n % 5000}/{n}", f"S{n % 100}", "QM1", NOW))
                for n in range(100_000)
            )

        def read_rows() -> int:
            rows = store.database.connection.execute("SELECT sub_id, state FROM subscriptions ORDER BY sub_id")
            return sum(1 for _, state in rows if json.loads(state))

        def started() -> TopicSpace:
            objects, subscriptions, retained = store.load_state()
            space = TopicSpace(objects.topics, Selection())
            space.restore(subscriptions, retained)
            return space

        begun = time.perf_counter()
        assert read_rows() == 100_000
        floor = time.perf_counter() - begun
        begun = time.perf_counter()
        space = benchmark.pedantic(started, rounds=1)  # type: ignore[no-untyped-call]
        took = time.perf_counter() - begun
    assert len(space.match("t/7/7", NOW)) == 1
    print(f"\n100,000 subscriptions: ready in {took:.2f} s; reading their rows {floor:.2f} s; ratio {took / floor:.1f}")


def _drained_in(homes: list[Path], commands: int, start: Callable[[Callable[[], None]], Worker]) -> float:
    """Commands a second of one worker for each queue manager, all at once."""
    workers = [start(partial(_drain, home)) for home in homes]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return commands * len(homes) / (time.perf_counter() - begun)


def _drain(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL) as store:
        Processor(store, lambda: NOW).drain()


def test_what_a_worker_for_each_stream_could_gain(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """At most: two workers that share nothing, each with a queue manager of its own; two on one share its lock."""
    commands = 3000
    fork = multiprocessing.get_context("fork")
    kinds: dict[str, Callable[[Callable[[], None]], Worker]] = {
        "threads": lambda work: threading.Thread(target=work),
        "processes": lambda work: fork.Process(target=work),
    }
    rates: dict[str, list[float]] = {}

    def measured() -> None:
        for name, start in kinds.items():
            for count in (1, 2):
                into = rates.setdefault(f"{count} {name}", [])
                homes = [tmp_path / f"{name}{count}{n}{len(into)}" for n in range(count)]
                for home in homes:
                    _loaded(home, commands, 1, Durability.NORMAL).close()
                into.append(_drained_in(homes, commands, start))

    benchmark.pedantic(measured, rounds=4)  # type: ignore[no-untyped-call]
    shown = ", ".join(f"{name} {max(found):,.0f}/s" for name, found in rates.items())
    print(f"\nworkers that share nothing: {shown}")
