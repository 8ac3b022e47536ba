"""Subscribers on temporary dynamic queues that come and go leave nothing behind, and keep nobody up."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.reliability.dynamic import come_and_go


def test_nothing_is_left_of_those_who_came_and_went(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # pytest keeps each record of the log in memory, and each subscription that ends makes one.
    caplog.set_level(logging.WARNING, "qpubsub")
    found = come_and_go(tmp_path, 300)
    assert (found.missed, found.dead_letters, found.left) == (0, 0, {})
    assert list((tmp_path / "QM1").glob("connection-*")) == []
    assert found.during_calls < 1.1 * found.before_calls, found
