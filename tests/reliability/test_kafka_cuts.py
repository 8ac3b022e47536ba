"""Nothing is lost, doubled or late while bridge, network and Kafka fail; ``kafka_cuts`` has bigger numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.links.kafka_server import needs_kafka
from tests.reliability.kafka_cuts import trial

pytestmark = [needs_kafka, pytest.mark.faults, pytest.mark.nightly]


def test_killed_bridges_and_servers_and_broken_networks_lose_and_double_nothing(tmp_path: Path) -> None:
    seen = trial(tmp_path, 14, seed=5)
    assert seen.is_good, seen
    assert {"bridge", "kill"} < set(seen.faults), "each kind of fault"
    assert seen.published > 100
