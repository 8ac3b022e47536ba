"""The figures of ``spark_skew`` are those of Spark's event log."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.benchmarks.spark_skew import Stage, lines_of, stages_of


def _stage(number: int, name: str) -> dict[str, Any]:
    properties = {"spark.jobGroup.id": "hot, files"}
    return {
        "Event": "SparkListenerStageSubmitted",
        "Stage Info": {"Stage ID": number, "Stage Name": name},
        "Properties": properties,
    }


def _task(number: int, run_ms: int, local: int, spilled: int = 0, reason: str = "Success") -> dict[str, Any]:
    metrics = {
        "Executor Run Time": run_ms,
        "Disk Bytes Spilled": spilled,
        "Shuffle Read Metrics": {"Remote Bytes Read": 5, "Local Bytes Read": local},
        "Input Metrics": {"Bytes Read": 100},
    }
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": number,
        "Task End Reason": {"Reason": reason},
        "Task Metrics": metrics,
    }


def test_stages_and_their_lines() -> None:
    events = [
        {"Event": "SparkListenerLogStart"},
        _stage(0, "collect at /some/where/engine.py:7"),
        _task(0, 300, 10, spilled=9),
        _task(0, 100, 20),
        _task(0, 100, 30),
        _task(0, 900, 30, reason="ExceptionFailure"),
        _stage(1, "collect at /some/where/small.py:8"),
        _task(1, 1, 0),
        _task(1, 2, 0),
    ]
    large, small = stages_of(events)
    assert large == Stage("hot, files", "collect at /some/where/engine.py:7", [300, 100, 100], [115, 125, 135], 9)
    (line,) = lines_of([large, small])
    assert "engine.py:7" in line
    assert "3 tasks, longest 300 ms, median 100 ms (3.00); bytes at most 135, median 125; spilled 9" in line
