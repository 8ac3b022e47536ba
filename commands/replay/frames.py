"""Captures, puts and analyses as tables without Spark. They need the extra ``parquet``, those of pandas ``pandas``.

Readers of record batches are what DuckDB, Polars and Arrow take from any source: memory holds a batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from commands.broker.reading import natural_queue
from commands.replay.arrivals import DEFAULT_QMGR, in_order
from commands.replay.local import LocalReplay
from rfh2.captured import CapturedMessage as CapturedMessage  # noqa: PLC0414 - exported
from rfh2.captures.reading import DefaultQueue, read_captures as read_captures  # noqa: PLC0414 - exported
from rfh2.captures.record import CaptureRecord
from rfh2.distribution import how_to_install
from rfh2.errors import CaptureError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def captures_to_arrow(
    source: Path | str | BinaryIO,
    format: str = "auto",  # noqa: A002 - as in read_captures
    *,
    default_queue: DefaultQueue = "",
    thorough: bool = False,
) -> pa.Table:
    """A capture as a pyarrow table: one row a record, with the columns of Spark's ``decoded``.

    source, format, default_queue: as for ``read_captures``. thorough: also look for everything that ``qpubsub decode``
    warns of; this takes several times as long. A record that cannot be read is a row with nothing but its problem.

    The whole table is in memory. Raises CaptureError for a path that is missing, for an unknown format, and where
    pyarrow is not installed.
    """
    return captures_to_batches(source, format, default_queue=default_queue, thorough=thorough).read_all()


def captures_to_batches(
    source: Path | str | BinaryIO,
    format: str = "auto",  # noqa: A002 - as in read_captures
    *,
    default_queue: DefaultQueue = "",
    thorough: bool = False,
) -> pa.RecordBatchReader:
    """The table of ``captures_to_arrow``, batch after batch, for a capture of any size. Raises what it does."""
    with needing_pyarrow(source):
        import pyarrow as pa  # noqa: PLC0415 - an extra

        from commands.replay.decoded_columns import SCHEMA, batches_of  # noqa: PLC0415
    records = read_captures(source, format, default_queue=default_queue)
    return pa.RecordBatchReader.from_batches(SCHEMA, batches_of(records, thorough))


def puts_to_batches(
    source: Path | str | BinaryIO,
    format: str = "auto",  # noqa: A002 - as in read_captures
    *,
    setup: str = "",
    semantics: str = "v7",
    on_problem: Callable[[CaptureError], None] | None = None,
) -> pa.RecordBatchReader:
    """The puts of a replay of a capture, batch after batch: the columns of the Parquet form.

    source, format: as for ``read_captures``; the messages are in the order of ``seq``. setup: MQSC that every queue
    manager starts with. semantics: ``v7`` or ``v6``. on_problem: called with each record that cannot be read; None to
    raise it. Raises CaptureError as ``captures_to_arrow`` does, while it is read OutOfOrderError and RepeatedSeqError,
    QPubSubError where the setup fails.
    """
    with needing_pyarrow(source):
        import pyarrow as pa  # noqa: PLC0415 - an extra

        from commands.replay.put_columns import SCHEMA, PutColumns  # noqa: PLC0415

    def batches() -> Iterator[pa.RecordBatch]:
        replay, held = LocalReplay(setup, semantics), PutColumns()
        for message in in_order(messages_of(records, on_problem)):
            held.add(message.seq, message.qmgr or DEFAULT_QMGR, replay.put_all(message).puts)
            if held.is_full:
                yield from held.take()
        yield from held.take()

    records = read_captures(source, format, default_queue=natural_queue)
    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


@contextmanager
def needing_pyarrow(source: Path | str | BinaryIO) -> Iterator[None]:
    """Around the imports of pyarrow. Raises CaptureError where it is not installed."""
    try:
        yield
    except ImportError as error:
        raise CaptureError(str(source), None, f"it needs the package pyarrow: {how_to_install('parquet')}") from error


def messages_of(
    records: Iterable[CaptureRecord], on_problem: Callable[[CaptureError], None] | None
) -> Iterator[CapturedMessage]:
    """The messages of *records*. on_problem: as for ``puts_to_batches``."""
    for record in records:
        if record.message is not None:
            yield record.message
        elif record.problem is not None:
            if on_problem is None:
                raise record.problem
            on_problem(record.problem)


def captures_to_pandas(
    source: Path | str | BinaryIO,
    format: str = "auto",  # noqa: A002 - as in read_captures
    *,
    default_queue: DefaultQueue = "",
    thorough: bool = False,
) -> pd.DataFrame:
    """The same as a pandas DataFrame.

    Integers are of pandas's own types ``Int32`` and ``Int64``, which have room for missing values. ``properties`` holds
    a dict, ``topics``, ``options``, ``headers`` and ``problems`` an array each. Raises CaptureError as
    ``captures_to_arrow`` does, and where pandas is not installed.

    >>> frame = captures_to_pandas("fixtures/results-service/capture.jsonl")
    >>> frame.groupby("command").size().to_dict()
    {'DeletePub': 2, 'DeregSub': 4, 'Publish': 12, 'RegSub': 6, 'ReqUpdate': 2}
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise CaptureError(str(source), None, f"it needs the package pandas: {how_to_install('pandas')}") from error
    table = captures_to_arrow(source, format, default_queue=default_queue, thorough=thorough)
    integers = {"int32": pd.Int32Dtype(), "int64": pd.Int64Dtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=lambda kind: integers.get(str(kind)), maps_as_pydicts="strict")
    return frame
