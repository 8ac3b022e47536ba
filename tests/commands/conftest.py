"""A world for each test."""

from __future__ import annotations

import pytest

from tests.commands.scenario import Scenario


@pytest.fixture
def world() -> Scenario:
    """A new queue manager QM1 with the behaviour of version 7."""
    return Scenario()


@pytest.fixture
def old_world() -> Scenario:
    """A new queue manager QM1 with the behaviour of version 6."""
    return Scenario("v6")
