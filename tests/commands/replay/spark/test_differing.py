"""The comparison on Spark is the local one: every difference, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyspark.sql import SparkSession

from commands.broker.objects import DEFAULT_STREAM
from commands.explain.build import CommandSpec, command_message
from commands.replay import LocalReplay
from commands.replay.differences import DifferenceReport, PutDifference
from commands.replay.differences.deliveries import LocalDifferences
from commands.replay.spark import DIFFERENCES, Compared, differing
from commands.replay.spark.differing import compare
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from tests.commands.replay.differences.test_differences import _delivered, capture as captured, pub, reg
from tests.commands.replay.spark.test_twopass import QUICK, difference, frame
from tests.commands.replay.spark.worlds import SETUP, captures


def local(
    capture: list[CapturedMessage], setup: str, old: str = "v6"
) -> tuple[list[tuple[Any, ...]], DifferenceReport]:
    comparison = LocalDifferences(setup, old)
    found = [_row(each) for message in capture for each in comparison.compare(message)]
    return found, comparison.report()


def _row(each: PutDifference) -> tuple[Any, ...]:
    return tuple(getattr(each, name) for name in DIFFERENCES.names)


def run(compared: Compared) -> tuple[list[tuple[Any, ...]], DifferenceReport]:
    cached = Compared(compared.kept.cache())
    rows = [tuple(row) for row in cached.differences().collect()]
    report = cached.report()
    cached.kept.unpersist()
    return [(row[0], row[1] and row[1].astimezone(), *row[2:]) for row in rows], report


@pytest.mark.nightly
def test_equal_to_local(spark: SparkSession) -> None:
    @QUICK
    @given(capture=captures(6, 14), ranges=st.integers(1, 4))
    def check(capture: list[CapturedMessage], ranges: int) -> None:
        rows, report = run(differing(frame(spark, capture), SETUP, ranges=ranges))
        expected_rows, expected = local(capture, SETUP)
        assert not difference(rows, expected_rows)
        assert report == expected

    check()


def test_a_workload_with_captured_deliveries(spark: SparkSession) -> None:
    """Of local queues that are in no namelist, one is a stream of version 6, and the others have the deliveries.

    The older broker is the one whose wildcards are characters in MQRFH2 too.
    """
    knobs = WorkloadOptions(messages=120, control=0.2, several=0.05, topics=20, subscribers=20, streams=1, retained=0.5)
    commands = [
        m.model_copy(update={"queue": "X.STREAM"}) if m.queue == DEFAULT_STREAM and m.seq % 3 == 0 else m
        for m in Workload(knobs).messages()
    ]
    last = commands[-1]
    everything = command_message(CommandSpec("RegSub", ("#",), mqmd=Mqmd(reply_to_q="LAST")))
    more = [everything, *captured(reg("a/*", q="WILD"), pub("a/b"), pub("b"))]
    commands += [
        each.model_copy(update={"seq": last.seq + n, "time": last.time, "qmgr": last.qmgr})
        for n, each in enumerate(more, 1)
    ]
    queues = sorted({put.queue for put in LocalReplay().puts(commands)} | {"X.STREAM", "WILD"})
    setup = "".join(f"DEFINE QLOCAL({name})\n" for name in queues)
    capture = _delivered("v6-broker", commands, setup)
    rows, report = run(differing(frame(spark, capture), setup, old="v6-broker", ranges=2))
    expected_rows, expected = local(capture, setup, "v6-broker")
    assert not difference(rows, expected_rows)
    assert report == expected
    assert "D14" in {row[DIFFERENCES.names.index("rule")] for row in rows}
    assert len(report.deliveries) > 10
    assert all(line.captured == line.old for line in report.deliveries)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.nightly
def test_file_to_file(spark: SparkSession, tmp_path: Path, form: str) -> None:
    knobs = WorkloadOptions(messages=400, control=0.1, several=0.05, topics=40, subscribers=40)
    capture = list(Workload(knobs).messages())
    source, target = tmp_path / "capture.jsonl", tmp_path / f"differences.{form}"
    source.write_text("".join(m.model_dump_json() + "\n" for m in capture) + "nonsense\n")
    report, staged = compare(spark, source, "auto", setup_script(knobs), "v6", target)
    expected_rows, expected = local(capture, setup_script(knobs))
    assert report == expected
    assert staged.problems == 1
    read = spark.read.json(str(target)) if form == "jsonl" else spark.read.parquet(str(target))
    assert [row.seq for row in read.orderBy("seq").collect()] == [row[0] for row in expected_rows]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture.jsonl", target.name]
