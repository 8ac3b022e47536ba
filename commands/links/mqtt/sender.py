"""Publications to the MQTT broker (``Sender``): as many on their way at once as it takes (Receive Maximum).

The sender does not send what the broker says that it cannot do (CONNACK): the broker would end each connection. If the
broker ends the connection for another reason, the sender finds the publication that causes it. From then on it sends
each publication that had no answer alone, after the broker has answered something harmless, and no other suspect at the
same time. A publication that breaks the connection twice in this way is refused, and those behind it go on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from commands.config.settings import TopicsConfig
from commands.links.engine.adapter import (
    NotCarriedError,
    Prepared,
    Sent,
    TreeUnreachableError,
    Waiting,
    too_large,
)
from commands.links.engine.message_for_tree import ForTree
from commands.links.mqtt.client import MqttClient
from commands.links.mqtt.packets import Granted, MqttPublication, SentPacket, packet_for, refusal
from commands.links.mqtt.topics import why_not_topic
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED, MQRCCF_TOPIC_ERROR

_log = logging.getLogger("qpubsub.mqtt")

_NOT_AUTHORIZED: Final = 0x87
# Room for the fixed and the variable header beside payload and properties.
_PACKET_HEADER: Final = 64
# How often something breaks the connection, alone, until it is set aside: once may be an accident.
BREAKS: Final = 2


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A publication that was sent."""

    waiting: Waiting[MqttPublication]
    sent: SentPacket


class MqttSender:
    """Sends by the connection that there is. stop: ends a wait for the broker's answer."""

    def __init__(self, client: MqttClient, config: TopicsConfig, stop: threading.Event) -> None:
        self._client, self._config, self._stop = client, config, stop
        # How often each that was on its way when a connection broke has broken one alone, by its key.
        self._suspects: dict[bytes, int] = {}

    def prepare(self, wanted: ForTree) -> Prepared[MqttPublication] | None:
        granted = self._granted
        packet, lost = packet_for(wanted, self._config.prefix, self._client.client_id, granted)
        why = why_not_topic(packet.topic)
        if why is not None:
            raise NotCarriedError(MQRCCF_TOPIC_ERROR, f"a publication on topic {packet.topic:.200}: {why}")
        if not granted.retain and (wanted.retain or wanted.clear):
            if wanted.clear:
                return None
            _log.warning("topic %s: the MQTT broker retains nothing", wanted.topic)
        if granted.max_packet is not None:
            size = len(packet.payload) + len(packet.topic.encode()) + _PACKET_HEADER
            size += sum(len(name.encode()) + len(value.encode()) + 5 for name, value in packet.properties)
            if size > granted.max_packet:
                raise too_large(wanted.topic, size, granted.max_packet, "the MQTT broker")
        return Prepared(packet, lost)

    def send(self, batch: Iterable[Waiting[MqttPublication]]) -> Iterator[Sent]:
        under_way: deque[_UnderWay] = deque()
        try:
            for waiting in batch:
                if waiting.key in self._suspects:
                    yield from self._finish_all(under_way)
                    yield from self._alone(waiting)
                    continue
                while len(under_way) >= self._granted.receive_maximum:
                    yield self._finish(under_way[0])
                    under_way.popleft()
                under_way.append(_UnderWay(waiting, self._client.publish(waiting.item)))
            yield from self._finish_all(under_way)
        except TreeUnreachableError:
            self._suspect(under_way)
            raise

    def done(self) -> None:
        self._suspects.clear()

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def _suspect(self, under_way: deque[_UnderWay]) -> None:
        for one in under_way:
            if one.sent.is_blamed:
                self._suspects.setdefault(one.waiting.key, 0)

    def _alone(self, waiting: Waiting[MqttPublication]) -> Iterator[Sent]:
        """Send what may have broken the connection, with nothing else on its way that may."""
        with self._client.alone:
            if not self._client.round_trip(self._config.patience_s):
                raise TreeUnreachableError("the MQTT broker does not answer")
            one = _UnderWay(waiting, self._client.publish(waiting.item))
            try:
                sent = self._finish(one)
            except TreeUnreachableError:
                if one.sent.is_blamed:
                    self._suspects[waiting.key] += 1
                    if self._suspects[waiting.key] >= BREAKS:
                        why = f"the MQTT broker breaks the connection over a publication on {waiting.item.topic:.200}"
                        yield Sent(waiting.message, MQRCCF_COMMAND_FAILED, why)
                raise
        del self._suspects[waiting.key]
        yield sent

    @property
    def _granted(self) -> Granted:
        return self._client.granted or Granted(False)

    def _finish_all(self, under_way: deque[_UnderWay]) -> Iterator[Sent]:
        while under_way:
            yield self._finish(under_way[0])
            under_way.popleft()

    def _finish(self, one: _UnderWay) -> Sent:
        """Wait for the answer. Raises TreeUnreachableError where none can come any more, and when *stop* is set."""
        packet, message = one.waiting.item, one.waiting.message
        begun = time.monotonic()
        while not one.sent.wait(0.2):
            if self._stop.is_set():
                raise TreeUnreachableError("stopped")
            if one.sent.is_lost:
                if packet.qos == 0:
                    return Sent(message)  # it went with the connection, as QoS 0 may
                raise TreeUnreachableError(self._client.trouble)
            if time.monotonic() - begun > 60 and self._client.is_up:
                _log.warning("the MQTT broker has not answered for a publication on %s for a minute", packet.topic)
                begun = time.monotonic()
        if packet.qos:
            self._client.proved()
        refused = one.sent.refusal()
        if refused is None:
            return Sent(message)
        code, name = refused
        reason = MQRC_NOT_AUTHORIZED if code == _NOT_AUTHORIZED else MQRCCF_COMMAND_FAILED
        return Sent(message, reason, refusal(f"a publication on {packet.topic}", code, name))
