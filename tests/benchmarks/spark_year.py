"""A year of captures as people have them, beside the same messages in one sorted Parquet file: time, memory, puts.

    python -m tests.benchmarks.spark_year --messages 500000 --gzip-files 365 --small-files 30000
    python -m tests.benchmarks.spark_year --messages 120000 --gzip-files 0 --subscribers 100000

The first nine tenths of the messages are in compressed JSON Lines, the last tenth in small plain files. A hundredth of
the times is some milliseconds too early, and most messages have an Expiry. Both forms are replayed with
``--monotonic-clock``, and the digest of each set of puts is compared with that of the local replay.

``--gzip-files 0`` leaves out the year. ``--subscribers`` has so many register first, each to a topic of its own or
nearly so, and none expires: what it costs that all of them are there at the beginning of later ranges.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from commands.replay import LocalReplay
from commands.replay.arrivals import in_order
from commands.replay.put_columns import PutLines
from commands.replay.spark import session
from commands.replay.spark.engine import Order, run
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from tests.benchmarks.test_spark import Meter, Took

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_BACK: Final = 0.01


def year(options: WorkloadOptions) -> Iterator[CapturedMessage]:
    """The messages, of which some come a little before the one before."""
    chance = Random(1)
    for message in Workload(options).messages():
        if message.time is not None and chance.random() < _BACK:
            back = timedelta(milliseconds=chance.randint(1, 50))
            yield message.model_copy(update={"time": message.time - back})
        else:
            yield message


def write_year(options: WorkloadOptions, gzip_files: int, small_files: int, directory: Path) -> None:
    """As the page at the top says."""
    directory.mkdir()
    lines = (f"{message.model_dump_json()}\n".encode() for message in year(options))
    many = options.messages * 9 // 10
    each, small = -(-many // gzip_files), max(1, (options.messages - many) // small_files)
    written = 0
    while written < options.messages:
        compressed = written < many
        some = []
        for line in lines:
            some.append(line)
            if len(some) == (min(each, many - written) if compressed else small):
                break
        content = b"".join(some)
        name = f"{written:010}.jsonl"
        if compressed:
            (directory / f"{name}.gz").write_bytes(gzip.compress(content, 6, mtime=0))
        else:
            (directory / name).write_bytes(content)
        written += len(some)


class Digest(io.RawIOBase):
    """What is written to it is counted in a digest and forgotten."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Buffer) -> int:
        """All of it."""
        self.sha256.update(data)
        return memoryview(data).nbytes


def local_puts(options: WorkloadOptions) -> str:
    """The digest of the puts of the local replay."""
    replay, digest = LocalReplay(setup_script(options)), Digest()
    with io.BufferedWriter(digest, 1 << 20) as file:
        lines = PutLines(file)
        for message in in_order(year(options), monotonic_clock=True):
            lines.add(message.seq, message.qmgr or "QM1", replay.put_all(message).puts)
        file.flush()
        return digest.sha256.hexdigest()


def digest_of(directory: Path) -> str:
    """That of the files of *directory*, one after another, each of which is gone then."""
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        with path.open("rb") as file:
            while data := file.read(1 << 20):
                digest.update(data)
        path.unlink()
    return digest.hexdigest()


def replayed(spark: SparkSession, source: Path, options: WorkloadOptions) -> tuple[float, str]:
    """Replay one of the forms, and print what it took: the processor time of a message, in us, and the puts' digest."""
    with tempfile.TemporaryDirectory(dir=source.parent) as name:
        target = Path(name, "puts.jsonl")
        order = Order(source, "auto", target, setup_script(options), monotonic_clock=True)
        state = list[int]()

        def advance(_done: int) -> None:
            found = Path(f"{target}.partial", "found").rglob("*.parquet")
            state.append(sum(path.stat().st_size for path in found))

        with Meter() as meter:
            took = Took.by(meter, options.messages, lambda: run(spark, order, advance, print))
            peaks = {"java": meter.java_peak, "worker": meter.worker_peak, "state of the ranges": state[-1]}
        print(
            took.told(source.name), json.dumps({kind: f"{peak >> 20} MB" for kind, peak in peaks.items()}), flush=True
        )
        return took.cpu_us, digest_of(target)


def write_both(options: WorkloadOptions, gzip_files: int, small_files: int, work: Path) -> None:
    """The year, and the same messages in one sorted Parquet file."""
    work.mkdir()
    if gzip_files:
        write_year(options, gzip_files, small_files, work / "year")
    with (work / "sorted.parquet").open("wb") as file:
        write_captures(year(options), file, "parquet")


def main() -> None:
    """Measure."""
    about = str(__doc__).split("\n", maxsplit=1)[0]
    arguments = argparse.ArgumentParser(prog="python -m tests.benchmarks.spark_year", description=about)
    arguments.add_argument("--messages", type=int, default=500_000)
    arguments.add_argument("--gzip-files", type=int, default=365)
    arguments.add_argument("--small-files", type=int, default=3000)
    arguments.add_argument("--cores", type=int, default=2)
    arguments.add_argument("--subscribers", type=int)
    given = arguments.parse_args()
    options = WorkloadOptions(messages=given.messages, expiring=0.7)
    if many := given.subscribers:
        options = WorkloadOptions(
            messages=given.messages, subscribers=many, topics=many, zipf=0, wildcards=0, expiring=0
        )
    sources = ("sorted.parquet", "year") if given.gzip_files else ("sorted.parquet",)
    with tempfile.TemporaryDirectory() as name:
        warm, work = Path(name, "warm"), Path(name, "work")
        write_both(WorkloadOptions(messages=10_000, expiring=0.7), min(4, given.gzip_files), 20, warm)
        with ProcessPoolExecutor(1) as beside:
            local = beside.submit(local_puts, options)
            write_both(options, given.gzip_files, given.small_files, work)
            wanted = local.result()
        print(f"puts of the local replay: sha256 {wanted}", flush=True)
        spark = session(f"local[{given.cores}]")
        try:
            for source in sources:
                replayed(spark, warm / source, WorkloadOptions(messages=10_000, expiring=0.7))
            results = [replayed(spark, work / source, options) for source in sources]
        finally:
            spark.stop()
    same = all(digest == wanted for _, digest in results)
    ratio = results[-1][0] / results[0][0]
    print(f"{sources[-1]} to {sources[0]}: {ratio:.2f} in processor time; puts are those of local: {same}")
    sys.exit(not same)


if __name__ == "__main__":
    main()
