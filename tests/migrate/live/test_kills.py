"""extract, apply, verify and undo are killed at random moments: the next run goes on, and nothing is done twice.

``python -m tests.reliability.live_migration_kills 200`` does more of it.
"""

from __future__ import annotations

import os

import pytest

from tests.reliability.live_migration_kills import kills

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.nightly]


def test_7_4_1_killed_at_any_moment_it_goes_on_and_does_nothing_twice() -> None:
    table = kills(int(os.environ.get("QPUBSUB_KILLS", "15")), seed=18)
    assert list(table.broken) == []
    assert len(table.rows) == 5
    assert all(int(row[1]) for row in table.rows)
