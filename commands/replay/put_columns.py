"""Puts as both engines write them: JSON Lines to a name that ends in ``.jsonl``, Parquet to one in ``.parquet``.

Columns are filled one by one, and most of what the puts of a publication have in common is never touched as a row.
"""

from binascii import hexlify
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet

from commands.broker.puts import Outgoing, Put
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


# What a line has beside the names of a put: seq and n before them, the descriptor and the data behind them.
_SEQ: Final = b'{"seq":'
_N: Final = b',"n":'
_DATA: Final = b'","body_hex":"'
_END: Final = b'"}\n'
_EMPTY: Final = _DATA + b'"}'

_Names = tuple[object, ...]
_MOST_NAMES: Final = 65_536
"""Some 300 bytes each."""


class PutLines:
    """A file of puts while it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._names: dict[_Names, bytes] = {}

    def write(self, put: Put) -> None:
        """One put."""
        self._file.write(put.model_dump_json().encode() + b"\n")

    def add(self, seq: int, at_qmgr: str, puts: Sequence[Outgoing], begin: int = 0) -> None:
        """The puts of command *seq*, which arrived at *at_qmgr*. begin: the n of the first one."""
        front, parts = b"%b%d%b" % (_SEQ, seq, _N), list[bytes]()
        for n, put in enumerate(puts, begin):
            # Destinations come again and again; all but descriptor and body is looked up.
            key = (at_qmgr, *put[:3], *put[5:9])
            names = self._names.get(key)
            if names is None:
                names = self._keep(key, at_qmgr, put)
            parts += (front, b"%d" % n, names, hexlify(put.md), _DATA, hexlify(put.body), _END)
        self._file.write(b"".join(parts))

    def close(self) -> None:
        """Do nothing: every put is already written."""

    def _keep(self, key: _Names, at_qmgr: str, put: Outgoing) -> bytes:
        """What is between n and descriptor in the line of a put, as the model writes it."""
        line = Put.of(0, at_qmgr, 0, put._replace(md=b"", body=b"")).model_dump_json().encode()
        names = line.removeprefix(b"%b0%b0" % (_SEQ, _N)).removesuffix(_EMPTY)
        if len(self._names) >= _MOST_NAMES:
            self._names.clear()
        self._names[key] = names
        return names
