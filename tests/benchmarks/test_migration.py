"""How long 100,000 subscriptions take to plan, to apply and to write as files, and how much memory.

The floors are the same run's own: making the same number of subscription values and putting them into a topic space,
and writing as many rows into SQLite in one transaction.
"""

from __future__ import annotations

import sqlite3
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands.broker.objects import QueueManager
from commands.broker.state import subscription_state
from commands.qmgr.store import QueueManagerStore
from migrate import embedded, strmqbrk
from migrate.plan import MigrationPlan, PlanOptions
from migrate.plan_files import plan_files
from migrate.target import Target
from streams.topic_objects import TopicObjects
from streams.topic_space import TopicSpace
from tests.migrate.legacy_messages import NOW
from tests.migrate.test_embedded import many_subscriptions


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    """How many subscriptions: 100,000, and few in a test run, which only shows that the benchmarks run."""
    return 100_000 if request.config.getoption("benchmark_enable") else 300


@pytest.fixture(scope="module")
def plan(count: int) -> MigrationPlan:
    return strmqbrk.plan(many_subscriptions(count), Target.fresh("QM1"), PlanOptions(), NOW)


def seconds(begun: float) -> float:
    return time.perf_counter() - begun


def test_planning(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], plan: MigrationPlan, count: int
) -> None:
    state, target = many_subscriptions(count), Target.fresh("QM1")
    took: list[float] = []

    def planned() -> None:
        begun = time.perf_counter()
        strmqbrk.plan(state, target, PlanOptions(), NOW)
        took.append(seconds(begun))

    benchmark.pedantic(planned, rounds=2)  # type: ignore[no-untyped-call]
    begun = time.perf_counter()
    space = TopicSpace(TopicObjects())
    space.restore([replace(step.subscription) for step in plan.subscriptions], ())
    floor = seconds(begun)
    tracemalloc.start()
    strmqbrk.plan(state, target, PlanOptions(), NOW)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    benchmark.extra_info.update(seconds=min(took), floor_seconds=floor, peak_mib=round(peak))
    with capsys.disabled():
        print(
            f"\nplan {count:,} subscriptions: {min(took):.1f} s, {peak:,.0f} MiB at its peak; "
            f"a topic space of as many {floor:.1f} s; ratio {min(took) / floor:.1f}"
        )


def test_applying(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path, plan: MigrationPlan, count: int
) -> None:
    took: list[float] = []

    def fresh() -> tuple[tuple[QueueManagerStore, MigrationPlan], dict[str, object]]:
        store = QueueManagerStore.create(tmp_path / str(len(took)), QueueManager("QM1", psmode="COMPAT"))
        return (store, replace(plan, base_version=embedded.load(store).version)), {}

    def carried_out(store: QueueManagerStore, own: MigrationPlan) -> None:
        begun = time.perf_counter()
        embedded.apply(store, own)
        took.append(seconds(begun))
        store.close()

    benchmark.pedantic(carried_out, setup=fresh, rounds=2)  # type: ignore[no-untyped-call]
    rows = [(step.subscription.sub_id, subscription_state(step.subscription)) for step in plan.subscriptions]
    connection = sqlite3.connect(tmp_path / "floor", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE s (sub_id BLOB PRIMARY KEY, state TEXT)")
    begun = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    for row in rows:
        connection.execute("INSERT INTO s VALUES (?, ?)", row)
    connection.execute("COMMIT")
    floor = seconds(begun)
    connection.close()
    benchmark.extra_info.update(seconds=min(took), floor_seconds=floor)
    with capsys.disabled():
        print(
            f"\napply {count:,} subscriptions, backup and journal included: {min(took):.1f} s; "
            f"bare SQLite {floor:.1f} s; ratio {min(took) / floor:.1f}"
        )


def test_undoing(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path, plan: MigrationPlan, count: int
) -> None:
    took: list[float] = []

    def migrated() -> tuple[tuple[QueueManagerStore], dict[str, object]]:
        store = QueueManagerStore.create(tmp_path / str(len(took)), QueueManager("QM1", psmode="COMPAT"))
        embedded.apply(store, replace(plan, base_version=embedded.load(store).version))
        return (store,), {}

    def undone(store: QueueManagerStore) -> None:
        begun = time.perf_counter()
        embedded.undo(store, plan.tool)
        took.append(seconds(begun))
        store.close()

    benchmark.pedantic(undone, setup=migrated, rounds=1)  # type: ignore[no-untyped-call]
    with capsys.disabled():
        print(f"\nundo {count:,} subscriptions: {min(took):.1f} s")


def test_writing_files(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], plan: MigrationPlan, count: int
) -> None:
    target = Target.fresh("QM1")
    took: list[float] = []

    def written() -> None:
        begun = time.perf_counter()
        files = plan_files(plan, target).contents
        took.append(seconds(begun))
        assert len(files) > 5

    benchmark.pedantic(written, rounds=1)  # type: ignore[no-untyped-call]
    with capsys.disabled():
        print(f"\nfiles of {count:,} subscriptions, each command tried: {min(took):.1f} s")
