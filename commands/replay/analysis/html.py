"""The report as one HTML page."""

from __future__ import annotations

from typing import Final

from commands.replay.analysis.report import SECTIONS, AnalysisReport, Asked, Section
from commands.replay.analysis.tables import Row
from commands.replay.analysis.text import HEADS, shown_columns
from commands.replay.page import (
    MOST_BARS,
    Share,
    Stretch,
    bars,
    cell_text,
    document,
    folded,
    key,
    section,
    table,
    timeline,
)

_SHARES: Final = {
    "messages": "#2f7ed8",
    "publications": "#2f7ed8",
    "deliveries": "#4d9a6a",
    "errors": "#c23531",
    "extra": "#e6a23c",
    "retained": "#7d5fb2",
    "count": "#c23531",
}
_OVER_TIME: Final = ("publications", "deliveries", "errors")


def page(report: AnalysisReport, source: str) -> str:
    """The page. source: what was analysed, for its head."""
    several = len(report.section("qmgrs").rows) > 1
    when = ""
    if report.first_time is not None:
        when = f", {cell_text(report.first_time)} to {cell_text(report.last_time)} UTC"
    version = report.semantics.removeprefix("v")
    return document(
        f"Analysis of {source}",
        f"What is in {source}",
        (
            f'<p class="sum">{report.messages:,} messages{when}, replayed under version {version}.</p>',
            section("Over time", _timeline(report)),
            *(section(asked.title, _section(asked, report.section(asked.of.name), several)) for asked in SECTIONS),
        ),
    )


def _timeline(report: AnalysisReport) -> str:
    periods = report.timeline
    if not periods:
        return ""
    first = periods[0].start
    stretches = [
        Stretch(
            round((period.start - first).total_seconds() / 60 / report.period_minutes),
            period.start,
            [Share(getattr(period, name), name, _SHARES[name]) for name in _OVER_TIME],
        )
        for period in periods
    ]
    return key((_SHARES[name], name) for name in _OVER_TIME) + timeline(stretches, report.period_minutes)


def _section(asked: Asked, section: Section, several: bool) -> str:
    if not section.rows:
        return f'<p class="none">{asked.nothing}</p>'
    names = shown_columns(asked, several)
    numeric = [asked.table.columns[name] is int and name != "reason" for name in names]
    heads = [HEADS.get(name, name) for name in names]
    rows = table(
        heads, ([cell_text(row[name], name) for name in names] for row in section.rows), numeric, section.count
    )
    drawn = ""
    if asked.bar:
        share = _SHARES[asked.bar]
        shown = [(_label(asked, row, several), _number(row, asked.bar)) for row in section.rows]
        drawn = bars([(label, [Share(number, asked.bar, share)]) for label, number in shown])
    if not drawn and len(section.rows) <= MOST_BARS:
        return rows
    return drawn + folded(f"Table: {len(section.rows):,} of {section.count:,}", rows)


def _label(asked: Asked, row: Row, several: bool) -> str:
    """What a bar is for, with the queue manager where there are several."""
    names = ("qmgr", *asked.label) if "qmgr" in asked.table.keys and (several or not asked.label) else asked.label
    return " ".join(cell_text(row[name], name) for name in names).strip() or "no name"


def _number(row: Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int)
    return value
