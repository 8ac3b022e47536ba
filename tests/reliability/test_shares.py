"""Three bridges share a workload; one is killed, stopped or asked to end: nothing is lost, doubled or out of order."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.config.home import PostgresqlHome
from tests.postgresql import needs_postgresql
from tests.reliability.shares import KINDS, out_of_order, trial

pytestmark = [pytest.mark.nightly, pytest.mark.faults]


# docs/conformance.md: QM-19
@pytest.mark.rule("QM-19")
@needs_postgresql
def test_nothing_is_lost_doubled_or_out_of_order_when_shares_move(
    postgresql_home: PostgresqlHome, tmp_path: Path
) -> None:
    seen = trial(postgresql_home, tmp_path, takeovers=len(KINDS), lease_s=1.0)
    assert (seen.lost, seen.twice, seen.out_of_order) == (0, 0, 0), seen
    assert seen.moved >= len(KINDS), seen
    assert seen.published > 100, seen


def test_what_counts_as_out_of_order() -> None:
    assert out_of_order([2, 1, 6, 7, 3]) == 0, "topics may overtake each other"
    assert out_of_order([1, 11, 6]) == 1
