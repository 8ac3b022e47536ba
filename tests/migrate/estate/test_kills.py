"""kill -9 of ``estate`` at random moments.

``python -m tests.migrate.estate.kills 200`` and ``tests.migrate.estate.live_kills 100`` do more of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.migrate.estate import live_kills
from tests.migrate.estate.kills import kills

pytestmark = [pytest.mark.nightly, pytest.mark.faults]


@pytest.mark.rule("MIG-31")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")
def test_each_broker_is_before_or_after(tmp_path: Path) -> None:
    counted = kills(tmp_path / "estate", 20, int(os.environ.get("QPUBSUB_TEST_SEED", "20090128")))
    assert sum(figures["killed"] for figures in counted.values()) >= 20
    assert all(figures["killed"] for figures in counted.values())


@pytest.mark.rule("MIG-34")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")
def test_7_4_1_a_live_queue_manager_is_what_status_says(tmp_path: Path) -> None:
    """And the same command finishes the rest."""
    counted = live_kills.kills(tmp_path / "estate", 4, int(os.environ.get("QPUBSUB_TEST_SEED", "20090128")))
    assert all(figures["killed"] for figures in counted.values())
