"""Conditions of a query that spare reading: row groups of Parquet are left out where no row can fulfil them.

Spark tests every row all the same, so that a condition that is not known here costs nothing but time. What may be
compared is ``seq``, ``time``, ``qmgr`` and ``queue``, by the least and the most of a row group, and ``source``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from commands.replay.spark.pieces import Piece
from rfh2.captures.parquet import open_parquet
from rfh2.captures.reading import partition_values

_COMPARED: Final = ("seq", "time", "qmgr", "queue", "source")


class Condition(NamedTuple):
    """A value of *column* between two bounds, or one of several values; None for no bound."""

    column: str
    least: Any = None
    most: Any = None
    values: tuple[Any, ...] | None = None

    def is_possible(self, least: Any, most: Any) -> bool:
        """Whether a value from *least* to *most* fulfils it."""
        if self.values is not None:
            return any(least <= value <= most for value in self.values)
        return (self.least is None or most >= self.least) and (self.most is None or least <= self.most)


def conditions_of(filters: Iterable[Filter]) -> list[Condition]:
    """What is known of *filters*, all of which a row has to fulfil."""
    found = []
    for each in filters:
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        column = attribute[0] if len(attribute) == 1 else ""
        if column not in _COMPARED:
            continue
        match each:
            case EqualTo(_, value):
                found.append(Condition(column, values=(value,)))
            case In(_, values):
                found.append(Condition(column, values=tuple(values)))
            case GreaterThan(_, value) | GreaterThanOrEqual(_, value):
                found.append(Condition(column, least=value))
            case LessThan(_, value) | LessThanOrEqual(_, value):
                found.append(Condition(column, most=value))
    return found


def needed(pieces: Iterable[Piece], conditions: Sequence[Condition]) -> Iterator[Piece]:
    """Of *pieces* what a row that fulfils all *conditions* may be in."""
    by_file = [each for each in conditions if each.column == "source"]
    by_group = [each for each in conditions if each.column != "source"]
    for piece in pieces:
        if not all(each.is_possible(piece.path, piece.path) for each in by_file):
            continue
        if piece.form != "parquet" or piece.end is None or not by_group:
            yield piece
            continue
        groups = [*_possible(piece, by_group)]
        for at, (number, size) in enumerate(groups):
            if at and groups[at - 1][0] == number - 1:
                continue
            run = [size]
            while at + len(run) < len(groups) and groups[at + len(run)][0] == number + len(run):
                run.append(groups[at + len(run)][1])
            yield replace(piece, start=number, end=number + len(run), size=sum(run))


def _possible(piece: Piece, conditions: Sequence[Condition]) -> Iterator[tuple[int, int]]:
    """The row groups of *piece* in which a row may be, with their sizes."""
    assert piece.end is not None
    try:
        about = open_parquet(Path(piece.path)).metadata
    except (pa.ArrowException, OSError):
        # The task that reads it says what is wrong.
        yield from ((number, 0) for number in range(piece.start, piece.end))
        return
    leaves = {about.schema.column(number).path: number for number in range(about.num_columns)}
    # Of these, rows without a value of their own get one.
    given = partition_values(Path(piece.path))
    known = [each for each in conditions if each.column in leaves and each.column not in given]
    for number in range(piece.start, piece.end):
        group = about.row_group(number)
        if all(_may_be_in(group.column(leaves[each.column]).statistics, each) for each in known):
            yield number, group.total_byte_size


def _may_be_in(statistics: Any, condition: Condition) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    try:
        return condition.is_possible(_comparable(statistics.min), _comparable(statistics.max))
    except TypeError:
        return True


def _comparable(value: Any) -> Any:
    """In a file, a time without a zone is UTC. Spark's have one; with others nothing is compared."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value
