"""Servers that all tests of links share, and links that look for work often."""

from __future__ import annotations

import pytest

from commands.links.engine import pumps
from tests.commands.links.mqi.harness import needs_mqi
from tests.commands.links.shared_servers import name, shared_kafka, shared_mosquitto, shared_nats

__all__ = ["name", "shared_kafka", "shared_mosquitto", "shared_nats"]


@pytest.fixture(autouse=True)
def _no_pump_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link has settled when each pump has found nothing twice; and it ends behind the wait of each."""
    monkeypatch.setattr(pumps, "IDLE_S", 0.03)


@pytest.fixture(scope="module", params=[pytest.param("ibmmq", marks=needs_mqi), "mq"])
def kind(request: pytest.FixtureRequest) -> str:
    """How a queue manager is reached: by IBM's library, which has a stand-in, or by the client, at a listener."""
    return str(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a queue keeps from the bridge is the bridge's matter, however it is reached: by ``mq`` it is tried at night,
    but for what a listener alone decides."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if item.path.name == "test_mq_owed.py" and params.get("kind") == "mq" and "full" not in item.name:
            item.add_marker(pytest.mark.nightly)
