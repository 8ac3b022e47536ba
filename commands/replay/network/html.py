"""The comparison of two networks as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup

from commands.pages import Cell, Column, ColumnKind, Figure, Section, Series, Severity, document, table
from commands.replay.network.comparison import FIGURES, NetworkChange, NetworkReport

_SERIES: Final = {
    NetworkChange.LESS: Series("less", "red"),
    NetworkChange.TWICE: Series("twice", "violet"),
    NetworkChange.LATER: Series("later", "amber"),
    NetworkChange.MORE: Series("more", "blue"),
}
"""The worst first."""
_LABELS: Final = {
    NetworkChange.LESS: ("publications that subscribers miss", Severity.BAD),
    NetworkChange.TWICE: ("publications that come more than once", Severity.BAD),
    NetworkChange.LATER: ("publications over more links", Severity.WARNING),
    NetworkChange.MORE: ("publications more", Severity.WARNING),
}
_SUBSCRIBERS: Final = "Subscribers that would notice"
_TOGETHER: Final = "The two networks in numbers"


def network_page(report: NetworkReport, estates: tuple[str, str], picture: str) -> str:
    """The page. estates: the names of the two files. picture: of the second network, as SVG."""
    before, after = estates
    sections = [
        Section(_SUBSCRIBERS, _subscribers(report), f"{len(report.subscribers):,}"),
        Section("Examples, with the rule or the way", _examples(report), f"{len(report.examples):,}"),
        Section(_TOGETHER, _numbers(report)),
        Section("The network after, with its publications", Markup(picture)),
        Section("Links after", _links(report), f"{len(report.after.links):,}"),
    ]
    lead = [f"{report.messages:,} messages, replayed through {before} and through {after}."]
    heading = f"What {after} does differently from {before}"
    return document(heading, lead, list(_figures(report)), [each for each in sections if each.content])


def _figures(report: NetworkReport) -> Iterator[Figure]:
    for change, (label, severity) in _LABELS.items():
        count = report.totals[change]
        yield Figure(f"{count:,}", label, severity if count else Severity.GOOD, _SUBSCRIBERS)
    yield Figure(f"{report.after.deliveries:,}", "publications that subscribers get", section=_TOGETHER)


def _subscribers(report: NetworkReport) -> Markup:
    if not report.subscribers:
        return Markup()
    met = [change for change in _SERIES if report.totals[change]]
    bars = Column("differences", ColumnKind.BARS, tuple(_SERIES[change] for change in met))
    columns = [Column("queue", ColumnKind.CODE), Column("queue manager", ColumnKind.CODE), bars]
    rows: list[list[Cell]] = [
        [each.queue, each.qmgr, tuple(each.changes.get(change, 0) for change in met)] for each in report.subscribers
    ]
    return table(columns, rows, varies=("queue",))


def _examples(report: NetworkReport) -> Markup:
    if not report.examples:
        return Markup()
    columns = [
        Column("message", ColumnKind.NUMBER),
        Column("change"),
        Column("queue", ColumnKind.CODE),
        Column("queue manager", ColumnKind.CODE),
        Column("topic", ColumnKind.CODE),
        Column("rule or way"),
    ]
    rows: list[list[Cell]] = [
        [each.seq, each.change.value, each.queue, each.qmgr, each.topic, each.detail] for each in report.examples
    ]
    return table(columns, rows)


def _numbers(report: NetworkReport) -> Markup:
    columns = [Column("figure"), Column("before", ColumnKind.NUMBER), Column("after", ColumnKind.NUMBER)]
    rows: list[list[Cell]] = [
        [label, getattr(report.before, name), getattr(report.after, name)] for label, name in FIGURES
    ]
    return table(columns, rows)


def _links(report: NetworkReport) -> Markup:
    if not report.after.links:
        return Markup()
    columns = [
        Column("from", ColumnKind.CODE),
        Column("to", ColumnKind.CODE),
        Column("publications", ColumnKind.NUMBER),
        Column("proxy subscriptions", ColumnKind.NUMBER),
    ]
    rows: list[list[Cell]] = [
        [each.sender, each.receiver, each.publications, each.proxies] for each in report.after.links
    ]
    return table(columns, rows)
