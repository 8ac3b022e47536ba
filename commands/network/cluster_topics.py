"""Cluster topics: topic objects with CLUSTER, which every member of the cluster gets a copy of (guide 3.2.1.1, 3.3.4).

    a member has a topic object of that name or topic string   its own counts, clustered or not
    several definitions that are equal                         each is a host
    several definitions that differ                            the last one counts; the others are reported
    no member of its own cluster defines it                    it is not in the cluster

"Last" is the order of the queue managers in estate.toml, and of the definitions in each.

What the members of clusters know of each other: each one's clusters, and the cluster topics that it defines.

Every member keeps an entry for each other queue manager that shares a cluster with it, as the partial repository of an
IBM MQ queue manager does. Entries are in order of names, so that the same definition counts at every member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from pydantic import TypeAdapter

from commands.broker.objects import Objects
from commands.network.topology import Link, Position
from streams.topic_objects import DEFAULT_TOPIC_OBJECTS, ClusterRoute, TopicObject, TopicObjects


class ClusterState(StrEnum):
    """CLSTATE: whether the definition is the one that counts in the cluster."""

    ACTIVE = "ACTIVE"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class ClusterTopic:
    """One definition. host: the queue manager that has it, the cluster topic host."""

    topic: TopicObject
    host: str
    state: ClusterState = ClusterState.ACTIVE


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of topics with CLROUTE(TOPICHOST). by_topic: by cluster and topic object.

    suspended: queue manager and cluster of those that publications are sent to only where there is no other. All hosts
    have the proxy subscriptions, so that nothing is lost while SUSPEND QMGR becomes known.
    """

    by_topic: Mapping[tuple[str, str], tuple[str, ...]]
    suspended: frozenset[tuple[str, str]] = frozenset()

    def preferred(self, hosts: Sequence[str], cluster: str) -> Sequence[str]:
        """Those of *hosts* that publications are sent to."""
        return [host for host in hosts if (host, cluster) not in self.suspended] or hosts


@dataclass(frozen=True, slots=True)
class ClusterTopics:
    """All cluster topics of a network, in the order of their definition."""

    topics: tuple[ClusterTopic, ...]

    @classmethod
    def of(cls, positions: Iterable[Position], defined: Mapping[str, Iterable[TopicObject]]) -> ClusterTopics:
        """defined: the topic objects that each queue manager's own commands made."""
        found = [
            ClusterTopic(topic, each.qmgr)
            for each in positions
            for topic in defined.get(each.qmgr, ())
            if topic.cluster and topic.cluster in each.clusters
        ]
        return cls(tuple(_judged(each, found) for each in found))

    def copies(self, position: Position, own: TopicObjects) -> tuple[TopicObject, ...]:
        """The topic objects that a member gets from the others. own: what it has defined itself."""
        names: dict[str, TopicObject] = {}
        for each in self.topics:
            topic = each.topic
            if each.state is not ClusterState.ACTIVE or topic.cluster not in position.clusters:
                continue
            if topic.name not in own and own.at(topic.topic_string) is None:
                names.pop(topic.name, None)
                names[topic.name] = topic
        by_topic = {topic.topic_string: topic for topic in names.values()}  # the last of a topic string
        return tuple(by_topic.values())

    def hosts(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """By cluster and topic object: the queue managers through which publications go, with CLROUTE(TOPICHOST)."""
        hosts: dict[tuple[str, str], list[str]] = {}
        for each in self.topics:
            topic = each.topic
            if each.state is ClusterState.ACTIVE and topic.cluster_route is ClusterRoute.TOPICHOST:
                hosts.setdefault((topic.cluster, topic.name), []).append(each.host)
        return {key: tuple(sorted(set(found))) for key, found in hosts.items()}

    def conflicts(self) -> tuple[str, ...]:
        """A sentence for each definition that does not count in its cluster, or that another cluster has too."""
        sentences = []
        for each in self.topics:
            topic, last = each.topic, _last(each, self.topics)
            if last is each or _is_same(each.topic, last.topic):
                continue
            what = f"topic object {topic.name} ({topic.topic_string}) of {each.host} in cluster {topic.cluster}"
            other = f"{last.topic.name} ({last.topic.topic_string}) of {last.host} in cluster {last.topic.cluster}"
            then = (
                "the last definition counts" if each.state is ClusterState.INVALID else "members of both use the last"
            )
            sentences.append(f"{what} differs from {other}: {then} (guide 3.2.1.1.1)")
        return tuple(sentences)


def _judged(one: ClusterTopic, all_topics: Sequence[ClusterTopic]) -> ClusterTopic:
    last = _last(one, [each for each in all_topics if each.topic.cluster == one.topic.cluster])
    return one if _is_same(one.topic, last.topic) else replace(one, state=ClusterState.INVALID)


def _last(one: ClusterTopic, topics: Sequence[ClusterTopic]) -> ClusterTopic:
    """The last definition of the same name or the same topic string."""
    topic = one.topic
    alike = [o for o in topics if o.topic.name == topic.name or o.topic.topic_string == topic.topic_string]
    return alike[-1]


def _is_same(one: TopicObject, other: TopicObject) -> bool:
    return replace(one, description="") == replace(other, description="")


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
