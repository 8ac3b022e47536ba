"""Differences as columns: the Parquet form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from commands.replay.differences.model import PutDifference

DIFFERENCES: Final = pa.schema(
    [
        ("seq", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("qmgr", pa.string()),
        ("user", pa.string()),
        ("program", pa.string()),
        ("command", pa.string()),
        ("rule", pa.string()),
        ("since", pa.int64()),
        ("change", pa.string()),
        ("queue", pa.string()),
        ("sub_name", pa.string()),
        ("sub_user", pa.string()),
        ("topic", pa.string()),
        ("old", pa.string()),
        ("new", pa.string()),
        ("why", pa.string()),
    ]
)


def table_of(differences: Sequence[PutDifference]) -> pa.Table:
    """*differences* as a table of that schema."""
    return pa.Table.from_pylist([difference.model_dump() for difference in differences], schema=DIFFERENCES)
