"""The three tables as files in a directory: Parquet, CSV or JSON Lines, a file each.

They are written beside the directory, and replace it when they are complete. A time is ISO 8601 with ``Z`` in text.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from contextlib import suppress
from datetime import datetime
from errno import EEXIST
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from commands.replay.file_transfer.rows import TABLES, Row, Rows, columns_of, values_of
from rfh2.captured import iso

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
