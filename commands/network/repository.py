"""What the members of clusters know of each other: each one's clusters, and the cluster topics that it defines.

Every member keeps an entry for each other queue manager that shares a cluster with it, as the partial repository of an
IBM MQ queue manager does. Entries are in order of names, so that the same definition counts at every member.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter

from commands.broker.objects import Objects
from commands.network.cluster_topics import ClusterTopics, Hosts
from commands.network.topology import Link, Position
from streams.topic_objects import DEFAULT_TOPIC_OBJECTS, TopicObject, TopicObjects

_DEFAULTS: Final = frozenset(topic.name for topic in DEFAULT_TOPIC_OBJECTS)


@dataclass(frozen=True, slots=True)
class RepositoryEntry:
    """One queue manager. clusters: that it is a member of. topics: its own topic objects with CLUSTER.

    suspended: the clusters that it has left for the time being (SUSPEND QMGR). channels: those of clusters whose
    CLUSRCVR channel is known, each with that.
    """

    qmgr: str
    clusters: tuple[str, ...] = ()
    topics: tuple[TopicObject, ...] = ()
    suspended: tuple[str, ...] = ()
    channels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, objects: Objects) -> RepositoryEntry:
        """What a queue manager says of itself."""
        channels = objects.cluster_channels
        clusters = tuple(channels)
        topics = tuple(each for each in objects.topics.own if each.cluster in clusters and each.name not in _DEFAULTS)
        suspended = tuple(each for each in objects.qmgr.suspended if each in clusters)
        return cls(objects.qmgr.name, clusters, topics, suspended, tuple(channels.items()))

    def channel(self, cluster: str) -> str:
        """Its CLUSRCVR channel for *cluster*; "" where that is not known."""
        return dict(self.channels).get(cluster, "")


_ENTRY: Final = TypeAdapter(RepositoryEntry)


def text_of(entry: RepositoryEntry) -> str:
    """*entry* as JSON."""
    return _ENTRY.dump_json(entry).decode()


def entry_of(text: str) -> RepositoryEntry:
    """The entry that ``text_of`` wrote. Raises ValueError."""
    return _ENTRY.validate_json(text)


class Repository:
    """What one queue manager knows: its own entry, and those of the others that share a cluster with it."""

    def __init__(self, own: RepositoryEntry, others: Iterable[RepositoryEntry]) -> None:
        self.own = own
        self.others = tuple(sorted((each for each in others if each.qmgr != own.qmgr), key=lambda each: each.qmgr))
        self._positions = [Position(each.qmgr, clusters=each.clusters) for each in self.entries]
        self.cluster_topics = ClusterTopics.of(self._positions, {each.qmgr: each.topics for each in self.entries})

    @property
    def entries(self) -> tuple[RepositoryEntry, ...]:
        """All of them, by name."""
        return tuple(sorted((self.own, *self.others), key=lambda each: each.qmgr))

    def links(self) -> list[Link]:
        """To each other member, for each cluster that it shares with this one."""
        shared = ((each, cluster) for each in self.others for cluster in self.own.clusters)
        return [Link(each.qmgr, cluster) for each, cluster in shared if cluster in each.clusters]

    def copies(self, own: TopicObjects) -> tuple[TopicObject, ...]:
        """The topic objects of others that count here. own: those that this queue manager defines."""
        return self.cluster_topics.copies(Position(self.own.qmgr, clusters=self.own.clusters), own)

    def hosts_of(self, name: str) -> tuple[str, ...]:
        """The queue managers that define the cluster topic *name*, by name."""
        return tuple(sorted({each.host for each in self.cluster_topics.topics if each.topic.name == name}))

    def hosts(self) -> Hosts:
        """The hosts of topics with CLROUTE(TOPICHOST), and those that are suspended."""
        suspended = ((each.qmgr, cluster) for each in (self.own, *self.others) for cluster in each.suspended)
        return Hosts(self.cluster_topics.hosts(), frozenset(suspended))


def give_copies(objects: Objects, others: Iterable[RepositoryEntry]) -> None:
    """Have *objects* the copies of cluster topics that count there. others: what is known of the other members."""
    topics = objects.topics
    topics.copy(())
    topics.copy(Repository(RepositoryEntry.of(objects), others).copies(topics))
