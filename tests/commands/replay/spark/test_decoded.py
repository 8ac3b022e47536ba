"""decoded and translated: the same as the local verbs say, in columns."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import StructField

from commands.explain.equivalents.mqi import to_mqi
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import TraceBroker
from commands.explain.problems import explained
from commands.mqsc.equivalents import to_mqsc
from commands.replay.spark import (
    CAPTURED,
    DECODED,
    MESSAGE,
    TRANSLATED,
    SchemaError,
    decoded,
    translated,
    with_decoded,
)
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.message import body_text
from streams.selectors.properties import user_properties

ROOT = Path(__file__).parents[4]
KNOBS = WorkloadOptions(messages=600, control=0.3, errors=0.1, strays=0.02, retained=0.6, topics=40, several=0.1)


def frame(spark: SparkSession, capture: list[CapturedMessage]) -> DataFrame:
    return spark.createDataFrame([(m.seq, m.time, m.qmgr, m.queue, m.user, m.md, m.body) for m in capture], CAPTURED)


def _expected(message: CapturedMessage, thorough: bool) -> dict[str, Any]:
    found = explained(message)
    partial, command = found.partial, found.command
    given = {} if command is None else command.__dict__
    errors = [problem for problem in found.problems if problem.severity == "error"]
    return {
        "seq": message.seq,
        "queue": message.queue,
        "msg_type": partial.assumed.msg_type,
        "headers": [located.header.kind for located in partial.headers],
        "command": None if command is None else command.word,
        "topics": None if command is None else list(command.topics),
        "options": None if given.get("options") is None else [option.value for option in given["options"]],
        "sub_name": given.get("sub_name"),
        "filter": given.get("filter"),
        "properties": {name: str(value) for name, value in user_properties(partial.message).items()},
        "body_length": len(partial.rest),
        "body_text": body_text(partial.message),
        "problems": [(p.code, p.severity, p.offset) for p in (found.problems if thorough or errors else [])],
    }


def _got(row: Any) -> dict[str, Any]:
    keys = ("seq", "queue", "msg_type", "headers", "command", "topics", "options", "sub_name", "filter")
    more = ("properties", "body_length", "body_text")
    return {
        **{key: row[key] for key in (*keys, *more)},
        "problems": [(p.code, p.severity, p.offset) for p in row["problems"]],
    }


def test_decoded_says_what_decode_says(spark: SparkSession) -> None:
    capture = list(Workload(KNOBS).messages())
    rows = {row["seq"]: _got(row) for row in decoded(frame(spark, capture)).collect()}
    refused = [m.seq for m in capture if any(p.severity == "error" for p in explained(m).problems)]
    assert len(refused) > 20
    for message in capture:
        expected = _expected(message, thorough=False)
        got = rows[message.seq]
        if message.seq not in refused:
            # What a queue manager would refuse for its state, or its queue, is for ``thorough``.
            assert got["problems"] == []
        assert {**got, "problems": expected["problems"]} == expected


def test_thorough_has_every_problem(spark: SparkSession) -> None:
    capture = list(Workload(KNOBS).messages())
    frame_of_rows = decoded(frame(spark, capture), thorough=True)
    assert frame_of_rows.schema == DECODED
    rows = sorted(frame_of_rows.collect(), key=lambda row: row.seq)
    assert sum(bool(row.properties) for row in rows) > 20
    assert [_got(row) for row in rows] == [_expected(m, thorough=True) for m in capture]


def test_translated_says_what_translate_says(spark: SparkSession) -> None:
    setup = setup_script(KNOBS)
    capture = list(Workload(KNOBS).messages())
    tracer = TraceBroker("QM1", setup)
    expected = []
    for message in capture:
        traced = tracer.trace(message)
        texts = [[to(one.operation, one.context) for to in (to_mqsc, to_pcf, to_mqi)] for one in traced.operations]
        expected += [(message.seq, n, *("\n".join(lines) for lines in text)) for n, text in enumerate(texts)]
        if not texts and traced.outcome.completion is not None:
            expected.append((message.seq, None, None, None, None))
    rows = translated(frame(spark, capture), setup, ranges=3)
    assert rows.schema == TRANSLATED
    got = rows.collect()
    assert [(row.seq, row.n, row.mqsc, row.pcf, row.mqi) for row in got] == expected
    assert {row.operation for row in got} >= {
        "Subscribe",
        "AlterSubscription",
        "Unsubscribe",
        "PublishToTopic",
        "ClearRetained",
        "RequestRetained",
    }


VALUES = [
    (m.body, m.md) for m in Workload(KNOBS.model_copy(update={"messages": 300, "errors": 0.2})).messages() if m.md
]
RECORDS = "key long, value binary, md binary, tags map<string,string>, at timestamp"


def _records(spark: SparkSession) -> DataFrame:
    rows = [
        (key, body, md, {"partition": str(key % 3)}, datetime(2026, 1, 5, tzinfo=UTC))
        for key, (body, md) in enumerate(VALUES)
    ]
    tombstone = (len(VALUES), None, None, None, None)
    return spark.createDataFrame([*rows, tombstone], RECORDS)


def _lone(body: bytes, md: bytes | None) -> dict[str, Any]:
    """What the local reader makes of a message that nobody says the queue of."""
    md_hex = None if md is None else md.hex()
    found = explained(CapturedMessage(seq=0, queue="", md_hex=md_hex, body_hex=body.hex()))
    given = {} if found.command is None else found.command.__dict__
    errors = [problem.message for problem in found.problems if problem.severity == "error"]
    return {
        "command": None if found.command is None else found.command.word,
        "topics": None if found.command is None else list(found.command.topics),
        "options": None if given.get("options") is None else [option.value for option in given["options"]],
        "stream_name": None if found.command is None else found.command.stream_name,
        "user_identifier": found.partial.assumed.user_identifier.strip(),
        "properties": {name: str(value) for name, value in user_properties(found.partial.message).items()},
        "body": found.partial.rest,
        "body_text": body_text(found.partial.message),
        "error": errors[0] if errors else None,
    }


@pytest.mark.parametrize("md", ["md", None], ids=["mqmd", "bare"])
def test_any_frame_with_a_binary_column(spark: SparkSession, md: str | None) -> None:
    frame = _records(spark)
    rows = with_decoded(frame, md=md, thorough=True)
    assert rows.schema.fields == [
        *frame.schema.fields,
        *(StructField(f"mq_{field.name}", field.dataType) for field in MESSAGE.fields),
    ]
    got = rows.collect()
    assert [row[: len(frame.columns)] for row in got] == [tuple(row) for row in frame.collect()]
    refused = 0
    for row, (body, descriptor) in zip(got, VALUES, strict=False):
        expected = _lone(body, descriptor if md else None)
        assert {name: row[f"mq_{name}"] for name in expected} == expected
        refused += expected["error"] is not None
    assert 20 < refused < len(VALUES)
    assert set(got[-1][len(frame.columns) :]) == {None}


def test_the_quick_way_finds_the_same_commands_and_errors(spark: SparkSession) -> None:
    columns = ("key", "m_command", "m_topics", "m_body", "m_body_text")
    quick, thorough = (
        with_decoded(_records(spark), prefix="m_", thorough=more).select(*columns, "m_error").collect()
        for more in (False, True)
    )
    assert [row[:-1] for row in quick] == [row[:-1] for row in thorough]
    # A command that parses, and which every queue manager refuses all the same, is an error for ``thorough`` alone.
    errors = {row.key: row.m_error for row in thorough}
    found = {row.key: row.m_error for row in quick if row.m_error is not None}
    assert len(found) > 10
    assert found.items() <= errors.items()


def test_the_columns_are_those_of_decoded(spark: SparkSession) -> None:
    shared = [field.name for field in MESSAGE.fields if field.name in DECODED.names]
    capture = [m for m in Workload(KNOBS).messages() if m.md is not None]
    found = with_decoded(frame(spark, capture), "body", "md").select(*(f"mq_{name}" for name in shared))
    assert [tuple(row) for row in found.collect()] == [
        tuple(row) for row in decoded(frame(spark, capture)).select(*shared).collect()
    ]
    assert len(shared) == len(MESSAGE) - 2


@pytest.mark.nightly
def test_a_stream_of_records(spark: SparkSession, tmp_path: Path) -> None:
    _records(spark).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(RECORDS).parquet(str(tmp_path / "in"))
    messages = with_decoded(stream, md="md").where("mq_error is null and mq_command is not null")
    counted = (
        messages.select("mq_command", F.explode("mq_topics").alias("topic")).groupBy("mq_command", "topic").count()
    )
    query = counted.writeStream.format("memory").queryName("counted").outputMode("complete")
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    got = {(row[0], row[1]): row[2] for row in spark.table("counted").collect()}
    commands = [
        (each["command"], topic) for each in (_lone(*value) for value in VALUES) for topic in each["topics"] or ()
    ]
    found = with_decoded(_records(spark), md="md").where("mq_error is null and mq_command is not null")
    assert sum(got.values()) == found.select(F.explode("mq_topics")).count() > 100
    assert set(got) <= set(commands)


@pytest.mark.parametrize(
    ("columns", "arguments", "why"),
    [
        ("key binary", {}, "the DataFrame lacks the column value; it has key"),
        ("value string", {}, "column value of the DataFrame is string, not binary"),
        ("value binary, md string", {"md": "md"}, "column md of the DataFrame is string, not binary"),
        ("value binary, MQ_Topics string", {}, "has a column mq_topics already: give another prefix"),
    ],
)
def test_frames_that_cannot_be_decoded(spark: SparkSession, columns: str, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        with_decoded(spark.createDataFrame([], columns), **arguments)


@pytest.mark.nightly
def test_the_example_of_the_page(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Another session would change the settings of this one.
    monkeypatch.setattr("commands.replay.spark.session", lambda: spark)
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "with_decoded(" in block]
    # Java is in a directory of its own, where a relative path is another one.
    capture = str(ROOT / "fixtures" / "results-service" / "capture.jsonl")
    assert example.count('"capture.jsonl"') == 1
    exec(compile(example.replace('"capture.jsonl"', repr(capture)), "docs/spark.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "Publish" in shown
    assert "RegSub" in shown
