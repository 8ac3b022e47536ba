"""``transfers``, ``transfer_items``, ``agents``: what Managed File Transfer published, as DataFrames.

The rows are those of ``commands.replay.file_transfer``, which reads the messages; nothing is replayed for them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from commands.replay.file_transfer import TABLES, columns_of, may_be_of_agent, rows_of
from commands.replay.file_transfer.rows import check_directory, values_of
from commands.replay.spark.schemas import CAPTURED, batches_of, check_columns, columns, message_of
from rfh2.captured import CapturedMessage

_TYPES: Final[dict[type, DataType]] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    datetime: TimestampType(),
}
_ARROW: Final = {str: pa.string(), int: pa.int64(), float: pa.float64(), datetime: pa.timestamp("us", tz="UTC")}
_WRITERS: Final = {"parquet": "parquet", "csv": "csv", "jsonl": "json"}


def schema_of(table: str) -> StructType:
    """The columns of ``transfers``, ``items`` or ``agents``."""
    return StructType([StructField(name, _TYPES[kind]) for name, kind in columns_of(table).items()])


def transfers(captured: DataFrame) -> DataFrame:
    """One row for each TransferLog and TransferStatus in *captured*. Raises SchemaError."""
    return _table(captured, "transfers")


def transfer_items(captured: DataFrame) -> DataFrame:
    """One row for each file that those messages name. Raises SchemaError."""
    return _table(captured, "items")


def agents(captured: DataFrame) -> DataFrame:
    """One row for each status of an agent in *captured*. Raises SchemaError."""
    return _table(captured, "agents")


def _table(captured: DataFrame, table: str) -> DataFrame:
    check_columns(captured.schema, CAPTURED, "the capture")
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in columns_of(table).items()])
    at = list(TABLES).index(table)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = (values_of(row) for message in _messages(batch) for row in rows_of(message)[at])
            yield from batches_of(rows, schema)

    return captured.select(*CAPTURED.names).where("body is not null").mapInArrow(run, schema_of(table))


def _messages(batch: pa.RecordBatch) -> Iterator[CapturedMessage]:
    for seq, time, qmgr, queue, md, body in columns(batch, "seq", "time", "qmgr", "queue", "md", "body"):
        if may_be_of_agent(queue, body):
            yield message_of(seq, time, qmgr, queue, None, md, body)


def write_tables(captured: DataFrame, directory: Path, form: str) -> tuple[dict[str, int], int]:
    """Write the three tables into *directory*, each a directory of files; how many rows each has, and with problems.

    form: ``parquet``, ``csv`` or ``jsonl``. Raises FileExistsError where the directory holds something else.
    """
    check_directory(directory)
    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    counts: dict[str, int] = {}
    problems = 0
    try:
        for table in TABLES:
            rows = _table(captured, table).cache()
            try:
                target = str(partial / f"{table}.{form}")
                writer = rows.sort("seq", *(["n"] if table == "items" else [])).write.format(_WRITERS[form])
                if form == "csv":
                    writer = writer.option("header", True).option("escape", '"')  # a quote is doubled, as elsewhere
                writer.save(target)
                counts[table] = rows.count()
                problems += 0 if table == "items" else rows.where("problem is not null").count()
            finally:
                rows.unpersist()
        shutil.rmtree(directory, ignore_errors=True)
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return counts, problems
