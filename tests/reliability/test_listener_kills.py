"""The listener is killed while programs work in syncpoint: what was committed is there, and nothing is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.listener_kills import trial

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    seen = trial(tmp_path, kills=5, clients=20)
    assert (seen.lost, seen.twice, seen.strange) == (0, 0, 0), seen
    assert seen.connections > 20, "each kill ends connections"
