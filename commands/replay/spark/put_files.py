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
from pyarrow import parquet
from pyspark.sql.types import StringType, StructField, StructType

from commands.broker import Arrival, Outcome
from commands.puts import Completion, Put, PutKind
from commands.replay.spark.prepare import Prepared
from commands.replay.spark.rows import PutBatch
from commands.replay.spark.schemas import PUTS, arrow_schema
from commands.replay.spark.second_pass import Lane, Result, second_pass
from streams.topic_space import TopicSpace

FORMATS: Final = ("jsonl", "parquet")
_REPORT: Final = StructType([StructField("report", StringType())])
_ARROW_REPORT: Final = arrow_schema(_REPORT)
_MOST_TOLD: Final = 20
_GROUP_BYTES: Final = 32 << 20


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


def write_puts(ready: Prepared, lane: Lane, span: tuple[int, int], directory: Path, form: str) -> list[Written]:
    """Write the puts of the ranges in *span* into *directory*; what was written, in the order of seq.

    form: one of FORMATS.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = str(directory)
    reports = second_pass(ready, [lane], lambda: _FileKeeper(path, form), _REPORT, span)
    written = [Written(**json.loads(row["report"])) for row in reports.collect()]
    return sorted((each for each in written if each.name), key=lambda each: each.first_seq)


class _FileKeeper:
    """Writes the puts of one task into a file of its own."""

    space = TopicSpace
    is_full = False

    def __init__(self, directory: str, form: str) -> None:
        self._path = Path(directory) / f".{uuid.uuid4().hex}.{form}"
        self._file: BinaryIO | None = None
        self._sink: _Lines | _Rows | None = None
        self._form = form
        self._written = Written()
        self._kinds: Counter[str] = Counter()
        self._passed_over: Counter[str] = Counter()

    def keep(self, arrival: Arrival, _qmgr: str, results: Sequence[Result]) -> None:
        """Take what one message came to."""
        ((outcome, _),) = results
        written = self._written
        if self._sink is None:
            self._file = self._path.open("wb")
            self._sink = _Lines(self._file) if self._form == "jsonl" else _Rows(self._file)
            written.name, written.first_seq = self._path.name, arrival.seq
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
            self._sink.add(arrival.seq, outcome)
            for put in outcome.puts:
                self._kinds[put.kind.value] += 1

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


class _Lines:
    """JSON Lines: those that the local replay writes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, seq: int, outcome: Outcome) -> None:
        """The puts of one message."""
        for n, put in enumerate(outcome.puts):
            self._file.write(Put.of(seq, n, put).model_dump_json().encode() + b"\n")

    def close(self) -> None:
        """Nothing is held back."""


class _Rows:
    """Parquet."""

    def __init__(self, file: BinaryIO) -> None:
        self._writer = parquet.ParquetWriter(file, arrow_schema(PUTS))
        self._held = PutBatch()
        self._batches: list[pa.RecordBatch] = []

    def add(self, seq: int, outcome: Outcome) -> None:
        """The puts of one message."""
        for n, put in enumerate(outcome.puts):
            self._held.add(seq, n, put)
        if self._held.is_full:
            self._take()

    def close(self) -> None:
        """Write what is held back."""
        self._take()
        self._write()
        self._writer.close()

    def _take(self) -> None:
        self._batches += self._held.take()
        if sum(batch.nbytes for batch in self._batches) >= _GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches = []


def kinds_of(written: list[Written]) -> dict[PutKind, int]:
    """How many puts of each kind were written."""
    return {kind: sum(each.kinds.get(kind.value, 0) for each in written) for kind in PutKind}
