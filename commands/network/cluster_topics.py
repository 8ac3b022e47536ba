"""Cluster topics: topic objects with CLUSTER, which every member of the cluster gets a copy of (guide 3.2.1.1, 3.3.4).

    a member has a topic object of that name or topic string   its own counts, clustered or not
    several definitions that are equal                         each is a host
    several definitions that differ                            the last one counts; the others are reported
    no member of its own cluster defines it                    it is not in the cluster

"Last" is the order of the queue managers in estate.toml, and of the definitions in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from commands.network.topology import Position
from streams.topic_objects import ClusterRoute, TopicObject, TopicObjects


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
