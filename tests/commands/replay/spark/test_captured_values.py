"""Captured messages out of binary values, as Kafka has them: every column as it was, and problems said."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from commands.replay.spark import READ, SchemaError, captured_values
from commands.replay.spark.streaming import STREAMED, replay_stream
from commands.replay.workload import Workload, WorkloadOptions
from rfh2.captured import CapturedMessage

VALUES = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])


def line(message: CapturedMessage) -> bytes:
    return message.model_dump_json().encode()


def test_every_column_is_as_it_was_captured(spark: SparkSession) -> None:
    messages = [
        *Workload(WorkloadOptions(messages=50)).messages(),
        CapturedMessage(seq=2**63 - 1, queue="Q", body_hex=""),
        CapturedMessage(
            seq=7,
            time=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
            qmgr="QM1",
            queue="SPORT.STREAM",
            user="müller",
            md_hex="00ff",
            body_hex="c0ffee",
        ),
    ]
    frame = spark.createDataFrame([(b"QM1", line(each)) for each in messages], VALUES)
    found = captured_values(frame)
    assert found.schema.names == READ.names
    assert [field.dataType for field in found.schema] == [field.dataType for field in READ]
    rows = found.collect()
    assert [(r.seq, r.qmgr, r.queue, r.user, r.problem) for r in rows] == [
        (m.seq, m.qmgr, m.queue, m.user, None) for m in messages
    ]
    assert [None if r.md is None else bytes(r.md) for r in rows] == [m.md for m in messages]
    assert [bytes(r.body) for r in rows] == [m.body for m in messages]
    moments = found.select(F.unix_micros("time").alias("at")).collect()
    assert [r.at for r in moments] == [
        None if m.time is None else round(m.time.timestamp() * 1_000_000) for m in messages
    ]


NO_MESSAGES = [
    ("nothing", None),
    ("empty", b""),
    ("no JSON", b"hello"),
    ("a list", b"[1]"),
    ("no queue", b'{"seq": 1, "body_hex": ""}'),
    ("no seq", b'{"queue": "Q", "body_hex": ""}'),
    ("a negative seq", b'{"seq": -1, "queue": "Q", "body_hex": ""}'),
    ("no hexadecimal body", b'{"seq": 1, "queue": "Q", "body_hex": "xy"}'),
    ("no hexadecimal descriptor", b'{"seq": 1, "queue": "Q", "md_hex": "xy", "body_hex": ""}'),
    ("no time", b'{"seq": 1, "time": "yesterday", "queue": "Q", "body_hex": ""}'),
    ("no UTF-8", b"\xff\xfe"),
]


def test_what_is_no_captured_message_is_a_problem(spark: SparkSession) -> None:
    rows = captured_values(spark.createDataFrame([(b"k", value) for _, value in NO_MESSAGES], VALUES)).collect()
    assert [(r.seq, r.body, r.problem) for r in rows] == [(None, None, "a record: no captured message")] * len(rows)


def test_a_problem_says_which_record_of_kafka_it_is(spark: SparkSession) -> None:
    names = [
        StructField("topic", StringType()),
        StructField("partition", LongType()),
        StructField("offset", LongType()),
    ]
    frame = spark.createDataFrame([(b"k", b"x", "qm1.capture", 0, 17)], StructType([*VALUES.fields, *names]))
    (row,) = captured_values(frame).collect()
    assert (row.source, row.problem) == ("qm1.capture/0/17", "record qm1.capture/0/17: no captured message")


def test_a_column_must_be_there_and_be_binary_or_text(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,)], "value long")
    with pytest.raises(SchemaError, match="column value is bigint; it must be binary or string"):
        captured_values(frame)
    with pytest.raises(SchemaError, match="no column other"):
        captured_values(frame, "other")


def test_a_stream_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.txt").write_bytes(line(CapturedMessage(seq=1, queue="Q", body_hex="00")) + b"\n")
    frame = spark.readStream.text(str(tmp_path / "in"))
    query = captured_values(frame).writeStream.format("memory").queryName("captured_values").start()
    query.processAllAvailable()
    query.stop()
    assert [(r.seq, bytes(r.body)) for r in spark.table("captured_values").collect()] == [(1, b"\0")]


# docs/continuous-replay.md
RECORDS = (
    "offset as seq",
    "timestamp as time",
    "'QM1' as qmgr",
    "'SPORT.STREAM' as queue",
    "cast(null as string) as user",
    "cast(null as binary) as md",
    "value as body",
)


def test_records_of_other_programs_are_captured_messages_once_their_columns_are_named(spark: SparkSession) -> None:
    page = (Path(__file__).parents[4] / "docs" / "continuous-replay.md").read_text()
    assert ", ".join(f'"{each}"' for each in RECORDS) in " ".join(page.split()), "the page says otherwise"
    rate = spark.readStream.format("rate").load()
    records = rate.selectExpr("value as offset", "timestamp", "encode(cast(value as string), 'UTF-8') as value")
    puts = replay_stream(records.selectExpr(*RECORDS))
    assert puts.isStreaming
    assert puts.schema == STREAMED
