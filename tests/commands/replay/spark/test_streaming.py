"""The continuous query: the puts of the batch replay, whatever the batches, and however often it is started again.

That a broker goes on from rows as it would have gone on itself is shown without Spark in ``test_continued``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from commands.replay.spark import CAPTURED, PUTS, SchemaError
from commands.replay.spark.streaming import LATE, PROBLEM, replay_stream
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.errors import QPubSubError
from tests.commands.replay.spark.test_twopass import difference
from tests.commands.replay.spark.worlds import local_puts
from tests.waiting import until

KNOBS = WorkloadOptions(
    messages=600, control=0.1, subscribers=40, topics=40, qmgrs=2, retained=0.5, expiring=0.3, per_second=20
)
SETUP = setup_script(KNOBS)
CAPTURE = list(Workload(KNOBS).messages())


class Stream:
    """A directory that captures come into, and a query over it that is started for each batch anew."""

    def __init__(self, spark: SparkSession, directory: Path, setup: str, **settings: Any) -> None:
        self.spark, self.directory, self.setup, self.settings = spark, directory, setup, settings
        self.source = directory / "in"
        self.source.mkdir(parents=True)
        self._files = 0

    def put(self, messages: Iterable[CapturedMessage]) -> None:
        """Let a file of captured messages appear."""
        partial = self.directory / "partial"
        with partial.open("wb") as file:
            write_captures(messages, file, "jsonl")
        partial.rename(self.source / f"{self._files:03}.jsonl")
        self._files += 1

    def puts(self) -> DataFrame:
        """The query, not yet started."""
        captured = self.spark.readStream.format("qpubsub").load(str(self.source))
        return replay_stream(captured, self.setup, **self.settings)

    def run(self) -> None:
        """Start the query, and let it work through what is there."""
        writer = self.puts().writeStream.format("parquet").option("path", str(self.directory / "out"))
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def rows(self) -> list[tuple[Any, ...]]:
        """All that came out, in the order of seq."""
        rows = self.spark.read.parquet(str(self.directory / "out")).select(*PUTS.names).collect()
        found = (tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in rows)
        return sorted(found, key=lambda row: (row[0] is not None, row[:2]))


def expected(capture: Iterable[CapturedMessage]) -> list[tuple[Any, ...]]:
    return sorted(local_puts(capture, SETUP), key=lambda row: row[:2])


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path, SETUP)


def test_batches_restarts_and_what_comes_too_late(stream: Stream) -> None:
    """Three batches, each of them by a query of its own; within one, the order of seq counts, not that of the files."""
    message = CAPTURE[100]
    stream.put([*CAPTURE[:100], *CAPTURE[101:151]])
    stream.run()
    stream.put(CAPTURE[400:])
    stream.put(CAPTURE[151:400][::-1])
    stream.run()
    stream.put([message, CAPTURE[300]])
    (stream.source / "bad.jsonl").write_text("no JSON\n")
    stream.run()

    rows = stream.rows()
    assert not difference(
        [row for row in rows if row[3] not in (LATE, PROBLEM)], expected([m for m in CAPTURE if m is not message])
    )
    late = [row for row in rows if row[3] == LATE]
    assert [(row[0], row[5], row[10], row[11]) for row in late] == [
        (m.seq, m.queue, m.md, m.body) for m in (message, CAPTURE[300])
    ]
    assert [(*row[:2], row[3]) for row in rows if row[3] == PROBLEM] == [(None, 0, PROBLEM)]


def test_another_setup_is_refused(stream: Stream) -> None:
    stream.put(CAPTURE[:20])
    stream.run()
    stream.put(CAPTURE[20:40])
    stream.setup += "DEFINE TOPIC(MORE) TOPICSTR('More')\n"
    with pytest.raises(StreamingQueryException, match="begun with another setup"):
        stream.run()


def test_what_waits_for_hold_is_let_go_when_nothing_comes(spark: SparkSession, tmp_path: Path) -> None:
    """Three batches, the last messages first; then silence."""
    stream = Stream(spark, tmp_path, SETUP, hold=1000, idle_s=3600.0)
    stream.put(CAPTURE[300:])
    _run_until(stream, (tmp_path / "checkpoint" / "commits" / "0").exists)
    stream.put(CAPTURE[:200])
    stream.put(CAPTURE[200:300])
    stream.settings["idle_s"] = 1.0
    _run_until(stream, lambda: len(stream.rows()) >= len(expected(CAPTURE)))
    assert not difference(stream.rows(), expected(CAPTURE))


def _run_until(stream: Stream, true: Callable[[], bool]) -> None:
    """Let a query run that has no end of its own."""
    writer = stream.puts().writeStream.format("parquet").option("path", str(stream.directory / "out"))
    writer = writer.option("checkpointLocation", str(stream.directory / "checkpoint"))
    query = writer.trigger(processingTime="1 second").start()
    try:
        until(true)
    finally:
        query.stop()


def test_wrong_columns_and_setups_are_told_at_once(spark: SparkSession, tmp_path: Path) -> None:
    rate = spark.readStream.format("rate").load()
    with pytest.raises(SchemaError, match="lacks the column seq"):
        replay_stream(rate)
    captured = spark.readStream.schema(CAPTURED).parquet(str(tmp_path))
    with pytest.raises(QPubSubError, match="line 1"):
        replay_stream(captured, "DEFINE NONSENSE(X)")
