"""The report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from commands.replay.differences.model import FINDING, Change
from commands.replay.differences.report import DeliveryLine, DifferenceReport, ReportLine, RuleLine
from commands.replay.differences.text import WORDS, changed, counted, example_text, missing_first, noticed
from commands.replay.page import Share, Stretch, bars, document, folded, key, section, timeline

_COLOURS: Final = {
    Change.GAINED: "#2f7ed8",
    Change.LOST: "#c23531",
    Change.SPLIT: "#e6a23c",
    Change.CONTENT: "#7d5fb2",
    Change.ANSWER: "#4d9a6a",
}
_KEY: Final = {
    Change.GAINED: "publication that version 7 alone delivers",
    Change.LOST: "that version 6 alone delivers",
    Change.SPLIT: "one message in version 6, several in 7",
    Change.CONTENT: "different content",
    Change.ANSWER: "another answer",
}
_MOST_ROWS: Final = 500
_STYLE: Final = ".finding h3 { color: #c23531; } .versions { color: #555; }"


def page(report: DifferenceReport, source: str) -> str:
    """The page. source: what was replayed, for its head."""
    explained = report.differences - report.findings
    parts = (
        f'<p class="sum">{counted(report.messages, "message")}; {report.differing:,} lead to something else in version '
        f"7. {counted(report.differences, 'difference')} for {counted(len(report.subscribers), 'queue')}: "
        f"{explained:,} explained by rules, <strong>{report.findings:,} not</strong>.</p>",
        f'<p class="sum">{noticed(report)}.</p>' if report.differences else "",
        section("Against what was captured on subscriber queues", _deliveries(report)),
        section("By rule", key((_COLOURS[change], _KEY[change]) for change in Change) + _bars(report.rules)),
        section("The rules, with examples", "".join(map(_rule, report.rules))),
        section("Who would notice", _bars(report.subscribers) + _table("Queue", report.subscribers)),
        section("On which topics", _bars(report.topics) + _table("Topic", report.topics)),
        section("Over time", _timeline(report)),
        section("To be thought about, though no put differs", _signs(report)),
    )
    title = "Version 6 and version 7"
    return document(title, f"What version 7 does differently with {source}", parts, style=_STYLE)


def _shares(changes: Mapping[Change, int]) -> list[Share]:
    return [Share(changes.get(change, 0), WORDS[change], _COLOURS[change]) for change in Change]


def _bars(lines: Sequence[ReportLine]) -> str:
    return bars(
        [
            (f"{line.name} {line.title}" if isinstance(line, RuleLine) else line.name, _shares(line.changes))
            for line in lines
        ]
    )


def _timeline(report: DifferenceReport) -> str:
    if not report.timeline:
        return ""
    first = report.timeline[0].start
    stretches = [
        Stretch(
            round((period.start - first).total_seconds() / 60 / report.period_minutes),
            period.start,
            _shares(period.changes),
        )
        for period in report.timeline
    ]
    return timeline(stretches, report.period_minutes)


def _table(head: str, lines: Sequence[ReportLine]) -> str:
    if not lines:
        return ""
    examples = any(line.first is not None for line in lines)
    rows = "".join(
        f'<tr><td><code>{escape(line.name)}</code></td><td class="n">{line.total:,}</td>'
        f"<td>{changed(line.changes)}</td><td>{' '.join(sorted(line.rules))}</td>"
        + (f"<td>{escape(example_text(line.first))}</td>" if line.first is not None else "")
        + "</tr>"
        for line in lines[:_MOST_ROWS]
    )
    more = f"<p>and {len(lines) - _MOST_ROWS:,} more</p>" if len(lines) > _MOST_ROWS else ""
    heads = f'<tr><th>{head}</th><th class="n">differences</th><th></th><th>rules</th>'
    heads += "<th>the first of them</th></tr>" if examples else "</tr>"
    shown = "all of them" if len(lines) <= _MOST_ROWS else f"the first {_MOST_ROWS:,}"
    return folded(f"Table: {shown}, with counts", f"<table>{heads}{rows}</table>{more}")


def _rule(line: RuleLine) -> str:
    name = "Findings" if line.name == FINDING else line.name
    versions = f"version 6: {escape(line.old)}; version 7: {escape(line.new)}" if line.old else ""
    advice = f"<br>what to do: {escape(line.advice)}" if line.advice else ""
    examples = "".join(f"<li>{escape(example_text(example))}</li>" for example in line.examples)
    kind = ' class="finding"' if line.name == FINDING else ""
    return (
        f"<div{kind}><h3>{name}: {escape(line.title)} ({changed(line.changes)})</h3>"
        f'<div class="versions">{versions}{advice}</div><ul>{examples}</ul></div>'
    )


def _signs(report: DifferenceReport) -> str:
    return _list(
        f"{sign.name}, {escape(sign.title)}: {counted(sign.count, 'command')}, the first is message {sign.first_seq}; "
        f"{escape(sign.advice)}"
        for sign in report.signs
    )


def _deliveries(report: DifferenceReport) -> str:
    if not report.deliveries:
        return ""
    lines = sorted(report.deliveries, key=missing_first)
    captured, in_old, in_new = (sum(counts) for counts in zip(*map(_met, lines), strict=True))
    same = sum(line.as_captured for line in lines)
    text = (
        f"<p>{counted(captured, 'publication')} captured on {counted(len(lines), 'queue')}. Version 6 puts {in_old:,} "
        f"of them, version 7 {in_new:,}; on {counted(same, 'queue')} version 7 puts what was captured, no more and no "
        "less. Where version 6 does not put what was captured, the capture or the setup is not complete, and the rest "
        "of this page is to be read with that in mind.</p>"
    )
    several = len({line.qmgr for line in lines}) > 1
    rows = "".join(
        f"<tr><td><code>{escape(f'{d.queue} on {d.qmgr}' if several else d.queue)}</code></td>"
        + "".join(
            f'<td class="n">{n:,}</td>'
            for n in (d.captured, d.old, d.new, d.missing_in_old, d.only_in_old, d.missing_in_new, d.only_in_new)
        )
        + "</tr>"
        for d in lines[:_MOST_ROWS]
    )
    heads = ("captured", "version 6", "version 7", "missing in 6", "more in 6", "missing in 7", "more in 7")
    head = "<tr><th>Queue</th>" + "".join(f'<th class="n">{name}</th>' for name in heads) + "</tr>"
    return text + folded("Table: queue by queue", f"<table>{head}{rows}</table>")


def _met(line: DeliveryLine) -> tuple[int, int, int]:
    """Captured, and of them put by version 6, by version 7."""
    return line.captured, line.captured - line.missing_in_old, line.captured - line.missing_in_new


def _list(items: Iterable[str]) -> str:
    found = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{found}</ul>" if found else ""
