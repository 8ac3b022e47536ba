"""One design for all pages: a frame with a summary and contents, tables, timelines and trees, in one HTML file.

A page needs no network: its style and script are in it, and its policy (Content-Security-Policy) forbids everything
else. Without JavaScript the first rows of each table can be read.

Templates (Jinja2) are filled so that no value is markup or acts on the reader. Each value passes ``visible`` before it
is escaped: control characters, what turns the direction of writing round, and halves of characters are spelt out. What
a template has filled is Markup already, and stays as it is.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rfh2.terminal_escape import visible

_PACKAGE: Final = "commands.pages"
# Inside <script> these would end it, begin a comment, or end a line of JavaScript.
_IN_SCRIPT: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def environment(*packages: str) -> Environment:
    """Jinja2 for the templates in *packages*, and for those that all pages share."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, _PACKAGE)]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": _number, "lines": _lines}
    return made


def fill(template: str, **values: Any) -> Markup:
    """What *template*, of those in this package, makes of *values*. Raises UndefinedError for one that it lacks."""
    return Markup(_shared().get_template(template).render(values))


def listing(lines: Sequence[str], more: str = "") -> Markup:
    """Lines as they are. more: a sentence below them."""
    return fill("listing.html", lines=lines, more=more)


def script_data(value: object) -> Markup:
    """*value* as JSON that can stand in a ``<script>`` element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup("".join(_IN_SCRIPT.get(c, c) for c in text) if any(c in text for c in _IN_SCRIPT) else text)


@cache
def asset(name: str) -> str:
    """The text of a style or script of the pages."""
    return (files(_PACKAGE) / name).read_text(encoding="utf-8")


@cache
def _shared() -> Environment:
    return environment()


def _lines(text: str | Sequence[str]) -> Markup:
    """A text of several lines, or a list of them, with their ends."""
    # Escaped as one text: a paste may have millions of lines.
    return escape("\n".join(map(visible, text.splitlines() if isinstance(text, str) else text)))


def _number(value: int | float | None) -> str:
    return "" if value is None else f"{value:,}"


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) or value is None else visible(str(value))


# The frame of a page: heading, summary, search, contents, sections; style and script.

_SCRIPTS: Final = ("table.js", "tree.js", "page.js")
_NOTHING: Final = Markup()


class Severity(StrEnum):
    """How a figure or a section is coloured."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the summary. label: what is counted. section: the title of the section that it leads to, or ""."""

    value: str
    label: str
    severity: Severity = Severity.NEUTRAL
    section: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A section. content: what a template made. count: beside the title, and in the contents. about: sentences."""

    title: str
    content: Markup
    count: str = ""
    severity: Severity = Severity.NEUTRAL
    about: str = ""


def document(
    heading: str,
    lead: Sequence[str],
    figures: Sequence[Figure],
    sections: Iterable[Section],
    *,
    after: Markup = _NOTHING,
) -> str:
    """The page. lead: paragraphs of text below the heading. after: between the summary and the sections."""
    listed = list(sections)
    script = Markup('"use strict";\n' + "".join(map(asset, _SCRIPTS)))
    page = fill(
        "report.html",
        heading=heading,
        lead=lead,
        figures=figures,
        sections=listed,
        anchors={section.title: f"s{at}" for at, section in enumerate(listed, 1)},
        after=after,
        style=Markup(asset("page.css")),
        script=script,
        digest=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return f"{page}\n"


# Numbers over time: a lane for each series, each to its own scale, so that few errors among many messages are seen.

_HEIGHT: Final = 40
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Series:
    """What a colour stands for: ``blue``, ``green``, ``red``, ``amber`` or ``violet`` of the style."""

    name: str
    colour: str


def timeline(series: Sequence[Series], periods: Mapping[datetime, Sequence[int]], length_s: int) -> Markup:
    """Columns of *length_s* seconds. periods: a number for each series, by the start of the period; others are zero.

    Series without a number above zero have no lane; "" where none has one.
    """
    first, last = min(periods, default=None), max(periods, default=None)
    if first is None or last is None:
        return Markup()
    columns = int((last - first).total_seconds()) // length_s + 1
    lanes = [_lane(one, at, periods, first, length_s) for at, one in enumerate(series)]
    drawn = [lane for lane in lanes if lane["bars"]]
    if not drawn:
        return Markup()
    return fill("timeline.html", lanes=drawn, columns=columns, height=_HEIGHT, axis=_axis(first, columns, length_s))


def _lane(
    one: Series, at: int, periods: Mapping[datetime, Sequence[int]], first: datetime, length_s: int
) -> dict[str, Any]:
    most = max(numbers[at] for numbers in periods.values())
    every = sum(numbers[at] for numbers in periods.values())
    bars = [
        {
            "at": (start - first) / timedelta(seconds=length_s),
            # A value above zero must be visible: a column is never lower than a line.
            "tall": max(1.5, (_HEIGHT - 1) * numbers[at] / most),
            "start": f"{start:%Y-%m-%d %H:%M:%S}",
            "number": numbers[at],
        }
        for start, numbers in sorted(periods.items())
        if numbers[at]
    ]
    about = f"{every:,} in all, at most {most:,} in {spelt(length_s)}"
    return {"series": one, "about": about, "most": most, "bars": bars}


def spelt(length_s: int) -> str:
    """A length of time in its largest whole unit: ``15 min``."""
    unit, word = next((unit, word) for unit, word in _UNITS if length_s % unit == 0)
    return f"{length_s // unit} {word}"


def _axis(first: datetime, columns: int, length_s: int) -> list[str]:
    """The start, the middle and the end; the date once where all are on one day, alone where periods are days."""
    ends = [first + timedelta(seconds=round(columns * share) * length_s) for share in (0, 0.5, 1)]
    if length_s >= 86_400:
        return [f"{end:%Y-%m-%d}" for end in ends]
    if ends[0].date() == ends[2].date():
        return [f"{first:%Y-%m-%d} {ends[0]:%H:%M:%S}", *(f"{end:%H:%M:%S}" for end in ends[1:])]
    return [f"{end:%Y-%m-%d %H:%M}" for end in ends]


# A tree of a page: nodes to open and close, the first levels open, a search that opens what leads to a node.

_MARKS_IN_LINE: Final = 4


@dataclass(slots=True)
class TreeNode:
    """A node. marks: (kind, text) of what is at it; the kind is a class of the style."""

    label: str
    marks: Sequence[tuple[str, str]] = ()
    children: list[TreeNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """The beginning of a node. shown: marks in its line. rest: those in a box below it."""

    node: TreeNode
    shown: Sequence[tuple[str, str]]
    rest: Sequence[tuple[str, str]]
    is_leaf: bool
    is_open: bool


def tree(root: TreeNode, open_levels: int = 2) -> Markup:
    """The tree as HTML. open_levels: how many levels of nodes are open at first."""
    return fill("tree.html", lines=_tree_lines(root, open_levels))


def _tree_lines(root: TreeNode, open_levels: int) -> Iterator[_Line | None]:
    """The beginning of each node, and None for the end of one that is no leaf."""
    # A topic may have thousands of levels: hence no recursion.
    waiting: list[tuple[TreeNode, int] | None] = [(root, 0)]
    while waiting:
        item = waiting.pop()
        if item is None:
            yield None
            continue
        node, level = item
        many = len(node.marks) > _MARKS_IN_LINE
        shown = node.marks[: _MARKS_IN_LINE - 1] if many else node.marks
        is_leaf = not node.children and not many
        yield _Line(node, shown, node.marks[len(shown) :], is_leaf, level < open_levels and bool(node.children))
        if not is_leaf:
            waiting.append(None)
            waiting += [(child, level + 1) for child in reversed(node.children)]


# A table of a page. Its rows are data in the page: the script draws those in the window, sorts, searches and folds.
#
# The first rows, folded, are HTML too, for a reader without JavaScript. Equal rows are folded: rows that differ in the
# columns *varies* only are one row, which says how many there are and can be unfolded.

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
