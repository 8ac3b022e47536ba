"""Another run takes over from one that is killed, stopped or asked to end: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.config.home import PostgresqlHome
from tests.postgresql import needs_postgresql
from tests.reliability.takeovers import KINDS, trial

pytestmark = [pytest.mark.nightly, pytest.mark.faults, needs_postgresql]


# docs/conformance.md: QM-15
@pytest.mark.rule("QM-15")
def test_nothing_is_lost_and_nothing_is_doubled(postgresql_home: PostgresqlHome, tmp_path: Path) -> None:
    seen = trial(postgresql_home, tmp_path, takeovers=len(KINDS), lease_s=1.0)
    assert (seen.lost, seen.twice, seen.out_of_order, seen.twice_recorded) == (0, 0, 0, 0), seen
    assert seen.fenced == sum(kind.startswith("stop") for kind in KINDS), seen
    assert seen.published > 50, seen
