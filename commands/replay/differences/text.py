"""The report for a terminal of a hundred columns, and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final

from markupsafe import Markup

from commands.broker.context import SETUP, not_read
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
from commands.replay.differences.report import (
    FINDING,
    Change,
    DeliveryLine,
    DifferenceReport,
    PutDifference,
    ReportLine,
    RuleLine,
)
from commands.terminal.counted import counted

_MOST_LINES: Final = 10
_COLUMNS: Final = 100
_NAME: Final = 38
_MOST_RULES: Final = 4

WORDS: Final = {
    Change.GAINED: "gained",
    Change.LOST: "lost",
    Change.SPLIT: "split",
    Change.CONTENT: "different content",
    Change.ANSWER: "different answer",
}
"""The words for a number of changes."""

_HEADS: Final = {Change.CONTENT: "content", Change.ANSWER: "answer"}


def lines_of(report: DifferenceReport) -> Iterator[str]:
    """The report, line by line."""
    unknown = sum(report.not_processed.values())
    if not report.differences:
        of_the_rest = f", {unknown:,} not processed; of the others" if unknown else ":"
        same = "no put differs" if report.signs else "both versions put the same"
        yield f"{counted(report.messages, 'message')}{of_the_rest} {same}"
    else:
        explained = report.differences - report.findings
        yield (f"{counted(report.messages, 'message')}, {report.differing:,} of which version 7 treats differently")
        yield f"{counted(report.differences, 'difference')} for {counted(len(report.subscribers), 'queue')}: " + (
            f"{explained:,} explained by rules, {report.findings:,} not"
        )
        yield noticed(report)
    for sentence in unprocessed(report):
        yield from _wrapped(sentence, "", "  ")
    for line in report.rules:
        yield ""
        yield from _rule(line)
    yield from _table("subscribers that would notice", "queue", report.subscribers)
    yield from _table("topics that differ", "topic", report.topics)
    if report.signs:
        yield ""
        yield "check these commands, whose puts do not show what differs:"
        for sign in report.signs:
            where = f"{counted(sign.count, 'command')}, the first is message {sign.first_seq}"
            yield from _wrapped(f"{sign.name}  {sign.title}: {where}; {sign.advice}", "  ", "       ")
    yield from _deliveries(report.deliveries)


def unprocessed(report: DifferenceReport) -> Iterator[str]:
    """A sentence for each stream that neither version knows."""
    for stream, count in report.not_processed.items():
        yield f"not processed by either version: {counted(count, 'message')} on {stream}: {not_read(stream, SETUP)}"


def noticed(report: DifferenceReport) -> str:
    """How many subscribers notice what, the worst first: they miss something, get more, or are answered otherwise."""
    what = {
        "would miss publications": (Change.LOST,),
        "would get more": (Change.GAINED, Change.SPLIT),
        "would get other content or answers": (Change.CONTENT, Change.ANSWER),
    }
    found = (
        (sum(any(change in line.changes for change in changes) for line in report.subscribers), words)
        for words, changes in what.items()
    )
    return ", ".join(f"{counted(number, 'queue')} {words}" for number, words in found if number)


def changed(changes: dict[Change, int]) -> str:
    """How often each change was met, in words."""
    return ", ".join(f"{changes[change]:,} {WORDS[change]}" for change in Change if change in changes)


def _rule(line: RuleLine) -> Iterator[str]:
    name = "FINDINGS" if line.name == FINDING else line.name
    yield from _wrapped(f"{name}  {line.title}: {changed(line.changes)}", "", "     ")
    if line.old:
        yield from _wrapped(f"version 6: {line.old}; version 7: {line.new}", "     ", "     ")
    if line.advice:
        yield from _wrapped(f"what to do: {line.advice}", "     ", "       ")
    for example in line.examples:
        yield from _wrapped(example_text(example), "     - ", "       ")


def example_text(example: PutDifference) -> str:
    """One difference in a sentence."""
    program = f" with {example.program}" if example.program else ""
    who = f"message {example.seq} ({example.user or 'somebody'}{program}: {example.command or 'no command'})"
    since = f", since message {example.since}" if example.since is not None else ""
    if example.change is Change.ANSWER:
        return f"{who}: {example.queue} gets {example.new}, not {example.old}: {example.why}{since}"
    counts = f"{example.new} instead of {example.old}"
    what = {Change.CONTENT: "gets other content on", Change.SPLIT: f"gets {counts} about"}
    does = what.get(example.change, f"gets {counts} on")
    whose = f" of user {example.sub_user}" if example.sub_user else ""
    return f"{who}: {example.queue}{whose} {does} {example.topic}: {example.why}{since}"


def _table(title: str, head: str, lines: Sequence[ReportLine]) -> Iterator[str]:
    """Columns of numbers for the changes that there are; the longest names are cut in the middle."""
    if not lines:
        return
    met = [change for change in Change if any(change in line.changes for line in lines)]
    heads = "".join(f" {_HEADS.get(change, change.value):>8}" for change in met)
    yield ""
    yield f"{title}:"
    yield f"  {head:<{_NAME}}{heads}  rules"
    for line in lines[:_MOST_LINES]:
        numbers = "".join(f" {line.changes.get(change, 0) or '-':>8}" for change in met)
        yield f"  {_cut(line.name)}{numbers}  {_rules(line)}"
    if len(lines) > _MOST_LINES:
        yield f"  and {len(lines) - _MOST_LINES:,} more"


def _rules(line: ReportLine) -> str:
    rules = sorted(line.rules, key=lambda rule: -line.rules[rule])
    more = f" +{len(rules) - _MOST_RULES + 1}" if len(rules) > _MOST_RULES else ""
    return " ".join(rules[: _MOST_RULES - bool(more)]) + more


def _deliveries(lines: Sequence[DeliveryLine]) -> Iterator[str]:
    """The queues with other deliveries than were captured, those that miss some first; and how many have the same."""
    if not lines:
        return
    captured = sum(line.captured for line in lines)
    yield ""
    yield f"against {counted(captured, 'publication')} captured on {counted(len(lines), 'subscriber queue')}:"
    for version, missing, more in (
        ("version 6", sum(line.missing_in_old for line in lines), sum(line.only_in_old for line in lines)),
        ("version 7", sum(line.missing_in_new for line in lines), sum(line.only_in_new for line in lines)),
    ):
        yield f"  {version} puts {captured - missing:,} of them, {missing:,} are missing; {more:,} were not captured"
    others = sorted((line for line in lines if not line.as_captured), key=missing_first)
    if others:
        yield f"  {'queue':<{_NAME}} captured   in v6   in v7   missing in v7  more in v7"
    for line in others[:_MOST_LINES]:
        counts = f" {line.captured:>8} {line.old:>7} {line.new:>7} {line.missing_in_new:>15} {line.only_in_new:>11}"
        yield f"  {_cut(line.queue)}{counts}"
    if len(others) > _MOST_LINES:
        yield f"  and {len(others) - _MOST_LINES:,} more"
    if len(lines) > len(others):
        yield f"  {counted(len(lines) - len(others), 'queue')} would have in version 7 what was captured"


def missing_first(line: DeliveryLine) -> tuple[object, ...]:
    """The order of queues for a person: those that would miss most first."""
    return -line.missing_in_new, -line.only_in_new, line.queue, line.qmgr


def _wrapped(text: str, first: str, other: str) -> list[str]:
    return wrap(text, _COLUMNS, initial_indent=first, subsequent_indent=other, break_on_hyphens=False)


def _cut(text: str) -> str:
    """*text* cut to the width of a name, in the middle: the end of a topic matters as much as its beginning."""
    if len(text) <= _NAME:
        return f"{text:<{_NAME}}"
    return f"{text[: _NAME // 2 - 2]}...{text[-(_NAME // 2 - 1) :]}"


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
        _delivery_counts(report),
        Section("By rule", _by_rule([*findings, *rules]), f"{len(report.rules):,}"),
        Section(_RULES, _rule_counts(rules), f"{len(rules):,}"),
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
        _rule_counts(lines),
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


def _rule_counts(lines: Iterable[RuleLine]) -> Markup:
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


def _delivery_counts(report: DifferenceReport) -> Section:
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
