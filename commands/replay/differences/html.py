"""The report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    fill,
    table,
    timeline,
)
from commands.replay.differences.model import FINDING, Change
from commands.replay.differences.report import DeliveryLine, DifferenceReport, ReportLine, RuleLine
from commands.replay.differences.text import changed, example_text, missing_first, unprocessed
from commands.terminal.counted import counted

_SERIES: Final = {
    Change.LOST: Series("lost: version 6 alone delivers", "red"),
    Change.GAINED: Series("gained: version 7 alone delivers", "blue"),
    Change.SPLIT: Series("split: one message in version 6, several in version 7", "amber"),
    Change.CONTENT: Series("different content", "violet"),
    Change.ANSWER: Series("different answer", "green"),
}
"""The worst first."""

_RULES: Final = "The rules, with examples"
_FINDINGS: Final = "Findings: differences that no rule explains"
_SUBSCRIBERS: Final = "Subscribers that would notice"
_REST: Final = "The file written with --output has every difference."


def page(report: DifferenceReport, source: str) -> str:
    """The page. source: what was replayed, for its head."""
    findings = [line for line in report.rules if line.name == FINDING]
    rules = sorted((line for line in report.rules if line.name != FINDING), key=_worst_first)
    sections = [
        _findings(findings),
        Section(_SUBSCRIBERS, _places("queue", report.subscribers), f"{len(report.subscribers):,}"),
        _deliveries(report),
        Section("By rule", _by_rule([*findings, *rules]), f"{len(report.rules):,}"),
        Section(_RULES, _rules(rules), f"{len(rules):,}"),
        Section("By topic", _places("topic", report.topics), f"{len(report.topics):,}"),
        Section("Over time", _timeline(report)),
        _signs(report),
    ]
    lead = [
        f"{counted(report.messages, 'message')} replayed under version 6 and version 7. "
        f"{report.differing:,} of them give a different result in version 7.",
        *(f"{sentence}." for sentence in unprocessed(report)),
    ]
    heading = f"What version 7 does differently with {source}"
    return document(heading, lead, list(_figures(report)), [each for each in sections if each.content])


def _figures(report: DifferenceReport) -> Iterator[Figure]:
    severity = Severity.BAD if report.findings else Severity.GOOD
    yield Figure(f"{report.findings:,}", "differences without a rule", severity, _FINDINGS)
    for label, changes, bad in (
        ("queues miss publications", (Change.LOST,), Severity.BAD),
        ("queues get more", (Change.GAINED, Change.SPLIT), Severity.WARNING),
        ("queues get different content or answers", (Change.CONTENT, Change.ANSWER), Severity.WARNING),
    ):
        count = sum(any(change in line.changes for change in changes) for line in report.subscribers)
        yield Figure(f"{count:,}", label, bad if count else Severity.GOOD, _SUBSCRIBERS)
    explained = report.differences - report.findings
    yield Figure(f"{explained:,}", "differences explained by rules", section=_RULES)
    yield Figure(f"{report.messages:,}", "messages")
    if report.not_processed:
        yield Figure(f"{sum(report.not_processed.values()):,}", "messages that neither processed", Severity.BAD)


def _worst_first(line: ReportLine) -> tuple[int, int, str]:
    return -line.changes.get(Change.LOST, 0), -line.total, line.name


def _findings(lines: Sequence[RuleLine]) -> Section:
    count = f"{sum(line.total for line in lines):,}"
    return Section(
        _FINDINGS,
        _rules(lines),
        count,
        Severity.BAD,
        "Look at each of these: the known differences between the versions do not explain them.",
    )


def _bars(changes: Mapping[Change, int]) -> tuple[int, ...]:
    return tuple(changes.get(change, 0) for change in _SERIES)


def _bar_column(lines: Sequence[ReportLine]) -> tuple[Column, tuple[Change, ...]]:
    """A column of bars, with the changes that occur."""
    met = tuple(change for change in _SERIES if any(line.changes.get(change) for line in lines))
    series = tuple(Series(change.value, _SERIES[change].colour) for change in met)
    return Column("differences", ColumnKind.BARS, series), met


def _by_rule(lines: Sequence[RuleLine]) -> Markup:
    if not lines:
        return Markup()
    bars, met = _bar_column(lines)
    columns = [Column("rule"), Column("what differs"), bars, Column("what to do")]
    rows: list[list[Cell]] = [
        [line.name, line.title, tuple(line.changes.get(change, 0) for change in met), line.advice] for line in lines
    ]
    return table(columns, rows)


def _places(head: str, lines: Sequence[ReportLine]) -> Markup:
    """Differences by subscriber or by topic. Folded: those with the same rules and the same numbers."""
    if not lines:
        return Markup()
    bars, met = _bar_column(lines)
    columns = [Column(head, ColumnKind.CODE), bars, Column("rules")]
    has_first = any(line.first is not None for line in lines)
    if has_first:
        columns.append(Column("first difference"))
    rows: list[list[Cell]] = []
    for line in sorted(lines, key=_worst_first):
        numbers = tuple(line.changes.get(change, 0) for change in met)
        row: list[Cell] = [line.name, numbers, " ".join(sorted(line.rules))]
        if has_first:
            row.append(example_text(line.first) if line.first is not None else "")
        rows.append(row)
    return table(columns, rows, varies=(head, "first difference"), rest=_REST)


def _rules(lines: Iterable[RuleLine]) -> Markup:
    """Each rule with its examples, whose queues are buttons that search for them."""
    rules = [
        {
            "is_bad": line.name == FINDING,
            "title": line.title if line.name == FINDING else f"{line.name}: {line.title}",
            "count": changed(line.changes),
            "old": line.old,
            "new": line.new,
            "advice": line.advice,
            "examples": [(example_text(example), example.queue) for example in line.examples],
        }
        for line in lines
    ]
    return fill("rules.html", rules=rules)


def _timeline(report: DifferenceReport) -> Markup:
    periods = {period.start: _bars(period.changes) for period in report.timeline}
    return timeline(list(_SERIES.values()), periods, report.period_s)


def _signs(report: DifferenceReport) -> Section:
    columns = [
        Column("rule"),
        Column("what differs"),
        Column("commands", ColumnKind.NUMBER),
        Column("first message", ColumnKind.NUMBER),
        Column("what to do"),
    ]
    rows: list[list[Cell]] = [[s.name, s.title, s.count, s.first_seq, s.advice] for s in report.signs]
    return Section(
        "Signs: nothing differs here, but check",
        table(columns, rows) if rows else Markup(),
        f"{len(rows):,}",
        about="These commands use something that a replay cannot decide. No put differs in this capture.",
    )


def _deliveries(report: DifferenceReport) -> Section:
    lines = sorted(report.deliveries, key=missing_first)
    captured, in_old, in_new = (sum(counts) for counts in zip((0, 0, 0), *map(_met, lines), strict=True))
    same = sum(line.as_captured for line in lines)
    several = len({line.qmgr for line in lines}) > 1
    heads = ("captured", "version 6", "version 7", "missing in 6", "more in 6", "missing in 7", "more in 7")
    columns = [Column("queue", ColumnKind.CODE), *(Column(head, ColumnKind.NUMBER) for head in heads)]
    rows: list[list[Cell]] = [
        [
            f"{d.queue} on {d.qmgr}" if several else d.queue,
            d.captured,
            d.old,
            d.new,
            d.missing_in_old,
            d.only_in_old,
            d.missing_in_new,
            d.only_in_new,
        ]
        for d in lines
    ]
    return Section(
        "Compared with what was captured on subscriber queues",
        table(columns, rows, varies=("queue",)) if rows else Markup(),
        f"{len(lines):,}",
        Severity.WARNING if same < len(lines) else Severity.NEUTRAL,
        f"{counted(captured, 'publication')} captured on {counted(len(lines), 'queue')}. Version 6 puts {in_old:,} of "
        f"them, version 7 {in_new:,}. On {counted(same, 'queue')} version 7 puts exactly what was captured. If "
        "version 6 does not put what was captured, the capture or the setup is incomplete; read the rest of this page "
        "with that in mind.",
    )


def _met(line: DeliveryLine) -> tuple[int, int, int]:
    """Captured, and of them put by version 6, by version 7."""
    return line.captured, line.captured - line.missing_in_old, line.captured - line.missing_in_new
