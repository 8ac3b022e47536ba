"""Parts of a report that is one HTML page and needs nothing else: the frame, plots in SVG, tables; and words for both.

What goes in as text is escaped here; what is called *content* is HTML already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

from rfh2.constants import REASON_NAMES

MOST_BARS: Final = 25
_BAR_HEIGHT: Final = 22
_LABEL_WIDTH: Final = 300
_LABEL: Final = 44
_PLOT_WIDTH: Final = 560
_TIMELINE: Final = (900, 160)

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin-bottom: .2rem; } li { margin: .15rem 0; } code { font-size: .9em; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .2rem .6rem; text-align: left; }
td { vertical-align: top; overflow-wrap: anywhere; } tr { border-bottom: 1px solid #ddd; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.key .one { white-space: nowrap; margin-right: 1rem; }
.key .one span { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; vertical-align: -.1rem; }
summary { cursor: pointer; margin: .4rem 0; color: #2f5f98; } .sum { font-size: 1.1rem; } .none { color: #555; }
svg text { font: 12px system-ui, sans-serif; fill: #333; }
"""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a bar. what: of how many, in words."""

    count: int
    what: str
    colour: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time in a timeline, counted from 0."""

    number: int
    start: datetime
    shares: Sequence[Share]


def document(title: str, heading: str, parts: Iterable[str], *, style: str = "") -> str:
    """The page. parts: content, from top to bottom; empty ones are left out. style: more of it."""
    head = (
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}{style}</style></head><body>",
        f"<h1>{escape(heading)}</h1>",
    )
    return "\n".join((*head, *(part for part in parts if part), "</body></html>")) + "\n"


def section(title: str, content: str) -> str:
    """A section; nothing where there is no content."""
    return f"<h2>{escape(title)}</h2>{content}" if content else ""


def folded(title: str, content: str) -> str:
    """Content that is shown on demand."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def key(meanings: Iterable[tuple[str, str]]) -> str:
    """What the colours mean: colour and words."""
    found = "".join(
        f'<span class="one"><span style="background:{colour}"></span>{escape(words)}</span> '
        for colour, words in meanings
    )
    return f'<p class="key">{found}</p>'


def bars(lines: Sequence[tuple[str, Sequence[Share]]]) -> str:
    """A bar for each of the first lines, with the sum of its shares behind it; nothing where there are none."""
    shown = [(label, [share for share in shares if share.count]) for label, shares in lines[:MOST_BARS]]
    if not shown:
        return ""
    most = max(1, *(sum(share.count for share in shares) for _, shares in shown))
    rows = "".join(_bar(label, shares, _BAR_HEIGHT * at, most) for at, (label, shares) in enumerate(shown))
    size = f"0 0 {_LABEL_WIDTH + _PLOT_WIDTH + 80} {_BAR_HEIGHT * len(shown)}"
    return f'<svg viewBox="{size}" width="100%" role="img">{rows}</svg>'


def _bar(label: str, shares: Sequence[Share], y: int, most: int) -> str:
    parts = [f'<text x="{_LABEL_WIDTH - 8}" y="{y + 15}" text-anchor="end">{escape(cut(label, _LABEL))}</text>']
    x = float(_LABEL_WIDTH)
    for share in shares:
        width = max(1.0, _PLOT_WIDTH * share.count / most)
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{_BAR_HEIGHT - 6}" fill="{share.colour}">'
            f"<title>{share.count:,} {escape(share.what)}</title></rect>"
        )
        x += width
    parts.append(f'<text x="{x + 6:.1f}" y="{y + 15}">{sum(share.count for share in shares):,}</text>')
    return "".join(parts)


def timeline(stretches: Sequence[Stretch], minutes: int) -> str:
    """A column for each stretch, in order of time. minutes: the length of one."""
    if not stretches:
        return ""
    most = max(1, *(sum(share.count for share in stretch.shares) for stretch in stretches))
    width, height = _TIMELINE
    step = width / (stretches[-1].number + 1)
    parts = []
    for stretch in stretches:
        y = float(height)
        for share in stretch.shares:
            if share.count:
                tall = (height - 20) * share.count / most
                y -= tall
                title = f"<title>{stretch.start:%Y-%m-%d %H:%M}: {share.count:,} {escape(share.what)}</title>"
                parts.append(
                    f'<rect x="{stretch.number * step:.1f}" y="{y:.1f}" width="{max(step - 1, 0.5):.1f}" '
                    f'height="{tall:.1f}" fill="{share.colour}">{title}</rect>'
                )
    ends = f"{stretches[0].start:%Y-%m-%d %H:%M}", f"{stretches[-1].start:%Y-%m-%d %H:%M} UTC"
    axis = f'<text x="0" y="{height + 16}">{ends[0]}</text>'
    axis += f'<text x="{width}" y="{height + 16}" text-anchor="end">{ends[1]}</text>'
    most_text = f'<text x="0" y="12">at most {most:,} in {minutes:,} min</text>'
    return f'<svg viewBox="0 0 {width} {height + 22}" width="100%" role="img">{"".join(parts)}{axis}{most_text}</svg>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool], count: int) -> str:
    """A table of text; numeric: which columns are set to the right. count: how many rows there are in all."""
    kinds = [' class="n"' if number else "" for number in numeric]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, heads, strict=True))
    lines = [
        "<tr>" + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    ]
    more = f"<p>and {count - len(lines):,} more</p>" if count > len(lines) else ""
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>{more}"


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
    """*text*, without its middle where it is wider: what topics end in matters as much as what they begin with."""
    if len(text) <= width:
        return text
    end = (width - 3) // 2
    return f"{text[: width - 3 - end]}...{text[-end:]}"
