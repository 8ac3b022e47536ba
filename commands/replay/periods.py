"""Numbers by periods of equal length that fit the time they span: seconds for a minute's capture, days for a month's.

Lengths are a ladder in which each is a multiple of the one before, and periods begin at multiples of their length. So
counts move up the ladder as the span grows, and the result does not depend on the order in which moments are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

MOST_PERIODS: Final = 100
"""The largest number that can be distinguished on a page."""

LENGTHS_S: Final = (
    1,
    5,
    15,
    30,
    60,
    300,
    900,
    1_800,
    3_600,
    10_800,
    21_600,
    43_200,
    86_400,
    7 * 86_400,
    28 * 86_400,
    364 * 86_400,
)
"""From a second to 52 weeks."""

assert all(longer % shorter == 0 for shorter, longer in pairwise(LENGTHS_S))

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


class PeriodCounts:
    """Sums of *width* numbers for each period. Memory holds MOST_PERIODS of them, save for captures of centuries."""

    def __init__(self, width: int) -> None:
        self.length_s = LENGTHS_S[0]
        """The length of a period so far, in seconds."""
        self._width = width
        self._sums: dict[int, list[int]] = {}
        self._first = self._last = 0

    def add(self, moment: datetime, numbers: Sequence[int]) -> None:
        """Add *numbers* to the period of *moment*, which has a time zone."""
        self._add((moment - _EPOCH) // _SECOND // self.length_s, numbers)

    def merge(self, other: PeriodCounts) -> None:
        """Add the counts of another."""
        self._lengthen_to(other.length_s)
        for number, sums in other._sums.items():
            self._add(number * other.length_s // self.length_s, sums)

    def periods(self) -> Mapping[datetime, tuple[int, ...]]:
        """The sums by the start of the period, in order; periods with nothing are left out."""
        return {_EPOCH + number * self.length_s * _SECOND: tuple(sums) for number, sums in sorted(self._sums.items())}

    def _add(self, number: int, numbers: Sequence[int]) -> None:
        sums = self._sums.get(number)
        if sums is None:
            sums = self._sums[number] = [0] * self._width
            self._first, self._last = (
                (min(self._first, number), max(self._last, number)) if len(self._sums) > 1 else (number, number)
            )
        for at, value in enumerate(numbers):
            sums[at] += value
        while self._last - self._first >= MOST_PERIODS and self.length_s < LENGTHS_S[-1]:
            self._lengthen_to(LENGTHS_S[LENGTHS_S.index(self.length_s) + 1])

    def _lengthen_to(self, length_s: int) -> None:
        if length_s <= self.length_s:
            return
        times = length_s // self.length_s
        before, self._sums, self.length_s = self._sums, {}, length_s
        for number, sums in before.items():
            kept = self._sums.setdefault(number // times, [0] * self._width)
            for at, value in enumerate(sums):
                kept[at] += value
        self._first, self._last = min(self._sums, default=0), max(self._sums, default=0)
