"""Replay on Spark: what it costs above the decoder, how it grows, what a billion messages would take.

Shown with ``--benchmark-enable -s``. ``QPUBSUB_SPARK_MESSAGES`` says how many messages; with the 10,000 that are the
default, most of the time is Spark's own start. Captures are made
once and kept in ``QPUBSUB_SPARK_CAPTURES``, a directory, where it is given. Everything is measured on the clock on the
wall and as processor time of all processes, since the machine may have other work.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from pytest_benchmark.fixture import BenchmarkFixture

from commands.replay.decoded_columns import decoded_batch
from commands.replay.spark import decoded, engine as replay_engine, session
from commands.replay.spark.engine import Order, run
from commands.replay.spark.schemas import CAPTURED, DECODED
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captures import write_captures

pytestmark = pytest.mark.nightly

MESSAGES = int(os.environ.get("QPUBSUB_SPARK_MESSAGES", "10000"))
FILE_MESSAGES = 500_000
CORES = 2
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session as users have it; where the tests of this process have one already, theirs."""
    made = session(f"local[{CORES}]")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("QPUBSUB_SPARK_CAPTURES")
    return Path(given) if given else tmp_path_factory.mktemp("captures")


def _capture(directory: Path, count: int) -> tuple[Path, str]:
    """A workload in Parquet files, and its setup."""
    knobs = WorkloadOptions(messages=count)
    place = directory / f"{count}"
    if not place.exists():
        partial = directory / f".{count}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for number, start in enumerate(range(0, count, FILE_MESSAGES)):
            with (partial / f"{number:05}.parquet").open("wb") as file:
                rows = Workload(knobs).rows(start, min(start + FILE_MESSAGES, count))
                write_captures(rows, file, "parquet")  # type: ignore[arg-type]
        partial.rename(place)
    return place, setup_script(knobs)


@dataclass(frozen=True)
class Process:
    """One process of the run. cpu_s: its own processor time."""

    is_java: bool
    parent: int
    cpu_s: float
    rss: int


def _processes() -> dict[tuple[int, str], Process]:
    """This process and all below it, by number and start."""
    every: dict[tuple[int, str], Process] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                before, _, fields = (place / "stat").read_text().rpartition(")")
            except OSError:
                continue
            f = fields.split()
            cpu_s = (int(f[11]) + int(f[12])) / TICKS
            is_java = before.endswith("(java")
            every[int(place.name), f[19]] = Process(is_java, int(f[1]), cpu_s, int(f[21]) * PAGE_BYTES)
    mine = {os.getpid()}
    while more := {pid for (pid, _), process in every.items() if process.parent in mine} - mine:
        mine |= more
    return {key: process for key, process in every.items() if key[0] in mine}


class Meter:
    """Looks at this process and all below it, from time to time: workers come and go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[int, str], Process] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.java_peak = self.worker_peak = self.all_peak = 0

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def cpu_s(self) -> tuple[float, float]:
        """Processor time so far, of Java and of Python."""
        self._look()
        java, python = ([p.cpu_s for p in self._seen.values() if p.is_java is kind] for kind in (True, False))
        return sum(java), sum(python)

    def _watch(self) -> None:
        while not self._stop.wait(0.3):
            self._look()

    def _look(self) -> None:
        with self._lock:
            found = _processes()
            self._seen.update(found)
            below = [process for (pid, _), process in found.items() if pid != os.getpid()]
            self.java_peak = max([self.java_peak, *(p.rss for p in below if p.is_java)])
            self.worker_peak = max([self.worker_peak, *(p.rss for p in below if not p.is_java)])
            self.all_peak = max(self.all_peak, sum(p.rss for p in below))


@pytest.fixture(scope="module")
def meter() -> Iterator[Meter]:
    with Meter() as found:
        yield found


@dataclass(frozen=True)
class Took:
    """What some work took. java_s, python_s: of processor time."""

    count: int
    wall_s: float
    java_s: float
    python_s: float

    @classmethod
    def by(cls, meter: Meter, count: int, work: Callable[[], object]) -> Took:
        before, begun = meter.cpu_s(), time.perf_counter()
        work()
        wall_s, after = time.perf_counter() - begun, meter.cpu_s()
        return cls(count, wall_s, after[0] - before[0], after[1] - before[1])

    @property
    def rate(self) -> float:
        return self.count / self.wall_s

    @property
    def cpu_us(self) -> float:
        return (self.java_s + self.python_s) / self.count * 1e6

    def told(self, name: str) -> str:
        parts = f"Java {self.java_s / self.count * 1e6:.1f}, Python {self.python_s / self.count * 1e6:.1f}"
        return f"{name:<34}{self.rate:>9,.0f} /s  {self.cpu_us:6.1f} us of processor time ({parts})"


def _best(runs: Iterable[Took]) -> Took:
    return min(runs, key=lambda took: took.wall_s)


def _hand_written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a program would write who has our decoder and nothing else."""
    for batch in batches:
        yield decoded_batch(batch)


def test_decoding(benchmark: BenchmarkFixture, spark: SparkSession, captures: Path, meter: Meter) -> None:
    """``decoded`` beside a mapInArrow with the same decoder, and beside one Python process without Spark."""
    source, _ = _capture(captures, MESSAGES)
    files = sorted(source.iterdir())

    def ours() -> None:
        decoded(spark.read.parquet(str(source))).write.format("noop").mode("overwrite").save()

    def hand_written() -> None:
        columns = spark.read.schema(CAPTURED).parquet(str(source))
        columns.mapInArrow(_hand_written, DECODED).write.format("noop").mode("overwrite").save()

    def alone() -> None:
        for path in files:
            for batch in parquet.ParquetFile(path).iter_batches(2000, columns=CAPTURED.names):
                decoded_batch(batch)

    works = {"decoded": ours, "mapInArrow by hand": hand_written, "one Python process": alone}
    runs: dict[str, list[Took]] = {name: [] for name in works}

    def measured() -> None:
        for name, work in works.items():
            runs[name].append(Took.by(meter, MESSAGES, work))

    if benchmark.enabled:
        measured()
        runs = {name: [] for name in works}
    benchmark.pedantic(measured, rounds=3)  # type: ignore[no-untyped-call]
    best = {name: _best(found) for name, found in runs.items()}
    print(f"\n{MESSAGES:,} messages, local[{CORES}]")
    for name, took in best.items():
        print(took.told(name))
    ours_took, by_hand, plain = best.values()
    print(f"ratio to it by hand {ours_took.rate / by_hand.rate:.2f}, to one process {ours_took.rate / plain.rate:.2f}")
    by_cpu = by_hand.cpu_us / ours_took.cpu_us, CORES * plain.cpu_us / ours_took.cpu_us
    print("by processor time {:.2f}, {:.2f} where all cores are ours".format(*by_cpu))
    assert ours_took.count == sum(parquet.ParquetFile(path).metadata.num_rows for path in files)


PHASES = {
    "staged": "looking at the files",
    "surveyed": "survey",
    "first_pass": "control plane",
    "keep_found": "state of the ranges",
    "write_puts": "second pass",
}


def _replayed(
    meter: Meter, spark: SparkSession, source: Path, setup: str, target: Path, count: int
) -> tuple[Took, dict[str, Took]]:
    phases: dict[str, list[Took]] = {name: [] for name in PHASES}
    real = {name: getattr(replay_engine, name) for name in PHASES}

    def timed(name: str) -> Callable[..., object]:
        def work(*given: object, **more: object) -> object:
            results: list[object] = []
            phases[name].append(Took.by(meter, count, lambda: results.append(real[name](*given, **more))))
            return results[0]

        return work

    with pytest.MonkeyPatch.context() as patch:
        for name in PHASES:
            patch.setattr(replay_engine, name, timed(name))
        order = Order(source, "auto", target, setup)
        took = Took.by(meter, count, lambda: run(spark, order, lambda _: None, lambda _: None))
    shutil.rmtree(target)
    return took, {name: _sum(found) for name, found in phases.items()}


def _sum(found: list[Took]) -> Took:
    each = [(took.wall_s, took.java_s, took.python_s) for took in found]
    return Took(found[0].count, *map(sum, zip(*each, strict=True)))


def test_replay(benchmark: BenchmarkFixture, spark: SparkSession, captures: Path, meter: Meter, tmp_path: Path) -> None:
    """The whole replay beside decoding, of a third of the messages and of all; its memory, and where time goes."""
    counts = (MESSAGES // 3, MESSAGES)
    given = {count: _capture(captures, count) for count in counts}
    runs: dict[int, list[tuple[Took, dict[str, Took]]]] = {count: [] for count in counts}
    decodings: list[Took] = []
    source = given[MESSAGES][0]

    def decode() -> None:
        decoded(spark.read.parquet(str(source))).write.format("noop").mode("overwrite").save()

    def measured() -> None:
        for count, (place, setup) in given.items():
            runs[count].append(_replayed(meter, spark, place, setup, tmp_path / "puts.parquet", count))
        decodings.append(Took.by(meter, MESSAGES, decode))

    if benchmark.enabled:
        decode()
    benchmark.pedantic(measured, rounds=1 if MESSAGES > 1_000_000 else 3)  # type: ignore[no-untyped-call]
    decoding = _best(decodings)
    print(f"\n{decoding.told('decoded')}")
    for count, found in runs.items():
        took, phases = min(found, key=lambda pair: pair[0].wall_s)
        print(took.told(f"replay of {count:,}"))
        for name, phase in phases.items():
            print(phase.told(f"  {PHASES[name]}") + f", {phase.wall_s:.1f} s")
    whole = min((took for took, _ in runs[MESSAGES]), key=lambda took: took.wall_s)
    part = min((took for took, _ in runs[counts[0]]), key=lambda took: took.wall_s)
    print(
        f"ratio to decoding {whole.rate / decoding.rate:.2f}, in processor time {decoding.cpu_us / whole.cpu_us:.2f}; "
        f"three times the messages took {whole.wall_s / part.wall_s:.1f} times as long"
    )
    peaks = (meter.java_peak, meter.worker_peak, meter.all_peak)
    print("memory: Java {:,} MB, one worker {:,} MB, all {:,} MB".format(*(peak >> 20 for peak in peaks)))
