"""Numbers over time: a lane for each series, each to its own scale, so that few errors among many messages are seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup

from commands.pages.engine import fill

_HEIGHT: Final = 40
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Series:
    """What a colour stands for: ``blue``, ``green``, ``red``, ``amber`` or ``violet`` of the style."""

    name: str
    colour: str


def timeline(series: Sequence[Series], periods: Mapping[datetime, Sequence[int]], length_s: int) -> Markup:
    """Columns of *length_s* seconds. periods: a number for each series, by the start of the period; others are zero.

    Series without a number above zero have no lane; "" where none has one.
    """
    first, last = min(periods, default=None), max(periods, default=None)
    if first is None or last is None:
        return Markup()
    columns = int((last - first).total_seconds()) // length_s + 1
    lanes = [_lane(one, at, periods, first, length_s) for at, one in enumerate(series)]
    drawn = [lane for lane in lanes if lane["bars"]]
    if not drawn:
        return Markup()
    return fill("timeline.html", lanes=drawn, columns=columns, height=_HEIGHT, axis=_axis(first, columns, length_s))


def _lane(
    one: Series, at: int, periods: Mapping[datetime, Sequence[int]], first: datetime, length_s: int
) -> dict[str, Any]:
    most = max(numbers[at] for numbers in periods.values())
    every = sum(numbers[at] for numbers in periods.values())
    bars = [
        {
            "at": (start - first) / timedelta(seconds=length_s),
            # A value above zero must be visible: a column is never lower than a line.
            "tall": max(1.5, (_HEIGHT - 1) * numbers[at] / most),
            "start": f"{start:%Y-%m-%d %H:%M:%S}",
            "number": numbers[at],
        }
        for start, numbers in sorted(periods.items())
        if numbers[at]
    ]
    about = f"{every:,} in all, at most {most:,} in {spelt(length_s)}"
    return {"series": one, "about": about, "most": most, "bars": bars}


def spelt(length_s: int) -> str:
    """A length of time in its largest whole unit: ``15 min``."""
    unit, word = next((unit, word) for unit, word in _UNITS if length_s % unit == 0)
    return f"{length_s // unit} {word}"


def _axis(first: datetime, columns: int, length_s: int) -> list[str]:
    """The start, the middle and the end; the date once where all are on one day, alone where periods are days."""
    ends = [first + timedelta(seconds=round(columns * share) * length_s) for share in (0, 0.5, 1)]
    if length_s >= 86_400:
        return [f"{end:%Y-%m-%d}" for end in ends]
    if ends[0].date() == ends[2].date():
        return [f"{first:%Y-%m-%d} {ends[0]:%H:%M:%S}", *(f"{end:%H:%M:%S}" for end in ends[1:])]
    return [f"{end:%Y-%m-%d %H:%M}" for end in ends]
