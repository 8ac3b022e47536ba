"""How often a process is started again."""

from __future__ import annotations

import pytest

from commands.running.listening import Crashes


@pytest.mark.parametrize(
    ("ends_s", "allowed"),
    [
        ([0], [True]),
        ([0, 1, 2, 3, 4], [True] * 4 + [False]),
        ([0, 1, 2, 3, 59.9], [True] * 4 + [False]),
        ([0, 1, 2, 3, 60], [True] * 5),
        ([0, 20, 40, 60, 80, 100], [True] * 6),
        ([0, 50, 70, 80, 90, 100, 130], [True] * 5 + [False, True]),
    ],
)
def test_a_process_is_not_started_again_after_five_ends_in_a_minute(ends_s: list[float], allowed: list[bool]) -> None:
    clock = iter(ends_s)
    crashes = Crashes(lambda: next(clock))
    assert [crashes.may_restart() for _ in ends_s] == allowed
