"""Puts straight from the tasks of the second pass into files, one for each range: nothing of them passes through Java.

A task writes under a name of its own, so that one that is tried again does no harm, and reports what it wrote; the
driver gives the files that count their names. All tasks and the driver see the same file system.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from commands.broker import Arrival
from commands.puts import Completion, PutKind
from commands.replay.put_columns import PutsParquet
from commands.replay.put_lines import PutLines
from commands.replay.repeats import Again
from commands.replay.spark.schemas import arrow_schema
from commands.replay.spark.second_pass import Lane, PutsKeeper, Result
from commands.replay.spark.second_pass_in_files import Found, second_pass_in_files
from commands.replay.spark.survey import InFiles

FORMATS: Final = ("jsonl", "parquet")
_REPORT: Final = StructType([StructField("report", StringType())])
_ARROW_REPORT: Final = arrow_schema(_REPORT)
_MOST_TOLD: Final = 20


@dataclass
class Written:
    """What one task wrote. told: the first few messages that could not be decoded, in words; undecodable: how many."""

    name: str = ""
    first_seq: int = 0
    messages: int = 0
    errors: int = 0
    undecodable: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)


def write_puts(
    shared: Broadcast[InFiles], lane: Lane, found: Found, span: tuple[int, int], directory: Path, form: str
) -> list[Written]:
    """Write the puts of the ranges in *span* into *directory*; what was written, in the order of seq.

    form: one of FORMATS.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = str(directory)
    spark = SparkSession.active()
    reports = second_pass_in_files(spark, shared, [lane], found, lambda: _FileKeeper(path, form), _REPORT, span)
    written = [Written(**json.loads(row["report"])) for row in reports.collect()]
    return sorted((each for each in written if each.name), key=lambda each: each.first_seq)


class _FileKeeper(PutsKeeper):
    """Writes the puts of one task into a file of its own."""

    is_full = False

    def __init__(self, directory: str, form: str) -> None:
        self._path = Path(directory) / f".{uuid.uuid4().hex}.{form}"
        self._file: BinaryIO | None = None
        self._sink: PutLines | PutsParquet | None = None
        self._form = form
        self._written = Written()
        self._kinds: Counter[str] = Counter()
        self._passed_over: Counter[str] = Counter()

    def keep(self, arrival: Arrival, _qmgr: str, results: Sequence[Result]) -> None:
        """Take what one message came to."""
        ((outcome, _),) = results
        written = self._written
        sink = self._sink or self._opened(arrival)
        written.messages += 1
        if outcome.completion is None:
            self._passed_over[arrival.queue] += 1
        elif outcome.completion is Completion.ERROR:
            written.errors += 1
        if outcome.undecodable:
            written.undecodable += 1
            if len(written.told) < _MOST_TOLD:
                written.told.append(f"message {arrival.seq} on {arrival.queue}: {outcome.why}")
        if outcome.puts:
            sink.add(arrival.seq, outcome.puts)
            for put in outcome.puts:
                self._kinds[put.kind.value] += 1

    def keep_again(self, arrival: Arrival, again: Again) -> None:
        """Take the puts of a publication like one before."""
        sink = self._sink or self._opened(arrival)
        self._written.messages += 1
        if again.mds:
            sink.add_again(arrival.seq, again)
            self._kinds[PutKind.PUBLICATION.value] += len(again.mds)

    def _opened(self, first: Arrival) -> PutLines | PutsParquet:
        self._file = self._path.open("wb")
        self._sink = PutLines(self._file) if self._form == "jsonl" else PutsParquet(self._file)
        self._written.name, self._written.first_seq = self._path.name, first.seq
        return self._sink

    def take(self) -> Iterator[pa.RecordBatch]:
        """Nothing before the end."""
        return iter(())

    def end(self) -> Iterator[pa.RecordBatch]:
        """The report."""
        if self._sink is None or self._file is None:
            return
        self._sink.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        written = self._written
        written.kinds, written.passed_over = dict(self._kinds), dict(self._passed_over)
        yield pa.RecordBatch.from_pylist([{"report": json.dumps(asdict(written))}], schema=_ARROW_REPORT)


def kinds_of(written: list[Written]) -> dict[PutKind, int]:
    """How many puts of each kind were written."""
    return {kind: sum(each.kinds.get(kind.value, 0) for each in written) for kind in PutKind}
