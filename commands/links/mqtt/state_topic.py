"""The state of the bridge as a retained publication of the broker: ``[topics] state_topic``.

    running   published at each connection
    stopped   published when the bridge ends in order
    lost      published by the broker (last will) when the connection has been gone for WILL_DELAY_S: the bridge has
              ended in another way, or cannot be reached. An instance that takes over connects before that

The publications have the property ``mq.Bridge``, so that the bridge does not take them for a program's. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from commands.links.engine.properties import BRIDGE
from commands.links.mqtt.packets import MqttPublication
from rfh2.captured import iso

WILL_DELAY_S: Final = 5


class BridgeState(StrEnum):
    """What the publication says."""

    RUNNING = "running"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class StateTopic:
    """Makes the publications. topic: in full, without the prefix of others. bridge: the client identifier.

    queues: where the queues are, ``embedded`` or a URL. epoch: of the active instance, None where it has none.
    """

    topic: str
    bridge: str
    qmgr: str
    version: str
    queues: str
    epoch: int | None

    def packet(self, state: BridgeState, since: datetime) -> MqttPublication:
        """The publication that says that the bridge is in *state*. since: of a will, when the bridge connected."""
        about = {
            "qmgr": self.qmgr,
            "state": state,
            "since": iso(since),
            "version": self.version,
            "epoch": self.epoch,
            "links": {"queues": self.queues, "topics": _LINK[state]},
        }
        payload = json.dumps(about).encode()
        properties = ((BRIDGE, self.bridge),)
        return MqttPublication(
            self.topic, payload, 1, retain=True, content_type="application/json", is_text=True, properties=properties
        )


_LINK: Final = {
    BridgeState.RUNNING: "connected",
    BridgeState.STOPPED: "disconnected",
    BridgeState.LOST: "disconnected",
}
