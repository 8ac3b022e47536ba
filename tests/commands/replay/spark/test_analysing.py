"""The analysis on Spark has the rows of the local one, whatever the order and the partitioning."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql import DataFrame, SparkSession

from commands.replay.analysis import TABLES, VIEWS, LocalAnalysis, Row
from commands.replay.analysis.report import report_of
from commands.replay.spark.analysing import Analysed, analyse, analysed, rows_of
from commands.replay.spark.replay_setup import check
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.errors import CaptureError, QPubSubError
from tests.commands.replay.spark.test_twopass import QUICK, frame
from tests.commands.replay.spark.worlds import EXPIRING, captures

KNOBS = WorkloadOptions(
    messages=900, control=0.1, errors=0.03, strays=0.02, topics=60, subscribers=40, qmgrs=2, retained=0.3
)
SETUP = setup_script(KNOBS) + "DEFINE SUB(EVERYTHING) TOPICSTR('#') DEST(AUDIT)\n"


def local(capture: Iterable[CapturedMessage], setup: str, semantics: str = "v7") -> LocalAnalysis:
    analysis = LocalAnalysis(setup, semantics)
    for message in capture:
        analysis.take(message)
    return analysis


def difference(found: Analysed, wanted: LocalAnalysis) -> str:
    """The first table with other rows, in words, or nothing."""
    kept = Analysed(found.kept.cache())
    try:
        for of in (*TABLES, *VIEWS):
            got = rows_of(kept.table(of.name))
            if got != wanted.rows(of):
                return f"{of.name}: {_first(got, wanted.rows(of))}"
        return ""
    finally:
        kept.kept.unpersist()


def _first(got: list[Row], wanted: list[Row]) -> str:
    for one, other in zip(got, wanted, strict=False):
        if one != other:
            return f"{one} is not {other}"
    return f"{len(got)} rows, not {len(wanted)}"


@pytest.mark.parametrize("semantics", ["v7", pytest.param("v6", marks=pytest.mark.nightly)])
def test_equal_to_local(spark: SparkSession, semantics: str) -> None:
    @settings(QUICK, max_examples=2)
    @given(capture=captures(most=3), ranges=st.integers(1, 4), chance=st.randoms())
    def check_one(capture: list[CapturedMessage], ranges: int, chance: Any) -> None:
        shuffled = list(capture)
        chance.shuffle(shuffled)
        given_frame: DataFrame = frame(spark, shuffled, chance.randint(1, 3))
        try:
            found = analysed(given_frame, EXPIRING, semantics, ranges=ranges)
            assert not difference(found, local(capture, EXPIRING, semantics))
        finally:
            given_frame.unpersist()

    check_one()


@pytest.mark.nightly
def test_file_to_file(spark: SparkSession, tmp_path: Path) -> None:
    capture = list(Workload(KNOBS).messages())
    (tmp_path / "in").mkdir()
    for number, start in enumerate(range(0, 900, 300)):
        with (tmp_path / "in" / f"{3 - number}.jsonl").open("wb") as file:
            write_captures(capture[start : start + 300], file, "jsonl")
    (tmp_path / "in" / "bad.jsonl").write_text("no JSON\n")
    check(tmp_path / "in", SETUP)
    report, staged = analyse(spark, tmp_path / "in", "auto", SETUP, "v7", tmp_path / "tables", 10)
    wanted = local(capture, SETUP)
    assert json.loads(report.model_dump_json()) == json.loads(report_of(wanted.look, "v7", 10).model_dump_json())
    assert staged.problems == 1
    assert len(report.section("topics").rows) == 10
    names = {of.name: of for of in (*TABLES, *VIEWS)}
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {f"{name}.parquet" for name in names}
    topics = spark.read.parquet(str(tmp_path / "tables" / "topics.parquet"))
    assert topics.count() == len(wanted.rows(names["topics"])) > 10
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_is_wrong_is_told_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        check(tmp_path / "none", "")
    with pytest.raises(QPubSubError, match="line 1"):
        check(tmp_path, "DEFINE NONSENSE(X)")
