"""A capture in Parquet files, in the order of ``seq``: read from anywhere, without passing through Java.

Row groups do not overlap in seq, so that a task finds its part by the footers and reads nothing else. All tasks and the
driver see the same file system.

A capture is read several times, and in parts. Parquet files that are in order already (``in_order``) are therefore
taken as they are, and a capture of any other form is written out once (``staged``); where files overlap, in order.
"""

from __future__ import annotations

import json
import pickle
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from commands.explain.selection import EVERYTHING, MessageSelection
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.spark.piece_reader import NATURAL, read_piece
from commands.replay.spark.pieces import ReadTask, files_of, pieces_of, tasks_of
from commands.replay.spark.prepare import CHOSEN, chosen_of, cores_of
from commands.replay.spark.schemas import CAPTURED, COLUMNS, arrow_schema, batch_of, columns
from rfh2.captures.parquet import open_parquet
from rfh2.captures.reading import partition_values

_MOST_TEXTS = 100
_TASKS_PER_CORE: Final = 4
_GROUP_BYTES = 16 << 20
_DONE: Final = "_SUCCESS"
_COPIED: Final = "number int, problems bigint, texts array<string>"
_ARROW_COPIED: Final = pa.schema([("number", pa.int32()), ("problems", pa.int64()), ("texts", pa.list_(pa.string()))])


@dataclass(frozen=True)
class StagedCapture:
    """files: where the capture is, in order. messages: the same. problems: how many records could not be read.

    problem_texts: the first hundred of them, in words.
    """

    files: FilesInOrder
    messages: DataFrame
    problems: int
    problem_texts: tuple[str, ...]


def staged(spark: SparkSession, source: Path, form: str, directory: Path) -> StagedCapture:
    """The capture at *source*, in *directory* where it has to be written out; what is there already is used again.

    Raises CaptureError for a path that is missing.
    """
    # Executors have working directories of their own.
    source, directory = source.absolute(), directory.absolute()
    given = files_of([str(source)])
    if given and form in ("auto", "parquet") and (files := in_order(given)) is not None:
        return StagedCapture(files, _messages(spark, given), 0, ())
    whole = directory / "captured"
    if not _is_written(whole):
        whole.mkdir(parents=True, exist_ok=True)
        # A task costs a tenth of a second, however little it reads: a few for each core are enough.
        tasks = tasks_of(pieces_of(given, form), many=cores_of(spark) * _TASKS_PER_CORE)
        found = _copied(spark, tasks, whole)
        (whole / _DONE).write_text(json.dumps(found))
    problems, problem_texts = json.loads((whole / _DONE).read_text())
    written = files_of([str(whole)])
    files = in_order(written, checked=True)
    if files is None:
        ordered = directory / "in-order"
        if not _is_written(ordered):
            read = _messages(spark, written).repartitionByRange("seq").sortWithinPartitions("seq", "qmgr")
            read.write.mode("overwrite").option("parquet.block.size", str(_GROUP_BYTES)).parquet(str(ordered))
        written = files_of([str(ordered)])
        files = in_order(written, checked=True)
        assert files is not None
    return StagedCapture(files, _messages(spark, written), problems, tuple(problem_texts))


def _copied(spark: SparkSession, tasks: Sequence[ReadTask], directory: Path) -> tuple[int, list[str]]:
    """Write the messages of each task to a file, without Java. How many problems there were, and the first in words."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, task in (row for batch in batches for row in columns(batch, "number", "task")):
            part, count, texts = PartFile(directory / part_name(number), SCHEMA), 0, list[str]()
            for batch in (found for piece in pickle.loads(task).pieces for found in read_piece(piece, NATURAL)):
                bad = batch.column("problem").drop_null()
                count += len(bad)
                texts += bad.slice(0, _MOST_TEXTS - len(texts)).to_pylist()
                good = batch.filter(pc.is_null(batch.column("problem"))) if len(bad) else batch
                part.add(good.select(_NAMES))
            part.close()
            yield batch_of([(number, count, texts)], _ARROW_COPIED)

    rows = [(number, bytearray(pickle.dumps(task))) for number, task in enumerate(tasks)]
    given = spark.createDataFrame(rows, "number int, task binary").repartitionById(max(len(tasks), 1), "number")
    done = sorted(given.mapInArrow(copy, _COPIED).collect())
    return sum(row["problems"] for row in done), [text for row in done for text in row["texts"]][:_MOST_TEXTS]


def part_name(number: int) -> str:
    """The name of the file that a task writes."""
    return f"part-{number:05}.parquet"


class PartFile:
    """A Parquet file of messages while a task writes it; a task that is tried again writes the same."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._partial = path, path.with_name(f".{uuid.uuid4().hex}")
        self._writer = parquet.ParquetWriter(self._partial, schema)
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Some more of them."""
        self._held.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _GROUP_BYTES:
            self._write()

    def close(self) -> None:
        """Close the file, and give it its name."""
        self._write()
        self._writer.close()
        self._partial.replace(self._path)

    def _write(self) -> None:
        if self._bytes:
            self._writer.write_table(pa.Table.from_batches(self._held))
        self._held, self._bytes = [], 0


def _messages(spark: SparkSession, files: list[Path]) -> DataFrame:
    return spark.read.schema(CAPTURED).parquet(*map(str, files)) if files else spark.createDataFrame([], CAPTURED)


def _is_written(directory: Path) -> bool:
    return (directory / _DONE).exists()


SCHEMA: Final = arrow_schema(CAPTURED)
_BATCH_ROWS: Final = 4096
_NAMES: Final = tuple(CAPTURED.names)
_NEVER_NULL: Final = ("seq", "queue", "body")
_NOW: Final = SCHEMA.field("time").type

# So many for a range: a range is larger than another by no more than a cell at each end.
_CELLS: Final = 16


@dataclass(frozen=True, slots=True)
class Group:
    """One row group. least, most: of seq. rows: how many."""

    path: str
    number: int
    least: int
    most: int
    rows: int


@dataclass(frozen=True)
class FilesInOrder:
    """Row groups in the order of seq. timeless: whether a message may be without a time."""

    groups: tuple[Group, ...]
    timeless: bool

    @property
    def count(self) -> int:
        """How many messages there are."""
        return sum(group.rows for group in self.groups)

    def batches(self, start: int, end: int, selection: MessageSelection = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """The messages with a seq from *start* to before *end*, in order; of one seq in the order of queue managers.

        The columns are those of CAPTURED; qmgr has its default where it is missing. selection: where it is not
        everything there is CHOSEN, too.
        """
        first = bisect_left(self.groups, start, key=lambda group: group.most)
        last = bisect_left(self.groups, end, key=lambda group: group.least)
        groups = self.groups[first:last]
        found = _read(groups, start, end, selection)
        shared = any(before.most == after.least for before, after in pairwise(groups))
        return _sorted_across(found) if shared else found

    def ranges(self, wanted: int) -> tuple[int, ...]:
        """Where each of *wanted* ranges of about the same size begins, and where the last one ends, by the footers.

        Row groups are cut into cells, as if their messages were spread evenly over their seqs; ranges begin at cells.
        """
        cells: list[tuple[int, float]] = []
        each = -(-self.count // (_CELLS * wanted))
        for group in self.groups:
            parts = min(-(-group.rows // each), group.most - group.least + 1)
            width = -(-(group.most - group.least + 1) // parts)
            cells += [(at, group.rows / parts) for at in range(group.least, group.most + 1, width)]
        starts: list[int] = []
        before = 0.0
        for at, rows in cells:
            if before * wanted / self.count >= len(starts) and (not starts or at > starts[-1]):
                starts.append(at)
            before += rows
        return (*starts, self.groups[-1].most + 1)


def _read(groups: Sequence[Group], start: int, end: int, selection: MessageSelection) -> Iterator[pa.RecordBatch]:
    for path, of_file in groupby(groups, lambda group: group.path):
        with open_parquet(path, pre_buffer=False, coerce_int96_timestamp_unit="us") as file:
            for group in of_file:
                for batch in _in_order(file, group.number, selection):
                    within = batch
                    if group.least < start or group.most >= end:
                        seq = batch.column("seq")
                        within = batch.filter(pc.and_(pc.greater_equal(seq, start), pc.less(seq, end)))
                    if within.num_rows:
                        yield within


def _sorted_across(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """*batches*, where the messages of one seq may be in several: the last seq of each waits for the next one."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        both = batch if held is None else _sorted(pa.Table.from_batches([held, batch]))
        seqs = both.column("seq").to_numpy()
        done = int(np.searchsorted(seqs, seqs[-1]))
        if done:
            yield both.slice(0, done)
        held = both.slice(done)
    if held is not None:
        yield held


def _sorted(table: pa.Table) -> pa.RecordBatch:
    ordered = table.sort_by([("seq", "ascending"), ("qmgr", "ascending")]).combine_chunks()
    (batch,) = ordered.to_batches()
    return batch


def in_order(files: Iterable[Path], *, checked: bool = False) -> FilesInOrder | None:
    """*files* in order, where they are fit for it; None where rows would have to be moved or mended first.

    They have every column, with the right type, a seq, a queue and a body in each row, and row groups that overlap in
    no more than one seq; directories do not add to them. Only footers are read. checked: the rows are known to be as
    they have to be.
    """
    groups: list[Group] = []
    timeless = False
    for path in files:
        try:
            if not checked and partition_values(path):
                return None
            with open_parquet(path) as file:
                schema, about = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            return None
        leaves = {about.schema.column(number).path: number for number in range(about.num_columns)}
        at = {name: leaves[name] for name in _NAMES if name in leaves}
        if not all(name in at and _fits(schema.field(name), about.schema.column(at[name])) for name in _NAMES):
            return None
        for number in range(about.num_row_groups):
            group = about.row_group(number)
            if not group.num_rows:
                continue
            statistics = {name: group.column(at[name]).statistics for name in (*_NEVER_NULL, "time")}
            if not (checked or _is_whole(statistics)):
                return None
            seq = statistics["seq"]
            timeless = timeless or _may_be_null(statistics["time"])
            groups.append(Group(str(path), number, seq.min, seq.max, group.num_rows))
    groups.sort(key=lambda group: (group.least, group.most))
    # One seq may be that of several queue managers.
    if any(before.most > after.least for before, after in pairwise(groups)):
        return None
    return FilesInOrder(tuple(groups), timeless)


def _is_whole(statistics: dict[str, Any]) -> bool:
    """Whether every message has a seq, a queue and a body, by the statistics of a row group."""
    seq, queue = statistics["seq"], statistics["queue"]
    if any(_may_be_null(statistics[name]) for name in _NEVER_NULL):
        return False
    return bool(seq.has_min_max and seq.min >= 0 and queue.has_min_max and queue.min)


def _may_be_null(statistics: Any) -> bool:
    return statistics is None or not statistics.has_null_count or statistics.null_count > 0


def _fits(given: pa.Field, stored: parquet.ColumnSchema) -> bool:
    wanted = SCHEMA.field(given.name).type
    if pa.types.is_timestamp(wanted):
        # Spark's INT96 has no time zone in it, and is UTC.
        return pa.types.is_timestamp(given.type) and (given.type.tz is not None or stored.physical_type == "INT96")
    return bool(given.type == wanted)


def _in_order(file: parquet.ParquetFile, number: int, selection: MessageSelection) -> Iterator[pa.RecordBatch]:
    """One row group; where its rows are in no order, or two have the same seq, it is read as a whole."""
    seqs = file.read_row_group(number, columns=["seq"]).column("seq").to_numpy()
    if np.all(seqs[1:] > seqs[:-1]):
        given = file.iter_batches(_BATCH_ROWS, row_groups=[number], columns=list(_NAMES), use_threads=False)
        yield from (_mended(batch, selection) for batch in given)
    else:
        table = file.read_row_group(number, columns=list(_NAMES), use_threads=False)
        mended = _sorted(pa.Table.from_batches([_mended(batch, selection) for batch in table.to_batches()]))
        yield from (mended.slice(at, _BATCH_ROWS) for at in range(0, mended.num_rows, _BATCH_ROWS))


def _mended(batch: pa.RecordBatch, selection: MessageSelection) -> pa.RecordBatch:
    """*batch* with the columns of CAPTURED, and each message with its queue manager; and with CHOSEN."""
    columns = {field.name: batch.column(field.name).cast(field.type, safe=False) for field in SCHEMA}
    qmgr = columns["qmgr"]
    if qmgr.null_count or pc.any(pc.equal(qmgr, "")).as_py():
        named = pc.and_kleene(pc.is_valid(qmgr), pc.not_equal(qmgr, ""))
        columns["qmgr"] = pc.if_else(named, qmgr, pa.scalar(DEFAULT_QMGR))
    mended = pa.RecordBatch.from_arrays(list(columns.values()), schema=SCHEMA)
    if selection.is_all:
        return mended
    as_captured = mended.set_column(SCHEMA.get_field_index("qmgr"), "qmgr", qmgr)
    return mended.append_column(CHOSEN, chosen_of(as_captured, selection))


def with_moments(
    batches: Iterable[pa.RecordBatch], last: dict[str, int | None] | None, *, monotonic_clock: bool = False
) -> Iterator[pa.RecordBatch]:
    """*batches* with the columns COLUMNS, and CHOSEN where they have it.

    A message without a time comes when the last one of its queue manager came. last: by queue manager, the last moment
    before them, in microseconds since 1970, which is where it began if there was none; None where each message comes at
    its time. monotonic_clock: no message comes earlier than the last one.
    """
    for batch in batches:
        time = batch.column("time")
        if last is not None:
            time = filled(batch, last, monotonic_clock=monotonic_clock).fill_null(pa.scalar(0, _NOW))
        columns = {**dict(zip(batch.schema.names, batch.columns, strict=True)), "now": time}
        names = [*COLUMNS, CHOSEN] if CHOSEN in columns else list(COLUMNS)
        yield pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def filled(batch: pa.RecordBatch, last: dict[str, int | None], *, monotonic_clock: bool = False) -> pa.Array:
    """The time of each message, or that of the last one before it of its queue manager, if there is one.

    last: as in ``with_moments``; it is brought up to date. monotonic_clock: that of the last one also where its own is
    earlier.
    """
    moments: list[int | None] = []
    given = zip(batch.column("qmgr").to_pylist(), batch.column("time").cast(pa.int64()).to_pylist(), strict=True)
    for qmgr, moment in given:
        if moment is not None:
            before = last.get(qmgr) if monotonic_clock else None
            last[qmgr] = moment if before is None else max(before, moment)
        moments.append(last.get(qmgr))
    return pa.array(moments, pa.int64()).cast(_NOW)
