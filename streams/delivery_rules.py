"""Rules that keep a publication from a subscription whose topic string selects it, one subscription at a time.

Scope, streams and subscription points of version 6 (guide 7.5, 8.5), options about retained publications (4.8.2), and
scope in a network of queue managers (3.3.2, 3.3.3).
"""

from __future__ import annotations

from streams.operations import Published, PublishToTopic, Rule
from streams.subscriptions import Subscription
from streams.topic_objects import BASE_TOPIC, Scope, TopicObjects


def kept_apart_by(subscription: Subscription, publication: Published) -> Rule | None:
    """The rule by which version 6 separates the two whatever their topics; None where it does not."""
    if subscription.stream != publication.stream:
        return Rule.STREAM
    if subscription.sub_point != publication.sub_point:
        return Rule.SUB_POINT
    return Rule.SCOPE if subscription.options.local != publication.local else None


def wants_retained(subscription: Subscription) -> bool:
    """Whether a subscriber gets what was retained before; on request means by MQSUBRQ only (guide 4.8.2)."""
    return not (subscription.options.pub_on_req_only or subscription.options.new_pubs_only)


def is_of_queue_manager(subscription: Subscription, topic_objects: TopicObjects) -> bool:
    """Whether its scope is QMGR: it gets the publications of its own queue manager alone (guide 3.3.2, 3.3.6).

    The topic object is that of the subscription: its topic string up to the first wildcard.
    """
    if subscription.options.local:
        return True
    resolved = topic_objects.resolve_subscription(subscription.topic_string, subscription.wildcard)
    return resolved.sub_scope is Scope.QMGR


def is_published_for_queue_manager(topic_string: str, local: bool, topic_objects: TopicObjects) -> bool:
    """Whether the scope of a publication is QMGR: only subscriptions of its own queue manager get it (guide 3.3.1).

    local: whether the publisher asked for that, which overrides PUBSCOPE.
    """
    return local or topic_objects.resolve(topic_string).pub_scope is Scope.QMGR


def sub_scope_object(topic_string: str, topic_objects: TopicObjects) -> str:
    """The topic object whose SUBSCOPE holds at a topic, for a sentence."""
    for name in topic_objects.covering(topic_string):
        found = topic_objects.get(name)
        if found is not None and found.sub_scope is not None:
            return name
    return BASE_TOPIC


def is_home(subscription: Subscription, operation: PublishToTopic, topic_objects: TopicObjects | None) -> bool:
    """Whether a publication that came from elsewhere stops before *subscription*.

    It does not go back to the neighbour that sent it on, and not to a subscription of scope QMGR. topic_objects: None
    for version 6, which has no SUBSCOPE.
    """
    if subscription.is_proxy:
        return subscription.dest_qmgr == operation.came_from
    return topic_objects is not None and is_of_queue_manager(subscription, topic_objects)
