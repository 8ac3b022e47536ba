"""Kafka as a topic tree (``Adapter``).

A few topics of Kafka have the publications of all topic strings; a compacted one has the retained publications, by
topic string. They belong to all bridges and native programs that share them. A filter is text, as in the topic-based
scheme.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from commands.links.engine.adapter import Engine, Subscribed
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.config import TopicsConfig
from commands.links.engine.filter_tree import levels_of, matcher_of
from commands.links.engine.followed_filters import FollowedFilters, FollowsFilters
from commands.links.engine.retained import TreeRetained
from commands.links.engine.spool import Spool
from commands.links.engine.unconnected import Unconnected
from commands.links.engine.urls import Address
from commands.links.kafka.capabilities import CAPABILITIES
from commands.links.kafka.cluster import KafkaCluster
from commands.links.kafka.compacted import CompactedTopic
from commands.links.kafka.receiver import KafkaReceiver, selected
from commands.links.kafka.records import bridge_of, texts_of
from commands.links.kafka.routes import Routes
from commands.links.kafka.sender import KafkaSender
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR


class KafkaAdapter(FollowsFilters, Unconnected):
    """One cluster. state: the directory for what the bridge remembers. epoch: of the processor. Raises ConfigError."""

    kind = "Kafka"
    name = "Kafka"
    log = logging.getLogger("qpubsub.kafka")
    filters_at_once = 1_000
    forgets_filters = False
    capabilities = CAPABILITIES

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str, state: Path, epoch: int | None) -> None:
        self._config, self._epoch, self._routes = config, epoch or 0, Routes(config.kafka)
        self._cluster = KafkaCluster(address, config, self._routes, config.client_id or f"qpubsub-{qmgr}")
        self._filters = FollowedFilters(state / "kafka.json")
        self._receiver = KafkaReceiver(self._cluster, self._routes, config, self._filters)
        self._retained = CompactedTopic(self._cluster, self._routes.retained, self._kept, config.patience_s)

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> str | None:
        levels = levels_of(topic_string, wildcard)
        return None if levels is None else selected(SEPARATOR.join(levels))

    def pattern_of(self, topic_filter: str) -> tuple[str, WildcardScheme]:
        return topic_filter.removeprefix(SEPARATOR), WildcardScheme.TOPIC

    def matcher(self, filters: Sequence[str]) -> Callable[[str], Sequence[str]]:
        return matcher_of(filters, selected)

    def why_stays(self, topic_string: str) -> str | None:
        """None: every topic string can be a key."""

    def why_not_carried(self, topic_string: str) -> str | None:
        """None: every topic string can be a key."""

    # Its life

    def attach(self, engine: Engine[str]) -> None:
        self._receiver.kept = engine.position

    def stop(self) -> None:
        self._retained.close()
        self._filters.save()

    # Calls

    def client(self) -> KafkaCalls:
        return KafkaCalls(self._cluster, self._receiver, self._filters, self._retained)

    def receiver(self) -> KafkaReceiver:
        return self._receiver

    def sender(self, spool: Spool, stop: threading.Event) -> KafkaSender:
        del spool, stop  # queues are never Kafka's, and no call waits for long
        return KafkaSender(self._cluster, self._routes, self._config.patience_s, self._epoch)

    def _kept(self, message: Any) -> Any:
        """Of what this bridge retains, nothing: the queue manager has it."""
        return None if bridge_of(texts_of(message.headers())) == self._cluster.bridge else message


class KafkaCalls:
    """The calls of one thread (``TreeClient``). retained: a message for each key, None for one of the bridge."""

    def __init__(
        self, cluster: KafkaCluster, receiver: KafkaReceiver, filters: FollowedFilters, retained: CompactedTopic[Any]
    ) -> None:
        self._cluster, self._receiver, self._filters, self._retained = cluster, receiver, filters, retained

    def prepare(self) -> None:
        self._cluster.make_ready()

    def subscribe(self, filters: Sequence[str], urgent: bool) -> Iterator[Subscribed[str]]:
        del urgent  # one is as fast as another
        self._filters.follow(filters, self._cluster.last(*self._receiver.topics))
        self._receiver.follow()
        yield from map(Subscribed, filters)

    def unsubscribe(self, topic_filter: str) -> None:
        self._filters.remove(topic_filter)

    def retained(self, filters: Sequence[str]) -> TreeRetained:
        matches, natives, topics = matcher_of(filters, selected), list[NativePublication](), set[str]()
        for key, message in self._retained.read().items():
            topic_string = key.decode("utf-8", "replace")
            if matches(topic_string):
                native = None if message is None else self._receiver.native(topic_string, message)
                if message is None or native is not None:
                    topics.add(topic_string)
                if native is not None and not native.clears:
                    natives.append(native)
        return TreeRetained(tuple(natives), frozenset(topics))

    def answers(self) -> bool:
        self._receiver.ends = self._cluster.last(*self._receiver.topics)
        return True

    def close(self) -> None:
        """Nothing is held."""
