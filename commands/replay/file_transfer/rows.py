"""The rows of the three tables, declared once: the local files, Parquet and Spark take their columns from here.

A message is one row of ``transfers`` or of ``agents``. The files of a transfer that a message names are rows of
``items``. Every column but ``seq``, ``n`` and ``kind`` may be empty: agents of different versions write different
elements.

The files of the three tables are in a directory: Parquet, CSV or JSON Lines, a file each. They are written beside the
directory, and replace it when they are complete. A time is ISO 8601 with ``Z`` in text.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from errno import EEXIST
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, get_args, get_type_hints

from rfh2.captured import iso


@dataclass(frozen=True, slots=True)
class TransferRow:
    """One message about a transfer: TransferLog or TransferStatus.

    seq, time, qmgr: of the captured message. topic: whole, with SYSTEM.FTE. kind: ``log`` or ``status``. transfer_id:
    48 hexadecimal digits. action, action_time: ``started``, ``progress``, ``completed`` and others, and when; a status
    has the time alone. total: items in the transfer. first_item, items: the index of the first item in this message,
    and how many it names. current_item, seconds: of a status. result_code, supplement: of the whole transfer. failures,
    warnings: how many files failed, or had a warning. problem: what could not be read.
    """

    seq: int
    time: datetime | None = None
    qmgr: str | None = None
    topic: str | None = None
    kind: str = "log"
    transfer_id: str | None = None
    version: str | None = None
    agent_role: str | None = None
    action: str | None = None
    action_time: datetime | None = None
    source_agent: str | None = None
    source_qmgr: str | None = None
    destination_agent: str | None = None
    destination_qmgr: str | None = None
    originator_host: str | None = None
    originator_user: str | None = None
    mqmd_user: str | None = None
    job: str | None = None
    schedule_id: str | None = None
    start_time: datetime | None = None
    total: int | None = None
    bytes_sent: int | None = None
    first_item: int | None = None
    items: int | None = None
    current_item: int | None = None
    seconds: float | None = None
    actual_start_time: datetime | None = None
    retries: int | None = None
    failures: int | None = None
    warnings: int | None = None
    result_code: int | None = None
    supplement: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One file, queue or data set of a transfer, as one message names it.

    seq: of the message. n: its place there, from 0. index: its place in the transfer, from 0, where the message says
    it. transferred: bytes so far, of a status. sizes in bytes.
    """

    seq: int
    n: int
    time: datetime | None = None
    qmgr: str | None = None
    kind: str = "log"
    transfer_id: str | None = None
    index: int | None = None
    mode: str | None = None
    source_type: str | None = None
    source: str | None = None
    source_size: int | None = None
    source_last_modified: datetime | None = None
    source_checksum_method: str | None = None
    source_checksum: str | None = None
    source_disposition: str | None = None
    destination_type: str | None = None
    destination: str | None = None
    destination_size: int | None = None
    destination_last_modified: datetime | None = None
    destination_checksum_method: str | None = None
    destination_checksum: str | None = None
    destination_exist: str | None = None
    transferred: int | None = None
    result_code: int | None = None
    supplement: str | None = None


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One status of an agent. source_transfers, destination_transfers: how many it has. properties: all, as JSON."""

    seq: int
    time: datetime | None = None
    qmgr: str | None = None
    topic: str | None = None
    agent: str | None = None
    agent_qmgr: str | None = None
    description: str | None = None
    version: str | None = None
    operating_system: str | None = None
    time_zone: str | None = None
    type: str | None = None
    max_source_transfers: int | None = None
    max_destination_transfers: int | None = None
    max_queued_transfers: int | None = None
    source_transfers: int | None = None
    destination_transfers: int | None = None
    properties: str | None = None
    problem: str | None = None


Row = TransferRow | ItemRow | AgentRow


class Rows(NamedTuple):
    """The rows of one message."""

    transfers: tuple[TransferRow, ...] = ()
    items: tuple[ItemRow, ...] = ()
    agents: tuple[AgentRow, ...] = ()


TABLES: Final[Mapping[str, type[Row]]] = {"transfers": TransferRow, "items": ItemRow, "agents": AgentRow}
"""The row of each table, by the names of ``Rows``."""


def columns_of(table: str) -> dict[str, type]:
    """The columns of *table*, in order, with ``int``, ``float``, ``str`` or ``datetime``."""
    row = TABLES[table]
    hints = get_type_hints(row)
    return {field.name: _plain(hints[field.name]) for field in fields(row)}


def values_of(row: Row) -> tuple[Any, ...]:
    """The values of *row*, in the order of its columns."""
    return tuple(getattr(row, name) for name in row.__slots__)


def _plain(hint: Any) -> type:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if isinstance(hint, UnionType) else [hint]
    found: type = kinds[0]
    return found


FORMATS: Final = ("parquet", "csv", "jsonl")
_BATCH_ROWS: Final = 20_000


def check_directory(directory: Path) -> None:
    """Raises FileExistsError where *directory* holds anything but tables of file transfers."""
    names = {f"{table}.{form}" for table in TABLES for form in FORMATS}
    if directory.exists() and not {path.name for path in directory.iterdir()} <= names:
        raise FileExistsError(EEXIST, "there is something else in it", str(directory))


class _TableFile(Protocol):
    def write(self, rows: list[tuple[Any, ...]]) -> None: ...

    def close(self) -> None: ...


class TransferTables:
    """Three files while they are written. As a context manager, they are put in place at the end, or removed."""

    def __init__(self, directory: Path, form: str) -> None:
        """form: of FORMATS. Raises FileExistsError where *directory* holds other files; ImportError without pyarrow."""
        check_directory(directory)
        self._directory = directory
        self._partial = directory.with_name(f".{directory.name}.partial")
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir(parents=True)
        opened = _ParquetFile if form == "parquet" else _TextFile
        self._files: dict[str, _TableFile] = {}
        try:
            for table in TABLES:
                self._files[table] = opened(self._partial / f"{table}.{form}", columns_of(table))
        except BaseException:
            self.discard()
            raise
        self._waiting: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
        self.counts = dict.fromkeys(TABLES, 0)
        self.problems = 0

    def add(self, rows: Rows) -> None:
        """The rows of one message."""
        for table in TABLES:
            found: tuple[Row, ...] = getattr(rows, table)
            if not found:
                continue
            self.counts[table] += len(found)
            self.problems += sum(getattr(row, "problem", None) is not None for row in found)
            waiting = self._waiting[table]
            waiting += map(values_of, found)
            if len(waiting) >= _BATCH_ROWS:
                self._flush(table)

    def finish(self) -> None:
        """Put the files in place."""
        for table, file in self._files.items():
            self._flush(table)
            file.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        self._partial.rename(self._directory)

    def discard(self) -> None:
        """Remove what was written."""
        for file in self._files.values():
            with suppress(OSError):
                file.close()
        shutil.rmtree(self._partial, ignore_errors=True)

    def _flush(self, table: str) -> None:
        rows, self._waiting[table] = self._waiting[table], []
        if rows:
            self._files[table].write(rows)


class _TextFile:
    """CSV or JSON Lines, by the name's end."""

    def __init__(self, path: Path, columns: dict[str, type]) -> None:
        self._names = list(columns)
        self._is_csv = path.suffix == ".csv"
        self._file: BinaryIO = path.open("wb")
        if self._is_csv:
            self._file.write(_csv_lines([self._names]))

    def write(self, rows: list[tuple[Any, ...]]) -> None:
        texts = [[_text(value) for value in row] for row in rows]
        if self._is_csv:
            self._file.write(_csv_lines(texts))
        else:
            for row in texts:
                line = json.dumps(dict(zip(self._names, row, strict=True)), ensure_ascii=False)
                self._file.write(line.encode() + b"\n")

    def close(self) -> None:
        self._file.close()


def _csv_lines(rows: list[list[Any]]) -> bytes:
    target = io.StringIO()
    csv.writer(target, lineterminator="\n").writerows(rows)
    return target.getvalue().encode()


def _text(value: Any) -> Any:
    return iso(value) if isinstance(value, datetime) else value


class _ParquetFile:
    def __init__(self, path: Path, columns: dict[str, type]) -> None:
        import pyarrow as pa  # noqa: PLC0415 - pyarrow is an extra
        from pyarrow import parquet  # noqa: PLC0415

        kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), datetime: pa.timestamp("us", tz="UTC")}
        self._schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self._table = pa.Table
        self._writer = parquet.ParquetWriter(path, self._schema)

    def write(self, rows: list[tuple[Any, ...]]) -> None:
        values = zip(*rows, strict=True)
        named = dict(zip(self._schema.names, map(list, values), strict=True))
        self._writer.write_table(self._table.from_pydict(named, schema=self._schema))

    def close(self) -> None:
        self._writer.close()
