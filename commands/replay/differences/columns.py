"""Differences as columns: the Parquet form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from commands.replay.columns import DIFFERENCES as COLUMNS, arrow_schema
from commands.replay.differences.model import PutDifference

DIFFERENCES: Final = arrow_schema(COLUMNS)


def table_of(differences: Sequence[PutDifference]) -> pa.Table:
    """*differences* as a table of that schema."""
    return pa.Table.from_pylist([difference.model_dump() for difference in differences], schema=DIFFERENCES)
