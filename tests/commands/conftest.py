"""A world for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.config.home import Home
from tests.commands.scenario import Scenario
from tests.postgresql import PostgresqlServer, empty, needs_postgresql, postgresql_server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A server for all tests of the session; each leaves it empty."""
    with postgresql_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgresql)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An empty home, once of each kind."""
    if request.param == "sqlite":
        yield tmp_path
        return
    place = request.getfixturevalue("postgresql").home()
    yield place
    empty(place)


@pytest.fixture
def world() -> Scenario:
    """A new queue manager QM1 with the behaviour of version 7."""
    return Scenario()


@pytest.fixture
def old_world() -> Scenario:
    """A new queue manager QM1 with the behaviour of version 6."""
    return Scenario("v6")
