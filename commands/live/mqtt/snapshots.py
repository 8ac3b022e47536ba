"""What the broker retains on the topics that a filter selects, asked for at one moment.

A second connection, without a session, subscribes with Retain Handling 0 and without Retain As Published: so what has
the retain flag is retained, and what comes by the way has not. Behind its SUBSCRIBE it publishes a fence to itself; a
broker sends a connection what it has for it in order, so that all that is retained has come when the fence does. Where
the fence does not come back (it may be forbidden), silence ends the snapshot instead.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Final

from commands.live.config import TopicsConfig
from commands.live.mqtt.client import RETAIN_NOW, MqttClient, Received, RefusedError, TreeUnreachableError
from commands.live.mqtt.packets import FENCE, Packet
from commands.live.urls import Address

_log = logging.getLogger("qpubsub.mqtt")
_SILENCE_S: Final = 0.5


class Snapshots:
    """Takes snapshots, one at a time. client_id: of the bridge; this connection's is made of it."""

    def __init__(self, address: Address, config: TopicsConfig, client_id: str) -> None:
        self._client = MqttClient(address, config, f"{client_id}-retained", self._received, clean=True)
        self._patience_s = config.patience_s
        self._fence = f"{config.prefix}qpubsub/{client_id}/fence"
        self._came: queue.SimpleQueue[Packet] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._number = 0
        self._fenced_by = 0
        self._fence_works = True
        self._started = False

    def take(self, topic_filter: str) -> list[Packet]:
        """What is retained under *topic_filter*. Raises TreeUnreachableError, RefusedError."""
        with self._lock:
            self._connected()
            while not self._came.empty():
                self._came.get()
            ticket = self._client.subscribe(topic_filter, None, 1, RETAIN_NOW)
            self._number += 1
            name = str(self._number).encode()
            if self._fence_works:
                self._client.publish(Packet(self._fence, name, 1, properties=((FENCE, self._client.client_id),)))
            if not ticket.wait(self._patience_s):
                raise TreeUnreachableError(f"the MQTT broker does not answer a subscription to {topic_filter}")
            if ticket.refused:
                raise RefusedError(f"a subscription to {topic_filter}", ticket.code, ticket.name)
            found = self._until(name)
            self._client.unsubscribe(topic_filter)
            return found

    def stop(self) -> None:
        """Disconnect."""
        if self._started:
            self._client.stop()

    def _connected(self) -> None:
        if not self._started:
            self._started = True
            self._client.start()
        if not self._client.wait_up(self._patience_s):
            raise TreeUnreachableError(self._client.trouble)
        if self._fenced_by != self._client.connection:
            self._fenced_by = self._client.connection
            ticket = self._client.subscribe(self._fence, None, 1, RETAIN_NOW, own=True)
            self._fence_works = ticket.wait(self._patience_s) and not ticket.refused
            if not self._fence_works:
                _log.warning(
                    "topic %s may not be subscribed to; retained publications are waited for instead", self._fence
                )

    def _until(self, fence: bytes) -> list[Packet]:
        found: dict[str, Packet] = {}
        connection = self._client.connection
        while True:
            end = time.monotonic() + (self._patience_s if self._fence_works else _SILENCE_S)
            try:
                packet = self._came.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                if self._client.connection != connection or not self._client.is_up:
                    raise TreeUnreachableError("the connection broke while retained publications came") from None
                if self._fence_works:
                    self._fence_works = False
                    _log.warning(
                        "topic %s does not come back; retained publications are waited for instead", self._fence
                    )
                return list(found.values())
            if packet.topic == self._fence:
                if packet.payload == fence:
                    return list(found.values())
            elif packet.retain:
                found[packet.topic] = packet

    def _received(self, received: Received) -> None:
        self._client.acknowledge(received)
        self._came.put(received.packet)
