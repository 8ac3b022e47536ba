"""Puts straight from the tasks of the second pass into files, one for each range: nothing of them passes through Java.

A task writes under a name of its own, so that one that is tried again does no harm. When it is done the file gets its
name, and then the report on it: a range with a report is whole. All tasks and the driver see the same file system.

The second pass over a capture in files: every task reads its range for itself, and no message passes through Java.

What a task needs of the first pass is kept in files too, the state at the beginning of its range, in *blocks*. A block
is one range, or 2, 4, 8 ... ranges that begin at a multiple of their number. What is there at the beginning of many
ranges is in the few blocks that together are these ranges: a subscription that lives for a year is in a dozen of them,
not in thousands of ranges. A task reads the blocks that its range is in.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from commands.broker.outcome import Arrival
from commands.broker.puts import PutKind
from commands.disk.files import put_in_place, to_disk
from commands.headers.response import Completion
from commands.replay.put_columns import PutsParquet
from commands.replay.put_lines import PutLines
from commands.replay.spark.capture_scan import PreparedInFiles, in_runs
from commands.replay.spark.prepare import CHOSEN, Prepared
from commands.replay.spark.schemas import COLUMNS, arrow_schema, columns
from commands.replay.spark.second_pass import STATE, Lane, PutsKeeper, RangeTask, Result, state_of

_BATCH_ROWS: Final = 1024
_STATE: Final = STATE[:-2]
_LEVELS: Final = 16
_TASKS_PER_CORE: Final = 2
_LEVEL_BITS: Final = 24


@dataclass(frozen=True)
class Found:
    """What the first pass leaves for the second one, in files: a directory for each block."""

    directory: str

    def state(self, number: int) -> Iterator[tuple[Any, ...]]:
        """The state at the beginning of a range: rows of STATE, without the ranges."""
        for block in blocks_with(number):
            for path in sorted(Path(self.directory, f"block={block}").glob("*.parquet")):
                with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                    for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                        yield from columns(batch, *_STATE)


def blocks_of(first: int, last: int) -> list[int]:
    """The numbers of the blocks that together are the ranges *first* to *last*, the fewest that there are."""
    found = []
    while first <= last:
        level = 0
        while level < _LEVELS - 1 and not first & (1 << level) and first + (2 << level) - 1 <= last:
            level += 1
        found.append(level << _LEVEL_BITS | first >> level)
        first += 1 << level
    return found


def blocks_with(number: int) -> list[int]:
    """The numbers of the blocks that range *number* is in."""
    return [level << _LEVEL_BITS | number >> level for level in range(_LEVELS)]


def keep_found(ready: Prepared, lanes: Sequence[Lane], directory: Path) -> Found:
    """Run the first pass of *lanes*, and keep in *directory* what the second one needs. What is kept of it elsewhere
    is given up."""
    state = state_of(ready, lanes)
    schema = StructType([*(state.schema[name] for name in _STATE), StructField("block", IntegerType())])
    in_order = state.mapInArrow(_in_blocks, schema).repartition("block")
    in_order = in_order.sortWithinPartitions("block", "lane", "qmgr", "seq")
    in_order.write.mode("overwrite").partitionBy("block").parquet(str(directory))
    for lane in lanes:
        lane.give_up()
    return Found(str(directory))


def _in_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of STATE, each once for each of its blocks."""
    for batch in batches:
        blocks = [blocks_of(*span) for span in columns(batch, "first", "last")]
        rows = pa.array([at for at, found in enumerate(blocks) for _ in found], pa.int64())
        of_rows = pa.array([block for found in blocks for block in found], pa.int32())
        yield batch.select(_STATE).take(rows).append_column("block", of_rows)


def second_pass_in_files(
    ready: PreparedInFiles,
    lanes: Sequence[Lane],
    found: Found,
    keeper: Callable[[int], PutsKeeper],
    schema: StructType,
    numbers: Sequence[int],
) -> DataFrame:
    """What keepers keep of the ranges of these numbers, in that order; as ``second_pass``.

    keeper: makes one for each range. A task has several ranges, if there are enough: a range that follows another one
    begins with the broker of that one, and with its templates.
    """
    given = ready.in_files
    settings = [(lane.setting, lane.controlled) for lane in lanes]

    def work(some: Iterable[int]) -> Iterator[pa.RecordBatch]:
        task, following = None, -1
        for number in some:
            if task is None or number != following:
                task = RangeTask(settings, keeper(number))
                for lane, seq, now, qmgr, queue, user, md, body, topic in found.state(number):
                    task.learn(lane, qmgr, Arrival(seq, now, queue, md, body, user), topic)
            else:
                task.keeper = keeper(number)
            yield from task.run(_rows(given.messages(number)))
            following = number + 1

    tasks = min(len(numbers), ready.cores * _TASKS_PER_CORE)
    return in_runs(ready.messages.sparkSession, numbers, tasks, work, schema)


def _rows(messages: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The arguments of ``RangeTask.process``."""
    for batch in messages:
        chosen = batch.column(CHOSEN).to_pylist() if CHOSEN in batch.schema.names else [True] * batch.num_rows
        for row, is_chosen in zip(columns(batch, *COLUMNS), chosen, strict=True):
            yield (*row, None, None, is_chosen)


FORMATS: Final = ("jsonl", "parquet")
_REPORT: Final = StructType([StructField("report", StringType())])
_ARROW_REPORT: Final = arrow_schema(_REPORT)
_MOST_TEXTS: Final = 20


@dataclass
class WrittenFiles:
    """What one task wrote. number: of the range. name: of the file; empty where the range has no messages.

    problem_texts: the first few messages that could not be decoded, in words; undecodable: how many.
    """

    number: int
    name: str = ""
    messages: int = 0
    errors: int = 0
    undecodable: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)
    problem_texts: list[str] = field(default_factory=list)


def write_puts(
    ready: PreparedInFiles, lane: Lane, found: Found, numbers: Sequence[int], directory: Path, form: str
) -> list[WrittenFiles]:
    """Write the puts of the ranges of these numbers into *directory*; what was written, in their order.

    form: one of FORMATS.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = str(directory)
    reports = second_pass_in_files(
        ready, [lane], found, lambda number: _FileKeeper(number, path, form), _REPORT, numbers
    )
    return [WrittenFiles(**json.loads(row["report"])) for row in reports.collect()]


def earlier_written(directory: Path) -> list[WrittenFiles]:
    """What is whole in *directory*."""
    return [WrittenFiles(**json.loads(path.read_text())) for path in sorted(directory.glob("*.json"))]


class _FileKeeper(PutsKeeper):
    """Writes the puts of one task into a file of its own."""

    is_full = False

    def __init__(self, number: int, directory: str, form: str) -> None:
        self._directory, self._form = Path(directory), form
        self._partial = self._directory / f".{uuid.uuid4().hex}"
        self._file: BinaryIO | None = None
        self._sink: PutLines | PutsParquet | None = None
        self._written = WrittenFiles(number)
        self._kinds: Counter[str] = Counter()
        self._passed_over: Counter[str] = Counter()

    def keep(self, arrival: Arrival, qmgr: str, results: Sequence[Result]) -> None:
        """Take the result of one message."""
        ((outcome, _),) = results
        written = self._written
        sink = self._sink or self._opened()
        written.messages += 1
        if outcome.completion is None:
            self._passed_over[arrival.queue] += 1
        elif outcome.completion is Completion.ERROR:
            written.errors += 1
        if outcome.undecodable:
            written.undecodable += 1
            if len(written.problem_texts) < _MOST_TEXTS:
                written.problem_texts.append(f"message {arrival.seq} on {arrival.queue}: {outcome.why}")
        if outcome.puts:
            sink.add(arrival.seq, qmgr, outcome.puts)
            for put in outcome.puts:
                self._kinds[put.kind.value] += 1

    def _opened(self) -> PutLines | PutsParquet:
        self._file = self._partial.open("wb")
        self._sink = PutLines(self._file) if self._form == "jsonl" else PutsParquet(self._file)
        return self._sink

    def take(self) -> Iterator[pa.RecordBatch]:
        """Nothing: the report comes at the end."""
        return iter(())

    def end(self) -> Iterator[pa.RecordBatch]:
        """The report."""
        written = self._written
        if self._sink is not None and self._file is not None:
            self._sink.close()
            to_disk(self._file)
            self._file.close()
            written.name = f"{written.number:05}.{self._form}"
            put_in_place(self._partial, self._directory / written.name)
        written.kinds, written.passed_over = dict(self._kinds), dict(self._passed_over)
        report = json.dumps(asdict(written))
        with self._partial.open("wb") as file:
            file.write(report.encode())
            to_disk(file)
        put_in_place(self._partial, self._directory / f"{written.number:05}.json")
        yield pa.RecordBatch.from_pylist([{"report": report}], schema=_ARROW_REPORT)


def kinds_of(written: Iterable[WrittenFiles]) -> dict[PutKind, int]:
    """How many puts of each kind were written."""
    return {kind: sum(each.kinds.get(kind.value, 0) for each in written) for kind in PutKind}
