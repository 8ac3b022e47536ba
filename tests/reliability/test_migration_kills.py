"""kill -9 of migrations: before or after, never between; and the same command again completes it."""

from __future__ import annotations

import pytest

from tests.reliability.migration_kills import SCENARIOS, kills

pytestmark = [pytest.mark.nightly, pytest.mark.faults]


def test_thirty_kills_at_random_moments() -> None:
    table = kills(30, seed=18, subscriptions=100)
    assert list(table.broken) == []
    assert len(table.rows) == len(SCENARIOS) + 1
    before, after = (int(table.rows[-1][at]) for at in (2, 3))
    assert before + after == 30
    assert before > 3
