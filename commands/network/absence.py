"""Why a publication did not reach a subscription at another queue manager, where its topic string selects the topic.

Proxy subscriptions go from the subscriber towards the publisher, so the way is looked at in that direction; the first
queue manager that asks the next one for nothing is where the publication was kept back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from commands.broker.context import Semantics
from commands.network.flows import KeptBack, Place
from commands.network.network import Network, Step
from commands.network.queue_manager import NetworkQueueManager
from commands.network.topology import Link
from streams.delivery_rules import is_of_queue_manager, sub_scope_object
from streams.operations import Rule
from streams.subscriptions import Subscription
from streams.topic_objects import Scope


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
