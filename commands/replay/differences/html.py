"""The report as one HTML page that needs nothing else: styles and plots are in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from commands.replay.differences.model import FINDING, Change
from commands.replay.differences.report import DeliveryLine, Line, Report, RuleLine
from commands.replay.differences.text import WORDS, changed, counted, missing_first, noticed, told

_COLOURS: Final = {
    Change.GAINED: "#2f7ed8",
    Change.LOST: "#c23531",
    Change.SPLIT: "#e6a23c",
    Change.CONTENT: "#7d5fb2",
    Change.ANSWER: "#4d9a6a",
}
_MOST_BARS: Final = 25
_MOST_ROWS: Final = 500
_BAR_HEIGHT: Final = 22
_LABEL_WIDTH: Final = 300
_PLOT_WIDTH: Final = 560

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .2rem; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .2rem .6rem; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } tr { border-bottom: 1px solid #ddd; }
.key .one { white-space: nowrap; margin-right: 1rem; }
.key .one span { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; vertical-align: -.1rem; }
.finding h3 { color: #c23531; } .versions { color: #555; } li { margin: .15rem 0; } code { font-size: .9em; }
summary { cursor: pointer; margin: .4rem 0; color: #2f5f98; } .sum { font-size: 1.1rem; }
td:first-child { overflow-wrap: anywhere; } td { vertical-align: top; }
svg text { font: 12px system-ui, sans-serif; fill: #333; }
"""


def page(report: Report, source: str) -> str:
    """The page. source: what was replayed, for its head."""
    explained = report.differences - report.findings
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Version 6 and version 7</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>What version 7 does differently with {escape(source)}</h1>",
        f'<p class="sum">{counted(report.messages, "message")}; {report.differing:,} lead to something else in version '
        f"7. {counted(report.differences, 'difference')} for {counted(len(report.subscribers), 'queue')}: "
        f"{explained:,} explained by rules, <strong>{report.findings:,} not</strong>.</p>",
        f'<p class="sum">{noticed(report)}.</p>' if report.differences else "",
        _section("Against what was captured on subscriber queues", _deliveries(report)),
        _section("By rule", _key() + _bars(report.rules)),
        _section("The rules, with examples", "".join(map(_rule, report.rules))),
        _section("Who would notice", _bars(report.subscribers) + _table("Queue", report.subscribers)),
        _section("On which topics", _bars(report.topics) + _table("Topic", report.topics)),
        _section("Over time", _timeline(report)),
        _section("To be thought about, though no put differs", _signs(report)),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}" if content else ""


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _key() -> str:
    words = {
        Change.GAINED: "publication that version 7 alone delivers",
        Change.LOST: "that version 6 alone delivers",
        Change.SPLIT: "one message in version 6, several in 7",
        Change.CONTENT: "told otherwise",
        Change.ANSWER: "another answer",
    }
    found = "".join(
        f'<span class="one"><span style="background:{_COLOURS[change]}"></span>{words[change]}</span> '
        for change in Change
    )
    return f'<p class="key">{found}</p>'


def _bars(lines: Sequence[Line]) -> str:
    shown = lines[:_MOST_BARS]
    if not shown:
        return ""
    most = max(line.total for line in shown)
    height = _BAR_HEIGHT * len(shown)
    width = _LABEL_WIDTH + _PLOT_WIDTH + 80
    rows = "".join(_bar(line, _BAR_HEIGHT * at, most) for at, line in enumerate(shown))
    return f'<svg viewBox="0 0 {width} {height}" width="100%" role="img">{rows}</svg>'


def _bar(line: Line, y: int, most: int) -> str:
    label = f"{line.name} {line.title}" if isinstance(line, RuleLine) else line.name
    parts = [f'<text x="{_LABEL_WIDTH - 8}" y="{y + 15}" text-anchor="end">{escape(_short(label))}</text>']
    x = float(_LABEL_WIDTH)
    for change in Change:
        count = line.changes.get(change, 0)
        if count:
            width = max(1.0, _PLOT_WIDTH * count / most)
            title = f"<title>{count:,} {WORDS[change]}</title>"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{_BAR_HEIGHT - 6}" '
                f'fill="{_COLOURS[change]}">{title}</rect>'
            )
            x += width
    parts.append(f'<text x="{x + 6:.1f}" y="{y + 15}">{line.total:,}</text>')
    return "".join(parts)


def _timeline(report: Report) -> str:
    periods = report.timeline
    if not periods:
        return ""
    first = periods[0].start
    number = [round((p.start - first).total_seconds() / 60 / report.period_minutes) for p in periods]
    count = number[-1] + 1
    most = max(sum(period.changes.values()) for period in periods)
    width, height = 900, 160
    step = width / max(count, 1)
    parts = []
    for at, period in zip(number, periods, strict=True):
        y = float(height)
        for change in Change:
            if found := period.changes.get(change, 0):
                tall = (height - 20) * found / most
                y -= tall
                title = f"<title>{period.start:%Y-%m-%d %H:%M}: {found:,} {WORDS[change]}</title>"
                parts.append(
                    f'<rect x="{at * step:.1f}" y="{y:.1f}" width="{max(step - 1, 0.5):.1f}" height="{tall:.1f}" '
                    f'fill="{_COLOURS[change]}">{title}</rect>'
                )
    ends = f"{first:%Y-%m-%d %H:%M}", f"{periods[-1].start:%Y-%m-%d %H:%M} UTC"
    axis = f'<text x="0" y="{height + 16}">{ends[0]}</text>'
    axis += f'<text x="{width}" y="{height + 16}" text-anchor="end">{ends[1]}</text>'
    most_text = f'<text x="0" y="12">at most {most:,} in {report.period_minutes:,} min</text>'
    return f'<svg viewBox="0 0 {width} {height + 22}" width="100%" role="img">{"".join(parts)}{axis}{most_text}</svg>'


def _table(head: str, lines: Sequence[Line]) -> str:
    if not lines:
        return ""
    examples = any(line.first is not None for line in lines)
    rows = "".join(
        f'<tr><td><code>{escape(line.name)}</code></td><td class="n">{line.total:,}</td>'
        f"<td>{changed(line.changes)}</td><td>{' '.join(sorted(line.rules))}</td>"
        + (f"<td>{escape(told(line.first))}</td>" if line.first is not None else "")
        + "</tr>"
        for line in lines[:_MOST_ROWS]
    )
    more = f"<p>and {len(lines) - _MOST_ROWS:,} more</p>" if len(lines) > _MOST_ROWS else ""
    heads = f'<tr><th>{head}</th><th class="n">differences</th><th></th><th>rules</th>'
    heads += "<th>the first of them</th></tr>" if examples else "</tr>"
    shown = "all of them" if len(lines) <= _MOST_ROWS else f"the first {_MOST_ROWS:,}"
    return _folded(f"Table: {shown}, with counts", f"<table>{heads}{rows}</table>{more}")


def _rule(line: RuleLine) -> str:
    name = "Findings" if line.name == FINDING else line.name
    versions = f"version 6: {escape(line.old)}; version 7: {escape(line.new)}" if line.old else ""
    advice = f"<br>what to do: {escape(line.advice)}" if line.advice else ""
    examples = "".join(f"<li>{escape(told(example))}</li>" for example in line.examples)
    kind = ' class="finding"' if line.name == FINDING else ""
    return (
        f"<div{kind}><h3>{name}: {escape(line.title)} ({changed(line.changes)})</h3>"
        f'<div class="versions">{versions}{advice}</div><ul>{examples}</ul></div>'
    )


def _signs(report: Report) -> str:
    return _list(
        f"{sign.name}, {escape(sign.title)}: {counted(sign.count, 'command')}, the first is message {sign.first_seq}; "
        f"{escape(sign.advice)}"
        for sign in report.signs
    )


def _deliveries(report: Report) -> str:
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
    return text + _folded("Table: queue by queue", f"<table>{head}{rows}</table>")


def _met(line: DeliveryLine) -> tuple[int, int, int]:
    """Captured, and of them put by version 6, by version 7."""
    return line.captured, line.captured - line.missing_in_old, line.captured - line.missing_in_new


def _list(items: Iterable[str]) -> str:
    found = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{found}</ul>" if found else ""


def _short(text: str) -> str:
    return text if len(text) <= 44 else text[:41] + "..."
