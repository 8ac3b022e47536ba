"""Parquet: one captured message a row, for Spark and its like. Needs the extra ``parquet``.

Columns: seq int64, time timestamp[us, UTC], qmgr, queue, user string, md, body binary; others are ignored, and all but
body may be missing. Rows are read in batches and written in row groups of bounded size: memory never holds the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from rfh2.captured import CapturedMessage
from rfh2.captures.jsonl import clause
from rfh2.captures.record import Item, ReadingPosition, Refusal, beyond
from rfh2.distribution import how_to_install
from rfh2.errors import CaptureError

COLUMNS = ("seq", "time", "qmgr", "queue", "user", "md", "body")

# A batch is held as Python objects beside Arrow's, so it is kept small; a row group is what Spark gives to one task.
_BATCH_BYTES = 1 << 20
_BATCH_ROWS = 1024
_GROUP_BYTES = 16 << 20
_GROUP_ROWS = 65_536
_PAGE_BYTES = 1 << 20

# A footer's lists may have so many elements whatever its length, and one more for each so many bytes: the shortest of
# those that there are many of, a column in the schema, has eight.
_LIST_ELEMENTS = 1000
_ELEMENT_BYTES = 8
# One page of a row group is in memory at a time. A row group may expand to so many times the bound for expanded data,
# or to so many times what is held of it.
_GROUP_TIMES = 8
_TIMES = 100


def read_parquet(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each row's message; positions are row numbers from 0. Raises CaptureError where pyarrow is not installed.

    A row group that cannot be read is one problem, at its first row that was not given, and the next one follows.
    """
    arrow, _ = _pyarrow()
    try:
        file = open_parquet(stream, pre_buffer=False, buffer_size=_PAGE_BYTES)
        names = [name for name in COLUMNS if name in file.schema_arrow.names]
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        yield 0, reading.problem(None, f"not readable as Parquet: {_first_line(error)}", "row")
        return
    if "body" not in names:
        yield 0, reading.problem(None, "there is no column body", "row")
        return
    end = 0
    for group in range(file.num_row_groups):
        about = file.metadata.row_group(group)
        row, end = end, end + about.num_rows
        try:
            # The names of columns may be damaged here alone, and not in the schema.
            if (claimed := _beyond(about, names, reading.expanded_bytes)) is not None:
                yield row, reading.problem(row, f"rows up to {end - 1} are not read: {claimed}", "row")
                continue
            rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * about.num_rows // max(1, about.total_byte_size)))
            for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                for given in _dicts(batch, arrow):
                    yield row, _message(given, reading, row)
                    row += 1
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            yield row, reading.problem(row, f"rows up to {end - 1} are not readable: {_first_line(error)}", "row")


def open_parquet(source: Path | str | BinaryIO, **options: Any) -> Any:
    """pyarrow's ParquetFile of a file that may be damaged, or made to be: its footer gets no more room than it needs.

    options: pyarrow's. Raises what pyarrow raises, and CaptureError where it is not installed.
    """
    _, parquet = _pyarrow()
    # A list says how long it is before its elements come, and pyarrow makes room for so many at once.
    options["thrift_container_size_limit"] = _LIST_ELEMENTS + _footer_length(source) // _ELEMENT_BYTES
    return parquet.ParquetFile(source, **options)


def _footer_length(source: Path | str | BinaryIO) -> int:
    if isinstance(source, Path | str):
        with Path(source).open("rb") as stream:
            return _footer_length(stream)
    size = source.seek(0, io.SEEK_END)
    source.seek(max(0, size - 8))
    length = int.from_bytes(source.read(4), "little")
    source.seek(0)
    return min(length, size)


def _beyond(about: Any, names: list[str], bound: int) -> str | None:
    """What is wrong with a row group that claims to expand to much more than the file holds of it."""
    columns = [column for column in map(about.column, range(about.num_columns)) if column.path_in_schema in names]
    held = sum(max(0, column.total_compressed_size) for column in columns)
    claimed = sum(max(0, column.total_uncompressed_size) for column in columns)
    allowed = max(_GROUP_TIMES * bound, _TIMES * held)
    return beyond("their data, expanded,", allowed) if claimed > allowed else None


def write_parquet(messages: Iterable[CapturedMessage], target: BinaryIO, _refused: Refusal) -> int:
    """Write one row a message; returns how many. Raises CaptureError where pyarrow is not installed."""
    arrow, parquet = _pyarrow()
    schema = arrow.schema(
        [
            arrow.field("seq", arrow.int64(), nullable=False),
            arrow.field("time", arrow.timestamp("us", tz="UTC")),
            arrow.field("qmgr", arrow.string()),
            arrow.field("queue", arrow.string(), nullable=False),
            arrow.field("user", arrow.string()),
            arrow.field("md", arrow.binary()),
            arrow.field("body", arrow.binary(), nullable=False),
        ]
    )
    count = 0
    # A page is closed at the first multiple of so many rows above its size, and is what a reader has to hold.
    options = {"use_dictionary": ["qmgr", "queue", "user"], "data_page_size": _PAGE_BYTES, "write_batch_size": 16}
    with parquet.ParquetWriter(target, schema, **options) as writer:
        for rows in _groups(messages):
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    return count


def _groups(messages: Iterable[CapturedMessage]) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    held = 0
    for m in messages:
        body = m.body
        rows.append(
            {"seq": m.seq, "time": m.time, "qmgr": m.qmgr, "queue": m.queue, "user": m.user, "md": m.md, "body": body}
        )
        held += len(body) + 364
        if held >= _GROUP_BYTES or len(rows) >= _GROUP_ROWS:
            yield rows
            rows, held = [], 0
    if rows:
        yield rows


def _dicts(batch: Any, arrow: Any) -> Iterator[dict[str, Any]]:
    """Each row as a dict. A time finer than microseconds, which Python has no type for, is cut."""
    columns = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if arrow.types.is_timestamp(column.type):
            column = column.cast(arrow.timestamp("us", tz="UTC"), safe=False)
        try:
            columns[name] = column.to_pylist()
        except UnicodeDecodeError:
            columns[name] = column.cast(arrow.binary()).to_pylist()  # for the model to refuse, row by row
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _message(given: dict[str, Any], reading: ReadingPosition, row: int) -> CapturedMessage | CaptureError:
    fields = {name: value for name, value in given.items() if name not in ("md", "body")}
    fields["queue"] = fields.get("queue") or ""
    fields["md_hex"], fields["body_hex"] = _hex(given.get("md")), _hex(given["body"])
    if fields.get("seq") is None:
        fields["seq"] = reading.numbering.take()
    try:
        message = CapturedMessage.model_validate(fields)
    except ValidationError as error:
        return reading.problem(row, clause(error), "row")
    reading.numbering.saw(message.seq)
    return message


def _hex(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as arrow  # noqa: PLC0415 - only who reads or writes Parquet needs to have it
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise CaptureError("parquet", None, f"it needs the package pyarrow: {how_to_install('parquet')}") from error
    return arrow, parquet


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
