"""The plan of failures, and what a subscriber has seen."""

from __future__ import annotations

from itertools import pairwise

import pytest

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


def test_what_a_subscriber_has_seen_is_kept_as_a_message() -> None:
    seen = Seen()
    for producer, number in (("0", 0), ("1", 0), ("0", 3), ("0", 1), ("0", 1)):
        seen.note(producer, number)
    assert Seen.of(seen.json()) == seen
    assert (seen.missing, seen.late, seen.twice) == ([("0", 2)], 1, 1)
    assert seen.lost({"0": 5, "1": 1}) == 2
