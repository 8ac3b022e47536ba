"""The functions of the package through Spark Connect: a program, since a process has one kind of session for good.

Prints a line for each function, with whether its rows are those of the local replay.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from commands.replay.differences.deliveries import LocalDifferences
from commands.replay.spark import CAPTURED, decoded, differing, replayed, session, translated
from commands.replay.spark.analysing import analysed
from commands.replay.spark.engine import Order, run
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from tests.commands.replay.spark.test_twopass import as_rows, difference, puts_of
from tests.commands.replay.spark.worlds import local_puts

KNOBS = WorkloadOptions(
    messages=100, subscribers=20, topics=20, streams=1, control=0.2, several=0.1, retained=0.5, qmgrs=2
)


def main(url: str, directory: Path) -> None:
    """Try them all. url: of a server, or ``local[N]`` for one in this process."""
    if url.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.remote(url).config("spark.sql.shuffle.partitions", "2")
        builder.getOrCreate()
    spark = session(url)
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    messages, setup = list(Workload(KNOBS).messages()), setup_script(KNOBS)
    capture = spark.createDataFrame(as_rows(messages), CAPTURED)
    puts = local_puts(messages, setup)
    print("replayed", difference(puts_of(replayed(capture, setup, ranges=2)), puts))
    (directory / "capture.jsonl").write_text("".join(f"{message.model_dump_json()}\n" for message in messages))
    read = spark.read.format("qpubsub").load(str(directory / "capture.jsonl"))
    rows: list[tuple[str, DataFrame]] = [
        ("decoded", decoded(read)),
        ("translated", translated(read, setup)),
        ("analysed", analysed(read, setup).table("topics")),
    ]
    for name, frame in rows:
        print(name, frame.count() > 0)
    report = differing(read, setup).report()
    comparison = LocalDifferences(setup)
    differences = sum(len(list(comparison.compare(message))) for message in messages)
    print("differing", differences > 0 and report == comparison.report())
    done = run(
        spark, Order(directory / "capture.jsonl", "auto", directory / "puts.jsonl", setup), lambda _: None, print
    )
    print("run", sum(done.counts.puts.values()) == len(puts))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
