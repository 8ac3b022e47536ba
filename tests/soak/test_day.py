"""The plan of failures, what a subscriber has seen, and half a minute of the day in short."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.commands.links.mosquitto import needs_mosquitto
from tests.soak.day import Sample, compared, day
from tests.soak.plan import SPACE_S, What, planned
from tests.soak.programs import Seen


@pytest.mark.parametrize("seed", range(5))
def test_failures_do_not_overlap_and_come_in_turns_of_all_kinds(seed: int) -> None:
    failures = list(planned(seed, 7_200))
    assert len(failures) > 200
    assert all(after.at_s >= before.at_s + before.for_s + SPACE_S - 0.001 for before, after in pairwise(failures))
    turn = len(What)
    assert all({each.what for each in failures[at : at + turn]} == set(What) for at in range(0, 200, turn))
    assert failures[-1].at_s + failures[-1].for_s + SPACE_S <= 7_200


def test_a_seed_makes_the_same_plan_again_and_another_seed_another() -> None:
    assert list(planned(1, 3_600)) == list(planned(1, 3_600))
    assert list(planned(1, 3_600)) != list(planned(2, 3_600))


def test_what_cannot_fail_here_is_left_out() -> None:
    assert What.DISK not in {failure.what for failure in planned(1, 3_600, frozenset({What.DISK}))}


def test_what_a_subscriber_has_seen_is_kept_as_a_message() -> None:
    seen = Seen()
    for producer, number in (("0", 0), ("1", 0), ("0", 3), ("0", 1), ("0", 1)):
        seen.note(producer, number)
    assert Seen.of(seen.json()) == seen
    assert (seen.missing, seen.late, seen.twice) == ([("0", 2)], 1, 1)
    assert seen.lost({"0": 5, "1": 1}) == 2


def test_quiet_samples_of_both_halves_are_compared() -> None:
    def sample(at_s: float, rss_mb: float, quiet: bool) -> Sample:
        return Sample(at_s, 100, rss_mb, 1, 2, 0, 0, 30, 90, 2, "", quiet)

    rows = list(compared([sample(10, 50, True), sample(20, 90, False), sample(30, 60, True), sample(40, 55, True)]))
    assert rows[2:] == [
        "| first half: 1; greatest, and median delay | 50.0 | 1.0 | 2.0 | 30 |",
        "| second half: 2; greatest, and median delay | 60.0 | 1.0 | 2.0 | 30 |",
    ]


@pytest.mark.nightly
@pytest.mark.faults
@needs_mosquitto
def test_half_a_minute_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert day(tmp_path, 0.6, seed=3, every_s=4, rate=60, space_s=2) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert "BROKEN" not in printed
    assert sum(f": {what}" in line for line in printed.splitlines() for what in What) >= 5
