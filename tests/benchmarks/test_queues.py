"""How fast the embedded queue manager moves messages, against the least that SQLite itself needs for it."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2.mqmd import Mqmd

MESSAGES = 20_000
BODY = bytes(600)
MD = Mqmd().encode()


def store_in(home: Path, durability: Durability = Durability.FULL) -> QueueManagerStore:
    return QueueManagerStore.create(home, QueueManager("QM1"), durability=durability)


def bare(path: Path) -> float:
    """Messages a second through the same rows, statements and commits, with nothing of ours around them."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE m (seq INTEGER PRIMARY KEY AUTOINCREMENT, queue, rank, md, body)")
    connection.execute("CREATE INDEX i ON m (queue, rank)")
    insert = "INSERT INTO m (queue, rank, md, body) VALUES (?, ?, ?, ?)"
    take = "DELETE FROM m WHERE seq = (SELECT seq FROM m WHERE queue = ? ORDER BY rank, seq LIMIT 1) RETURNING md, body"
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(MESSAGES):
        connection.execute(insert, ("IN", 9, MD, BODY))
    connection.execute("COMMIT")
    begun = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(MESSAGES):
        ((md, body),) = connection.execute(take, ("IN",)).fetchall()
        connection.execute(insert, ("OUT", 9, md, body))
    connection.execute("COMMIT")
    took = time.perf_counter() - begun
    connection.close()
    return MESSAGES / took


def move(store: QueueManagerStore, count: int, batch: int) -> None:
    for _ in range(0, count, batch):
        with store.unit_of_work() as unit:
            for _ in range(batch):
                message = unit.get("IN")
                assert message is not None
                unit.put("OUT", message.md, message.body)


@pytest.mark.parametrize("batch", [MESSAGES, 200], ids=["one-commit", "a-commit-each-200"])
def test_get_and_put(
    benchmark: BenchmarkFixture, tmp_path: Path, capsys: pytest.CaptureFixture[str], batch: int
) -> None:
    floor = bare(tmp_path / "floor")
    rates: list[float] = []

    def filled() -> tuple[tuple[QueueManagerStore], dict[str, object]]:
        store = store_in(tmp_path / str(len(rates)))
        with store.unit_of_work() as unit:
            for _ in range(MESSAGES):
                unit.put("IN", MD, BODY)
        return (store,), {}

    def moved(store: QueueManagerStore) -> None:
        begun = time.perf_counter()
        move(store, MESSAGES, batch)
        rates.append(MESSAGES / (time.perf_counter() - begun))
        store.close()

    benchmark.pedantic(moved, setup=filled, rounds=3)  # type: ignore[no-untyped-call]
    best = max(rates)
    benchmark.extra_info.update(get_and_put_per_s=round(best), bare_sqlite_per_s=round(floor))
    with capsys.disabled():
        print(f"\nget and put, {batch} a commit: {best:,.0f}/s; bare SQLite {floor:,.0f}/s; ratio {best / floor:.2f}")


@pytest.mark.parametrize("durability", list(Durability))
def test_one_message_a_commit(
    benchmark: BenchmarkFixture, tmp_path: Path, capsys: pytest.CaptureFixture[str], durability: Durability
) -> None:
    with store_in(tmp_path, durability) as store:

        def put_one() -> None:
            with store.unit_of_work() as unit:
                unit.put("Q", MD, BODY)

        benchmark(put_one)
        if benchmark.stats is not None:
            with capsys.disabled():
                print(f"\none put a commit, {durability}: {1 / benchmark.stats['mean']:,.0f}/s")


def test_getting_does_not_slow_down_with_depth(
    benchmark: BenchmarkFixture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {}
    for depth in (1_000, 100_000):
        with store_in(tmp_path / str(depth)) as store:
            with store.unit_of_work() as unit:
                for _ in range(depth):
                    unit.put("IN", MD, b"")
            begun = time.perf_counter()
            move(store, 1_000, 1_000)
            rates[depth] = 1_000 / (time.perf_counter() - begun)
            if depth == 1_000:
                continue
            benchmark.pedantic(store.depth, args=("IN",), rounds=5)  # type: ignore[no-untyped-call]
    with capsys.disabled():
        print("\nget and put by depth: " + ", ".join(f"{d:,}: {rate:,.0f}/s" for d, rate in rates.items()))
