"""The replay on Spark gives the puts of the local replay, byte for byte, whatever the order and the partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from commands.replay.spark import CAPTURED, SchemaError, replayed
from commands.replay.workload import Knobs, Workload, setup_script
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from tests.commands.spark.worlds import SETUP, captures, local_puts

QUICK = settings(
    max_examples=12,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def as_rows(capture: Sequence[CapturedMessage]) -> list[tuple[Any, ...]]:
    return [(m.seq, m.time, m.qmgr, m.queue, m.user, m.md, m.body) for m in capture]


def frame(spark: SparkSession, capture: Sequence[CapturedMessage], partitions: int = 2) -> DataFrame:
    return spark.createDataFrame(as_rows(capture), CAPTURED).repartition(partitions).cache()


def difference(got: Sequence[tuple[Any, ...]], wanted: Sequence[tuple[Any, ...]]) -> str:
    """The first difference in words, or nothing: a capture in full is no help to anybody."""
    for at, (one, other) in enumerate(zip(got, wanted, strict=False)):
        if one != other:
            return f"put {at}: {one} is not {other}"
    return "" if len(got) == len(wanted) else f"{len(got)} puts, not {len(wanted)}"


def puts_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in frame.collect()]


@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_equal_to_local(spark: SparkSession, semantics: str) -> None:
    @QUICK
    @given(capture=captures(), ranges=st.integers(1, 5), chance=st.randoms())
    def check(capture: list[CapturedMessage], ranges: int, chance: Any) -> None:
        shuffled = list(capture)
        chance.shuffle(shuffled)
        given_frame = frame(spark, shuffled, chance.randint(1, 3))
        try:
            got = puts_of(replayed(given_frame, SETUP, semantics, ranges=ranges))
        finally:
            given_frame.unpersist()
        assert not difference(got, local_puts(capture, SETUP, semantics))

    check()
