"""One queue manager in a network: its broker, the proxy subscriptions at it, and those that it makes (guide 3.1).

The broker decides who gets a publication; proxy subscriptions are subscriptions in its topic space like others, so that
there is one matching. What this module adds is what goes to the neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, Protocol
from zlib import crc32

from commands.broker.context import Semantics, has_stream, stream_prefix
from commands.broker.core import BrokerCore
from commands.broker.descriptor import CARRIED_IDS, Ids
from commands.broker.objects import INTER_QMGR_PUBS, Objects
from commands.broker.outcome import Arrival, Outcome
from commands.model import Command
from commands.network.cluster_topics import Hosts
from commands.network.flows import (
    DeletionFlow,
    Flow,
    KeptBack,
    Place,
    Proxies,
    ProxyFlow,
    PublicationFlow,
    fingerprints_of,
    without_correl_id,
)
from commands.network.topology import Link
from streams import operations as op
from streams.delivery_rules import is_of_queue_manager
from streams.patterns import MULTI_LEVEL, add_pattern_prefix, remove_pattern_prefix, widen_to_topic_pattern
from streams.subscriptions import PROXY_SUB_ID, Subscription, WildcardScheme
from streams.topic_objects import ADMIN_STREAM, DEFAULT_STREAM, QUEUE_NAMELIST, ProxySubscriptions, ResolvedTopic, Scope
from streams.topic_strings import is_within

# Which way subscriptions, publications and deletions may go from one queue manager (guide 3.2, 3.3).
#
#     came by         may go to parent and children   may go to members of a cluster
#     (made here)     yes                             if its topic is a topic of this cluster
#     hierarchy       yes, not back                   if its topic is a topic of this cluster
#     cluster         yes                             no; through a topic host, to all but hosts
#
# Scope holds at each queue manager on the way: PUBSCOPE(QMGR) and SUBSCOPE(QMGR) of the topic as it resolves there
# (guide 3.3.5.4). Version 6 has no topic objects; there, only Local holds.

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


_ID_LENGTH: Final = 24


@dataclass(frozen=True, slots=True)
class Taken:
    """What a proxy subscription or a deletion of a neighbour did: what goes on, and what changed in the topic space."""

    flows: Sequence[Flow] = ()
    effects: Sequence[op.Effect] = ()


@dataclass(frozen=True, slots=True)
class Ways:
    """The links by which a publication goes on; kept_back: the rule, where it would go on without it."""

    links: tuple[Link, ...]
    kept_back: KeptBack | None = None


class NetworkQueueManager:
    """A queue manager in a network. routing: its ways out."""

    def __init__(self, routing: Routing) -> None:
        self.routing, self.broker = routing, routing.broker
        self.name = self.broker.qmgr
        self.proxies = Proxies(self.name)
        # The links of proxy subscriptions at this queue manager, by sub_id.
        self._links: dict[bytes, Link] = {}
        self._ids = (-1, Ids(self.name, 0))
        self.kept_back: list[KeptBack] = []
        """What was kept back since the caller last took it."""

    @property
    def proxies_here(self) -> int:
        """How many proxy subscriptions neighbours have made here."""
        return len(self._links)

    def links_of(self, deliveries: Iterable[op.Delivery]) -> list[Link]:
        """The links of the proxy subscriptions that these deliveries are for."""
        return [self._links[delivery.subscription.sub_id] for delivery in deliveries]

    def resume(self) -> None:
        """Know the proxy subscriptions that are in the topic space already, and what they need of other neighbours.

        Those of links that there are not are passed over. Nothing flows: what they need was asked for when they were
        made.
        """
        for proxy, link in proxies_by_link(self.broker.space.subscriptions(), self.routing.links):
            if link is not None:
                self._links[proxy.sub_id] = link
                for _ in self.proxies.want(self.routing.of_pattern(_place_of(proxy), link)):
                    pass

    def proxies_of(self, link: Link) -> list[Place]:
        """The proxy subscriptions that a neighbour has made here."""
        found = (self.broker.space.subscription(sub_id) for sub_id, by in self._links.items() if by == link)
        return [_place_of(subscription) for subscription in found if subscription is not None]

    # Subscriptions of its own

    def begin(self) -> Iterator[Flow]:
        """The proxy subscriptions for what its setup defined (guide 3.1.2 for PROXYSUB(FORCE))."""
        for subscription in self.broker.space.subscriptions():
            yield from self.proxies.want(self.routing.of_subscription(subscription))
        if self.broker.semantics is Semantics.V7:
            for topic in self.broker.objects.topics:
                if topic.proxy_subs is ProxySubscriptions.FORCE:
                    pattern = f"{topic.topic_string}/{MULTI_LEVEL}" if topic.topic_string else MULTI_LEVEL
                    yield from self.proxies.want(self.routing.of_pattern(Place(pattern)))

    def changed(self, effects: Iterable[op.Effect]) -> Iterator[Flow]:
        """The proxy subscriptions that changes of its subscriptions need."""
        of = self.routing.of_subscription
        for effect in effects:
            match effect:
                case op.SubscriptionAdded(subscription):
                    yield from self.proxies.want(of(subscription))
                case op.SubscriptionRemoved(subscription):
                    yield from self.proxies.release(of(subscription))
                case op.SubscriptionAltered(before, after) if _place(before) != _place(after):
                    yield from self.proxies.want(of(after))
                    yield from self.proxies.release(of(before))

    # What programs do here

    def sent_on(self, outcome: Outcome) -> list[Flow]:
        """What goes to neighbours after a command of a program was carried out."""
        flows = list(self.changed(outcome.effects))
        if not self.routing.links:
            return flows
        for operation in outcome.operations:
            if isinstance(operation, op.PublishToTopic):
                passed_on = fingerprints_of(operation.publication.message)
                links = self._links_on(operation.topic_string, outcome.carried)
                flows += self._publications(operation, links, outcome.command, passed_on, None)
            elif isinstance(operation, op.ClearRetained) and not operation.local:
                flows += self._deletions(operation, (), None)
        return flows

    # What neighbours send

    def receive_proxy(self, flow: ProxyFlow, now: datetime) -> Taken:
        """A proxy subscription of a neighbour: it gets what is retained here, and others may have to be asked."""
        link = Link(flow.sender, flow.cluster)
        sub_id = _proxy_id(link, flow.place)
        space = self.broker.space
        targets = self.routing.of_pattern(flow.place, link)
        if flow.withdrawn:
            subscription = space.subscription(sub_id)
            if subscription is None:
                return Taken()
            effects = space.apply(op.Unsubscribe(subscription), now)
            del self._links[sub_id]
            return Taken(list(self.proxies.release(targets)), effects)
        if sub_id in self._links:
            return Taken()
        self._links[sub_id] = link
        effects = space.apply(op.Subscribe(_proxy(sub_id, link, flow.place, now), send_retained=True), now)
        retained = [effect for effect in effects if isinstance(effect, op.Delivery)]
        flows: list[Flow] = []
        for delivery in retained:
            flows += self._retained(delivery.topic_string, delivery.publication, link)
        return Taken(
            [*flows, *self.proxies.want(targets)], [each for each in effects if not isinstance(each, op.Delivery)]
        )

    def receive_publication(self, flow: PublicationFlow, arrival: Arrival, *, explains: bool = False) -> Outcome | None:
        """A publication of a neighbour: its outcome here; None where it is not published."""
        operation = flow.operation
        if self.name in flow.fingerprints:
            path = " - ".join((*flow.fingerprints, self.name))
            self._keep_back(operation.topic_string, f"its own fingerprint: it went round a loop, {path} (guide 3.4)")
            return None
        if operation.was_retained and self._is_known(operation, arrival.now):
            return None
        if self._ids[0] != arrival.seq:
            self._ids = (arrival.seq, Ids(self.name, arrival.seq, CARRIED_IDS))
        return self.broker.publish(arrival, operation, flow.command, self._ids[1], explains=explains)

    def publication_sent_on(self, flow: PublicationFlow, outcome: Outcome) -> list[Flow]:
        """What goes to neighbours after a publication of a neighbour was published here."""
        link = Link(flow.sender, flow.cluster)
        links = self._links_on(flow.operation.topic_string, outcome.carried)
        flows = self._publications(flow.operation, links, flow.command, flow.fingerprints, link)
        return [*self.changed(outcome.effects), *flows]

    def repeated(self, flow: PublicationFlow, seq: int, puts: int, ways: Ways) -> list[Flow]:
        """What goes to neighbours after a publication of a neighbour that this one's broker needed not see.

        seq, puts: of the message that was published, and how many identifiers were used for it here. Nothing else has
        changed.
        """
        self._ids = (seq, Ids(self.name, seq, CARRIED_IDS + puts))
        if ways.kept_back is not None:
            self.kept_back.append(ways.kept_back)
        return self._by(ways.links, flow.operation, flow.command, flow.fingerprints)

    def ways(self, flow: PublicationFlow, proxies: Iterable[Subscription]) -> Ways:
        """The ways on of *flow*, and of each publication on its topic that comes by the same link.

        proxies: the proxy subscriptions that it is for.
        """
        links = [self._links[each.sub_id] for each in proxies]
        return self._ways(flow.operation, links, Link(flow.sender, flow.cluster))

    def was_reached_by(self, seq: int) -> bool:
        """Whether a neighbour has already sent what came of message *seq*."""
        return self._ids[0] == seq

    def receive_deletion(self, flow: DeletionFlow, now: datetime) -> Taken:
        """A deletion of a neighbour, which goes on to the others."""
        if self.name in flow.fingerprints:
            return Taken()
        effects = self.broker.space.apply(flow.operation, now)
        link = Link(flow.sender, flow.cluster)
        return Taken(list(self._deletions(flow.operation, flow.fingerprints, link)), effects)

    # What goes to neighbours

    def _publications(
        self,
        operation: op.PublishToTopic,
        links: Sequence[Link],
        command: Command | None,
        fingerprints: tuple[str, ...],
        came_by: Link | None,
    ) -> list[Flow]:
        """links: those of the proxy subscriptions that select it."""
        if self.name in fingerprints:
            return []
        ways = self._ways(operation, links, came_by)
        if ways.kept_back is not None:
            self.kept_back.append(ways.kept_back)
        return self._by(ways.links, operation, command, fingerprints)

    def _ways(self, operation: op.PublishToTopic, links: Sequence[Link], came_by: Link | None) -> Ways:
        topic = operation.topic_string
        resolved = self.routing.publication_scope(topic)
        wanting = self.routing.of_publication(topic, resolved, list(dict.fromkeys(links)), came_by)
        rule = _kept_here_by(operation.publication.local, resolved)
        if not wanting or not rule:
            return Ways(tuple(wanting))
        return Ways((), KeptBack(self.name, topic, rule, tuple(link.neighbour for link in wanting)))

    def _by(
        self,
        links: Iterable[Link],
        operation: op.PublishToTopic,
        command: Command | None,
        fingerprints: tuple[str, ...],
    ) -> list[Flow]:
        """The same publication by several links."""
        visited = (*fingerprints, self.name)
        alike: dict[bool, op.PublishToTopic | None] = {}  # to neighbours of this version, in a cluster or not
        flows: list[Flow] = []
        for link in links:
            if self.routing.neighbours[link.neighbour].semantics is Semantics.V7 is self.broker.semantics:
                kind = bool(link.cluster)
                if kind not in alike:
                    alike[kind] = self._moved(operation, link)
                moved = alike[kind]
            else:
                moved = self._moved(operation, link)
            if moved is not None:
                flows.append(PublicationFlow(self.name, link.neighbour, link.cluster, moved, visited, command))
        return flows

    def _links_on(self, topic: str, carried: Iterable[op.Delivery]) -> list[Link]:
        """The links of the proxy subscriptions that get what was published on *topic*."""
        return self.links_of(each for each in carried if each.topic_string == topic)

    def _moved(self, operation: op.PublishToTopic, link: Link) -> op.PublishToTopic | None:
        """*operation* as the neighbour carries it out."""
        publication = operation.publication
        there = self.routing.neighbours[link.neighbour]
        place = at_neighbour(Place(operation.topic_string, stream=publication.stream), self.broker, there)
        if place is None:
            return None
        if there.semantics is Semantics.V6 or self.broker.semantics is Semantics.V6:
            publication = replace(publication, stream=place.stream)
        if not link.cluster:
            publication = without_correl_id(publication)
        return replace(operation, topic_string=place.topic_string, publication=publication, came_from=self.name)

    def retained_for(self, link: Link, now: datetime) -> Iterator[Flow]:
        """What is retained here and a neighbour has a proxy subscription to, each publication once."""
        sent: set[str] = set()
        for place in self.proxies_of(link):
            for held in self.broker.space.retained(place.topic_string, place.wildcard, now):
                if held.topic_string not in sent:
                    sent.add(held.topic_string)
                    yield from self._retained(held.topic_string, held.publication, link)

    def _retained(self, topic: str, held: op.Published, link: Link) -> Iterator[Flow]:
        """A retained publication for a proxy subscription (guide 3.5)."""
        resolved = self.routing.publication_scope(topic)
        if _kept_here_by(held.local, resolved):
            return
        publication = op.Publication(
            held.message, held.published_at, held.expires_at, held.local, held.stream, held.sub_point
        )
        moved = self._moved(op.PublishToTopic(topic, publication, retain=True, was_retained=True), link)
        if moved is not None:
            yield PublicationFlow(self.name, link.neighbour, link.cluster, moved, (self.name,))

    def _deletions(
        self, operation: op.ClearRetained, fingerprints: tuple[str, ...], came_by: Link | None
    ) -> Iterator[Flow]:
        place = Place(operation.topic_string, operation.wildcard, operation.stream)
        for link, there in self.routing.of_deletion(place, came_by):
            of_scope = operation.of_scope and self.routing.neighbours[link.neighbour].semantics is Semantics.V6
            moved = op.ClearRetained(there.topic_string, there.wildcard, False, there.stream, of_scope)
            yield DeletionFlow(self.name, link.neighbour, link.cluster, moved, (*fingerprints, self.name))

    def _is_known(self, operation: op.PublishToTopic, now: datetime) -> bool:
        """Whether the same retained publication, or a later one, is here already."""
        wildcard = Place(operation.topic_string).wildcard
        held = self.broker.space.retained(operation.topic_string, wildcard, now, heed_blocks=False)
        return any(each.publication.published_at >= operation.publication.published_at for each in held)

    def _keep_back(self, topic: str, why: str, to: tuple[str, ...] = ()) -> None:
        self.kept_back.append(KeptBack(self.name, topic, why, to))


def proxies_by_link(
    subscriptions: Iterable[Subscription], links: Iterable[Link]
) -> Iterator[tuple[Subscription, Link | None]]:
    """The proxy subscriptions among *subscriptions*, each with the one of *links* that it came by, if it is there."""
    by_neighbour: dict[str, list[Link]] = {}
    for link in links:
        by_neighbour.setdefault(link.neighbour, []).append(link)
    for each in subscriptions:
        if each.is_proxy:
            place, possible = _place_of(each), by_neighbour.get(each.dest_qmgr, ())
            yield each, next((link for link in possible if _proxy_id(link, place) == each.sub_id), None)


def _kept_here_by(is_local: bool, resolved: ResolvedTopic | None) -> str:
    """The rule by which a publication does not leave its queue manager (guide 3.3.1); empty where there is none."""
    if resolved is not None and resolved.pub_scope is Scope.QMGR:
        return f"PUBSCOPE(QMGR) of topic object {resolved.object_name}"
    return "Local" if is_local else ""


def _place(subscription: Subscription) -> tuple[object, ...]:
    return (subscription.topic_string, subscription.wildcard, subscription.options.local)


def _place_of(subscription: Subscription) -> Place:
    return Place(subscription.topic_string, subscription.wildcard, subscription.stream, subscription.sub_point)


def _proxy_id(link: Link, place: Place) -> bytes:
    """The same for the same proxy subscription, whenever it is made: deliveries do not depend on the order."""
    text = repr((link.neighbour, link.cluster, place.topic_string, place.wildcard, place.stream, place.sub_point))
    return (PROXY_SUB_ID + sha256(text.encode("utf-8", "surrogatepass")).digest())[:_ID_LENGTH]


def _proxy(sub_id: bytes, link: Link, place: Place, now: datetime) -> Subscription:
    return Subscription(
        sub_id,
        place.topic_string,
        INTER_QMGR_PUBS,
        link.neighbour,
        now,
        wildcard=place.wildcard,
        stream=place.stream,
        sub_point=place.sub_point,
    )
