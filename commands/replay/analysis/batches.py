"""A table of an analysis as record batches: what DuckDB, Polars and Arrow read. It needs the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from commands.broker.reading import natural_queue
from commands.replay.analysis.facts import LocalAnalysis
from commands.replay.analysis.tables import TABLES, VIEWS, TableView
from commands.replay.arrivals import in_order
from commands.replay.frames import messages_of, needing_pyarrow
from rfh2.captures.reading import read_captures
from rfh2.errors import CaptureError

if TYPE_CHECKING:
    import pyarrow as pa


def analysis_to_batches(
    source: Path | str | BinaryIO,
    table: str,
    format: str = "auto",  # noqa: A002 - as in read_captures
    *,
    setup: str = "",
    semantics: str = "v7",
    on_problem: Callable[[CaptureError], None] | None = None,
) -> pa.RecordBatchReader:
    """A table of the analysis of a capture (docs/analysis.md).

    table: its name, such as ``topics`` or ``never_matched``. The rest is as for ``puts_to_batches``; the whole capture
    is read before there is a batch. Raises ValueError for another name.
    """
    with needing_pyarrow(source):
        import pyarrow as pa  # noqa: PLC0415 - an extra

        from commands.replay.analysis.files import arrow_table_schema  # noqa: PLC0415
    known = {each.name: each for each in (*TABLES, *VIEWS)}
    if table not in known:
        raise ValueError(f"there is no table {table}: use {', '.join(known)}")
    of = known[table]
    schema = arrow_table_schema(of.table if isinstance(of, TableView) else of)

    def batches() -> Iterator[pa.RecordBatch]:
        analysis = LocalAnalysis(setup, semantics)
        for message in in_order(messages_of(records, on_problem)):
            analysis.take(message)
        yield from pa.Table.from_pylist(analysis.rows(of), schema=schema).to_batches()

    records = read_captures(source, format, default_queue=natural_queue)
    return pa.RecordBatchReader.from_batches(schema, batches())
