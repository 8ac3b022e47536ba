"""Arrow batches on their way in and out of the workers: arrivals, and puts.

Columns become Python lists at one go and times are made from their microseconds: that is several times as fast as a
row at a time, and leaves no room for a time zone to creep in.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from commands.puts import Outgoing
from commands.replay.spark.schemas import PUTS, arrow_schema

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PUTS: Final = arrow_schema(PUTS)
_BATCH_ROWS: Final = 2000
_BATCH_BYTES: Final = 16 << 20

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


class PutBatch:
    """Puts on their way out, a batch at a time."""

    __slots__ = ("_bytes", "_rows")

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the batch."""
        return len(self._rows) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES

    def add(self, seq: int, n: int, put: Outgoing) -> None:
        """Put *n* of command *seq*."""
        completion = None if put.completion is None else put.completion.value
        md, body = put.message.mqmd.encode(), put.body
        row = (seq, n, put.kind.value, put.qmgr, put.queue, put.topic, put.sub_name, completion, put.reason, md, body)
        self._rows.append(row)
        self._bytes += len(body)

    def take(self) -> Iterator[pa.RecordBatch]:
        """What was added since the last time, where there is any."""
        if self._rows:
            rows = self._rows
            self._reset()
            yield batch_of(rows, _PUTS)
