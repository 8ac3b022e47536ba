"""The tables of an analysis as Parquet, a file for each, in a directory."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime
from errno import EEXIST
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from commands.replay.analysis.tables import TABLES, VIEWS, Row, Table, TableView

_TYPES: Final = {str: pa.string(), int: pa.int64(), datetime: pa.timestamp("us", tz="UTC")}


def arrow_table_schema(table: Table) -> pa.Schema:
    """The columns of *table*."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in table.columns.items()])


def write_tables(rows: Callable[[Table | TableView], list[Row]], directory: Path) -> None:
    """Write every table and every view into *directory*, which takes the place of what is there.

    Raises what ``check_place`` does.
    """
    partial = fresh_beside(directory)
    for of in (*TABLES, *VIEWS):
        schema = arrow_table_schema(of.table if isinstance(of, TableView) else of)
        parquet.write_table(pa.Table.from_pylist(rows(of), schema=schema), partial / f"{of.name}.parquet")
    put_in_place(partial, directory)


def check_place(directory: Path) -> None:
    """Raises FileExistsError where *directory* holds anything but tables of an analysis."""
    names = {f"{of.name}.parquet" for of in (*TABLES, *VIEWS)}
    if directory.exists() and not {path.name for path in directory.iterdir()} <= names:
        raise FileExistsError(EEXIST, "there is something else in it", str(directory))


def fresh_beside(directory: Path) -> Path:
    """An empty directory to be put in the place of *directory*. Raises what ``check_place`` does."""
    check_place(directory)
    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    return partial


def put_in_place(partial: Path, directory: Path) -> None:
    """Rename *partial* to *directory*, and delete the former directory."""
    shutil.rmtree(directory, ignore_errors=True)
    partial.rename(directory)
