"""Captures as tables, without Spark: pyarrow needs the extra ``parquet``, pandas the extra ``pandas``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rfh2.captured import CapturedMessage as CapturedMessage  # noqa: PLC0414 - exported
from rfh2.captures.reading import DefaultQueue, read_captures as read_captures  # noqa: PLC0414 - exported
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
    try:
        from commands.replay.decoded_columns import table_of  # noqa: PLC0415 - imports pyarrow, an extra
    except ImportError as error:
        raise CaptureError(str(source), None, f"it needs the package pyarrow: {how_to_install('parquet')}") from error
    return table_of(read_captures(source, format, default_queue=default_queue), thorough)


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
