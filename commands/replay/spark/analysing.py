"""The analysis on Spark: every task of the second pass counts for itself, and the counts are put together by Spark.

The rows are those of the local analysis (``commands.replay.analysis``), which declares the tables and says what is
counted.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import (
    Column,
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType, TimestampType

from commands.broker.outcome import Arrival
from commands.explain.selection import EVERYTHING, MessageSelection
from commands.replay.analysis.facts import defined, facts_of
from commands.replay.analysis.files import arrow_table_schema, fresh_beside, put_in_place
from commands.replay.analysis.report import AnalysisReport, report_of
from commands.replay.analysis.tables import COUNTED, TABLES, VIEWS, Row, Table, TableCounts, TableView
from commands.replay.spark.in_order import StagedCapture, staged
from commands.replay.spark.prepare import prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.second_pass import Result, second_pass
from commands.replay.spark.twopass import first_pass

_TYPES: Final[dict[type, DataType]] = {str: StringType(), int: LongType(), datetime: TimestampType()}
_BY_NAME: Final[dict[str, Table | TableView]] = {of.name: of for of in (*COUNTED, *VIEWS)}
_MOST_ROWS: Final = 50_000


def schema_of(table: Table) -> StructType:
    """The columns of *table*."""
    return StructType([StructField(name, _TYPES[kind]) for name, kind in table.columns.items()])


_KEPT: Final = StructType([StructField(table.name, schema_of(table)) for table in COUNTED])
_ARROW: Final = {table.name: pa.struct(list(arrow_table_schema(table))) for table in COUNTED}
_ARROW_KEPT: Final = pa.schema(list(_ARROW.items()))


@dataclass(frozen=True)
class Analysed:
    """An analysis that has not run yet. One run gives all tables, so cache *kept*, or write it to files.

    kept: counts of the tasks; a column for each table, and in each row one of them.
    """

    kept: DataFrame

    def table(self, name: str) -> DataFrame:
        """A table or a view of ``commands.replay.analysis`` by its name: ``topics``, ``never_matched`` ...

        Sorted: those with most first. Raises KeyError.
        """
        of = _BY_NAME[name]
        table = of.table if isinstance(of, TableView) else of
        counted = self.kept.where(F.col(table.name).isNotNull()).select(f"{table.name}.*")
        parts = counted.groupBy(*table.keys).agg(
            *(F.sum(column).alias(column) for column in table.sums),
            F.min("first_time").alias("first_time"),
            F.max("last_time").alias("last_time"),
            F.min(F.struct("first_seq", *table.firsts)).alias("first"),
        )
        firsts: list[Column] = [F.col(f"first.{column}") for column in ("first_seq", *table.firsts)]
        rows = parts.select("*", *firsts).select(*table.columns)
        if isinstance(of, TableView):
            for column in of.zero:
                rows = rows.where(F.col(column) == 0)
            for column in of.positive:
                rows = rows.where(F.col(column) > 0)
        return rows.orderBy(*(F.desc(column) for column in of.order), *table.keys)


def analysed(
    captured: DataFrame,
    setup: str = "",
    semantics: str = "v7",
    *,
    ranges: int | None = None,
    selection: MessageSelection | str = EVERYTHING,
    tasks: int | None = None,
    monotonic_clock: bool = False,
) -> Analysed:
    """Analyse a capture. The arguments are those of ``replayed``, and so is what is raised."""
    setting = ReplaySetup(setup, semantics, monotonic_clock=monotonic_clock)
    ready = prepared(captured, setting, ranges, selection, tasks)
    return Analysed(second_pass(ready, [first_pass(ready, semantics)], lambda: _CountKeeper(setting), _KEPT))


class _CountKeeper:
    """Counts the messages of one task."""

    def __init__(self, setting: ReplaySetup) -> None:
        self._setting = setting
        self._counts = TableCounts()

    @property
    def is_full(self) -> bool:
        """Whether the counts are so large that they must be taken."""
        return self._counts.size >= _MOST_ROWS

    def begin(self, qmgr: str) -> None:
        """Count what the setup defines in a queue manager."""
        self._counts.add(defined(qmgr, self._setting.broker(qmgr).space.subscriptions()))

    def keep(self, arrival: Arrival, qmgr: str, results: Sequence[Result]) -> None:
        """Count the result of one message."""
        ((outcome, _),) = results
        self._counts.add(facts_of(qmgr, arrival, outcome))

    def take(self) -> Iterator[pa.RecordBatch]:
        """The counts since the last call."""
        counts, self._counts = self._counts, TableCounts()
        for table in COUNTED:
            rows = [dict(zip(table.columns, values, strict=True)) for values in counts.values(table)]
            if rows:
                arrays = [
                    pa.array(rows, kind) if name == table.name else pa.nulls(len(rows), kind)
                    for name, kind in _ARROW.items()
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW_KEPT)

    def end(self) -> Iterator[pa.RecordBatch]:
        """The last counts."""
        return self.take()


# File to file


def analyse(
    spark: SparkSession,
    source: Path,
    form: str,
    setup: str,
    semantics: str,
    output: Path | None,
    most: int,
    selection: MessageSelection = EVERYTHING,
    *,
    monotonic_clock: bool = False,
) -> tuple[AnalysisReport, StagedCapture]:
    """The report on the capture at *source*, and what could not be read of it.

    output: a directory for every table, or None. most: rows of each section of the report. selection: the messages that
    are counted. What is in between is in a
    directory beside the output, or in the temporary one, that goes in the end. Raises FileExistsError where the output
    holds something else.
    """
    tables = None if output is None else fresh_beside(output)
    work = Path(tempfile.mkdtemp(prefix=".qpubsub-", dir=None if output is None else output.parent))
    try:
        capture = staged(spark, source, form, work)
        made = analysed(capture.messages, setup, semantics, selection=selection, monotonic_clock=monotonic_clock)
        made.kept.write.parquet(str(work / "kept"))
        found = Analysed(spark.read.parquet(str(work / "kept")))

        def look(of: Table | TableView, first: int | None) -> tuple[int, list[Row]]:
            rows = found.table(of.name).cache()
            try:
                return rows.count(), rows_of(rows if first is None else rows.limit(first))
            finally:
                rows.unpersist()

        report = report_of(look, semantics, most)
        if output is not None and tables is not None:
            for of in (*TABLES, *VIEWS):
                found.table(of.name).write.parquet(str(tables / f"{of.name}.parquet"))
            put_in_place(tables, output)
        return report, capture
    finally:
        shutil.rmtree(work)
        if tables is not None:
            shutil.rmtree(tables, ignore_errors=True)


def rows_of(table: DataFrame) -> list[Row]:
    """The rows of a table, as the local analysis has them."""
    found: list[dict[str, Any]] = table.toArrow().to_pylist()
    return [dict(row) for row in found]
