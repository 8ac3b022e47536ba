"""kill -9 of ``estate`` at random moments. ``python -m tests.migrate.estate.kills 200`` does more of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.migrate.estate.kills import kills

pytestmark = [pytest.mark.slow, pytest.mark.faults]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")
def test_each_broker_is_before_or_after(tmp_path: Path) -> None:
    counted = kills(tmp_path / "estate", 40, int(os.environ.get("QPUBSUB_TEST_SEED", "20090128")))
    assert sum(figures["killed"] for figures in counted.values()) >= 40
    assert all(figures["killed"] for figures in counted.values())
