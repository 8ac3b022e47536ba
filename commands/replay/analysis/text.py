"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from commands.replay.analysis.report import LIKELY_DETAIL, LIKELY_REASON, SECTIONS, AnalysisReport, Asked, Section
from rfh2.constants import REASON_NAMES

_MOST_LINES: Final = 10
_COLUMNS: Final = 100
_LEAST_COLUMNS: Final = 60
_GAP: Final = 2

HEADS: Final = {
    "qmgr": "qmgr",
    "sub_name": "name",
    "sub_point": "sub. point",
    LIKELY_REASON: "likely",
    LIKELY_DETAIL: "why",
    "first_seq": "first",
    "last_time": "last",
    "registrations": "RegSub",
    "deregistrations": "DeregSub",
    "requests": "ReqUpdate",
    "deletions": "DeletePub",
    "dead_letters": "dead",
}
"""Heads of columns, if the name of the column is too short or too long."""


def lines_of(report: AnalysisReport, columns: int | None = None) -> Iterator[str]:
    """The report, line by line. columns: of the window; tables use all of them, and 100 where there is no window."""
    when = (
        f", {cell_text(report.first_time)} to {cell_text(report.last_time)} UTC"
        if report.first_time is not None
        else ""
    )
    yield f"{report.messages:,} messages{when}, under version {report.semantics.removeprefix('v')}"
    several = len(report.section("qmgrs").rows) > 1
    for asked in SECTIONS:
        section = report.section(asked.of.name)
        yield ""
        yield f"{asked.title}: {f'{section.count:,}' if section.count else asked.nothing}"
        yield from _table(asked, section, several, max(columns or _COLUMNS, _LEAST_COLUMNS))


def shown_columns(asked: Asked, several: bool) -> tuple[str, ...]:
    """The columns of a section that are shown: the queue manager only where there are several."""
    return tuple(name for name in asked.shown if several or name != "qmgr" or asked.of.name == "qmgrs")


def _table(asked: Asked, section: Section, several: bool, columns_there: int) -> Iterator[str]:
    if not section.rows:
        return
    names = shown_columns(asked, several)
    rows = section.rows[:_MOST_LINES]
    columns = [[HEADS.get(name, name), *(cell_text(row[name], name) for row in rows)] for name in names]
    numeric = [asked.table.columns.get(name) is int and name != "reason" for name in names]
    widths = _fitting([max(map(len, column)) for column in columns], numeric, columns_there)
    for line in zip(*columns, strict=True):
        yield " " * _GAP + _line(line, widths, numeric)
    if section.count > len(rows):
        yield f"  and {section.count - len(rows):,} more"


def _fitting(widths: list[int], numeric: Sequence[bool], columns: int) -> list[int]:
    """*widths*, with the widest columns of words made narrower until a line has room."""
    words = [at for at, number in enumerate(numeric) if not number]
    too_much = sum(widths) + _GAP * len(widths) - columns
    for _ in range(too_much if words else 0):
        widths[max(words, key=lambda at: widths[at])] -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = (
        f"{cell:>{width}}" if number else f"{cut(cell, width):<{width}}"
        for cell, width, number in zip(cells, widths, numeric, strict=True)
    )
    return (" " * _GAP).join(aligned).rstrip()


# Values of a report as text.


def cell_text(value: str | int | datetime | None, name: str = "") -> str:
    """A value for people. name: of its column; a reason code is followed by its name."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, str):
        return value
    if name == "reason":
        return f"{value} {REASON_NAMES.get(value, '')}".rstrip()
    if name == "first_seq":
        return "setup" if value < 0 else str(value)
    return f"{value:,}"


def cut(text: str, width: int) -> str:
    """*text*; if it is wider, its middle is cut, because the end of a topic matters as much as its beginning."""
    if len(text) <= width:
        return text
    end = (width - 3) // 2
    return f"{text[: width - 3 - end]}...{text[-end:]}"
