"""An MQTT 5 broker as a topic tree (``Adapter``).

A filter is an MQTT filter, with the prefix of all topics. The broker keeps a session, and the adapter relies on it: the
broker still has the filters of the last connection, and sends the publications that came meanwhile.

Looks up the publications that the broker retains on the topics of a filter, at one moment.

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
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import Engine, Subscribed, TreeArrivals, TreeRefusedError, TreeUnreachableError
from commands.links.engine.filters import matcher_of
from commands.links.engine.inbound_writer import NativePublication, TreeRetained, Unreadable
from commands.links.engine.spool import Spool
from commands.links.mqtt.client import RETAIN_NOW, MqttClient
from commands.links.mqtt.packets import (
    FENCE,
    BridgeState,
    Granted,
    MqttPublication,
    Received,
    SentPacket,
    StateTopic,
    filter_of,
    native_of,
    refusal,
    why_not_shared,
    why_not_topic,
)
from commands.links.mqtt.sender import Filters, MqttSender, Subscribing
from commands.qmgr.link_port import Capability, Feature, How
from rfh2.distribution import VERSION
from streams.subscriptions import WildcardScheme

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


CAPABILITIES: Final[tuple[Capability, ...]] = (
    Capability(Feature.SUBSCRIBE, How.DOES),
    Capability(Feature.ALTER, How.EMULATED),
    Capability(Feature.PUBLISH, How.DOES),
    Capability(Feature.RETAIN, How.DOES),
    Capability(Feature.RETAIN_EMPTY, How.LOST),
    Capability(Feature.REQUEST, How.EMULATED),
    Capability(Feature.CLEAR, How.DOES),
    Capability(Feature.CHAR_WILDCARDS, How.EMULATED),
    Capability(Feature.INNER_HASH, How.EMULATED),
    Capability(Feature.ODD_TOPICS, How.NOT_CARRIED),
    Capability(Feature.DOLLAR_TOPICS, How.NOT_CARRIED),
    Capability(Feature.EXPIRY, How.DOES),
    Capability(Feature.PERSISTENCE, How.DOES),
    Capability(Feature.PRIORITY, How.LOST),
    Capability(Feature.PROPERTIES, How.DOES),
    Capability(Feature.HEADERS, How.NOT_CARRIED),
    Capability(Feature.SELECTORS, How.EMULATED),
    Capability(Feature.SCOPE, How.EMULATED),
    Capability(Feature.OTHER_SUBS_ONLY, How.DOES),
    Capability(Feature.ORDER, How.DOES),
    Capability(Feature.IDENTITY, How.EMULATED),
    Capability(Feature.UNIT_OF_WORK, How.EMULATED),
)


_log = logging.getLogger("qpubsub.mqtt")


class MqttAdapter:
    """One broker. state: the directory for what the bridge remembers of its session. Raises ConfigError.

    queues, epoch: what ``StateTopic`` says of the bridge.
    """

    kind = "MQTT"
    name = "the MQTT broker"
    log = _log
    filters_at_once = 1_000
    # A broker that keeps its sessions in a file which it writes now and then has those of then when it was killed.
    forgets_filters = True
    capabilities = CAPABILITIES

    def __init__(
        self,
        address: Address,
        config: TopicsConfig,
        qmgr: str,
        state: Path,
        queues: str = "embedded",
        epoch: int | None = None,
    ) -> None:
        self.client_id = config.client_id or f"qpubsub-{qmgr}"
        self._config = config
        self._filters = Filters(state / "mqtt.json")
        self._state: StateTopic | None = None
        if config.state_topic is not None:
            why = why_not_topic(config.state_topic)
            if why is not None:
                raise ConfigError("[topics] state_topic", why)
            self._state = StateTopic(config.state_topic, self.client_id, qmgr, VERSION, queues, epoch)
        will = None if self._state is None else self._will
        self.mqtt = MqttClient(address, config, self.client_id, self._received, self._connected, will=will)
        self._snapshots = Snapshots(address, config, self.client_id)

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> str | None:
        found = filter_of(topic_string, wildcard)
        return None if found is None else self._config.prefix + found

    def pattern_of(self, topic_filter: str) -> tuple[str, WildcardScheme]:
        return topic_filter.removeprefix(self._config.prefix), WildcardScheme.TOPIC

    def matcher(self, filters: Sequence[str]) -> Callable[[str], Sequence[str]]:
        return matcher_of(filters, lambda topic_string: self._config.prefix + topic_string)

    def why_stays(self, topic_string: str) -> str | None:
        return why_not_shared(self._config.prefix + topic_string)

    def why_not_carried(self, topic_string: str) -> str | None:
        return why_not_topic(self._config.prefix + topic_string)

    # Its life

    def attach(self, engine: Engine[str]) -> None:
        self._engine = engine
        self._subscribing = Subscribing(self.mqtt, self._filters, engine.lock, self._config.patience_s)
        self._receiver = MqttReceiver(self.mqtt, self._config)

    def start(self) -> None:
        self.mqtt.start()

    def stop(self) -> None:
        told = self._tell(BridgeState.STOPPED)
        if told is not None:
            told.wait(self._config.patience_s)
        self.mqtt.stop()
        self._snapshots.stop()
        with self._engine.lock:
            self._filters.save()

    @property
    def is_up(self) -> bool | None:
        return self.mqtt.is_up

    def wait_up(self, timeout_s: float) -> bool:
        return self.mqtt.wait_up(timeout_s)

    @property
    def trouble(self) -> str:
        return self.mqtt.trouble

    @property
    def next_try_s(self) -> float | None:
        return self.mqtt.next_try_s

    # Filters

    def remembered(self) -> Collection[str]:
        return self._filters.acknowledged

    def held(self) -> Collection[str]:
        return (*self._filters.all(), *self._filters.doubtful)

    def synced(self, filters: Iterable[str]) -> None:
        for topic_filter in filters:
            self._filters.acknowledge(topic_filter)

    def save(self) -> None:
        self._filters.save(only_changes=True)

    # Calls

    def client(self) -> MqttCalls:
        return MqttCalls(self.mqtt, self._snapshots, self._subscribing, self._filters, self._receiver, self._config)

    def receiver(self) -> MqttReceiver:
        return self._receiver

    def sender(self, spool: Spool, stop: threading.Event) -> MqttSender:
        del spool  # queues are never the broker's
        return MqttSender(self.mqtt, self._config, stop)

    # paho's thread

    def _connected(self, granted: Granted) -> None:
        with self._engine.lock:
            self._engine.connected(granted.session_present)
            self._filters.connected(granted.session_present)
        if granted.session_present:
            self._receiver.drop_unacknowledged()
        self._tell(BridgeState.RUNNING)
        if not granted.max_qos:
            _log.warning("the MQTT broker takes nothing at QoS 1: publications may be lost")
        _log.info("connected to the MQTT broker as %s", self.client_id)

    def _received(self, received: Received) -> None:
        with self._engine.lock:
            takes = self._filters.takes(received.packet.topic, received.identifiers)
        if takes:
            self._receiver.put(received)
        else:
            self.mqtt.acknowledge(received)

    # The bridge's state

    def _will(self) -> MqttPublication:
        assert self._state is not None
        return self._state.packet(BridgeState.LOST, datetime.now(UTC))

    def _tell(self, state: BridgeState) -> SentPacket | None:
        """Publish that the bridge is in *state*, if that is asked for and there is a connection."""
        if self._state is None:
            return None
        with suppress(TreeUnreachableError):
            return self.mqtt.publish(self._state.packet(state, datetime.now(UTC)))
        return None


class MqttCalls:
    """The calls of the processor's thread and the keeper to the broker (``TreeClient``), by one connection."""

    def __init__(
        self,
        client: MqttClient,
        snapshots: Snapshots,
        subscribing: Subscribing,
        filters: Filters,
        receiver: MqttReceiver,
        config: TopicsConfig,
    ) -> None:
        self._client, self._snapshots, self._subscribing = client, snapshots, subscribing
        self._filters, self._receiver, self._config = filters, receiver, config

    def prepare(self) -> None:
        """Connect for snapshots, so that the first RegSub need not."""
        self._snapshots.prepare()

    def subscribe(self, filters: Sequence[str], urgent: bool) -> Iterator[Subscribed[str]]:
        return self._subscribing.subscribe(filters, urgent)

    def unsubscribe(self, topic_filter: str) -> None:
        self._filters.remove(topic_filter)
        self._client.unsubscribe(topic_filter)

    def retained(self, filters: Sequence[str]) -> TreeRetained:
        packets = self._snapshots.take(*filters)
        natives = [native for native in map(self._receiver.read, packets) if isinstance(native, NativePublication)]
        return TreeRetained(tuple(natives), frozenset(map(self._topic, packets)))

    def answers(self) -> bool:
        return self._client.round_trip(self._config.patience_s)

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def _topic(self, packet: MqttPublication) -> str:
        return packet.topic.removeprefix(self._config.prefix)


# Publications that the MQTT broker has sent, until the queue manager has them (``Receiver``).
#
# The receiver acknowledges a publication at QoS 1 after it was accepted. Publications that are not acknowledged when
# a connection breaks come again. Those at QoS 0 come once: they wait here up to a limit, and the receiver drops the
# others. Receive Maximum limits those at QoS 1.


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

    def take(self, limit: int, timeout_s: float) -> TreeArrivals:
        with self._arrived:
            if not self._waiting:
                self._arrived.wait(timeout_s)
            self._taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), limit))]
        natives = [self.read(received.packet) for received in self._taken]
        return TreeArrivals([native for native in natives if native is not None], len(self._taken))

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
