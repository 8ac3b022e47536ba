"""The listener is killed while programs work in syncpoint: what was committed is there, and nothing is there twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import MQOO_INPUT_SHARED, MQOO_OUTPUT, MQSO_CREATE, MQSO_DURABLE, MQSO_MANAGED
from tests.commands.listener.mqi_client import MqiClient
from tests.reliability.listener_kills import Service, trial

pytestmark = [pytest.mark.nightly, pytest.mark.faults]


def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    seen = trial(tmp_path, kills=3, clients=20)
    assert (seen.lost, seen.twice, seen.strange) == (0, 0, 0), seen
    assert seen.connections > 20, "each kill ends connections"


@pytest.mark.rule("LSN-11")
def test_only_durable_subscriptions_outlive_a_kill(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    service = Service(tmp_path)
    service.start()
    try:
        with MqiClient(service.port) as client:
            assert client.connect() == 0
            queue = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
            client.subscribed(MQSO_CREATE | MQSO_MANAGED, "Sport/Soccer")
            client.subscribed(MQSO_CREATE, "Sport/Soccer", queue=queue)
            client.subscribed(MQSO_CREATE | MQSO_MANAGED | MQSO_DURABLE, "Sport/Soccer", "kept")
            service.kill()
        service.start()
        end = time.monotonic() + 60
        while len(left := state(tmp_path)) > 1 and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        service.kill()
    assert left == [("kept", True)]


def state(home: Path) -> list[tuple[str | None, bool]]:
    """The names of subscriptions, and whether their queues are there."""
    with QueueManagerStore.open(home, "QM1") as store:
        objects, subscriptions, _ = store.load_state()
        return [(each.name, each.dest_queue in objects.queues) for each in subscriptions]
