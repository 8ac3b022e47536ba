"""Puts as columns, and as Parquet: what both engines write to a name that ends in ``.parquet``.

Columns are filled one by one, and most of what the puts of a publication have in common is never touched as a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet

from commands.broker.puts import Outgoing
from commands.replay.columns import PUTS, arrow_schema

SCHEMA: Final = arrow_schema(PUTS)
"""The Parquet form of puts: the fields of their JSON lines, a column each."""

_NAMES: Final = [name for name in SCHEMA.names if pa.types.is_string(SCHEMA.field(name).type)]
_BATCH_ROWS: Final = 2000
_BATCH_BYTES: Final = 16 << 20
_GROUP_BYTES: Final = 32 << 20


class PutColumns:
    """Collects puts into batches."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._columns: list[list[Any]] = [[] for _ in SCHEMA]
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the batch."""
        return len(self._columns[0]) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES

    def add(self, seq: int, at_qmgr: str, puts: Sequence[Outgoing], begin: int = 0) -> None:
        """The puts of command *seq*, which arrived at *at_qmgr*. begin: the n of the first one."""
        if not puts:
            return
        count, columns = len(puts), self._columns
        kinds, qmgrs, queues, mds, bodies, topics, sub_names, completions, reasons, *_ = zip(*puts, strict=True)
        columns[0] += (seq,) * count
        columns[1] += range(begin, begin + count)
        columns[2] += (at_qmgr,) * count
        columns[3] += [kind.value for kind in kinds]
        columns[4] += qmgrs
        columns[5] += queues
        columns[6] += topics
        columns[7] += sub_names
        columns[8] += [None if each is None else each.value for each in completions]
        columns[9] += reasons
        columns[10] += mds
        columns[11] += bodies
        self._bytes += sum(map(len, bodies))

    def take(self) -> Iterator[pa.RecordBatch]:
        """The puts that were added since the last call, if there are any."""
        if self._columns[0]:
            columns = self._columns
            self._reset()
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class PutsParquet:
    """A Parquet file of puts while it is written, in row groups of bounded size."""

    def __init__(self, file: BinaryIO) -> None:
        self._writer = parquet.ParquetWriter(file, SCHEMA, use_dictionary=_NAMES)
        self._held = PutColumns()
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, seq: int, at_qmgr: str, puts: Sequence[Outgoing], begin: int = 0) -> None:
        """The puts of one message; see ``PutColumns.add``."""
        self._held.add(seq, at_qmgr, puts, begin)
        if self._held.is_full:
            self._take()

    def close(self) -> None:
        """Write the last puts and the footer."""
        self._take()
        self._write()
        self._writer.close()

    def _take(self) -> None:
        for batch in self._held.take():
            self._batches.append(batch)
            self._bytes += batch.nbytes
        if self._bytes >= _GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._bytes = [], 0
