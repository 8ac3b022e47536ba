"""The replay of a network on Spark: one task replays one network, with the code of the local replay.

    capture ── staged ──> by network, in order of seq ── NetworkReplay ──> puts, and a report ──> in order of seq, files

A network is replayed in one piece, because what each queue manager does depends on all others of it. Several networks
in one estate are replayed at the same time.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import StringType, StructField, StructType

from commands.broker.puts import PutKind
from commands.replay.arrivals import DEFAULT_QMGR, in_order
from commands.replay.local import ReplayCounts
from commands.replay.network.local import NetworkReplay, NetworkSetup
from commands.replay.put_columns import PutColumns
from commands.replay.spark.engine import Done
from commands.replay.spark.in_order import staged
from commands.replay.spark.put_files import WrittenFiles
from commands.replay.spark.schemas import CAPTURED, PUTS, arrow_schema, columns, message_of
from commands.replay.spark.source import FORMAT
from rfh2.errors import QPubSubError

_NETWORK: Final = "network"
_REPORT: Final = "report"
_RESULT: Final = StructType([*PUTS.fields, StructField(_REPORT, StringType())])
_ARROW_RESULT: Final = arrow_schema(_RESULT)
_IN: Final = (_NETWORK, *CAPTURED.names)
_MOST_TEXTS: Final = 20


@dataclass(frozen=True)
class NetworkOrder:
    """The replay to do. source: a capture, or a directory of them. form: its format."""

    source: Path
    form: str
    target: Path
    setup: NetworkSetup
    monotonic_clock: bool = False


def run_network(spark: SparkSession, order: NetworkOrder) -> Done:
    """Replay, and put the puts in place: a directory of files in the order of seq.

    Raises CaptureError for a path that is missing; QPubSubError for a setup that fails, and for a message of a queue
    manager that the network does not have.
    """
    source, target = order.source.absolute(), order.target.absolute()
    numbers = {qmgr: n for n, names in enumerate(order.setup.build().topology.networks()) for qmgr in names}
    work = target.with_name(f"{target.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        capture = staged(spark, source, order.form, work)
        made = work / "made"
        _results(capture.messages, order, numbers).write.parquet(str(made))
        results = spark.read.schema(_RESULT).parquet(str(made))
        found = results.where("report is not null").select(_REPORT).collect()
        reports = [WrittenFiles(**json.loads(row[_REPORT])) for row in found]
        puts = results.where("report is null").drop(_REPORT).orderBy("seq", "at_qmgr", "n")
        puts.write.format(FORMAT).option("format", target.suffix.removeprefix(".")).mode("overwrite").save(str(target))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return _done(reports, capture.problems, capture.problem_texts)


def _results(messages: DataFrame, order: NetworkOrder, numbers: Mapping[str, int]) -> DataFrame:
    """The puts of each network, and a report."""
    named = messages.withColumn("qmgr", F.when(F.col("qmgr") == "", None).otherwise(F.col("qmgr")))
    named = named.fillna({"qmgr": DEFAULT_QMGR})
    unknown = named.where(~F.col("qmgr").isin(list(numbers))).select("qmgr", "seq").orderBy("seq").first()
    if unknown is not None:
        raise QPubSubError(f"message {unknown[1]} was put at queue manager {unknown[0]}, which is not in the network")
    number = F.element_at(F.create_map([F.lit(each) for pair in numbers.items() for each in pair]), F.col("qmgr"))
    count = len(set(numbers.values()))
    by_network = named.withColumn(_NETWORK, number.cast("int")).repartitionById(count, _NETWORK)
    in_order = by_network.sortWithinPartitions(_NETWORK, "seq", "qmgr").select(*_IN)

    def replayed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in columns(batch, *_IN))
        for at, of_network in groupby(rows, key=lambda row: row[0]):
            yield from _replayed(at, of_network, order)

    return in_order.mapInArrow(replayed, _RESULT)


def _replayed(number: int, rows: Iterable[tuple[Any, ...]], order: NetworkOrder) -> Iterator[pa.RecordBatch]:
    """The puts of one network in batches; the report last."""
    replay, held, report = NetworkReplay(order.setup), PutColumns(), WrittenFiles(number)
    messages = (message_of(*row) for _, *row in rows)
    for message in in_order(messages, monotonic_clock=order.monotonic_clock):
        outcome = replay.put_all(message, held)
        if outcome.undecodable:
            report.undecodable += 1
            if len(report.problem_texts) < _MOST_TEXTS:
                report.problem_texts.append(f"message {message.seq} on {message.queue}: {outcome.why}")
        if held.is_full:
            yield from map(_with_report, held.take())
    yield from map(_with_report, held.take())
    counts = replay.counts
    report.messages, report.errors, report.passed_over = counts.messages, counts.errors, counts.passed_over
    report.kinds = {kind.value: count for kind, count in counts.puts.items()}
    row = dict.fromkeys(_ARROW_RESULT.names) | {_REPORT: json.dumps(asdict(report))}
    yield pa.RecordBatch.from_pylist([row], schema=_ARROW_RESULT)


def _with_report(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, pa.string())], schema=_ARROW_RESULT)


def _done(reports: Iterable[WrittenFiles], problems: int, texts: tuple[str, ...]) -> Done:
    passed_over: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    messages = errors = undecodable = 0
    for each in sorted(reports, key=lambda report: report.number):
        messages, errors, undecodable = messages + each.messages, errors + each.errors, undecodable + each.undecodable
        passed_over.update(each.passed_over)
        kinds.update(each.kinds)
        texts = (*texts, *each.problem_texts)
    puts = {kind: kinds[kind.value] for kind in PutKind}
    return Done(ReplayCounts(messages, puts, errors, dict(passed_over)), problems, undecodable, texts)
