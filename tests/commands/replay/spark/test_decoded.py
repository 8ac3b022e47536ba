"""decoded and translated: the same as the local verbs say, in columns."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from commands.explain.equivalents.mqi import to_mqi
from commands.explain.equivalents.mqsc import to_mqsc
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import TraceBroker
from commands.explain.reading import explained
from commands.replay.spark import CAPTURED, DECODED, TRANSLATED, decoded, translated
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.body_text import body_text
from rfh2.captured import CapturedMessage
from streams.selectors.properties import user_properties

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
    rows = decoded(frame(spark, capture), thorough=True)
    assert rows.schema == DECODED
    assert sum(bool(row.properties) for row in rows.select("properties").collect()) > 20
    assert [_got(row) for row in rows.orderBy("seq").collect()] == [_expected(m, thorough=True) for m in capture]


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
    got = [(row.seq, row.n, row.mqsc, row.pcf, row.mqi) for row in rows.collect()]
    assert got == expected
    assert {row.operation for row in rows.select("operation").distinct().collect()} >= {
        "Subscribe",
        "AlterSubscription",
        "Unsubscribe",
        "PublishToTopic",
        "ClearRetained",
        "RequestRetained",
    }
