"""From the outgoing queue to the broker: in order, at least once, and gone from the queue once the broker has answered.

Publications of one batch are on their way at once, as many as the broker takes (Receive Maximum): all that are
unanswered when the connection breaks are sent again by the next one. A batch that is interrupted, by the end of the
process above all, is sent again from its beginning: with QoS 1 that is what "at least once" means.

What the broker says that it cannot do (CONNACK) is not asked of it: it would hang up, again and again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from commands.live.config import TopicsConfig
from commands.live.mqtt.client import Granted, MqttClient, Sent, TreeUnreachableError
from commands.live.mqtt.packets import Packet, packet_for
from commands.live.outward import for_tree
from commands.live.settling import Looks
from commands.live.spool import Refused, Spool
from commands.queues.port import StoredMessage
from rfh2.constants import MQRC_FORMAT_ERROR, MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED
from rfh2.errors import DecodeError, StoreError

_log = logging.getLogger("qpubsub.mqtt")

_NOT_AUTHORIZED: Final = 0x87
# Room for the fixed and the variable header beside payload and properties.
_PACKET_HEADER: Final = 64


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A publication that was sent. connection: the number of the one that it went by."""

    message: StoredMessage
    packet: Packet
    sent: Sent
    connection: int


class Outflow:
    """Sends what waits on the outgoing queue, in a thread of its own, until *stop* is set."""

    def __init__(
        self, client: MqttClient, config: TopicsConfig, spool: Callable[[], Spool], stop: threading.Event
    ) -> None:
        self._client, self._config, self._stop = client, config, stop
        self._open = spool
        self.looks = Looks()

    def run(self) -> None:
        """The thread's work."""
        spool: Spool | None = None
        pause_s = 0.1
        while not self._stop.is_set():
            try:
                if not self._client.wait_up(0.5):
                    continue
                if spool is None:
                    spool = self._open()
                if self._one_batch(spool) == 0:
                    spool.wait(0.5)
                pause_s = 0.1
            except TreeUnreachableError:
                if spool is not None:
                    spool.undo()
                self._stop.wait(0.1)
            except StoreError as error:
                self.looks.failed(error)
                _log.error("publications wait for the MQTT broker: %s; the next try is in %.1f s", error, pause_s)
                if spool is not None:
                    spool.undo()
                self._stop.wait(pause_s)
                pause_s = min(pause_s * 2, 30.0)
        if spool is not None:
            spool.close()

    def _one_batch(self, spool: Spool) -> int:
        messages = spool.take(self._config.batch)
        refused: list[Refused] = []
        under_way: deque[_UnderWay] = deque()
        for message in messages:
            packet = self._packet(message, refused)
            if packet is None:
                continue
            while len(under_way) >= self._granted.receive_maximum:
                self._finish(under_way.popleft(), refused)
            under_way.append(_UnderWay(message, packet, self._client.publish(packet), self._client.connection))
        while under_way:
            self._finish(under_way.popleft(), refused)
        if messages:
            spool.done(refused)
            self.looks.refused += len(refused)
        self.looks.found(len(messages))
        return len(messages)

    @property
    def _granted(self) -> Granted:
        return self._client.granted or Granted(False)

    def _finish(self, one: _UnderWay, refused: list[Refused]) -> None:
        self._answered(one.packet, one.sent, one.connection)
        refusal = one.sent.refusal()
        if refusal is not None:
            code, name = refusal
            _log.error("the MQTT broker refuses a publication on %s: %s (0x%02X)", one.packet.topic, name, code)
            reason = MQRC_NOT_AUTHORIZED if code == _NOT_AUTHORIZED else MQRCCF_COMMAND_FAILED
            refused.append(Refused(one.message, reason))

    def _packet(self, message: StoredMessage, refused: list[Refused]) -> Packet | None:
        """The packet for *message*; None where there is nothing to send, or nothing that can be."""
        try:
            wanted = for_tree(message.md, message.body)
        except DecodeError as error:
            _log.error("message %d on %s is set aside: %s", message.seq, message.queue, error)
            refused.append(Refused(message, MQRC_FORMAT_ERROR))
            return None
        packet, lost = packet_for(wanted, self._config.prefix, self._client.client_id)
        if lost:
            _log.warning("topic %s: to the MQTT broker without %s", wanted.topic, ", ".join(lost))
        granted = self._granted
        if packet.retain and not granted.retain:
            if wanted.clear:
                return None
            _log.warning("topic %s: the MQTT broker retains nothing", wanted.topic)
        packet = replace(packet, qos=min(packet.qos, granted.max_qos), retain=packet.retain and granted.retain)
        size = len(packet.payload) + len(packet.topic.encode()) + _PACKET_HEADER
        size += sum(len(name.encode()) + len(value.encode()) + 5 for name, value in packet.properties)
        if granted.max_packet is not None and size > granted.max_packet:
            _log.error("topic %s: %d bytes, the MQTT broker takes %d", wanted.topic, size, granted.max_packet)
            refused.append(Refused(message, MQRC_MSG_TOO_BIG_FOR_Q))
            return None
        return packet

    def _answered(self, packet: Packet, sent: Sent, connection: int) -> None:
        """Wait for the answer, however often the connection breaks. Raises TreeUnreachableError when told to stop."""
        begun = time.monotonic()
        while not sent.wait(0.2):
            if self._stop.is_set():
                raise TreeUnreachableError("stopped")
            if packet.qos == 0 and self._client.connection != connection:
                return  # it went with the connection, as QoS 0 may
            if time.monotonic() - begun > 60 and self._client.is_up:
                _log.warning("the MQTT broker has not answered for a publication on %s for a minute", packet.topic)
                begun = time.monotonic()
