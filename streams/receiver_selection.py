"""Which of the subscriptions that match a publication get a copy of it (guide 4.6.1, 4.8.3).

The order matters: a subscription that would not get the publication must not take it from another one.

1. Among subscriptions at or below the publication's level, those of the highest level get it. Lower levels wait for the
   interceptor to publish again.
2. Among grouped subscriptions with the same destination and correlation identifier, the closest gets it: the one with
   the longest topic string before any wildcard, and among equals the oldest.
3. A publisher's own subscription (MQPMO_NOT_OWN_SUBS) is left out, even if it was the closest of its group.
"""

from __future__ import annotations

from collections.abc import Sequence

from rfh2.mqi_constants import MQCI_NONE
from streams.operations import Excluded
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription


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
