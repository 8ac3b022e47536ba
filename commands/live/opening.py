"""From what ``run`` was told to the links that it works with."""

from __future__ import annotations

from pathlib import Path

from commands.live.config import ConfigError, TopicsConfig
from commands.live.intake import Intake
from commands.live.mqtt.link import Edge, MqttLink
from commands.live.spool import EmbeddedSpool
from commands.live.urls import parse_address
from commands.queues import Durability, QueueManagerStore
from streams.operations import RetainedPublication


def topic_link(
    url: str, config: TopicsConfig, home: Path, qmgr: str, dead_letter_queue: str, durability: Durability
) -> MqttLink:
    """The link of queue manager *qmgr*, which is embedded in *home*, to the tree at *url*. Raises ConfigError."""
    address = parse_address(url, "--topics")

    def store() -> QueueManagerStore:
        return QueueManagerStore.open(home, qmgr, durability=durability)

    def retained() -> list[RetainedPublication]:
        with store() as reading:
            return reading.load_state()[2]

    edge = Edge(
        lambda: Intake(store(), config.native_user, dead_letter_queue),
        lambda: EmbeddedSpool(store(), config.outgoing_queue, dead_letter_queue),
        retained,
    )
    if address.scheme == "ibmmq":
        raise ConfigError("--topics", "ibmmq:// is not there yet")
    with store() as known:
        state = known.directory
    return MqttLink(address, config, qmgr, state, edge)
