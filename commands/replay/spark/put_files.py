"""Puts straight from the tasks of the second pass into files, one for each range: nothing of them passes through Java.

A task writes under a name of its own, so that one that is tried again does no harm. When it is done the file gets its
name, and then the report on it: a range with a report is whole. All tasks and the driver see the same file system.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from commands.broker.outcome import Arrival
from commands.broker.puts import PutKind
from commands.disk.files import to_disk
from commands.headers.response import Completion
from commands.replay.put_columns import PutsParquet
from commands.replay.put_lines import PutLines
from commands.replay.spark.capture_scan import PreparedInFiles
from commands.replay.spark.schemas import arrow_schema
from commands.replay.spark.second_pass import Lane, PutsKeeper, Result
from commands.replay.spark.second_pass_in_files import Found, second_pass_in_files

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

    def keep(self, arrival: Arrival, _qmgr: str, results: Sequence[Result]) -> None:
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
            sink.add(arrival.seq, outcome.puts)
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
            self._partial.replace(self._directory / written.name)
        written.kinds, written.passed_over = dict(self._kinds), dict(self._passed_over)
        report = json.dumps(asdict(written))
        with self._partial.open("wb") as file:
            file.write(report.encode())
            to_disk(file)
        self._partial.replace(self._directory / f"{written.number:05}.json")
        yield pa.RecordBatch.from_pylist([{"report": report}], schema=_ARROW_REPORT)


def kinds_of(written: Iterable[WrittenFiles]) -> dict[PutKind, int]:
    """How many puts of each kind were written."""
    return {kind: sum(each.kinds.get(kind.value, 0) for each in written) for kind in PutKind}
