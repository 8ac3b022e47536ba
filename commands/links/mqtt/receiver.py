"""Publications that the MQTT broker has sent, until the queue manager has them (``Receiver``).

The receiver acknowledges a publication at QoS 1 after it was accepted. Publications that are not acknowledged when a
connection breaks come again. Those at QoS 0 come once: they wait here up to a limit, and the receiver drops the others.
Receive Maximum limits those at QoS 1.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Final

from commands.config.settings import TopicsConfig
from commands.links.engine.adapter import Arrivals
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.inbound_writer import Unreadable
from commands.links.mqtt.answers import Received
from commands.links.mqtt.client import MqttClient
from commands.links.mqtt.packets import MqttPublication, native_of

_log = logging.getLogger("qpubsub.mqtt")

_WAITING_QOS0: Final = 20_000


class MqttReceiver:
    """Filled by paho's thread, emptied by the engine's."""

    def __init__(self, client: MqttClient, config: TopicsConfig) -> None:
        self._client, self._config = client, config
        self._arrived = threading.Condition()
        self._waiting: deque[Received] = deque()
        self._taken: list[Received] = []

    @property
    def is_waiting(self) -> bool:
        with self._arrived:
            return bool(self._waiting or self._taken)

    def put(self, received: Received) -> None:
        """Add a publication that has arrived."""
        with self._arrived:
            if not received.packet.qos and len(self._waiting) >= _WAITING_QOS0:
                _log.warning("a publication of QoS 0 on %s is dropped: too many wait", received.packet.topic)
                return
            self._waiting.append(received)
            self._arrived.notify()

    def drop_unacknowledged(self) -> None:
        """There is a new connection to the session: what came by the last one and was not acknowledged comes again."""
        with self._arrived:
            kept = [received for received in self._waiting if not received.packet.qos]
            self._waiting.clear()
            self._waiting.extend(kept)

    def take(self, limit: int, timeout_s: float) -> Arrivals:
        with self._arrived:
            if not self._waiting:
                self._arrived.wait(timeout_s)
            self._taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), limit))]
        natives = [self.read(received.packet) for received in self._taken]
        return Arrivals([native for native in natives if native is not None], len(self._taken))

    def accept(self) -> None:
        taken = self._taken
        for received in taken:
            self._client.acknowledge(received)
        self._client.proved()
        self._taken = []

    def undo(self) -> None:
        with self._arrived:
            connection = self._client.connection
            still = [each for each in self._taken if not each.packet.qos or each.connection == connection]
            self._waiting.extendleft(reversed(still))
            self._taken = []

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def read(self, packet: MqttPublication) -> NativePublication | Unreadable | None:
        """What came in *packet*; None for what this bridge had sent itself."""
        config = self._config
        try:
            return native_of(packet, config.prefix, self._client.client_id, config.default_format)
        except Exception as error:
            # A fault of ours, or a value nobody thought of: it must not keep what is behind it waiting.
            _log.error("a native publication on topic %.200s cannot be read", packet.topic, exc_info=error)
            return Unreadable(packet.payload)
