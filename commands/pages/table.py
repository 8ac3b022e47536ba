"""A table of a page. Its rows are data in the page: the script draws those in the window, sorts, searches and folds.

The first rows, folded, are HTML too, for a reader without JavaScript. Equal rows are folded: rows that differ in the
columns *varies* only are one row, which says how many there are and can be unfolded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from markupsafe import Markup

from commands.pages.engine import fill, script_data
from commands.pages.timeline import Series
from rfh2.terminal_escape import visible

MOST_ROWS: Final = 100_000
"""Rows of one table in a page. A browser lays out a box of this many lines; more belong in a file beside the page."""

FIRST_ROWS: Final = 20
"""Rows that are HTML without the script."""

Cell = str | int | tuple[int, ...] | None
"""A value: text, a number, or for a column of bars a number for each of its series."""


class ColumnKind(StrEnum):
    """How a column is shown and sorted."""

    TEXT = "text"
    CODE = "code"
    NUMBER = "number"
    BARS = "bars"
    SEVERITY = "severity"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. series: of a column of bars. SEVERITY: text that begins with ``error``, ``warning`` or another word."""

    head: str
    kind: ColumnKind = ColumnKind.TEXT
    series: tuple[Series, ...] = ()


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    varies: Sequence[str] = (),
    count: int | None = None,
    rest: str = "",
) -> Markup:
    """The table as HTML. At most MOST_ROWS of *rows* are in the page.

    varies: heads of the columns in which folded rows may differ; none: nothing is folded. count: how many rows there
    are in all, where *rows* are the first of them. rest: a sentence that says where the others are.
    """
    kept = rows[:MOST_ROWS]
    every = len(rows) if count is None else count
    varying = [at for at, column in enumerate(columns) if column.head in varies]
    data = {
        "columns": [
            {"head": visible(column.head), "kind": str(column.kind)}
            | ({"series": [[visible(s.name), s.colour] for s in column.series]} if column.series else {})
            | _values(column, [row[at] for row in kept])
            for at, column in enumerate(columns)
        ],
        "varies": varying,
        "rows": len(kept),
    }
    more = f"The first {len(kept):,} of {every:,} rows. {rest}".rstrip() if every > len(kept) else ""
    return fill(
        "table.html",
        columns=columns,
        groups=_first(kept, varying),
        varying=varying,
        most={column.head: _most(kept, at) for at, column in enumerate(columns) if column.kind is ColumnKind.BARS},
        more=more,
        data=script_data(data),
    )


def _values(column: Column, cells: list[Cell]) -> dict[str, Any]:
    """The values of a column: numbers as they are, texts once each."""
    if column.kind in (ColumnKind.NUMBER, ColumnKind.BARS):
        return {"values": cells}
    places: dict[str, int] = {}
    at = [places.setdefault(visible(str(cell)) if cell is not None else "", len(places)) for cell in cells]
    return {"words": list(places), "at": at}


def _first(rows: Sequence[Sequence[Cell]], varying: Sequence[int]) -> list[list[Sequence[Cell]]]:
    """The rows that are HTML, each with those that are folded into it."""
    groups: dict[object, list[Sequence[Cell]]] = {}
    for at, row in enumerate(rows):
        same = tuple(cell for place, cell in enumerate(row) if place not in varying) if varying else at
        groups.setdefault(same, []).append(row)
        if not varying and len(groups) == FIRST_ROWS:
            break
    return list(islice(groups.values(), FIRST_ROWS))


def _most(rows: Sequence[Sequence[Cell]], at: int) -> int:
    """The longest bar of a column; at least 1."""
    return max((sum(cell) for row in rows if isinstance(cell := row[at], tuple)), default=0) or 1
