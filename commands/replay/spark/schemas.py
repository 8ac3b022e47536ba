"""The schemas of everything that goes in and out of Spark, as constants, made from ``commands.replay.columns``.

Arrow batches on their way in and out of the workers.

Columns become Python lists at one go and times are made from their microseconds: that is several times as fast as a
row at a time, and leaves no room for a time zone to creep in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from commands.broker.times import EPOCH
from commands.replay import columns as columns_of
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

Times = list[datetime | None]
_BATCH_ROWS: Final = 4096


def times(column: pa.ChunkedArray | pa.Array) -> Times:
    """The moments of a timestamp column, in UTC."""
    micros = column.cast(pa.timestamp("us", tz="UTC"), safe=False).cast(pa.int64()).to_pylist()
    return [None if micro is None else EPOCH + timedelta(microseconds=micro) for micro in micros]


def columns(batch: pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
    """The rows of *batch* as tuples of these columns; times are datetimes in UTC."""
    lists = []
    for name in names:
        column = batch.column(name)
        lists.append(times(column) if pa.types.is_timestamp(column.type) else column.to_pylist())
    return zip(*lists, strict=True)


def batch_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """*rows*, one at least, as a batch."""
    arrays = [pa.array(list(v), f.type) for v, f in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batches_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """*rows* as batches, each as soon as it is full."""
    left = iter(rows)
    while some := list(islice(left, _BATCH_ROWS)):
        yield batch_of(some, schema)


def message_of(
    seq: int,
    time: datetime | None,
    qmgr: str | None,
    queue: str | None,
    user: str | None,
    md: bytes | None,
    body: bytes,
) -> CapturedMessage:
    """A row with the columns of CAPTURED, which need not be checked again."""
    return CapturedMessage.model_construct(
        seq=seq,
        time=time,
        qmgr=qmgr,
        queue=queue or "",
        user=user,
        md_hex=None if md is None else md.hex(),
        body_hex=body.hex(),
    )


class SchemaError(QPubSubError):
    """A DataFrame without a column that it must have, or with another type in it."""


def _schema(of: columns_of.Columns) -> StructType:
    return from_arrow_schema(columns_of.arrow_schema(of))


CAPTURED: Final = _schema(columns_of.CAPTURED)
READ: Final = _schema(columns_of.READ)
PUTS: Final = _schema(columns_of.PUTS)
STREAMED: Final = _schema(columns_of.STREAMED)
DECODED: Final = _schema(columns_of.DECODED)
MESSAGE: Final = _schema(columns_of.WITH_DECODED)
TRANSLATED: Final = _schema(columns_of.TRANSLATED)
DIFFERENCES: Final = _schema(columns_of.DIFFERENCES)

COLUMNS: Final = ("seq", "now", "qmgr", "queue", "user", "md", "body")
"""The columns of a message that is ready for a replay: each has its moment and its queue manager."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """The same schema in Arrow; times are in microseconds, UTC."""
    return pa.schema([pa.field(field.name, _arrow_type(field.dataType)) for field in schema.fields])


def check_columns(given: StructType, wanted: StructType, what: str) -> None:
    """Raises SchemaError where *given* lacks a column of *wanted* or has another type; it may have more columns."""
    types = {field.name: field.dataType for field in given.fields}
    for field in wanted.fields:
        if field.name not in types:
            raise SchemaError(f"{what} lacks the column {field.name}; it has {', '.join(types)}")
        if types[field.name] != field.dataType:
            found, due = types[field.name].simpleString(), field.dataType.simpleString()
            raise SchemaError(f"column {field.name} of {what} is {found}, not {due}")


_ARROW: Final[dict[type[DataType], pa.DataType]] = {
    LongType: pa.int64(),
    IntegerType: pa.int32(),
    StringType: pa.string(),
    BinaryType: pa.binary(),
    BooleanType: pa.bool_(),
    TimestampType: pa.timestamp("us", tz="UTC"),
}


def _arrow_type(kind: DataType) -> pa.DataType:
    if isinstance(kind, ArrayType):
        return pa.list_(_arrow_type(kind.elementType))
    if isinstance(kind, StructType):
        return pa.struct([pa.field(field.name, _arrow_type(field.dataType)) for field in kind.fields])
    return _ARROW[type(kind)]
