"""A world for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.config.home import Home
from tests.commands.scenario import Scenario
from tests.postgresql import needs_postgresql


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgresql)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An empty home, once of each kind."""
    if request.param == "sqlite":
        yield tmp_path
        return
    yield request.getfixturevalue("postgresql_home")


@pytest.fixture
def world() -> Scenario:
    """A new queue manager QM1 with the behaviour of version 7."""
    return Scenario()


@pytest.fixture
def old_world() -> Scenario:
    """A new queue manager QM1 with the behaviour of version 6."""
    return Scenario("v6")
