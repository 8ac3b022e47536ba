"""From the outgoing queue to the broker: in order, at least once, and gone from the queue once the broker has answered.

Publications of one batch are on their way at once, as many as the broker takes (Receive Maximum). A batch that is
interrupted is taken again: what the broker has answered for is passed over, the rest is sent again, by the end of the
process above all from its beginning: with QoS 1 that is what "at least once" means.

What the broker says that it cannot do (CONNACK) is not asked of it: it would hang up, again and again. What it hangs up
over without having said so is found like this: all that was on its way when the connection broke is sent alone from
then on, each after the broker has answered for something harmless, and nothing else that is suspected meanwhile. What
breaks the connection then, twice, goes on the dead-letter queue, and what is behind it passes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from commands.links.engine.config import TopicsConfig
from commands.links.engine.message_for_tree import for_tree
from commands.links.engine.quiescence import Looks
from commands.links.engine.spool import Refused, Spool
from commands.links.mqtt.answers import Granted, SentPacket, TreeUnreachableError
from commands.links.mqtt.client import MqttClient
from commands.links.mqtt.packets import MqttPublication, packet_for
from commands.links.mqtt.topics import why_not_topic
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import (
    MQRC_FORMAT_ERROR,
    MQRC_MSG_TOO_BIG_FOR_Q,
    MQRC_NOT_AUTHORIZED,
    MQRCCF_COMMAND_FAILED,
    MQRCCF_TOPIC_ERROR,
)
from rfh2.errors import DecodeError, StoreError
from rfh2.layouts import MQMD1

_log = logging.getLogger("qpubsub.mqtt")

_NOT_AUTHORIZED: Final = 0x87
_MSG_ID: Final = next(slice(at, at + size) for name, at, size in MQMD1.spans() if name == "MsgId")
# Room for the fixed and the variable header beside payload and properties.
_PACKET_HEADER: Final = 64
# How often something breaks the connection, alone, until it is set aside: once may be an accident.
BREAKS: Final = 2


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A publication that was sent."""

    message: StoredMessage
    packet: MqttPublication
    sent: SentPacket


class Outflow:
    """Sends what waits on the outgoing queue, in a thread of its own, until *stop* is set."""

    def __init__(
        self, client: MqttClient, config: TopicsConfig, spool: Callable[[], Spool], stop: threading.Event
    ) -> None:
        self._client, self._config, self._stop = client, config, stop
        self._open = spool
        # Of what is on the outgoing queue still, by its MsgId: what the broker has answered for and
        # refused, and how often what was on its way when a connection broke has broken one alone.
        self._had: set[bytes] = set()
        self._refused: dict[bytes, int] = {}
        self._suspects: dict[bytes, int] = {}
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
        try:
            for message in messages:
                key = _key(message)
                if key in self._had:
                    continue
                packet = self._packet(message, refused) if key not in self._refused else None
                if packet is None:
                    continue
                if key in self._suspects:
                    self._finish_all(under_way)
                    self._alone(message, packet)
                    continue
                while len(under_way) >= self._granted.receive_maximum:
                    self._finish(under_way[0])
                    under_way.popleft()
                under_way.append(_UnderWay(message, packet, self._client.publish(packet)))
            self._finish_all(under_way)
        except TreeUnreachableError:
            self._suspect(under_way)
            raise
        if messages:
            refused += [Refused(m, self._refused[_key(m)]) for m in messages if _key(m) in self._refused]
            spool.done(refused)
            self.looks.refused += len(refused)
            self._had.clear()
            self._refused.clear()
            self._suspects.clear()
        self.looks.found(len(messages))
        return len(messages)

    def _suspect(self, under_way: deque[_UnderWay]) -> None:
        for one in under_way:
            if one.sent.is_blamed:
                self._suspects.setdefault(_key(one.message), 0)

    def _alone(self, message: StoredMessage, packet: MqttPublication) -> None:
        """Send what may have broken the connection, with nothing else on its way that may."""
        key = _key(message)
        with self._client.alone:
            if not self._client.round_trip(self._config.patience_s):
                raise TreeUnreachableError("the MQTT broker does not answer")
            one = _UnderWay(message, packet, self._client.publish(packet))
            try:
                self._finish(one)
            except TreeUnreachableError:
                if one.sent.is_blamed:
                    self._suspects[key] += 1
                    if self._suspects[key] >= BREAKS:
                        self._refused[key] = MQRCCF_COMMAND_FAILED
                        _log.error(
                            "the MQTT broker breaks the connection over a publication on topic %.200s: it is put on "
                            "the dead-letter queue",
                            packet.topic,
                        )
                raise
            del self._suspects[key]

    @property
    def _granted(self) -> Granted:
        return self._client.granted or Granted(False)

    def _finish_all(self, under_way: deque[_UnderWay]) -> None:
        while under_way:
            self._finish(under_way[0])
            under_way.popleft()

    def _finish(self, one: _UnderWay) -> None:
        self._answered(one)
        self._had.add(_key(one.message))
        refusal = one.sent.refusal()
        if refusal is not None:
            code, name = refusal
            _log.error("the MQTT broker refuses a publication on %s: %s (0x%02X)", one.packet.topic, name, code)
            reason = MQRC_NOT_AUTHORIZED if code == _NOT_AUTHORIZED else MQRCCF_COMMAND_FAILED
            self._refused[_key(one.message)] = reason

    def _packet(self, message: StoredMessage, refused: list[Refused]) -> MqttPublication | None:
        """The packet for *message*; None where there is nothing to send, or nothing that can be."""
        try:
            wanted = for_tree(message.md, message.body)
            packet, lost = packet_for(wanted, self._config.prefix, self._client.client_id)
        except Exception as error:
            # A fault of ours, unless it is a DecodeError: it must not keep what is behind it waiting.
            _log.error(
                "message %d on %s is put on the dead-letter queue: %s",
                *(message.seq, message.queue, error),
                exc_info=None if isinstance(error, DecodeError) else error,
            )
            reason = MQRC_FORMAT_ERROR if isinstance(error, DecodeError) else MQRCCF_COMMAND_FAILED
            refused.append(Refused(message, reason))
            return None
        why = why_not_topic(packet.topic)
        if why is not None:
            _log.error("a publication on topic %.200s is put on the dead-letter queue: %s", packet.topic, why)
            refused.append(Refused(message, MQRCCF_TOPIC_ERROR))
            return None
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

    def _answered(self, one: _UnderWay) -> None:
        """Wait for the answer. Raises TreeUnreachableError where none can come any more, and when told to stop."""
        begun = time.monotonic()
        while not one.sent.wait(0.2):
            if self._stop.is_set():
                raise TreeUnreachableError("stopped")
            if one.sent.is_lost:
                if one.packet.qos == 0:
                    return  # it went with the connection, as QoS 0 may
                raise TreeUnreachableError(self._client.trouble)
            if time.monotonic() - begun > 60 and self._client.is_up:
                _log.warning("the MQTT broker has not answered for a publication on %s for a minute", one.packet.topic)
                begun = time.monotonic()
        if one.packet.qos:
            self._client.proved()


def _key(message: StoredMessage) -> bytes:
    """Which message it is, also when it is taken again: a queue elsewhere gives it another seq then."""
    return message.md[_MSG_ID].strip(b"\0") or message.seq.to_bytes(8, "big")
