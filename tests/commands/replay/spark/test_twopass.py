"""The replay on Spark gives the puts of the local replay, byte for byte, whatever the order and the partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from pyspark.errors import PythonException
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)

from commands.replay.arrivals import in_order
from commands.replay.spark import CAPTURED, PUTS, SchemaError, control, prepare, replayed
from commands.replay.spark.testing import assert_puts_equal, sample_capture
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from tests.commands.replay.spark.worlds import EXPIRING, SETUP, captures, local_puts

# Each example starts a dozen jobs, whatever is in it. ``test_divided_by_range`` tries many more without Spark.
QUICK = settings(
    max_examples=2,
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


@pytest.mark.nightly
@pytest.mark.parametrize(("semantics", "setup"), [("v7", SETUP), ("v6", SETUP), ("v7", EXPIRING)])
def test_equal_to_local(spark: SparkSession, semantics: str, setup: str) -> None:
    @QUICK
    @given(capture=captures(6, 14), ranges=st.integers(1, 5), chance=st.randoms())
    def check(capture: list[CapturedMessage], ranges: int, chance: Any) -> None:
        shuffled = list(capture)
        chance.shuffle(shuffled)
        given_frame = frame(spark, shuffled, chance.randint(1, 3))
        try:
            got = puts_of(replayed(given_frame, setup, semantics, ranges=ranges))
        finally:
            given_frame.unpersist()
        assert not difference(got, local_puts(capture, setup, semantics))

    check()


@pytest.mark.nightly
def test_many_live_subscriptions_are_not_sent_to_each_range(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten ranges, each with nearly all subscriptions, several share a task; whoever asks for seven gets seven."""
    monkeypatch.setattr(prepare, "_MESSAGES_PER_RANGE", 10)
    knobs = WorkloadOptions(messages=100, streams=1, subscribers=2)
    setup = setup_script(knobs) + "".join(f"DEFINE SUB(S{n}) TOPICSTR('#') DEST(AUDIT)\n" for n in range(30))
    capture = list(Workload(knobs).messages())
    given_frame = frame(spark, capture)
    rows = puts_of(replayed(given_frame, setup, tasks=2).withColumn("task", F.spark_partition_id()))
    assert len({task for *_, task in rows}) == 3
    assert not difference([row[:-1] for row in rows], local_puts(capture, setup))
    assert replayed(given_frame, setup, ranges=7, tasks=2).rdd.getNumPartitions() == 7


@pytest.mark.nightly
def test_a_monotonic_clock(spark: SparkSession) -> None:
    """With messages without a time; in several ranges, which the clock goes back between, too."""

    @QUICK
    @given(capture=captures(2, 6), ranges=st.integers(1, 5))
    def check(capture: list[CapturedMessage], ranges: int) -> None:
        got = puts_of(replayed(frame(spark, capture), EXPIRING, ranges=ranges, monotonic_clock=True))
        assert not difference(got, local_puts(in_order(capture, monotonic_clock=True), EXPIRING))

    check()


def test_helpers_for_tests(spark: SparkSession) -> None:
    rows = replayed(sample_capture(spark)).collect()
    puts = spark.createDataFrame(rows, PUTS)
    assert [(row.seq, row.kind) for row in rows] == [(2, "publication"), (3, "publication")]
    assert_puts_equal(puts, spark.createDataFrame(rows[::-1], PUTS))
    with pytest.raises(AssertionError, match="put 0 of message 3 at QM1 is missing"):
        assert_puts_equal(puts.where("seq < 3"), puts)
    with pytest.raises(AssertionError, match="put 0 of message 3 at QM1 is one too many"):
        assert_puts_equal(puts, puts.where("seq < 3"))
    with pytest.raises(AssertionError, match="put 0 of message 2 at QM1 has queue 'OTHER', not 'SCORES'"):
        assert_puts_equal(puts.withColumn("queue", F.lit("OTHER")), puts)


@pytest.mark.nightly
def test_an_empty_capture_has_no_puts(spark: SparkSession) -> None:
    assert replayed(spark.createDataFrame([], CAPTURED)).collect() == []


@pytest.mark.nightly
def test_a_queue_manager_without_control_messages_has_what_the_setup_defines(spark: SparkSession) -> None:
    (publish,) = Workload(WorkloadOptions(messages=1, subscribers=0, streams=1, control=0)).messages()
    setup = "DEFINE SUB(EVERYTHING) TOPICSTR('#') DEST(AUDIT)"
    got = puts_of(replayed(frame(spark, [publish]), setup))
    assert [put[5] for put in got] == ["AUDIT"]
    assert not difference(got, local_puts([publish], setup))


def test_a_workload(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several ranges with the control plane in two tasks; the clock of one queue manager goes back.

    Some seqs occur several times: of several queue managers, in their order; an exact copy is passed over.
    """
    monkeypatch.setattr(control, "FEWEST_IN_A_TASK", 10)
    knobs = WorkloadOptions(
        messages=600, control=0.1, errors=0.02, strays=0.01, qmgrs=2, topics=100, per_second=20, expiring=0.3
    )
    one = list(Workload(knobs).messages())
    last = one[-1]
    assert last.time is not None
    one[-1] = last.model_copy(update={"time": last.time - timedelta(minutes=1)})
    other = [message.model_copy(update={"qmgr": "A"}) for message in one[:200]]
    capture = sorted([*one, *other, *one[::30]], key=lambda message: message.seq)
    got = puts_of(replayed(frame(spark, capture[::-1], 3), setup_script(knobs), ranges=3))
    wanted = local_puts(capture, setup_script(knobs))
    assert {put[2] for put in wanted} == {"A", "QM1", "QM2"}
    assert not difference(got, wanted)


def test_one_seq_for_two_messages_of_a_queue_manager_is_an_error(spark: SparkSession) -> None:
    one = list(Workload(WorkloadOptions(messages=9, subscribers=2, streams=1)).messages())
    different = one[6].model_copy(update={"user": "somebody"})
    with pytest.raises(PythonException, match="seq 7 is that of two different messages at queue manager QM1"):
        replayed(frame(spark, [*one, different])).collect()


def test_a_setup_that_fails_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(QPubSubError, match="line 1"):
        replayed(frame(spark, list(Workload(WorkloadOptions(messages=1)).messages())), "DEFINE NONSENSE(X)")


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("seq long, time timestamp", "lacks the column qmgr"),
        (
            "seq string, time timestamp, qmgr string, queue string, user string, md binary, body binary",
            "column seq of the capture is string, not bigint",
        ),
    ],
)
def test_a_frame_that_is_no_capture_is_an_error(spark: SparkSession, columns: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        replayed(spark.createDataFrame([], columns))
