"""How evenly the tasks of a replay on Spark are loaded where one topic has nine tenths of all publications.

    python -m tests.benchmarks.spark_skew --messages 300000

Two captures, one with even topics and one with a hot topic, are replayed in two ways: from files to files, and
``replayed`` of a DataFrame. For each step of a replay with more than one task: the longest task beside the median one,
the bytes that a task gets through Spark, and what was spilled to disk; from Spark's own event log. For the second pass
from files, which tasks read by themselves, the bytes of the puts of each range.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from pyspark.sql import SparkSession

from commands.replay.spark import replayed, session
from commands.replay.spark.engine import Order, run
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captures import write_captures

# The exponents at which topics are even, and at which the first of a thousand has 90%.
TOPICS: Final = {"even": 0.0, "hot": 3.75}
_SMALL: Final = 0.05


@dataclass
class Stage:
    """One stage of Spark: a number for each task. read: bytes through Spark; spilled: bytes to disk."""

    group: str
    name: str
    run_ms: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    spilled: int = 0


def stages_of(events: Iterable[dict[str, Any]]) -> list[Stage]:
    """The stages of an event log, in the order in which they began; those that were skipped have no tasks."""
    found: dict[int, Stage] = {}
    for event in events:
        match event["Event"]:
            case "SparkListenerStageSubmitted":
                info = event["Stage Info"]
                group = (event.get("Properties") or {}).get("spark.jobGroup.id", "")
                found[info["Stage ID"]] = Stage(group, info["Stage Name"])
            case "SparkListenerTaskEnd" if event["Task End Reason"]["Reason"] == "Success":
                stage, metrics = found[event["Stage ID"]], event["Task Metrics"]
                shuffled = metrics["Shuffle Read Metrics"]
                stage.run_ms.append(metrics["Executor Run Time"])
                stage.read.append(
                    shuffled["Remote Bytes Read"]
                    + shuffled["Local Bytes Read"]
                    + metrics["Input Metrics"]["Bytes Read"]
                )
                stage.spilled += metrics["Disk Bytes Spilled"]
    return list(found.values())


def lines_of(stages: Sequence[Stage]) -> Iterator[str]:
    """A line for each of *stages* that has several tasks and at least a twentieth of the time of all."""
    whole_ms = sum(sum(stage.run_ms) for stage in stages)
    for stage in stages:
        if len(stage.run_ms) < 2 or sum(stage.run_ms) < _SMALL * whole_ms:
            continue
        middle = median(stage.run_ms)
        yield (
            f"{stage.group:<12} {stage.name.rpartition('/')[2]:<34}{len(stage.run_ms):>4} tasks, longest "
            f"{max(stage.run_ms):,} ms, median {middle:,.0f} ms ({max(stage.run_ms) / max(middle, 1):.2f}); "
            f"bytes at most {max(stage.read):,}, median {median(stage.read):,.0f}; spilled {stage.spilled:,}"
        )


def _even(label: str, sizes: list[int]) -> str:
    return f"{label}: {len(sizes)} ranges, puts of {max(sizes):,} bytes at most, median {median(sizes):,.0f}"


@contextmanager
def _group(spark: SparkSession, name: str) -> Iterator[None]:
    spark.sparkContext.setJobGroup(name, name)
    yield
    spark.sparkContext.setJobGroup("", "")


def measured(messages: int, subscribers: int, ranges: int, cores: int, work: Path) -> list[str]:
    """The figures, in lines."""
    log = work / "log"
    log.mkdir()
    settings = {"enabled": "true", "dir": log.as_uri(), "compress": "false", "rolling__enabled": "false"}
    spark = session(f"local[{cores}]", **{f"spark__eventLog__{name}": value for name, value in settings.items()})
    told = []
    try:
        for name, zipf in TOPICS.items():
            options = WorkloadOptions(messages=messages, subscribers=subscribers, zipf=zipf, retained=1.0)
            source, setup, target = work / f"{name}.parquet", setup_script(options), work / f"puts-{name}.parquet"
            with source.open("wb") as file:
                write_captures(Workload(options).messages(), file, "parquet")
            with _group(spark, f"{name}, files"):
                run(spark, Order(source, "auto", target, setup, ranges=ranges), lambda _: None, lambda _: None)
            told.append(_even(f"{name}, files", [path.stat().st_size for path in target.glob("*.parquet")]))
            with _group(spark, f"{name}, frame"):
                puts = replayed(spark.read.parquet(str(source)), setup, ranges=ranges)
                puts.write.format("noop").mode("overwrite").save()
    finally:
        spark.stop()
    (events,) = log.iterdir()
    with events.open(encoding="utf-8") as file:
        found = stages_of(json.loads(line) for line in file)
    by_group: defaultdict[str, list[Stage]] = defaultdict(list)
    for stage in found:
        by_group[stage.group].append(stage)
    return [*told, *(line for group in by_group.values() for line in lines_of(group))]


if __name__ == "__main__":
    about = str(__doc__).split("\n", maxsplit=1)[0]
    arguments = argparse.ArgumentParser(prog="python -m tests.benchmarks.spark_skew", description=about)
    arguments.add_argument("--messages", type=int, default=300_000)
    arguments.add_argument("--subscribers", type=int, default=10)
    arguments.add_argument("--ranges", type=int, default=16)
    arguments.add_argument("--cores", type=int, default=2)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        lines = measured(given.messages, given.subscribers, given.ranges, given.cores, Path(directory))
    sys.stdout.write("\n".join(lines) + "\n")
