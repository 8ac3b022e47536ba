"""Bridges and the server of PostgreSQL are killed, stopped and cut off: nothing is lost, doubled or out of order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgresql import needs_postgresql, postgresql_server
from tests.reliability.postgresql_faults import KINDS, Figures, replica_trial, trial

pytestmark = [pytest.mark.nightly, pytest.mark.faults, needs_postgresql]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def is_whole(seen: Figures) -> bool:
    return (seen.lost, seen.twice, seen.out_of_order, seen.unknown_units) == (0, 0, 0, 0)


def test_after_faults_of_each_kind(tmp_path: Path) -> None:
    with postgresql_server() as server:
        seen = trial(server, tmp_path, len(KINDS))
    assert is_whole(seen), seen


def test_after_a_copy_was_promoted_and_its_own_copy_too(tmp_path: Path) -> None:
    seen = replica_trial(tmp_path, 2)
    assert is_whole(seen), seen
