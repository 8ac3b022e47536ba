"""Looks up the publications that the broker retains on the topics of a filter, at one moment.

A second connection, without a session, subscribes with Retain Handling 0 and without Retain As Published: so a message
with the retain flag is retained, and a new publication has no such flag. After its SUBSCRIBE it publishes a fence to
itself. A broker sends in order, so all retained messages have come when the fence comes. The topic of the fence begins
with ``$``, so that the ``#`` of native programs does not select it. If the broker does not send such topics, the fence
is on a topic without ``$``. If that is forbidden too, the snapshot ends after a time without messages.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import TreeRefusedError, TreeUnreachableError
from commands.links.mqtt.client import RETAIN_NOW, MqttClient
from commands.links.mqtt.packets import FENCE, MqttPublication, Received, refusal

_log = logging.getLogger("qpubsub.mqtt")
_SILENCE_S: Final = 0.5
_TRIAL: Final = b"trial"


class Snapshots:
    """Takes snapshots, one at a time. client_id: of the bridge; this connection's is made of it."""

    def __init__(self, address: Address, config: TopicsConfig, client_id: str) -> None:
        self._client = MqttClient(address, config, f"{client_id}-retained", self._received, clean=True)
        self._patience_s = config.patience_s
        plain = f"qpubsub/{client_id}/fence"
        self._fences = [f"${plain}", f"{config.prefix}{plain}"]
        self._came: queue.SimpleQueue[MqttPublication] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._number = 0
        self._fenced_by = 0
        self._started = False

    def take(self, *topic_filters: str) -> list[MqttPublication]:
        """What is retained under any of *topic_filters*, each once. Raises TreeUnreachableError, TreeRefusedError."""
        with self._lock:
            self._connected()
            while not self._came.empty():
                self._came.get()
            connection = self._client.connection
            asked = [(each, self._client.subscribe(each, None, 1, RETAIN_NOW)) for each in topic_filters]
            self._number += 1
            fence = str(self._number).encode()
            self._send_fence(fence)
            for topic_filter, ticket in asked:
                if not ticket.wait(self._patience_s):
                    raise TreeUnreachableError(f"the MQTT broker does not answer a subscription to {topic_filter}")
                if ticket.refused:
                    raise TreeRefusedError(refusal(f"a subscription to {topic_filter}", ticket.code, ticket.name))
            found = self._until(fence, connection)
            for topic_filter in topic_filters:
                self._client.unsubscribe(topic_filter)
            self._client.proved()
            return found

    def prepare(self) -> None:
        """Connect, so that the first snapshot need not. Raises TreeUnreachableError."""
        with self._lock:
            self._connected()

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
        if self._fenced_by == self._client.connection:
            return
        connection = self._client.connection
        while self._fences and not self._fence_comes_back():
            _log.info("topic %s does not come back from the MQTT broker", self._fences.pop(0))
            if not self._fences:
                _log.warning(
                    "the MQTT broker does not send the bridge's own test message back: "
                    "its retained publications are taken as complete when no more come"
                )
        self._fenced_by = connection

    def _fence_comes_back(self) -> bool:
        ticket = self._client.subscribe(self._fences[0], None, 1, RETAIN_NOW, own=True)
        if not ticket.wait(self._patience_s):
            raise TreeUnreachableError(self._client.trouble)
        if ticket.refused:
            return False
        self._send_fence(_TRIAL)
        # Patiently: a busy broker must not be taken for one that keeps such topics to itself.
        end = time.monotonic() + self._patience_s
        while (left_s := end - time.monotonic()) > 0:
            try:
                packet = self._came.get(timeout=left_s)
            except queue.Empty:
                break
            if (packet.topic, packet.payload) == (self._fences[0], _TRIAL):
                return True
        if not self._client.is_up:
            raise TreeUnreachableError(self._client.trouble)
        return False

    def _send_fence(self, name: bytes) -> None:
        if self._fences:
            self._client.publish(
                MqttPublication(self._fences[0], name, 1, properties=((FENCE, self._client.client_id),))
            )

    def _until(self, fence: bytes, connection: int) -> list[MqttPublication]:
        found: dict[str, MqttPublication] = {}
        while True:
            try:
                packet = self._came.get(timeout=self._patience_s if self._fences else _SILENCE_S)
            except queue.Empty:
                if self._fences or self._client.connection != connection or not self._client.is_up:
                    raise TreeUnreachableError("the MQTT broker has not sent all that it retains") from None
                return list(found.values())
            if self._fences and packet.topic == self._fences[0]:
                if packet.payload == fence and self._client.connection == connection:
                    return list(found.values())
            elif packet.retain:
                found[packet.topic] = packet

    def _received(self, received: Received) -> None:
        self._client.acknowledge(received)
        self._came.put(received.packet)
