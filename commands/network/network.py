"""A network of queue managers: a message of a program in; who gets what where, and what flowed, out (guide 3).

    network = Network([Member(broker, Position("QM1")), Member(other, Position("QM2", parent="QM1"))])
    step = network.take("QM2", arrival)
    for received in step.received: ...      # the puts at each queue manager
    for flow in step.flows: print(flow)     # QM2 -> QM1: subscribe Sport/#

Each step ends when nothing flows any more. Flows keep their order on each link, as messages on a channel do; which
link goes next is the caller's choice.

Why a publication did not reach a subscription at another queue manager, where its topic string selects the topic.

Proxy subscriptions go from the subscriber towards the publisher, so the way is looked at in that direction; the first
queue manager that asks the next one for nothing is where the publication was kept back.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Protocol

from commands.broker.context import Semantics
from commands.broker.core import BrokerCore
from commands.broker.objects import INTER_QMGR_PUBS
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing
from commands.broker.times import EPOCH
from commands.network.cluster_topics import ClusterTopics, Hosts
from commands.network.flows import DeletionFlow, Flow, KeptBack, Place, ProxyFlow, PublicationFlow
from commands.network.queue_manager import NetworkQueueManager, Routing
from commands.network.topology import Link, Position, Topology
from rfh2.errors import QPubSubError
from streams.delivery_rules import is_of_queue_manager, sub_scope_object
from streams.operations import Rule
from streams.subscriptions import Subscription
from streams.topic_objects import Scope

Channel = tuple[str, str]
"""Sender and receiver: flows between them stay in order."""

NextChannel = Callable[[Sequence[Channel]], Channel]
"""Chooses the channel whose next flow arrives, of those that have one."""


@dataclass(frozen=True, slots=True)
class Member:
    """A queue manager of a network: its broker, and its place."""

    broker: BrokerCore
    position: Position


@dataclass(frozen=True, slots=True)
class Received:
    """What a message, or a flow that it caused, did at one queue manager. flow: None for the message itself."""

    qmgr: str
    outcome: Outcome
    flow: PublicationFlow | None = None


@dataclass(slots=True)
class Step:
    """All that one message of a program did in the network, at the time *now*.

    received: at the queue manager where it was put, then at others in the order of arrival. flows: in the order in
    which they arrived. kept_back: publications that went no further.
    """

    now: datetime = EPOCH
    received: list[Received] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    kept_back: list[KeptBack] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """What the message did at the queue manager where it was put."""
        return self.received[0].outcome

    @property
    def puts(self) -> list[Outgoing]:
        """What it put, at all queue managers."""
        return [put for received in self.received for put in received.outcome.puts]


class Repeats(Protocol):
    """Knows what publications like earlier ones do at queue managers, so that brokers need not see each of them."""

    def flows(self, there: NetworkQueueManager, flow: PublicationFlow, now: datetime) -> Iterable[Flow] | None:
        """Have *flow* arrive: what goes on from there; None where the broker has to see it."""

    def seen(self, there: NetworkQueueManager, flow: PublicationFlow, outcome: Outcome) -> None:
        """The broker has seen it."""


@dataclass(slots=True)
class LinkTraffic:
    """What went from one queue manager to a neighbour: counts of flows."""

    proxies: int = 0
    publications: int = 0
    deletions: int = 0


class Network:
    """Queue managers, connected. cluster_topics: whose copies the brokers have already (``ClusterTopics.copies``).

    next_channel: which flow arrives next; by default, channels take turns. explains: whether outcomes have traces that
    explain.
    """

    def __init__(
        self,
        members: Iterable[Member],
        cluster_topics: ClusterTopics | None = None,
        *,
        next_channel: NextChannel | None = None,
        explains: bool = False,
    ) -> None:
        given = list(members)
        self.topology = Topology(tuple(member.position for member in given))
        self.cluster_topics = ClusterTopics(()) if cluster_topics is None else cluster_topics
        brokers = {member.broker.qmgr: member.broker for member in given}
        suspended = {(qmgr, cluster) for qmgr, each in brokers.items() for cluster in each.objects.qmgr.suspended}
        links, hosts = self.topology.links(), Hosts(self.cluster_topics.hosts(), frozenset(suspended))
        self.queue_managers = {
            qmgr: NetworkQueueManager(Routing(broker, links[qmgr], brokers, hosts)) for qmgr, broker in brokers.items()
        }
        self.traffic: dict[Channel, LinkTraffic] = {}
        self._next, self._explains = next_channel, explains
        self._waiting: dict[Channel, deque[Flow]] = {}
        self._now = EPOCH
        begun = Step()
        for each in self.queue_managers.values():
            self._send(each.begin())
        self._settle(begun, Arrival(0, EPOCH, INTER_QMGR_PUBS, None, b""))
        self.begun = begun

    @property
    def retained_copies(self) -> Counter[str]:
        """How many retained publications each queue manager holds."""
        held = {qmgr: len(each.broker.space.retained_publications()) for qmgr, each in self.queue_managers.items()}
        return Counter(held)

    def take(self, qmgr: str, arrival: Arrival, repeats: Repeats | None = None) -> Step:
        """Process a message that a program put at *qmgr*. Raises QPubSubError where the network has no such name.

        repeats: asked about each publication that arrives at another queue manager; ``received`` lacks what it knows.
        """
        here = self.queue_managers.get(qmgr)
        if here is None:
            raise QPubSubError(f"message {arrival.seq} was put at queue manager {qmgr}, which is not in the network")
        step = Step(arrival.now)
        self._expire(arrival.now, here)
        if self._explains:
            outcome = here.broker.trace(arrival, explains=True, forwards=False)
        else:
            outcome = here.broker.process(arrival)
        step.received.append(Received(qmgr, outcome))
        self._send(here.sent_on(outcome))
        self._settle(step, arrival, repeats)
        return step

    def _expire(self, now: datetime, here: NetworkQueueManager) -> None:
        """Subscriptions end at all queue managers when their time has come, also where no message arrives."""
        for each in self.queue_managers.values():
            if each is not here and each.broker.space.is_due(now):
                self._send(each.changed(each.broker.expire(now)))

    def _send(self, flows: Iterable[Flow]) -> None:
        for flow in flows:
            self._waiting.setdefault((flow.sender, flow.receiver), deque()).append(flow)

    def _settle(self, step: Step, arrival: Arrival, repeats: Repeats | None = None) -> None:
        """Let everything arrive that was sent."""
        carried = replace(arrival, queue=INTER_QMGR_PUBS, md=None, body=b"")
        while self._waiting:
            channel = next(iter(self._waiting)) if self._next is None else self._next(list(self._waiting))
            waiting = self._waiting[channel]
            flow = waiting.popleft()
            del self._waiting[channel]
            if waiting:
                self._waiting[channel] = waiting
            step.flows.append(flow)
            self._send(self._arrive(flow, carried, step, repeats))
        for each in self.queue_managers.values():
            if each.kept_back:
                step.kept_back += each.kept_back
                each.kept_back.clear()

    def _arrive(self, flow: Flow, arrival: Arrival, step: Step, repeats: Repeats | None) -> Iterable[Flow]:
        traffic = self.traffic.setdefault((flow.sender, flow.receiver), LinkTraffic())
        there = self.queue_managers[flow.receiver]
        match flow:
            case ProxyFlow():
                traffic.proxies += 1
                return there.receive_proxy(flow, arrival.now).flows
            case DeletionFlow():
                traffic.deletions += 1
                return there.receive_deletion(flow, arrival.now).flows
            case PublicationFlow():
                traffic.publications += 1
                if repeats is not None and (known := repeats.flows(there, flow, arrival.now)) is not None:
                    return known
                outcome = there.receive_publication(flow, arrival, explains=self._explains)
                if outcome is None:
                    return ()
                step.received.append(Received(there.name, outcome, flow))
                if repeats is not None:
                    repeats.seen(there, flow, outcome)
                return there.publication_sent_on(flow, outcome)


def absence(network: Network, step: Step, subscription: Subscription, topic: str, at: str) -> KeptBack:
    """The rule, and the queue manager that applied it. step: of the publication. at: the subscriber's queue manager."""
    here = network.queue_managers[at]
    origin = step.received[0].qmgr
    scope = own_scope(here, subscription)
    if scope:
        return KeptBack(at, topic, scope)
    for kept in step.kept_back:
        if kept.topic_string == topic:
            return kept
    return _on_the_way(network, subscription, topic, at, origin) or KeptBack(
        origin, topic, "a rule of the topic space there"
    )


def would_come(network: Network, subscription: Subscription, topic: str, at: str, origin: str) -> bool:
    """Whether what is published at *origin* on *topic* would come to *subscription* if it were at queue manager *at*.

    Of what the publication itself says, nothing is asked here.
    """
    here, publishing = network.queue_managers[at], network.queue_managers[origin]
    scope = publishing.routing.publication_scope(topic)
    if own_scope(here, subscription) or (scope is not None and scope.pub_scope is Scope.QMGR):
        return False
    return _on_the_way(network, subscription, topic, at, origin) is None


def _on_the_way(network: Network, subscription: Subscription, topic: str, at: str, origin: str) -> KeptBack | None:
    """The first queue manager between subscriber and publisher that asks the next one for nothing; None for none."""
    way = _way(network, at, origin)
    if not way:
        return KeptBack(at, topic, f"the network: {at} and {origin} are not connected", rule=None)
    v6 = network.queue_managers[at].broker.semantics is Semantics.V6
    place: Place | None = Place(
        subscription.topic_string, subscription.wildcard, subscription.stream if v6 else None, subscription.sub_point
    )
    came_by: Link | None = None
    for qmgr, neighbour in pairwise(way):
        asking = network.queue_managers[qmgr]
        assert place is not None
        asked = [
            (link, there) for link, there in asking.routing.of_pattern(place, came_by) if link.neighbour == neighbour
        ]
        if not asked:
            why, rule = _not_asked(asking, place, neighbour, came_by)
            return KeptBack(qmgr, topic, why, (neighbour,), rule)
        link, place = asked[0]
        came_by = Link(qmgr, link.cluster)
    return None


def own_scope(here: NetworkQueueManager, subscription: Subscription) -> str:
    """The rule that keeps a subscription at its own queue manager; empty where it goes to others."""
    if subscription.options.local:
        return "Local of the subscription"
    topics = here.broker.objects.topics
    if here.broker.semantics is Semantics.V7 and is_of_queue_manager(subscription, topics):
        return _sub_scope(here, Place(subscription.topic_string, subscription.wildcard))
    return ""


def _sub_scope(here: NetworkQueueManager, place: Place) -> str:
    topics = here.broker.objects.topics
    resolved = topics.resolve_subscription(place.topic_string, place.wildcard)
    return f"SUBSCOPE(QMGR) of topic object {sub_scope_object(resolved.topic_string, topics)}"


def _not_asked(here: NetworkQueueManager, place: Place, neighbour: str, came_by: Link | None) -> tuple[str, Rule]:
    links = [link for link in here.routing.links if link.neighbour == neighbour]
    clusters = [link.cluster for link in links if link.cluster]
    if here.broker.semantics is Semantics.V7:
        resolved = here.broker.objects.topics.resolve_subscription(place.topic_string, place.wildcard)
        if resolved.sub_scope is Scope.QMGR:
            return _sub_scope(here, place), Rule.SCOPE
        if clusters and len(clusters) == len(links):
            (cluster, *_) = clusters
            if came_by is not None and came_by.cluster:
                why = f"the cluster: nothing goes from cluster {came_by.cluster} to cluster {cluster} (guide 3.2.1.3)"
                return why, Rule.SCOPE
            if resolved.cluster not in clusters:
                return f"the cluster: {place} is not a topic of cluster {cluster} (guide 3.3.4)", Rule.SCOPE
    return f"the stream: {neighbour} does not have that of {place} (guide 3.3.4)", Rule.STREAM


def _way(network: Network, start: str, end: str) -> Sequence[str]:
    """A shortest way along the links; empty where there is none."""
    before: dict[str, str] = {start: ""}
    waiting = deque([start])
    while waiting:
        at = waiting.popleft()
        if at == end:
            way = [at]
            while before[way[-1]]:
                way.append(before[way[-1]])
            return way[::-1]
        for link in network.queue_managers[at].routing.links:
            if link.neighbour not in before:
                before[link.neighbour] = at
                waiting.append(link.neighbour)
    return ()
