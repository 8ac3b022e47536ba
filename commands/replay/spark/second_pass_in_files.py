"""The second pass over a capture in files: every task reads its range for itself, and no message passes through Java.

What a task needs of the first pass is kept in files too, a directory for each range: the intervals of subscriptions,
and what messages find retained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from commands.replay.spark.capture_scan import PreparedInFiles, each_range
from commands.replay.spark.choice import CHOSEN
from commands.replay.spark.prepare import Prepared
from commands.replay.spark.rows import columns
from commands.replay.spark.schemas import COLUMNS
from commands.replay.spark.second_pass import Keeper, Lane, RangeTask, intervals_of, looked_up

_BATCH_ROWS: Final = 1024
_QMGR: Final = COLUMNS.index("qmgr")
_NOTHING: Final = (-1, ())
_INTERVALS, _RETAINED = "intervals", "retained"
_INTERVAL_COLUMNS: Final = ("lane", "qmgr", "seq", "until", "body")


@dataclass(frozen=True)
class Found:
    """What the first pass leaves for the second one, in files: a directory for each range."""

    directory: str

    def intervals(self, number: int) -> Iterator[tuple[Any, ...]]:
        """The arguments of ``RangeTask.learn``."""
        for batch in self._batches(_INTERVALS, number):
            for lane, qmgr, after, until, state in columns(batch, *_INTERVAL_COLUMNS):
                yield lane, qmgr, after, until, state.decode()

    def retained(self, number: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """In the order of those who look: the seq of each, and the arguments of ``RangeTask.process``."""
        for batch in self._batches(_RETAINED, number):
            lookers = batch.column("at").to_pylist()
            yield from zip(lookers, columns(batch, *COLUMNS, "topic", "lane"), strict=True)

    def _batches(self, what: str, number: int) -> Iterator[pa.RecordBatch]:
        for path in sorted(Path(self.directory, what, f"range={number}").glob("*.parquet")):
            with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                yield from file.iter_batches(_BATCH_ROWS, use_threads=False)


def keep_found(ready: Prepared, lanes: Sequence[Lane], directory: Path) -> Found:
    """Run the first pass of *lanes*, and keep in *directory* what the second one needs. The notes are given up."""
    intervals = reduce(DataFrame.union, intervals_of(lanes)).select(*_INTERVAL_COLUMNS, "range")
    _keep(intervals, ("lane", "qmgr"), directory / _INTERVALS)
    frames = list(looked_up(ready, lanes))
    if frames:
        _keep(reduce(DataFrame.union, frames), ("at", "qmgr", "topic"), directory / _RETAINED)
    for lane in lanes:
        lane.notes.unpersist()
    return Found(str(directory))


def _keep(rows: DataFrame, order: Sequence[str], directory: Path) -> None:
    in_order = rows.repartition("range").sortWithinPartitions("range", *order)
    in_order.write.mode("overwrite").partitionBy("range").parquet(str(directory))


def second_pass_in_files(
    ready: PreparedInFiles,
    lanes: Sequence[Lane],
    found: Found,
    keeper: Callable[[int], Keeper],
    schema: StructType,
    numbers: Sequence[int],
) -> DataFrame:
    """What keepers keep of the ranges of these numbers, in that order; as ``second_pass``.

    keeper: makes one for each range.
    """
    shared = ready.shared
    settings = [(lane.setting, lane.controlled) for lane in lanes]

    def work(number: int) -> Iterator[pa.RecordBatch]:
        task = RangeTask(settings, keeper(number))
        for interval in found.intervals(number):
            task.learn(*interval)
        return task.run(_merged(shared.value.messages(number), found.retained(number)))

    return each_range(ready.messages.sparkSession, numbers, work, schema)


def _merged(
    messages: Iterator[pa.RecordBatch], found: Iterator[tuple[int, tuple[Any, ...]]]
) -> Iterator[tuple[Any, ...]]:
    """What a message finds, just before it."""
    looker, what = next(found, _NOTHING)
    by_qmgr: dict[str, list[tuple[Any, ...]]] = {}
    for batch in messages:
        chosen = batch.column(CHOSEN).to_pylist() if CHOSEN in batch.schema.names else [True] * batch.num_rows
        for row, is_chosen in zip(columns(batch, *COLUMNS), chosen, strict=True):
            seq = row[0]
            if looker == seq:
                # One seq may be that of several queue managers.
                by_qmgr.clear()
                while looker == seq:
                    by_qmgr.setdefault(what[_QMGR], []).append(what)
                    looker, what = next(found, _NOTHING)
            if by_qmgr:
                yield from by_qmgr.pop(row[_QMGR], ())
            yield (*row, None, None, None, is_chosen)
