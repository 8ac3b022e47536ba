"""Captured messages out of binary values, as Kafka has them: every column as it was, and problems said."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812
)
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from commands.replay.spark import CAPTURED, READ, SchemaError, captured_values
from commands.replay.spark.captured_values import captured_of
from commands.replay.spark.piece_reader import read_piece
from commands.replay.spark.pieces import Piece
from commands.replay.spark.schemas import STREAMED, batch_of
from commands.replay.spark.streaming import replay_stream
from commands.replay.workload import Workload, WorkloadOptions
from rfh2.captured import CapturedMessage

VALUES = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])


def line(message: CapturedMessage) -> bytes:
    return message.model_dump_json().encode()


def test_every_column_is_as_it_was_captured(spark: SparkSession) -> None:
    messages = [
        *Workload(WorkloadOptions(messages=50)).messages(),
        CapturedMessage(seq=2**63 - 1, time=datetime(9999, 12, 31, tzinfo=UTC), queue="Q", body_hex=""),
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


# (text, what is wrong with it)
NO_MESSAGES = [
    (None, "invalid JSON"),
    ("", "invalid JSON"),
    ("hello", "invalid JSON"),
    ("[1]", "object"),
    ('{"queue": "Q", "body_hex": ""}', "seq: field required"),
    ('{"seq": 1, "body_hex": ""}', "queue: field required"),
    ('{"seq": -1, "queue": "Q", "body_hex": ""}', "seq: input should be greater than or equal to 0"),
    ('{"seq": 1, "queue": 5, "body_hex": ""}', "queue: input should be a valid string"),
    ('{"seq": 1, "queue": "Q", "body_hex": "abc"}', "body_hex: "),
    ('{"seq": 1, "queue": "Q", "body_hex": "xy"}', "body_hex: "),
    ('{"seq": 1, "queue": "Q", "md_hex": "xy", "body_hex": ""}', "md_hex: "),
    ('{"seq": 1, "time": "yesterday", "queue": "Q", "body_hex": ""}', "time: "),
]
# Texts that are read as messages, whoever wrote them.
LENIENT = [
    '{"seq": "4", "time": "2026-07-01T12:00:00", "queue": "Q", "body_hex": "ab cd"}',
    '{"seq": 5.0, "time": "2026-07-01T12:00:00+02:00", "queue": "", "body_hex": "AB", "other": 1}',
    '{"seq": 6, "time": 1782907200, "qmgr": "", "queue": "Q", "user": null, "body_hex": ""}',
]


def read_from(values: Iterable[str | None]) -> list[dict[str, Any]]:
    """What a task of Spark makes of *values*."""
    rows = [("t/0/1", None if value is None else value.encode()) for value in values]
    schema = pa.schema([("source", pa.string()), ("value", pa.binary())])
    return [row for batch in captured_of([batch_of(rows, schema)]) for row in batch.to_pylist()]


def test_what_is_no_captured_message_is_a_problem() -> None:
    rows = read_from(text for text, _ in NO_MESSAGES)
    for row, (_, why) in zip(rows, NO_MESSAGES, strict=True):
        assert (row["seq"], row["body"], row["source"]) == (None, None, "t/0/1")
        assert row["problem"].startswith("record t/0/1: ")
        assert why in row["problem"]
    (row,) = captured_of([pa.RecordBatch.from_pydict({"source": [""], "value": [b"\xff\xfe"]})])
    assert row.column("problem").to_pylist()[0].startswith("a record: invalid JSON")


@pytest.mark.parametrize("text", [*LENIENT, *(text for text, _ in NO_MESSAGES if text)])
def test_a_text_means_what_it_means_in_a_file(text: str, tmp_path: Path) -> None:
    """But for a missing seq or queue, which only a file's reader can fill in."""
    path = tmp_path / "c.jsonl"
    path.write_text(text + "\n")
    ((of_file,),) = (batch.to_pylist() for batch in read_piece(Piece(str(path), "jsonl")))
    (of_record,) = read_from([text])
    if "field required" in (of_record["problem"] or ""):
        assert of_file["problem"] is None
        return
    assert (of_file["problem"] is None) == (of_record["problem"] is None)
    if of_file["problem"] is not None:
        assert of_file["problem"].split(": ", 1)[1] == of_record["problem"].split(": ", 1)[1]
    assert {name: of_file[name] for name in CAPTURED.names} == {name: of_record[name] for name in CAPTURED.names}


def test_a_problem_says_which_record_of_kafka_it_is(spark: SparkSession) -> None:
    names = [
        StructField("topic", StringType()),
        StructField("partition", LongType()),
        StructField("offset", LongType()),
    ]
    frame = spark.createDataFrame([(b"k", b"x", "qm1.capture", 0, 17)], StructType([*VALUES.fields, *names]))
    (row,) = captured_values(frame).collect()
    assert (row.source, row.problem) == (
        "qm1.capture/0/17",
        "record qm1.capture/0/17: invalid JSON: expected value at line 1 column 1",
    )


def test_a_column_must_be_there_and_be_binary_or_text(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,)], "value long")
    with pytest.raises(SchemaError, match="column value is bigint; it must be binary or string"):
        captured_values(frame)
    with pytest.raises(SchemaError, match="no column other"):
        captured_values(frame, "other")


@pytest.mark.nightly
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
