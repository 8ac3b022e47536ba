"""Numbers over time: a lane for each series, each to its own scale, so that few errors among many messages are seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from commands.pages.text import escaped

_HEIGHT: Final = 40
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Series:
    """What a colour stands for: ``blue``, ``green``, ``red``, ``amber`` or ``violet`` of the style."""

    name: str
    colour: str


def timeline(series: Sequence[Series], periods: Mapping[datetime, Sequence[int]], length_s: int) -> str:
    """Columns of *length_s* seconds. periods: a number for each series, by the start of the period; others are zero.

    Series without a number above zero have no lane.
    """
    if not periods:
        return ""
    first, last = min(periods), max(periods)
    columns = int((last - first).total_seconds()) // length_s + 1
    lanes = []
    for at, one in enumerate(series):
        most = max(numbers[at] for numbers in periods.values())
        if most:
            drawn = "".join(
                _column(one, start, numbers[at], most, (start - first) / timedelta(seconds=length_s))
                for start, numbers in sorted(periods.items())
                if numbers[at]
            )
            every = sum(numbers[at] for numbers in periods.values())
            about = f"{every:,} in all, at most {most:,} in {spelt(length_s)}"
            lanes.append(
                f'<div class="lane"><div><b>{escaped(one.name)}</b> <small>{about}</small></div>'
                f'<svg viewBox="0 0 {columns} {_HEIGHT}" preserveAspectRatio="none" role="img" '
                f'aria-label="{escaped(one.name)}: {about}">{drawn}</svg></div>'
            )
    return f'<figure class="timeline">{"".join(lanes)}{_axis(first, columns, length_s)}</figure>' if lanes else ""


def spelt(length_s: int) -> str:
    """A length of time in its largest whole unit: ``15 min``."""
    unit, word = next((unit, word) for unit, word in _UNITS if length_s % unit == 0)
    return f"{length_s // unit} {word}"


def _column(one: Series, start: datetime, number: int, most: int, x: float) -> str:
    # A value above zero must be visible: a column is never lower than a line.
    tall = max(1.5, (_HEIGHT - 1) * number / most)
    return (
        f'<rect class="{one.colour}" x="{x:g}" y="{_HEIGHT - tall:.2f}" width=".9" height="{tall:.2f}">'
        f"<title>{_moment(start)}: {number:,} {escaped(one.name)}</title></rect>"
    )


def _axis(first: datetime, columns: int, length_s: int) -> str:
    """The start, the middle and the end; the date once where all are on one day, alone where periods are days."""
    ends = [first + timedelta(seconds=round(columns * share) * length_s) for share in (0, 0.5, 1)]
    if length_s >= 86_400:
        words = [f"{end:%Y-%m-%d}" for end in ends]
    elif ends[0].date() == ends[2].date():
        words = [f"{first:%Y-%m-%d} {ends[0]:%H:%M:%S}", *(f"{end:%H:%M:%S}" for end in ends[1:])]
    else:
        words = [f"{end:%Y-%m-%d %H:%M}" for end in ends]
    return f'<div class="axis"><span>{words[0]}</span><span>{words[1]}</span><span>{words[2]} UTC</span></div>'


def _moment(start: datetime) -> str:
    return f"{start:%Y-%m-%d %H:%M:%S}"
