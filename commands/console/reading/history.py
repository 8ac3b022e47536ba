"""What a queue manager did since the console was opened: increments of its totals, in periods of several lengths."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

LENGTHS_S: Final = (5, 60, 900)
"""Lengths of the periods, in seconds."""

MOST_PERIODS: Final = 240
"""Periods that are kept of each length: 20 minutes, 4 hours, 2.5 days."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What one processor counted since it was started. since: when that was; another one counts from 0 again."""

    since: str | None
    counts: Mapping[str, int]


_NO_TALLY: Final = Tally(None, {})
_NONE: Final[Mapping[str, int]] = {}


class History:
    """The periods, of all lengths at once. Totals grow; what makes one smaller is not shown."""

    def __init__(self) -> None:
        self._before: dict[str, int] | None = None
        self._tally: Tally | None = None
        self._periods: dict[int, OrderedDict[datetime, dict[str, int]]] = {each: OrderedDict() for each in LENGTHS_S}

    def add(
        self, now: datetime, totals: Mapping[str, int], levels: Mapping[str, int] = _NONE, tally: Tally = _NO_TALLY
    ) -> None:
        """Take the totals at a moment. levels: values that are no totals; of each period the greatest is kept."""
        before, self._before = self._before, dict(totals)
        before = dict(totals) if before is None else before
        # A smaller total: what it belonged to was deleted. That is nobody's message.
        more = {name: max(total - before.get(name, total), 0) for name, total in totals.items()}
        last, self._tally = self._tally, tally
        if last is not None:
            begun = last.counts if last.since == tally.since else {}
            more |= {name: max(count - begun.get(name, 0), 0) for name, count in tally.counts.items()}
        for length_s, periods in self._periods.items():
            at = datetime.fromtimestamp(now.timestamp() // length_s * length_s, UTC)
            period = periods.setdefault(at, {})
            for name, increment in more.items():
                period[name] = period.get(name, 0) + increment
            for name, level in levels.items():
                period[name] = max(period.get(name, 0), level)
            # By time, and not by their number: a machine that slept leaves a gap.
            while next(iter(periods)) <= at - timedelta(seconds=length_s * MOST_PERIODS):
                periods.popitem(last=False)

    def periods(self, length_s: int, names: tuple[str, ...]) -> dict[datetime, tuple[int, ...]]:
        """By the start of each period, the increments of *names*. Raises KeyError for a length not in LENGTHS_S."""
        return {at: tuple(period.get(name, 0) for name in names) for at, period in self._periods[length_s].items()}
