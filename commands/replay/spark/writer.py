"""``df.write.format("qpubsub")``: puts as JSON Lines or Parquet, captured messages in any format that has a writer.

A directory with one file for each partition, in the order of the partitions. Files appear when the whole job has
succeeded; a task that is tried again writes another file, and one of the two counts.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from commands.broker.puts import Put
from commands.disk.files import to_disk
from commands.replay.spark.rows import columns
from commands.replay.spark.schemas import CAPTURED, PUTS, arrow_schema, check_columns
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, write_captures
from rfh2.errors import CaptureError

_PUT_FORMATS: Final = ("jsonl", "parquet")


@dataclass
class CommittedFiles(WriterCommitMessage):
    """What one task wrote."""

    name: str
    rows: int


class FilesWriter(DataSourceArrowWriter):
    """Writes the partitions of a DataFrame of puts or of captured messages as files.

    Raises SchemaError where the columns are neither; CaptureError for a format that is not written.
    """

    def __init__(self, schema: StructType, overwrite: bool, path: str, form: str) -> None:
        self._puts = {"n", "kind"} <= set(schema.names)
        check_columns(schema, PUTS if self._puts else CAPTURED, "what is to be written")
        able = _PUT_FORMATS if self._puts else tuple(f.name for f in FORMATS.values() if f.writer is not None)
        if form not in able:
            what = "puts" if self._puts else "captures"
            raise CaptureError(form, None, f"{what} are written as {', '.join(able)}")
        self._directory, self._form, self._overwrite = Path(path.removeprefix("file:")), form, overwrite
        self._job = uuid.uuid4().hex[:12]
        self._staging = self._directory / f"_qpubsub-{self._job}"
        # Not by the tasks: some of them may still begin after another has failed and the job is given up.
        self._staging.mkdir(parents=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> CommittedFiles:
        """One partition."""
        context = TaskContext.get()
        partition, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        name = f"part-{partition:05}-{attempt}-{self._job}.{self._form}"
        with (self._staging / name).open("wb") as file:
            rows = write_batches(iterator, file, self._form, self._puts)
            to_disk(file)
        return CommittedFiles(name, rows)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All partitions are written: give the files their names."""
        old = [path for path in self._directory.iterdir() if path.name[0] not in "._"] if self._overwrite else []
        for message in messages:
            if isinstance(message, CommittedFiles):
                partition, _, job = message.name.rsplit("-", 2)
                (self._staging / message.name).replace(self._directory / f"{partition}-{job}")
        for path in old:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self._staging, ignore_errors=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what was written. Tasks that are still at work find no place for another file."""
        gone = self._staging.with_name(f"{self._staging.name}-given-up")
        with suppress(FileNotFoundError):
            self._staging.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def write_batches(batches: Iterable[pa.RecordBatch], target: BinaryIO, form: str, puts: bool) -> int:
    """Write batches of puts, or of captured messages, to *target*; returns how many rows."""
    if form == "parquet":
        return _write_parquet(batches, target, arrow_schema(PUTS if puts else CAPTURED))
    if not puts:
        return write_captures(_messages(batches), target, form)
    count = 0
    for batch in batches:
        for row in columns(batch, *PUTS.names):
            target.write(put_line(row))
            count += 1
    return count


def put_line(row: tuple[Any, ...]) -> bytes:
    """A put as a line of JSON: the line that the local replay writes."""
    *fields, md, body = row
    named = dict(zip(PUTS.names, fields, strict=False))
    return Put(**named, md_hex=md.hex(), body_hex=body.hex()).model_dump_json().encode() + b"\n"


def _write_parquet(batches: Iterable[pa.RecordBatch], target: BinaryIO, schema: pa.Schema) -> int:
    count = 0
    with parquet.ParquetWriter(target, schema) as writer:
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(schema.names)
            writer.write_table(table.cast(schema))
            count += batch.num_rows
    return count


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[CapturedMessage]:
    for batch in batches:
        for seq, time, qmgr, queue, user, md, body in columns(batch, *CAPTURED.names):
            if body is not None:
                md_hex = None if md is None else md.hex()
                yield CapturedMessage(
                    seq=seq, time=time, qmgr=qmgr, queue=queue or "", user=user, md_hex=md_hex, body_hex=body.hex()
                )
