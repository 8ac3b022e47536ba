"""Which way subscriptions, publications and deletions may go from one queue manager (guide 3.2, 3.3).

    came by         may go to parent and children   may go to members of a cluster
    (made here)     yes                             if its topic is a topic of this cluster
    hierarchy       yes, not back                   if its topic is a topic of this cluster
    cluster         yes                             no; through a topic host, to all but hosts

Scope holds at each queue manager on the way: PUBSCOPE(QMGR) and SUBSCOPE(QMGR) of the topic as it resolves there
(guide 3.3.5.4). Version 6 has no topic objects; there, only Local holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from zlib import crc32

from commands.broker.context import Semantics, has_stream, stream_prefix
from commands.broker.core import BrokerCore
from commands.broker.objects import Objects
from commands.network.cluster_topics import Hosts
from commands.network.flows import Place
from commands.network.topology import Link
from streams.delivery_rules import is_of_queue_manager
from streams.patterns import add_pattern_prefix, remove_pattern_prefix, widen_to_topic_pattern
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import ADMIN_STREAM, DEFAULT_STREAM, QUEUE_NAMELIST, ResolvedTopic, Scope
from streams.topic_strings import is_within

# Where a topic of one queue manager lies at a neighbour (guide 3.1.3, 3.3.4, 6.1).
#
# Between two queue managers of version 7 a topic string is the same at both. Version 6 has a topic space for each
# stream: a topic string travels with its stream, and gets the prefix that the stream has where it arrives (guide 6.1,
# figure 1). A stream that only one of the two has goes no further.
#
#     version 7, topic object Sport, TOPICSTR(xyz)   version 6, stream Sport
#     xyz/Soccer/Results                             Soccer/Results on stream Sport


class Correspondent(Protocol):
    """What has to be known of a queue manager to say where topics lie there; a broker is one.

    objects: its streams; between two queue managers of version 7 nothing is asked of them.
    """

    @property
    def semantics(self) -> Semantics: ...
    @property
    def objects(self) -> Objects: ...


def at_neighbour(place: Place, here: Correspondent, there: Correspondent) -> Place | None:
    """Where *place* lies at the neighbour; None where the neighbour does not have its stream."""
    if here.semantics is Semantics.V7 and there.semantics is Semantics.V7:
        return (
            place if place.stream is None and place.sub_point is None else replace(place, stream=None, sub_point=None)
        )
    stream = _stream(place, here)
    if stream is not None and not has_stream(stream, there.objects, there.semantics):
        return None
    before, after = (
        "" if stream is None else stream_prefix(stream, each.objects, each.semantics) for each in (here, there)
    )
    written = remove_pattern_prefix(before, place.topic_string, place.wildcard)
    if before and written == place.topic_string:
        return None  # the topic that is the prefix itself: within a stream of version 6 it has no name
    moved = add_pattern_prefix(after, written, place.wildcard)
    if there.semantics is Semantics.V7:
        return Place(moved, place.wildcard)
    return Place(moved, place.wildcard, stream, place.sub_point)


def proxy_at_neighbour(place: Place, here: Correspondent, there: Correspondent) -> Place | None:
    """The same for the pattern of a proxy subscription.

    Character-based wildcards are widened, unless both are of version 6 and know no others (guide 3.1.3).
    """
    moved = at_neighbour(place, here, there)
    if moved is None or moved.wildcard is WildcardScheme.TOPIC or here.semantics is there.semantics is Semantics.V6:
        return moved
    return replace(moved, topic_string=widen_to_topic_pattern(moved.topic_string), wildcard=WildcardScheme.TOPIC)


def _stream(place: Place, here: Correspondent) -> str | None:
    """The stream of a topic string; at version 7 the one whose topic object it lies below, the nearest of several."""
    if here.semantics is Semantics.V6:
        return place.stream
    namelist = here.objects.namelists.get(QUEUE_NAMELIST)
    names = () if namelist is None else namelist.names
    prefixes = {
        name: stream_prefix(name, here.objects, here.semantics)
        for name in names
        if name not in (DEFAULT_STREAM, ADMIN_STREAM)
    }
    within = [name for name, prefix in prefixes.items() if prefix and is_within(prefix, place.topic_string)]
    return max(within, key=lambda name: len(prefixes[name]), default=None)


@dataclass(frozen=True, slots=True)
class Routing:
    """The ways out of one queue manager.

    links: its links. neighbours: what is known of those at their ends. hosts: of topics with CLROUTE(TOPICHOST).
    """

    broker: BrokerCore
    links: Sequence[Link]
    neighbours: Mapping[str, Correspondent]
    hosts: Hosts

    @property
    def _is_v6(self) -> bool:
        return self.broker.semantics is Semantics.V6

    def of_subscription(self, subscription: Subscription) -> Iterator[tuple[Link, Place]]:
        """Where a subscription of this queue manager needs proxy subscriptions, and which."""
        if subscription.is_proxy or self._stays(subscription):
            return iter(())
        stream, sub_point = (subscription.stream, subscription.sub_point) if self._is_v6 else (None, None)
        return self.of_pattern(Place(subscription.topic_string, subscription.wildcard, stream, sub_point))

    def _stays(self, subscription: Subscription) -> bool:
        if self._is_v6:
            return subscription.options.local
        return is_of_queue_manager(subscription, self.broker.objects.topics)

    def of_pattern(self, place: Place, came_by: Link | None = None) -> Iterator[tuple[Link, Place]]:
        """The same for a pattern. came_by: the link of the proxy subscription that wants it; None for this queue
        manager's own."""
        resolved = self._resolved(place)
        if resolved is not None and resolved.sub_scope is Scope.QMGR:
            return
        hosts = self._hosts(resolved)
        for link in self.links:
            if not self._may_go(link, resolved, came_by):
                continue
            if link.cluster and hosts and link.neighbour not in hosts:
                continue
            there = proxy_at_neighbour(place, self.broker, self.neighbours[link.neighbour])
            if there is not None:
                yield link, there

    def of_deletion(self, place: Place, came_by: Link | None) -> Iterator[tuple[Link, Place]]:
        """Where a deletion goes, and the pattern there."""
        resolved = self._resolved(place)
        if resolved is not None and resolved.pub_scope is Scope.QMGR:
            return
        for link in self.links:
            there = at_neighbour(place, self.broker, self.neighbours[link.neighbour])
            if there is not None and self._may_go(link, resolved, came_by):
                yield link, there

    def publication_scope(self, topic_string: str) -> ResolvedTopic | None:
        """The attributes that hold for a publication; None at version 6, which has none."""
        return None if self._is_v6 else self.broker.objects.topics.resolve(topic_string)

    def of_publication(
        self, topic_string: str, resolved: ResolvedTopic | None, wanting: Sequence[Link], came_by: Link | None
    ) -> list[Link]:
        """The links by which a publication goes on, one for each neighbour.

        wanting: the links of the proxy subscriptions that select it. To a neighbour that has both kinds it goes through
        the cluster, so that the neighbour does not send it to members who have it already.
        """
        hosts = self._hosts(resolved)
        relays = bool(came_by and came_by.cluster and self.broker.qmgr in hosts and came_by.neighbour not in hosts)
        if resolved is not None and resolved.cluster:
            # A topic of this cluster; a local one goes wherever it is wanted (guide 3.2.1.1.1, 3.2.1.3).
            wanting = [link for link in wanting if link.cluster in ("", resolved.cluster)]
        by_neighbour: dict[str, Link] = {}
        served = {link.neighbour for link in wanting if came_by and came_by.cluster and link.cluster == came_by.cluster}
        for link in wanting:
            if came_by is not None and came_by.cluster:
                if link.cluster and not relays:
                    continue
                if not relays and link.neighbour in served:
                    continue  # a member of the same cluster has it from where it came
            known = by_neighbour.get(link.neighbour)
            if known is None or (link.cluster and not known.cluster):
                by_neighbour[link.neighbour] = link
        if resolved is not None and hosts and self.broker.qmgr not in hosts and not (came_by and came_by.cluster):
            preferred = self.hosts.preferred(hosts, resolved.cluster)
            host = preferred[crc32(topic_string.encode("utf-8", "surrogatepass")) % len(preferred)]
            by_neighbour.setdefault(host, Link(host, resolved.cluster))
        return list(by_neighbour.values())

    def _may_go(self, link: Link, resolved: ResolvedTopic | None, came_by: Link | None) -> bool:
        cluster = "" if resolved is None else resolved.cluster
        if link.cluster and link.cluster != cluster:
            return False
        if came_by is None:
            return True
        if link.neighbour == came_by.neighbour or (link.cluster and came_by.cluster):
            return False
        # Two members of one cluster ask each other themselves, also where the hierarchy connects them.
        shared = {cluster, came_by.cluster} - {""}
        return not any(
            Link(came_by.neighbour, each) in self.links and Link(link.neighbour, each) in self.links for each in shared
        )

    def _hosts(self, resolved: ResolvedTopic | None) -> tuple[str, ...]:
        """The hosts of a topic with CLROUTE(TOPICHOST); none where this queue manager is not in that cluster."""
        if not self.hosts.by_topic or resolved is None or not resolved.cluster:
            return ()
        hosts = self.hosts.by_topic.get((resolved.cluster, resolved.cluster_object), ())
        members = {link.neighbour for link in self.links if link.cluster == resolved.cluster}
        return tuple(host for host in hosts if host in members or host == self.broker.qmgr) if members else ()

    def _resolved(self, place: Place) -> ResolvedTopic | None:
        if self._is_v6:
            return None
        return self.broker.objects.topics.resolve_subscription(place.topic_string, place.wildcard)
