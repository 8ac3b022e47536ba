"""A standby takes over from an instance that is killed, stopped or asked to end: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.takeovers import KINDS, trial

pytestmark = [pytest.mark.nightly, pytest.mark.faults]


# docs/conformance.md: QM-15
@pytest.mark.rule("QM-15")
def test_nothing_is_lost_and_nothing_is_doubled(tmp_path: Path) -> None:
    seen = trial(tmp_path, takeovers=len(KINDS), lease_s=1.0)
    assert (seen.lost, seen.twice, seen.out_of_order, seen.twice_recorded) == (0, 0, 0, 0), seen
    assert seen.fenced + seen.ended == sum(kind.startswith("stop") for kind in KINDS), seen
    assert seen.published > 50, seen
