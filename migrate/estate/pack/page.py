"""The pack as one page: applications with their losses, identical reasons folded, brokers, collisions, the runbook.

The page stays below 1 MB whatever is migrated: a table ends at a number of characters and names the file with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from commands.pages import Cell, Column, ColumnKind, Figure, Section, Series, Severity, document
from commands.pages.engine import listing
from migrate.estate.pack.collecting import Impact, ranked_over_all
from migrate.ledger import Result
from migrate.log import printable
from migrate.report.html import section

_APPLICATIONS: Final = "Applications"
_REASONS: Final = "Losses and changes by reason"
_COLLISIONS: Final = "Collisions across brokers"
_BROKERS: Final = "Queue managers"
_COLOURS: Final = {
    Result.REFUSED: Series("refused", "red"),
    Result.CHANGED: Series("changed", "amber"),
    Result.LEFT: Series("left by choice", "violet"),
    Result.MIGRATED: Series("migrated", "green"),
}
_SEVERITIES: Final = {Result.REFUSED: Severity.BAD, Result.CHANGED: Severity.WARNING}


def pack_page(impact: Impact, made: str, names: Mapping[str, str], runbook: str) -> str:
    """The page. made: when, for a person. names: of each application's files, without an ending. runbook: its text."""
    sections = [
        _applications(impact, names),
        _reasons(impact),
        _collisions(impact),
        _brokers(impact),
        Section("Runbook, rollback criteria, sign-off", listing(runbook.splitlines())),
    ]
    lead = [f"Made {made} from the plans of {sum(bool(r.plan) for r in impact.overview.records)} brokers."]
    if impact.without_plan:
        lead.append(f"{len(impact.without_plan)} queue managers have no plan and are not in it.")
    return document(
        "Migration of the estate: change board", lead, list(_figures(impact)), [s for s in sections if s.content]
    )


def _figures(impact: Impact) -> Iterator[Figure]:
    for result, number in impact.sums.each():
        severity = _SEVERITIES.get(result, Severity.NEUTRAL) if number else Severity.GOOD
        yield Figure(f"{number:,}", _COLOURS[result].name, severity, _REASONS)
    yield Figure(f"{impact.sums.items:,}", "items", section=_APPLICATIONS)
    yield Figure(f"{len(impact.applications):,}", "applications", section=_APPLICATIONS)
    found = impact.overview.findings
    yield Figure(f"{len(found):,}", "collisions", Severity.WARNING if found else Severity.GOOD, _COLLISIONS)
    yield Figure(f"{len(impact.overview.records):,}", "queue managers", section=_BROKERS)


def _applications(impact: Impact, names: Mapping[str, str]) -> Section:
    columns = [
        Column("application"),
        Column("items", ColumnKind.BARS, tuple(_COLOURS[result] for result in Result)),
        *(Column(_COLOURS[result].name, ColumnKind.NUMBER) for result in Result),
        Column("queue managers", ColumnKind.NUMBER),
        Column("waves"),
        Column("files", ColumnKind.CODE),
    ]
    rows: list[list[Cell]] = []
    for each in impact.applications:
        numbers = tuple(each.results[result] for result in Result)
        waves = sorted({impact.overview.waves[qmgr] for qmgr in each.qmgrs})
        where = ", ".join(map(str, waves))
        name = names[each.name]
        rows.append([printable(each.name), numbers, *numbers, len(each.qmgrs), where, f"{name}.md, {name}.csv"])
    return section(_APPLICATIONS, columns, rows, "The directory applications has a summary of each.")


def _reasons(impact: Impact) -> Section:
    columns = [
        Column("result", ColumnKind.SEVERITY),
        Column("application"),
        Column("kind"),
        Column("items", ColumnKind.NUMBER),
        Column("queue managers", ColumnKind.NUMBER),
        Column("why"),
        Column("first item", ColumnKind.CODE),
    ]
    rows: list[list[Cell]] = [
        [
            str(key.result),
            printable(name),
            key.kind,
            counted.count,
            len(counted.qmgrs),
            key.why or "no remark",
            printable(counted.first),
        ]
        for name, key, counted in ranked_over_all(impact.applications)
    ]
    return section(_REASONS, columns, rows, "The CSV files of the applications have every item with its reasons.")


def _collisions(impact: Impact) -> Section:
    columns = [Column("severity", ColumnKind.SEVERITY), Column("kind"), Column("what"), Column("what to do")]
    rows: list[list[Cell]] = [
        [str(each.severity), each.kind, printable(each.text), each.advice] for each in impact.overview.findings
    ]
    return section(_COLLISIONS, columns, rows, "qpubsub estate status --json has all of them.", Severity.WARNING)


def _brokers(impact: Impact) -> Section:
    columns = [
        Column("wave", ColumnKind.NUMBER),
        Column("queue manager", ColumnKind.CODE),
        Column("state"),
        Column("outcome"),
        *(Column(_COLOURS[result].name, ColumnKind.NUMBER) for result in Result),
        Column("plan", ColumnKind.NUMBER),
    ]
    rows: list[list[Cell]] = [
        [
            impact.overview.waves[record.qmgr],
            record.qmgr,
            str(record.state),
            str(record.outcome) if record.plan else "",
            *(number for _, number in record.sums.each()),
            record.plan,
        ]
        for record in impact.overview.records
    ]
    return section(_BROKERS, columns, rows, "qpubsub estate status --json has all of them.")
