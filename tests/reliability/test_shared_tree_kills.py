"""Bridges that share mosquitto, and mosquitto, are killed under load; ``shared_tree_kills`` has bigger numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.links.mosquitto import needs_mosquitto
from tests.reliability.shared_tree_kills import trial

pytestmark = [needs_mosquitto, pytest.mark.nightly, pytest.mark.faults]


# docs/conformance.md: DIS-26
@pytest.mark.rule("DIS-26")
def test_nothing_at_qos_1_is_lost_and_all_retain_the_same(tmp_path: Path) -> None:
    seen = trial(tmp_path, kills=3, seed=3)
    assert seen.is_good, seen
    assert seen.of_mosquitto, "mosquitto too"
    assert seen.delivered == 3 * seen.published + seen.twice, seen
    assert seen.published > 20, seen
