"""The report of a shadow as text, and as the page that a change board reads."""

from __future__ import annotations

from collections.abc import Iterator

from commands.pages import Cell, Column, ColumnKind, Figure, Section, Severity, document, table
from commands.replay.differences.model import FINDING
from commands.replay.differences.report import RULES, DifferenceReport
from commands.replay.differences.shadow import ShadowReport
from commands.replay.differences.text import example_text
from commands.terminal.counted import counted

_SECONDS_A_DAY = 86_400
_DIFFERENCES = "Differences by rule"
_UNWATCHED = "Queues that were not compared"


def lines_of(report: ShadowReport) -> Iterator[str]:
    """The report, line by line."""
    yield f"{counted(report.messages, 'message')}{_span(report)}"
    yield f"{report.same:,} publications on subscriber queues are what version 7 puts"
    yield f"{counted(report.differences, 'difference')}, {report.findings:,} of them without a rule"
    for rule, count in report.rules.items():
        yield f"  {rule}  {count:,}  {_title(rule)}"
    if report.unwatched:
        total, names = sum(report.unwatched.values()), ", ".join(list(report.unwatched)[:10])
        yield f"not compared: {counted(total, 'publication')} for {names}, where nothing was captured; see --queue"
    for stream, count in report.not_processed.items():
        yield f"not processed by either version: {counted(count, 'message')} on {stream}"


def page(report: ShadowReport, judged: DifferenceReport, source: str) -> str:
    """The page. judged: the differences with their examples. source: the capture, for its head."""
    rules: list[list[Cell]] = [
        [rule, _title(rule), count, "; ".join(_examples(judged, rule))] for rule, count in report.rules.items()
    ]
    unwatched: list[list[Cell]] = [[queue, count] for queue, count in report.unwatched.items()]
    sections = [
        Section(
            _DIFFERENCES,
            table(
                [Column("rule"), Column("what"), Column("differences", ColumnKind.NUMBER), Column("for example")], rules
            ),
            f"{report.differences:,}",
        ),
        Section(
            _UNWATCHED,
            table([Column("queue"), Column("publications", ColumnKind.NUMBER)], unwatched),
            f"{len(unwatched):,}",
        ),
    ]
    filled = [each for each, rows in zip(sections, (rules, unwatched), strict=True) if rows]
    lead = [
        f"{counted(report.messages, 'message')}{_span(report)}. The old queue manager went on; version 7 has done the "
        "same commands beside it, and every publication on a subscriber queue was compared with what version 7 puts."
    ]
    return document(f"Shadow of {source}", lead, list(_figures(report)), filled)


def _figures(report: ShadowReport) -> Iterator[Figure]:
    bad = Severity.BAD if report.findings else Severity.WARNING if report.differences else Severity.GOOD
    yield Figure(f"{report.differences:,}", "differences", bad, _DIFFERENCES if report.rules else "")
    yield Figure(f"{report.same:,}", "publications are the same", Severity.GOOD)
    yield Figure(f"{report.messages:,}", "messages")


def _span(report: ShadowReport) -> str:
    if report.since is None or report.until is None:
        return ""
    days = (report.until - report.since).total_seconds() / _SECONDS_A_DAY
    return f" in {days:,.1f} days, {report.since:%Y-%m-%d %H:%M:%S} to {report.until:%Y-%m-%d %H:%M:%S} UTC"


def _title(rule: str) -> str:
    return "no rule explains it" if rule == FINDING else RULES[rule].title


def _examples(judged: DifferenceReport, rule: str) -> Iterator[str]:
    for line in judged.rules:
        if line.name == rule:
            yield from (example_text(each) for each in line.examples[:2])
