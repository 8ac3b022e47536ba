"""An MQTT 5 broker as a topic tree (``Adapter``).

A filter is an MQTT filter, with the prefix of all topics. The broker keeps a session, and the adapter relies on it: the
broker still has the filters of the last connection, and sends the publications that came meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import Engine, Subscribed, TreeUnreachableError
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.filter_tree import matcher_of
from commands.links.engine.retained import TreeRetained
from commands.links.engine.spool import Spool
from commands.links.mqtt.answers import Granted, Received, SentPacket
from commands.links.mqtt.capabilities import CAPABILITIES
from commands.links.mqtt.client import MqttClient
from commands.links.mqtt.filters import Filters
from commands.links.mqtt.packets import MqttPublication
from commands.links.mqtt.receiver import MqttReceiver
from commands.links.mqtt.sender import MqttSender
from commands.links.mqtt.snapshots import Snapshots
from commands.links.mqtt.state_topic import BridgeState, StateTopic
from commands.links.mqtt.subscribing import Subscribing
from commands.links.mqtt.topics import filter_of, why_not_shared, why_not_topic
from rfh2.distribution import VERSION
from streams.subscriptions import WildcardScheme

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
