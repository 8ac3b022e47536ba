"""The report as one HTML page: what is wrong first, then traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from markupsafe import Markup

from commands.pages import (
    Cell,
    Column,
    ColumnKind,
    Figure,
    Section,
    Series,
    Severity,
    document,
    table,
    timeline,
)
from commands.replay.analysis.report import (
    HEADS,
    LIKELY_DETAIL,
    LIKELY_REASON,
    SECTIONS,
    AnalysisReport,
    Asked,
    Section as ReportSection,
    cell_text,
    shown_columns,
)
from commands.replay.analysis.tables import DUPLICATES, ERRORS, NEVER_MATCHED, NEVER_SUBSCRIBED, REASONS, UNREAD

_SERIES: Final = {
    "messages": Series("messages", "blue"),
    "publications": Series("publications", "blue"),
    "deliveries": Series("deliveries", "green"),
    "errors": Series("errors", "red"),
    "extra": Series("messages beyond the first", "amber"),
    "retained": Series("retained", "violet"),
    "count": Series("commands", "red"),
}
_OVER_TIME: Final = ("errors", "publications", "deliveries")

_WRONG: Final[Mapping[str, tuple[Severity, str]]] = {
    REASONS.name: (Severity.BAD, "Commands that were refused, or that were done in part, by reason code."),
    ERRORS.name: (Severity.BAD, "The same, by the program and the user that sent them."),
    NEVER_MATCHED.name: (
        Severity.WARNING,
        "These subscriptions received no publication, for the reason that is likeliest. qpubsub why explains each.",
    ),
    NEVER_SUBSCRIBED.name: (
        Severity.WARNING,
        "Publications on these topics reached no subscriber. Subscriptions that were made before the capture began are "
        "known only if the setup defines them.",
    ),
    DUPLICATES.name: (
        Severity.WARNING,
        "Several subscriptions of one subscriber match a topic, and each receives a message of its own.",
    ),
    UNREAD.name: (Severity.WARNING, "No new subscriber and no ReqUpdate command received these retained publications."),
}
"""The sections that show what is wrong, in the order of the page."""

_HEADS: Final[Mapping[str, str]] = {
    **HEADS,
    "qmgr": "queue manager",
    "sub_name": "subscription name",
    "sub_point": "subscription point",
    "first_seq": "first message",
    "first_time": "from",
    "last_time": "last published",
    "extra": "messages beyond the first",
    "read": "times read",
    "dead_letters": "dead letters",
    "why": "example",
    LIKELY_REASON: "likely reason",
}
_MORE_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    REASONS.name: ("why",),
    ERRORS.name: ("why",),
    NEVER_MATCHED.name: ("stream", "sub_point", "filter", LIKELY_DETAIL),
}
_CODE: Final = {"topic", "queue", "subscriber", "subscriptions", "filter"}
_VARIES: Final[Mapping[str, tuple[str, ...]]] = {NEVER_MATCHED.name: ("subscriber", "sub_name", "first_seq")}
_REST: Final = "The directory written with --output has every row."


def page(report: AnalysisReport, source: str) -> str:
    """The page. source: what was analysed, for its head."""
    when = "The messages have no time."
    if report.first_time is not None:
        when = f"Messages from {cell_text(report.first_time)} to {cell_text(report.last_time)} UTC"
    by_name = {asked.of.name: asked for asked in SECTIONS}
    names = [*_WRONG, *(name for name in by_name if name not in _WRONG)]
    several = len(report.section("qmgrs").rows) > 1
    sections = [_section(by_name[name], report.section(name), several) for name in names]
    over_time = _timeline(report)
    if over_time:
        sections.insert(len(_WRONG), Section("Over time", over_time))
    lead = [f"{when}, replayed under version {report.semantics.removeprefix('v')}."] if report.messages else []
    return document(f"What is in {source}", lead, list(_figures(report)), sections)


def _figures(report: AnalysisReport) -> Iterator[Figure]:
    qmgrs = report.section("qmgrs").rows
    counts = {name: sum(_number(row[name]) for row in qmgrs) for name in ("publications", "deliveries", "errors")}
    titles = {asked.of.name: asked.title for asked in SECTIONS}
    error = Severity.BAD if counts["errors"] else Severity.GOOD
    yield Figure(f"{counts['errors']:,}", "commands in error", error, titles[REASONS.name])
    for name, label in (
        (NEVER_MATCHED.name, "subscriptions never matched"),
        (NEVER_SUBSCRIBED.name, "topics never subscribed"),
        (DUPLICATES.name, "subscribers with duplicates"),
        (UNREAD.name, "retained, never read"),
    ):
        count = report.section(name).count
        yield Figure(f"{count:,}", label, Severity.WARNING if count else Severity.GOOD, titles[name])
    yield Figure(f"{report.messages:,}", "messages", section=titles["qmgrs"])
    yield Figure(f"{counts['publications']:,}", "publications", section=titles["topics"])
    yield Figure(f"{counts['deliveries']:,}", "deliveries", section=titles["streams"])


def _timeline(report: AnalysisReport) -> Markup:
    periods = {period.start: [getattr(period, name) for name in _OVER_TIME] for period in report.timeline}
    return timeline([_SERIES[name] for name in _OVER_TIME], periods, report.period_s)


def _section(asked: Asked, section: ReportSection, several: bool) -> Section:
    name = asked.of.name
    severity, about = _WRONG.get(name, (Severity.NEUTRAL, ""))
    if not section.rows:
        return Section(asked.title, Markup('<p class="none">{}.</p>').format(asked.nothing.capitalize()), "0")
    wanted = _columns(asked, several)
    names = [column for column in wanted if any(row[column] not in (None, "") for row in section.rows)]
    columns = [_column(asked, column) for column in names]
    rows: list[list[Cell]] = [[_cell(asked, column, row[column]) for column in names] for row in section.rows]
    varies = [_HEADS.get(column, column) for column in _VARIES.get(name, ())]
    content = table(columns, rows, varies=varies, count=section.count, rest=_REST)
    return Section(asked.title, content, f"{section.count:,}", severity, about)


def _columns(asked: Asked, several: bool) -> tuple[str, ...]:
    """The columns of a report and some more, which stand beside the bars where there are bars."""
    names = shown_columns(asked, several)
    place = names.index(asked.bar) + 1 if asked.bar else len(names)
    return (*names[:place], *_MORE_COLUMNS.get(asked.of.name, ()), *names[place:])


def _column(asked: Asked, name: str) -> Column:
    head = _HEADS.get(name, name)
    if name == asked.bar:
        return Column(head, ColumnKind.BARS, (_SERIES[name],))
    if name == "completion":
        return Column(head, ColumnKind.SEVERITY)
    if name != "reason" and asked.table.columns.get(name) is int:
        return Column(head, ColumnKind.NUMBER if name != "first_seq" else ColumnKind.TEXT)
    return Column(head, ColumnKind.CODE if name in _CODE else ColumnKind.TEXT)


def _cell(asked: Asked, name: str, value: object) -> Cell:
    if name == asked.bar:
        return (_number(value),)
    if isinstance(value, int) and name not in ("reason", "first_seq"):
        return value
    return cell_text(value, name)  # type: ignore[arg-type]


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
