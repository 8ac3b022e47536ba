"""Queue managers of a network are killed under load: nothing is lost or doubled, and all agree afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.network_kills import LINE, TREE, trial

pytestmark = [pytest.mark.slow, pytest.mark.faults]


# docs/conformance.md: DIS-24
@pytest.mark.parametrize("parents", [LINE, TREE], ids=["line", "tree"])
def test_nothing_is_lost_and_nothing_is_doubled(tmp_path: Path, parents: dict[str, str]) -> None:
    seen = trial(tmp_path, kills=4, parents=parents)
    assert (seen.lost, seen.twice, seen.out_of_order, seen.different, seen.dead_letters) == (0, 0, 0, 0, 0), seen
    assert seen.delivered == len(parents) * seen.published, seen
    assert seen.published > 20, seen
