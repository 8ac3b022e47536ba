"""The schemas of everything that goes in and out of Spark, as constants.

Arrow batches on their way in and out of the workers.

Columns become Python lists at one go and times are made from their microseconds: that is several times as fast as a
row at a time, and leaves no room for a time zone to creep in.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
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
    StructField,
    StructType,
    TimestampType,
)

from commands.broker.outcome import EPOCH
from commands.replay.decoded_columns import MESSAGE_SCHEMA, SCHEMA
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

Times = list[datetime | None]


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


def _schema(columns: dict[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


_LONG, _INT, _STRING, _BINARY, _TIME = LongType(), IntegerType(), StringType(), BinaryType(), TimestampType()
_STRINGS: Final = ArrayType(_STRING)

_CAPTURED: Final[dict[str, DataType]] = {
    "seq": _LONG,
    "time": _TIME,
    "qmgr": _STRING,
    "queue": _STRING,
    "user": _STRING,
    "md": _BINARY,
    "body": _BINARY,
}

CAPTURED: Final = _schema(_CAPTURED)
"""Captured messages: the columns of the Parquet form (docs/capture-formats.md)."""

READ: Final = _schema({**_CAPTURED, "source": _STRING, "problem": _STRING})
"""What ``spark.read.format("qpubsub")`` gives: a message; or a problem, and no message. source: the file."""

COLUMNS: Final = ("seq", "now", "qmgr", "queue", "user", "md", "body")
"""The columns of a message that is ready for a replay: each has its moment and its queue manager."""

PUTS: Final = _schema(
    {
        "seq": _LONG,
        "n": _INT,
        "at_qmgr": _STRING,
        "kind": _STRING,
        "qmgr": _STRING,
        "queue": _STRING,
        "topic": _STRING,
        "sub_name": _STRING,
        "completion": _STRING,
        "reason": _INT,
        "md": _BINARY,
        "body": _BINARY,
    }
)
"""Puts: the Parquet form."""

DECODED: Final = from_arrow_schema(SCHEMA)
"""Headers and commands, flat; of a message that cannot be decoded, what could be and the problem."""

MESSAGE: Final = from_arrow_schema(MESSAGE_SCHEMA)
"""What ``with_decoded`` adds to a DataFrame, each column with a prefix to its name."""

TRANSLATED: Final = _schema(
    {
        "seq": _LONG,
        "time": _TIME,
        "qmgr": _STRING,
        "queue": _STRING,
        "user": _STRING,
        "command": _STRING,
        "n": _INT,
        "operation": _STRING,
        "mqsc": _STRING,
        "pcf": _STRING,
        "mqi": _STRING,
        "reason": _INT,
        "problem": _STRING,
    }
)
"""One row for each operation. A command without operations has one row with the reason."""


DIFFERENCES: Final = _schema(
    {
        "seq": _LONG,
        "time": _TIME,
        "qmgr": _STRING,
        "user": _STRING,
        "program": _STRING,
        "command": _STRING,
        "rule": _STRING,
        "since": _LONG,
        "change": _STRING,
        "queue": _STRING,
        "sub_name": _STRING,
        "sub_user": _STRING,
        "topic": _STRING,
        "old": _STRING,
        "new": _STRING,
        "why": _STRING,
    }
)
"""Differences between the versions, as ``commands.replay.differences.Difference`` has them."""


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
