"""Nothing is lost, doubled or late while bridge, network and NATS server fail; ``nats_cuts`` has bigger numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.links.nats_server import needs_nats
from tests.reliability.nats_cuts import trial

pytestmark = [needs_nats, pytest.mark.faults, pytest.mark.nightly]


def test_killed_bridges_and_servers_and_broken_networks_lose_and_double_nothing(tmp_path: Path) -> None:
    seen = trial(tmp_path, 14, seed=3)
    assert seen.is_good, seen
    assert set(seen.faults) == {"bridge", "cut", "drop", "delay", "kill"}, "each kind of fault"
    assert seen.published > 100
