"""Hostile bytes at a listener: others are served, nothing unforeseen is in its log, and its memory does not grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.segments import soak


@pytest.mark.nightly
@pytest.mark.servers
@pytest.mark.faults
def test_changed_segments_stop_nobody(tmp_path: Path) -> None:
    found = soak(tmp_path, 3_000, seed=1)
    assert (found.faults, found.served > 1) == (0, True)
    assert found.segments >= 3_000
    assert found.memory_kib[2] < found.memory_kib[0] + 20_000
