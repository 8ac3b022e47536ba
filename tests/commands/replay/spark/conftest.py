"""One Spark session for all tests of this directory; they are slow, every one, because a JVM has to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from commands.replay.spark import session
from tests.commands.replay.spark.quick_session import QUICK_SESSION


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session of two cores."""
    made = session(
        "local[2]",
        spark__sql__shuffle__partitions="2",
        spark__sql__warehouse__dir=str(tmp_path_factory.mktemp("warehouse")),
        **QUICK_SESSION,
    )
    yield made
    made.stop()


# The gate has the replay itself, its files and the source on Spark; streams, tables, selections, analysis and networks
# are the night's. What they decide is tried without Spark in the gate.
OF_THE_NIGHT: Final = frozenset(
    f"test_{name}.py"
    for name in ("analysing", "choice", "delta_table", "file_transfers", "following", "networks", "streaming")
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that needs the session is slow."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
            if item.path.name in OF_THE_NIGHT:
                item.add_marker(pytest.mark.nightly)
