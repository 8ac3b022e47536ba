"""The survey of a capture in files: the workers read every message once before a replay.

A task reads one range, column by column. It finds the expiries and the times, and writes the messages of the first pass
to files: those of the control plane and those that change retained publications. The other messages are not read again
before the second pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from commands.broker.objects import CONTROL_QUEUE
from commands.explain.selection import EVERYTHING, MessageSelection
from commands.replay.spark.in_order import FilesInOrder, PartFile, filled, part_name, with_moments
from commands.replay.spark.prepare import (
    CHOSEN,
    Clock,
    Clocks,
    FirstPassRole,
    Place,
    Prepared,
    Roles,
    Work,
    begins_of,
    expiry_of,
    last_place,
    moments_of,
    monotonic,
    steps_back,
    up_to,
)
from commands.replay.spark.replay_setup import EXPIRY, UNLIMITED, ReplaySetup
from commands.replay.spark.schemas import CAPTURED, COLUMNS, arrow_schema

_FACTS: Final = StructType([StructField("facts", StringType())])
_ARROW_FACTS: Final = arrow_schema(_FACTS)
_RANGED: Final = StructType([*CAPTURED.fields, StructField("range", IntegerType())])
_ARROW_RANGED: Final = arrow_schema(_RANGED)
_BATCH_ROWS: Final = 4096
_CONTROL, _RETAINING = "control", "retaining"
_KEPT: Final = {FirstPassRole.CONTROL: _CONTROL, FirstPassRole.RETAINING: _RETAINING}

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class InFiles:
    """Messages that are ready for a replay, where every task can read them.

    directory: what the survey wrote. starts: those of ``Prepared``. begins: by queue manager and range, the last moment
    before it, in microseconds since 1970; None where each message comes at its time. selection: whose results are kept.
    last: the last message that its limit allows. monotonic_clock: as in ``ReplaySetup``.
    """

    files: FilesInOrder
    directory: str
    starts: tuple[int, ...]
    begins: dict[str, dict[int, int]] | None
    selection: MessageSelection = EVERYTHING
    last: Place | None = None
    monotonic_clock: bool = False

    def messages(self, number: int) -> Iterator[pa.RecordBatch]:
        """Those of one range, in order: the columns COLUMNS; with a selection CHOSEN, and none behind its limit."""
        if self.last is not None and self.starts[number] > self.last[0]:
            return iter(())
        given: Batches = self.files.batches(self.starts[number], self.starts[number + 1], self.selection)
        if self.last is not None:
            given = up_to(given, self.last)
        return with_moments(given, self._last(number), monotonic_clock=self.monotonic_clock)

    def chosen(self, number: int) -> Iterator[pa.RecordBatch]:
        """The seq and qmgr of the messages of one range that are selected, in order; the limit does not count."""
        for batch in self.files.batches(self.starts[number], self.starts[number + 1], self.selection):
            yield batch.filter(batch.column(CHOSEN)).select(["seq", "qmgr"])

    def retaining(self, number: int) -> Iterator[pa.RecordBatch]:
        """Those of one range that leave something retained."""
        path = Path(self.directory, _RETAINING, part_name(number))
        if path.exists():
            with parquet.ParquetFile(path) as file:
                given = file.iter_batches(_BATCH_ROWS, use_threads=False)
                yield from with_moments(given, self._last(number), monotonic_clock=self.monotonic_clock)

    def range_of(self, seqs: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The range of each message."""
        return (np.searchsorted(self.starts, seqs, side="right") - 1).astype(np.int32)

    def _last(self, number: int) -> dict[str, int | None] | None:
        if self.begins is None:
            return None
        return {qmgr: by_range.get(number) for qmgr, by_range in self.begins.items()}


@dataclass(frozen=True)
class PreparedInFiles(Prepared):
    """The same. Every task can read the file, so only the rows that are needed pass through Java."""

    in_files: InFiles

    def in_ranges(self, work: Work, schema: StructType) -> DataFrame:
        """As it is there."""
        given, spark = self.in_files, self.messages.sparkSession
        return each_range(spark, range(self.ranges), lambda number: work(given.retaining(number)), schema)

    def out_of_time(self, work: Work, schema: StructType) -> DataFrame:
        """As it is there; only the ranges in question are read, twice."""
        given, behind = self.in_files, self.expiry.behind
        numbers = sorted({number for by_range in behind.values() for number in by_range})

        def found(number: int) -> Iterator[pa.RecordBatch]:
            least = {qmgr: by_range[number] for qmgr, by_range in behind.items() if number in by_range}
            wanted = _out_of_time(given.messages(number), least)
            for batch in given.messages(number):
                left = batch.filter(next(wanted)).select(list(COLUMNS))
                yield left.append_column("range", pa.array([number] * left.num_rows, pa.int32()))

        return each_range(self.messages.sparkSession, numbers, lambda number: work(found(number)), schema)

    def fetched(self, places: DataFrame) -> DataFrame:
        """As it is there; but each is looked for where it is, and not all are sent to where they are looked for."""
        given, sought = self.in_files, places.schema
        fields = {field.name: field for field in (*self.messages.schema.fields, *sought.fields)}
        names = [*COLUMNS, *(name for name in sought.names if name not in COLUMNS)]
        schema = StructType([fields[name] for name in names])

        def placed(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.append_column("place", pa.array(given.range_of(batch.column("seq").to_numpy())))

        def found(batches: Batches) -> Iterator[pa.RecordBatch]:
            wanted = pa.Table.from_batches(batches, arrow_schema(at_place))
            for number in wanted.column("place").unique().to_pylist():
                of_range = wanted.filter(pc.equal(wanted.column("place"), number))
                seqs = of_range.column("seq").combine_chunks()
                there = [b.filter(pc.is_in(b.column("seq"), seqs)) for b in given.retaining(number)]
                both = of_range.join(pa.Table.from_batches(there), ["qmgr", "seq"], join_type="inner")
                yield from both.select(names).cast(arrow_schema(schema)).to_batches(_BATCH_ROWS)

        at_place = StructType([*sought.fields, StructField("place", IntegerType())])
        by_place = places.mapInArrow(placed, at_place).repartitionById(self.ranges, "place")
        return by_place.mapInArrow(found, schema)


def surveyed(
    spark: SparkSession,
    files: FilesInOrder,
    setting: ReplaySetup,
    ranges: int,
    directory: Path,
    selection: MessageSelection = EVERYTHING,
    cores: int = 1,
) -> PreparedInFiles:
    """A capture made ready for a replay: as ``prepared`` does it, and for tasks to read by themselves.

    directory: where the messages that the first pass is about go. ranges: how many, if there are messages enough.
    selection: of which messages the results are kept. cores: as in ``Prepared``.
    """
    starts = files.ranges(ranges) if files.groups else (0, 1)
    for name in (_CONTROL, _RETAINING):
        (directory / name).mkdir(parents=True, exist_ok=True)
    raw = InFiles(files, str(directory), starts, None, selection)
    facts_of_parts = _facts(spark, raw, setting)
    clocks: Clocks = {}
    for number, facts in enumerate(facts_of_parts):
        for qmgr, clock in facts["clocks"].items():
            clocks.setdefault(qmgr, {})[number] = Clock(*clock)
    expiring = {qmgr for facts in facts_of_parts for qmgr in facts["expiring"]}
    count = len(starts) - 1
    if setting.expires:
        firsts: dict[str, int] = {}
        for facts in facts_of_parts:
            firsts = {**facts["firsts"], **firsts}
        setting = setting.beginning(firsts)
    goes_back = setting.monotonic_clock and any(map(steps_back, clocks.values()))
    if setting.monotonic_clock:
        clocks = monotonic(clocks)
    begins = begins_of(clocks, count) if files.timeless or goes_back else None
    last = None if selection.limit is None else _last_place(spark, raw, selection.limit)
    in_files = InFiles(files, str(directory), starts, begins, selection, last, goes_back)
    control, retaining = (spark.read.schema(_RANGED).parquet(str(directory / name)) for name in (_CONTROL, _RETAINING))
    if begins is None:
        control, retaining = (part.withColumnRenamed("time", "now") for part in (control, retaining))
    else:
        control, retaining = (
            moments_of(part, clocks, count, monotonic_clock=goes_back) for part in (control, retaining)
        )
    messages = _messages(spark, in_files, count)
    controlling = sum(facts["controlling"] for facts in facts_of_parts)
    return PreparedInFiles(
        messages,
        control,
        retaining,
        starts,
        files.count,
        expiry_of(expiring, clocks, count),
        setting,
        controlling,
        cores,
        count,
        in_files,
    )


def each_range(
    spark: SparkSession, numbers: Sequence[int], work: Callable[[int], Iterator[pa.RecordBatch]], schema: StructType
) -> DataFrame:
    """What *work* gives for each of these ranges, each in a task of its own, in order."""
    return in_runs(spark, numbers, len(numbers), lambda some: chain.from_iterable(map(work, some)), schema)


def in_runs(
    spark: SparkSession,
    numbers: Sequence[int],
    tasks: int,
    work: Callable[[Iterable[int]], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """What *work* gives for these ranges, of which each of so many tasks has some that follow each other, in order."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return work(numbers[at] for batch in batches for at in batch.column("id").to_pylist())

    return spark.range(0, len(numbers), 1, max(tasks, 1)).mapInArrow(run, schema)


def _out_of_time(batches: Batches, behind: Mapping[str, int]) -> Iterator[pa.Array]:
    """For each batch which of its messages are later than one after them, or on the control queue.

    behind: the least moment after all batches, by queue manager; no others have any.
    """
    parts = [
        (b.column("qmgr"), b.column("now").cast(pa.int64()), pc.equal(b.column("queue"), CONTROL_QUEUE))
        for b in batches
    ]
    if not parts:
        return
    qmgrs, moments, control = (pa.chunked_array(chunks) for chunks in zip(*parts, strict=True))
    at, on_control, wanted = moments.to_numpy(), control.to_numpy(), np.zeros(len(moments), bool)
    for qmgr, least in behind.items():
        (theirs,) = np.nonzero(pc.equal(qmgrs, qmgr).to_numpy())
        earliest = np.minimum.accumulate(np.append(at[theirs], least)[::-1])[::-1][1:]
        wanted[theirs] = on_control[theirs] | (at[theirs] > earliest)
    start = 0
    for qmgr_column, _, _ in parts:
        yield pa.array(wanted[start : start + len(qmgr_column)])
        start += len(qmgr_column)


def _last_place(spark: SparkSession, raw: InFiles, limit: int) -> Place | None:
    schema = StructType([CAPTURED["seq"], CAPTURED["qmgr"]])

    def work(number: int) -> Iterator[pa.RecordBatch]:
        return raw.chosen(number)

    return last_place(each_range(spark, range(len(raw.starts) - 1), work, schema), limit)


def _messages(spark: SparkSession, given: InFiles, count: int) -> DataFrame:
    fields = {("now" if field.name == "time" else field.name): field.dataType for field in CAPTURED.fields}
    schema = StructType([StructField(n, fields[n]) for n in COLUMNS] + [StructField("range", IntegerType())])

    def work(number: int) -> Iterator[pa.RecordBatch]:
        for batch in given.messages(number):
            ranges = pa.array([number] * batch.num_rows, pa.int32())
            yield batch.select(list(COLUMNS)).append_column("range", ranges)

    return each_range(spark, range(count), work, schema)


def _facts(spark: SparkSession, raw: InFiles, setting: ReplaySetup) -> list[dict[str, Any]]:
    def work(number: int) -> Iterator[pa.RecordBatch]:
        surveyor = _Surveyor(setting, number, raw.files.timeless)
        parts = {
            role: PartFile(Path(raw.directory, name, part_name(number)), _ARROW_RANGED) for role, name in _KEPT.items()
        }
        for batch in raw.files.batches(raw.starts[number], raw.starts[number + 1]):
            for role, found in surveyor.look(batch).items():
                parts[role].add(found)
        for part in parts.values():
            part.close()
        yield pa.RecordBatch.from_pylist([{"facts": json.dumps(surveyor.facts())}], schema=_ARROW_FACTS)

    numbers = range(len(raw.starts) - 1)
    return [json.loads(row["facts"]) for row in each_range(spark, numbers, work, _FACTS).collect()]


class _Surveyor:
    """Looks at the messages of one range, in order."""

    def __init__(self, setting: ReplaySetup, number: int, timeless: bool) -> None:
        self._queues = pa.array([CONTROL_QUEUE, *setting.stream_queues], pa.string())
        self._all_expire, self._number = setting.expires, number
        self._expiring: set[str] = set()
        self._clocks: dict[str, Clock] = {}
        self._firsts: dict[str, int | None] = {}
        self._controlling = 0
        self._monotonic_clock = setting.monotonic_clock
        self._last: dict[str, int | None] | None = {} if timeless or setting.monotonic_clock else None
        self._roles = Roles()

    def look(self, batch: pa.RecordBatch) -> dict[FirstPassRole, pa.RecordBatch]:
        """Survey *batch*. Returns its messages that have a role, by it."""
        read = pc.is_in(batch.column("queue"), self._queues)
        qmgrs, time = batch.column("qmgr"), batch.column("time")
        for qmgr in qmgrs.unique().to_pylist():
            self._look_at_clock(qmgr, time.filter(pc.equal(qmgrs, qmgr)))
        if self._last is not None:
            # Only this loop has the message before.
            batch = batch.set_column(
                batch.schema.get_field_index("time"),
                "time",
                filled(batch, self._last, monotonic_clock=self._monotonic_clock),
            )
        self._controlling += pc.equal(batch.column("queue"), CONTROL_QUEUE).true_count
        left = batch.filter(read)
        left = left.append_column("range", pa.array([self._number] * left.num_rows, pa.int32()))
        found = self._roles.split(left)
        for each in found.values():
            self._look_at_expiry(each)
        return found

    def _look_at_expiry(self, batch: pa.RecordBatch) -> None:
        """What has no role lets nothing expire here. 0xFFFFFFFF is unlimited in either byte order."""
        expiry = pc.binary_slice(batch.column("md"), EXPIRY.start, EXPIRY.stop)
        found = batch.column("qmgr").filter(pc.not_equal(expiry, UNLIMITED), null_selection_behavior="drop")
        self._expiring.update(found.unique().to_pylist())

    def _look_at_clock(self, qmgr: str, time: pa.Array) -> None:
        first = time[0].cast(pa.int64()).as_py()
        self._firsts.setdefault(qmgr, first)
        if self._all_expire:
            self._expiring.add(qmgr)
        at = time.drop_null().cast(pa.int64()).to_numpy()
        if not at.size:
            return
        before = self._clocks.get(qmgr)
        latest = np.maximum.accumulate(at if before is None else np.concatenate(([before.most], at)))
        back = int(np.count_nonzero(at[-(latest.size - 1) :] < latest[:-1])) if latest.size > 1 else 0
        least, most, last = int(at.min()), int(latest[-1]), int(at[-1])
        if before is not None:
            least, back = min(least, before.least), back + before.back
        self._clocks[qmgr] = Clock(least, most, last, back)

    def facts(self) -> dict[str, Any]:
        """What was learnt; the first moment of a message without a time, before which there was none, is 1970."""
        clocks = {qmgr: (clock.least, clock.most, clock.last, clock.back) for qmgr, clock in self._clocks.items()}
        firsts = {qmgr: first or 0 for qmgr, first in self._firsts.items()}
        return {
            "clocks": clocks,
            "expiring": sorted(self._expiring),
            "firsts": firsts,
            "controlling": self._controlling,
        }
