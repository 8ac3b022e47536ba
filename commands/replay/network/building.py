"""A network from the queue managers of ``estate.toml``: their setups run with the topic objects of their clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace

from commands.broker.objects import Objects, QueueManager
from commands.broker.outcome import EPOCH
from commands.mqsc.broker import Broker
from commands.mqsc.execute import run_network_definitions
from commands.network.cluster_topics import ClusterTopics
from commands.network.estate_file import Estate
from commands.network.network import Member, Network, NextChannel
from commands.network.topology import Position
from rfh2.errors import QPubSubError
from streams.topic_objects import DEFAULT_TOPIC_OBJECTS

_DEFAULTS = frozenset(topic.name for topic in DEFAULT_TOPIC_OBJECTS)


@dataclass(frozen=True, slots=True)
class QueueManagerSetup:
    """What a queue manager of the network starts with. setup: MQSC text. semantics: ``v7`` or ``v6``."""

    position: Position
    setup: str = ""
    semantics: str = "v7"


@dataclass(frozen=True, slots=True)
class NetworkSetup:
    """All of them, in the order of the file, as text: a value that goes to Spark's workers."""

    queue_managers: tuple[QueueManagerSetup, ...]

    @classmethod
    def of(cls, estate: Estate, setup: str = "") -> NetworkSetup:
        """Those of an estate. setup: MQSC that runs first on each. Raises TableFileError where a script is missing."""
        return cls(
            tuple(
                QueueManagerSetup(position, "\n".join(filter(None, (setup, estate.setup_of(each)))), each.semantics)
                for position, each in zip(estate.topology.positions, estate.queue_managers, strict=True)
            )
        )

    def build(self, *, next_channel: NextChannel | None = None, explains: bool = False) -> Network:
        """The network, with proxy subscriptions for what the setups define.

        Raises QPubSubError with the queue manager, the line and the command of a setup that fails.
        """
        defined = [_defined(each) for each in self.queue_managers]
        positions = [_placed(each.position, own) for each, own in zip(self.queue_managers, defined, strict=True)]
        by_qmgr = {each.qmgr.name: [topic for topic in each.topics if topic.name not in _DEFAULTS] for each in defined}
        cluster_topics = ClusterTopics.of(positions, by_qmgr)
        members = [
            Member(_broker(each, position, own, cluster_topics), position)
            for each, own, position in zip(self.queue_managers, defined, positions, strict=True)
        ]
        return Network(members, cluster_topics, next_channel=next_channel, explains=explains)


def _defined(of: QueueManagerSetup) -> Objects:
    """The queue manager's own attributes and topic objects."""
    objects = Objects(QueueManager(of.position.qmgr))
    try:
        run_network_definitions(of.setup, objects, EPOCH)
    except QPubSubError as error:
        raise QPubSubError(f"setup of queue manager {of.position.qmgr}: {error}") from error
    return objects


def _placed(position: Position, own: Objects) -> Position:
    """With the setup's PARENT where the file gives none, and with the clusters of its CLUSRCVR channels."""
    clusters = tuple(dict.fromkeys((*position.clusters, *own.clusters)))
    return replace(position, parent=position.parent or own.qmgr.parent, clusters=clusters)


def _broker(of: QueueManagerSetup, position: Position, own: Objects, cluster_topics: ClusterTopics) -> Broker:
    objects = Objects(QueueManager(of.position.qmgr))
    for topic in cluster_topics.copies(position, own.topics):
        objects.topics.define(topic)
    try:
        return Broker(of.position.qmgr, of.setup, of.semantics, objects=objects)
    except QPubSubError as error:
        raise QPubSubError(f"setup of queue manager {of.position.qmgr}: {error}") from error
