"""Queue managers of a network are killed under load: nothing is lost or doubled, and all agree afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.network.topology import Topology
from tests.reliability.network_kills import SHAPES, trial

pytestmark = [pytest.mark.nightly, pytest.mark.faults]


# docs/conformance.md: DIS-24
@pytest.mark.rule("DIS-24", "DIS-28")
@pytest.mark.parametrize("topology", SHAPES.values(), ids=SHAPES)
def test_nothing_is_lost_and_nothing_is_doubled(tmp_path: Path, topology: Topology) -> None:
    seen = trial(tmp_path, kills=4, topology=topology)
    assert (seen.lost, seen.twice, seen.out_of_order, seen.different, seen.dead_letters) == (0, 0, 0, 0, 0), seen
    assert seen.delivered == len(topology.positions) * seen.published, seen
    assert seen.published > 20, seen


# docs/conformance.md: DIS-25
@pytest.mark.rule("DIS-25")
@pytest.mark.parametrize("restored", ["QM1", "QM2", "QM3"])
def test_a_backup_in_between_is_all_that_is_missing(tmp_path: Path, restored: str) -> None:
    seen = trial(tmp_path, kills=6, restored=restored)
    assert (seen.lost, seen.twice, seen.out_of_order, seen.different, seen.dead_letters) == (0, 0, 0, 0, 0), seen
    assert 20 < seen.published < seen.delivered < 3 * seen.published, seen
