"""Periods fit the time that they span, whatever the order in which moments are counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from commands.replay.periods import LENGTHS_S, MOST_PERIODS, PeriodCounts

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def _counted(offsets_s: Sequence[float]) -> PeriodCounts:
    counts = PeriodCounts(1)
    for offset in offsets_s:
        counts.add(START + timedelta(seconds=offset), [1])
    return counts


@pytest.mark.parametrize(
    ("span_s", "length_s"),
    [
        (0, 1),
        (59, 1),
        (99, 1),
        (600, 15),
        (3_600, 60),
        (86_400, 900),
        (30 * 86_400, 43_200),
        (365 * 86_400, 7 * 86_400),
    ],
)
def test_lengths(span_s: int, length_s: int) -> None:
    counts = _counted([0, span_s])
    assert counts.length_s == length_s
    assert sum(sums[0] for sums in counts.periods().values()) == 2


OFFSETS = st.lists(st.integers(-(10**9), 10**9) | st.integers(0, 5_000), max_size=40)


@given(OFFSETS, OFFSETS, st.randoms())
def test_order_and_parts_do_not_matter(one: list[int], other: list[int], random: object) -> None:
    whole = [*one, *other]
    shuffled = sorted(whole, key=lambda _: random.random())  # type: ignore[attr-defined]
    merged = _counted(one)
    merged.merge(_counted(other))
    for counts in (_counted(shuffled), merged):
        assert (counts.length_s, counts.periods()) == (_counted(whole).length_s, _counted(whole).periods())
    assert sum(sums[0] for sums in merged.periods().values()) == len(whole)


@given(st.lists(st.integers(0, 50 * 364 * 86_400), min_size=1))
def test_never_more_than_can_be_told_apart(offsets: list[int]) -> None:
    counts = _counted(offsets)
    first, *_, last = (starts := list(counts.periods())) * 2
    assert starts == sorted(starts)
    assert (last - first).total_seconds() / counts.length_s < MOST_PERIODS
    # The next shorter length would not do.
    if counts.length_s > 1:
        shorter = LENGTHS_S[LENGTHS_S.index(counts.length_s) - 1]
        ends = [int((START + timedelta(seconds=each(offsets))).timestamp()) // shorter for each in (min, max)]
        assert ends[1] - ends[0] >= MOST_PERIODS
