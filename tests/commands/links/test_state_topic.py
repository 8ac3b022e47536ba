"""The state of the bridge as a retained publication of an MQTT broker: running, stopped, lost; and a takeover."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import PostgresqlHome
from commands.config.settings import Config, ConfigError
from commands.links.mqtt.packets import BridgeState, StateTopic
from commands.links.opening import Places
from commands.qmgr.store import QueueManagerStore
from rfh2.distribution import VERSION
from tests.commands.links.mosquitto import Mosquitto, Native, mosquitto, needs_mosquitto
from tests.postgresql import needs_postgresql
from tests.reliability.takeovers import Instance, Pair
from tests.reliability.workload import CONTROL, put
from tests.waiting import until

TOPIC = "qpubsub/QM1/state"


def test_what_the_publication_says() -> None:
    packet = StateTopic(TOPIC, "qpubsub-QM1", "QM1", "1.2.3", "embedded", 7).packet(
        BridgeState.RUNNING, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    )
    assert (packet.topic, packet.qos, packet.retain) == (TOPIC, 1, True)
    assert json.loads(packet.payload) == {
        "qmgr": "QM1",
        "state": "running",
        "since": "2026-01-02T03:04:05.000Z",
        "version": "1.2.3",
        "epoch": 7,
        "links": {"queues": "embedded", "topics": "connected"},
    }


REFUSED = [
    ("mqtt://127.0.0.1:1", "a/#", "state_topic: an MQTT topic has no"),
    ("mqtt://127.0.0.1:1", "$SYS/bridge", "state_topic: topics that begin with"),
    ("mqtt://127.0.0.1:1", "", "state_topic: an MQTT topic is not empty"),
    ("ibmmq://127.0.0.1:1/QM1", TOPIC, "has no last will"),
]


@pytest.mark.parametrize(("url", "topic", "why"), REFUSED)
def test_a_topic_that_cannot_be_is_refused(tmp_path: Path, url: str, topic: str, why: str) -> None:
    pytest.importorskip("paho.mqtt")
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    config = Config.model_validate({"topics": {"url": url, "state_topic": topic}})
    with pytest.raises(ConfigError, match=why):
        Places.of(tmp_path, "QM1", config, None, None).link("DEAD")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "mosquitto") as running:
        yield running


@pytest.fixture
def configured(tmp_path: Path, postgresql_home: PostgresqlHome, broker: Mosquitto) -> Path:
    """QM1 with a subscriber to all topics; the directory of the configuration."""
    QueueManagerStore.create(postgresql_home, QueueManager("QM1")).close()
    with QueueManagerStore.open(postgresql_home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("ALL"))
        put(unit, CONTROL, "<Command>RegSub</Command><Topic>#</Topic><QName>ALL</QName>")
    (tmp_path / "bridge.toml").write_text(f'[topics]\nurl = "{broker.url}"\nstate_topic = "{TOPIC}"\n')
    return tmp_path


def _states(native: Native) -> list[dict[str, Any]]:
    return [json.loads(message) for message in native.payloads(TOPIC)]


@needs_mosquitto
@needs_postgresql
@pytest.mark.nightly
@pytest.mark.faults
def test_the_state_follows_the_bridge(configured: Path, postgresql_home: PostgresqlHome, broker: Mosquitto) -> None:
    watcher = Native(broker, "watcher", TOPIC)
    pair = Pair(postgresql_home, configured, "--config", str(configured / "bridge.toml"))
    try:
        until(lambda: len(_states(watcher)) == 1, "running")
        pair.take("kill")
        until(lambda: len(_states(watcher)) == 2, "running, after the takeover")
        os.kill(pair.standby.pid, signal.SIGTERM)
        until(lambda: len(_states(watcher)) == 3, "stopped")
        pair.all.append(Instance(postgresql_home, configured, "third", "--config", str(configured / "bridge.toml")))
        until(lambda: len(_states(watcher)) == 4, "running again")
        os.killpg(pair.all[-1].pid, signal.SIGKILL)
        until(lambda: len(_states(watcher)) == 5, "lost")
    finally:
        pair.close()
    late = Native(broker, "late", "#")
    until(lambda: late.messages, "what is retained")
    assert [(message.topic, message.retain, json.loads(message.payload)["state"]) for message in late.messages] == [
        (TOPIC, True, "lost")
    ]
    for each in (watcher, late):
        each.close()
    states = [(each["state"], each["epoch"]) for each in _states(watcher)]
    expected = [("running", 1), ("running", 2), ("stopped", 2), ("running", 3), ("lost", 3)]
    assert states == expected, "no takeover looks like a loss"
    assert {each["version"] for each in _states(watcher)} == {VERSION}
    with QueueManagerStore.open(postgresql_home, "QM1") as store:
        assert [*store.browse("ALL")] == [], "it is not a publication for programs of queues"
