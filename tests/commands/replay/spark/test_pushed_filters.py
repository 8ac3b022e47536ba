"""Conditions of a query leave out row groups of Parquet in which no row can fulfil them, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from commands.replay.columns import CAPTURED, arrow_schema
from commands.replay.spark.pieces import Piece, pieces_of
from commands.replay.spark.source import conditions_of, needed

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = [
    {"seq": n, "time": START + timedelta(seconds=n), "qmgr": f"QM{n // 10}", "queue": "Q", "md": None, "body": b""}
    for n in range(40)
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four row groups: seq 0 to 9 of QM0, 10 to 19 of QM1 ..."""
    path = tmp_path_factory.mktemp("pushed") / "c.parquet"
    parquet.write_table(pa.Table.from_pylist(ROWS, schema=arrow_schema(CAPTURED)), path, row_group_size=10)
    return path


def groups(pieces: list[Piece], *filters: Filter) -> list[int]:
    return [n for piece in needed(pieces, conditions_of(filters)) for n in range(piece.start, piece.end or 0)]


# filters, the row groups that are left of four
FILTERS: list[tuple[list[Filter], list[int]]] = [
    ([EqualTo(("seq",), 25)], [2]),
    ([GreaterThan(("seq",), 19), LessThanOrEqual(("seq",), 30)], [1, 2, 3]),
    ([In(("qmgr",), ("QM0", "QM3"))], [0, 3]),
    ([In(("qmgr",), ("QM0", "QM3")), GreaterThanOrEqual(("seq",), 10)], [3]),
    ([LessThan(("time",), START + timedelta(seconds=5))], [0]),
    ([EqualTo(("queue",), "R")], []),
    ([EqualTo(("source",), "elsewhere")], []),
    ([EqualTo(("user",), "x"), IsNull(("time",)), EqualTo(("seq", "x"), 1)], [0, 1, 2, 3]),
    ([EqualTo(("time",), datetime(2026, 1, 1))], [0, 1, 2, 3]),  # of a time without a zone nothing is known
]


@pytest.mark.parametrize(("filters", "wanted"), FILTERS, ids=lambda case: "+".join(map(repr, case)))
@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_what_is_left(file: Path, filters: list[Filter], wanted: list[int], piece_bytes: int) -> None:
    assert groups(pieces_of([file], piece_bytes=piece_bytes), *filters) == wanted


OPERATORS: dict[type[Any], Any] = {
    EqualTo: lambda value, other: value == other,
    GreaterThan: lambda value, other: value > other,
    GreaterThanOrEqual: lambda value, other: value >= other,
    LessThan: lambda value, other: value < other,
    LessThanOrEqual: lambda value, other: value <= other,
}


@given(chosen=st.lists(st.tuples(st.sampled_from(list(OPERATORS)), st.integers(-1, 41)), min_size=1, max_size=3))
def test_no_row_that_fulfils_them_is_left_out(file: Path, chosen: list[tuple[type[Any], int]]) -> None:
    left = groups(pieces_of([file]), *(of(("seq",), value) for of, value in chosen))
    for row in ROWS:
        if all(OPERATORS[of](row["seq"], value) for of, value in chosen):
            assert row["seq"] // 10 in left  # type: ignore[operator]
