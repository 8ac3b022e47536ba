"""Kafka as a topic tree (``Adapter``).

A few topics of Kafka have the publications of all topic strings; a compacted one has the retained publications, by
topic string. They belong to all bridges and native programs that share them. Kafka has no filters: the bridge reads
its topics whole.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.filters import Positions
from commands.links.engine.log_adapter import LogAdapter, capabilities_of
from commands.links.engine.logs import Following
from commands.links.engine.properties import TreeMessage
from commands.links.engine.spool import Spool
from commands.links.kafka.cluster import KafkaCluster
from commands.links.kafka.reader import KafkaReader, compacted
from commands.links.kafka.records import Routes, record_of
from commands.links.kafka.sender import KafkaSender
from commands.qmgr.link_port import Feature, How

CAPABILITIES: Final = capabilities_of(
    {
        Feature.SUBSCRIBE: How.EMULATED,
        Feature.PUBLISH: How.DOES,
        Feature.RETAIN: How.DOES,
        Feature.REQUEST: How.EMULATED,
        Feature.CLEAR: How.DOES,
        Feature.CHAR_WILDCARDS: How.EMULATED,
        Feature.INNER_HASH: How.EMULATED,
        Feature.ODD_TOPICS: How.DOES,
        Feature.DOLLAR_TOPICS: How.DOES,
        Feature.EXPIRY: How.EMULATED,
        Feature.PERSISTENCE: How.EMULATED,
        Feature.PRIORITY: How.LOST,
        Feature.ORDER: How.DOES,
        Feature.UNIT_OF_WORK: How.EMULATED,
    }
)


class KafkaAdapter(LogAdapter[Any]):
    """One cluster. state: the directory for what the bridge remembers. epoch: of the processor. Raises ConfigError."""

    kind = "Kafka"
    name = "Kafka"
    log = logging.getLogger("qpubsub.kafka")
    filters_at_once = 1_000
    forgets_filters = False
    capabilities = CAPABILITIES

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str, state: Path, epoch: int | None) -> None:
        self._epoch, self._routes = epoch or 0, Routes(config.kafka)
        self._cluster = KafkaCluster(address, config, self._routes, config.client_id or f"qpubsub-{qmgr}")
        super().__init__(KafkaLogs(self._cluster, self._routes), state / "kafka.json", config.default_format)

    def sender(self, spool: Spool, stop: threading.Event) -> KafkaSender:
        del spool, stop  # queues are never Kafka's, and no call waits for long
        return KafkaSender(self._cluster, self._routes, self._epoch)


class KafkaLogs:
    """The partitions of all topics but that of state (``Logs``); a message is one of confluent-kafka."""

    def __init__(self, cluster: KafkaCluster, routes: Routes) -> None:
        self.bridge = cluster.bridge
        self._cluster, self._routes = cluster, routes
        self._topics = (*routes.publications, routes.retained)
        self._retained = compacted(cluster, routes.retained, self._lighten)

    def make_ready(self) -> None:
        self._cluster.make_ready()

    def ends(self) -> Positions:
        return self._cluster.last(*self._topics)

    def begins(self) -> Positions:
        return self._cluster.last(*self._topics, first=True)

    def reader(self, positions: Positions, following: Following) -> KafkaReader:
        del following  # what no filter selects is read too
        return KafkaReader(self._cluster, positions)

    def follow(self, following: Following) -> None:
        """Do nothing: what no filter selects is read too."""

    def waits(self, positions: Positions) -> bool:
        return any(positions.get(log, -1) < end for log, end in self.ends().items())

    def record(self, message: Any) -> TreeMessage:
        return record_of(message.topic(), message.key(), message.value(), message.headers(), self._routes)

    def retained(self, filters: Sequence[str]) -> Iterable[Any]:
        del filters  # who asks looks at the topics
        return self._retained.read().values()

    def close(self) -> None:
        self._retained.close()

    def _lighten(self, message: Any) -> Any:
        """Of what this bridge retains, only the topic: the queue manager has the rest."""
        if self.record(message).bridge == self.bridge:
            message.set_value(b"")
        return message
