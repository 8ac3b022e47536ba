"""Rules that keep a publication from subscriptions whose topic strings select it.

One subscription at a time: scope, streams and subscription points of version 6 (guide 7.5, 8.5), options about retained
publications (4.8.2), and scope in a network of queue managers (3.3.2, 3.3.3).

Then among those that are left (4.6.1, 4.8.3), in this order, since a subscription that would not get the publication
must not take it from another one:

1. Among subscriptions at or below the publication's level, those of the highest level get it. Lower levels wait for the
   interceptor to publish again.
2. Among grouped subscriptions with the same destination and correlation identifier, the closest gets it: the one with
   the longest topic string before any wildcard, and among equals the oldest.
3. A publisher's own subscription (MQPMO_NOT_OWN_SUBS) is left out, even if it was the closest of its group.
"""

from __future__ import annotations

from collections.abc import Sequence

from rfh2.mqi_constants import MQCI_NONE
from streams.operations import Excluded, Published, PublishToTopic, Rule
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription
from streams.topic_objects import BASE_TOPIC, Scope, TopicObjects


def kept_apart_by(subscription: Subscription, publication: Published) -> Rule | None:
    """The rule by which version 6 separates the two whatever their topics; None where it does not."""
    if subscription.stream != publication.stream:
        return Rule.STREAM
    if subscription.sub_point != publication.sub_point:
        return Rule.SUB_POINT
    return Rule.SCOPE if subscription.options.local != publication.local else None


def gets_no_retained(subscription: Subscription, *, asked: bool) -> Rule | None:
    """Why a subscriber gets nothing that was retained before; None where it does (guide 4.6.1, 4.8.2).

    asked: whether it asks for it (MQSUBRQ), or is new.
    """
    if not asked and subscription.options.pub_on_req_only:
        return Rule.REQUEST_ONLY
    if not asked and subscription.options.new_pubs_only:
        return Rule.NEW_ONLY
    return Rule.LEVEL if subscription.sub_level != 1 else None


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


def choose(matching: Sequence[Subscription], pub_level: int, not_to: Excluded) -> tuple[list[Subscription], int | None]:
    """Those of *matching* that get the publication, in the same order, and the level that took it.

    pub_level: PubLevel, 0 to 9. The level is None where no subscription is at or below it.
    """
    if all(s.sub_level == 1 and not s.grouped for s in matching):
        if not matching or pub_level < 1:
            return [], None
        return [s for s in matching if not is_at(s, not_to)], 1
    eligible = [s for s in matching if s.sub_level <= pub_level]
    if not eligible:
        return [], None
    level = max((s.sub_level for s in eligible if not is_at(s, not_to)), default=0)
    chosen = _closest_of_groups([s for s in eligible if s.sub_level == level])
    return [s for s in chosen if not is_at(s, not_to)], level


def is_at(subscription: Subscription, excluded: Excluded) -> bool:
    """Whether a subscription is one of those that the publisher left out."""
    if excluded is None:
        return False
    if isinstance(excluded, frozenset):
        return subscription.sub_id in excluded
    qmgr, queue, correl_id = excluded
    return (
        subscription.dest_queue == queue
        and subscription.dest_qmgr == qmgr
        and (correl_id is None or subscription.correl_id == correl_id)
    )


def not_chosen_by(subscription: Subscription, level: int | None, not_to: Excluded) -> Rule:
    """The rule by which ``choose`` did not choose *subscription*, with the level that it gave."""
    if is_at(subscription, not_to):
        return Rule.OWN_PUBLICATION
    return Rule.GROUP if subscription.sub_level == level else Rule.LEVEL


def _closest_of_groups(subscriptions: list[Subscription]) -> list[Subscription]:
    closest: dict[tuple[str, str, bytes], tuple[int, bytes]] = {}
    for subscription in filter(_is_grouped, subscriptions):
        identity = subscription.traditional_identity
        length = parse_pattern(subscription.topic_string, subscription.wildcard).literal_length
        best = closest.get(identity)
        if best is None or length > best[0]:
            closest[identity] = (length, subscription.sub_id)
    return [s for s in subscriptions if not _is_grouped(s) or closest[s.traditional_identity][1] == s.sub_id]


def _is_grouped(subscription: Subscription) -> bool:
    # Without a correlation identifier of the group's own, the copies are different messages: guide 4.8.3, point 4.
    return subscription.grouped and subscription.correl_id != MQCI_NONE
