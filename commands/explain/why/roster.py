"""The subscriptions of a queue manager: those that are there, those that are not, and where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from commands.broker.outcome import Arrival
from commands.explain.why.former import Former, FormerSubscriptions
from commands.explain.why.lapsed import LapsedPublications
from commands.explain.why.near import NearMisses
from commands.explain.why.question import Asked
from commands.explain.why.rules import expired_sentence
from commands.explain.why.verdict import Reason
from streams.operations import (
    Effect,
    RetainedCleared,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

BY_SETUP: Final = -1
"""The seq of what the setup defined."""


class Roster:
    """Follows the effects of commands. asked: subscriptions that the question is not about are left out.

    near: the subscriptions that are there. former: those that are not. since: the seq with which each was registered.
    queues: how often each queue was subscribed for. prefixes: of all topics that were subscribed to. given_up: former
    subscriptions that had to make room. is_selected: whether the question is about the message that is being explained.
    """

    def __init__(self, space: TopicSpace, asked: Asked) -> None:
        self._space, self._asked = space, asked
        self.near, self.former, self.lapsed = NearMisses(), FormerSubscriptions(), LapsedPublications()
        self.since: dict[bytes, int] = {}
        self.queues: Counter[str] = Counter()
        self.prefixes: set[str] = set()
        self.given_up: list[Former] = []
        self.is_selected = True
        for subscription in space.subscriptions():
            self._added(subscription, BY_SETUP)

    def expired(self, effects: Iterable[Effect], arrival: Arrival) -> None:
        """Something expired before *arrival*."""
        for effect in effects:
            if isinstance(effect, SubscriptionRemoved):
                at = effect.subscription.expires_at
                why = expired_sentence(arrival.now if at is None else at)
                self._removed(effect.subscription, Reason.EXPIRED_SUBSCRIPTION, arrival.seq, why)
            elif isinstance(effect, RetainedCleared):
                self.lapsed.expired(effect.topic_string)

    def apply(self, effects: Iterable[Effect], arrival: Arrival) -> None:
        """A command had these effects."""
        for effect in effects:
            match effect:
                case SubscriptionAdded(subscription):
                    self._added(subscription, arrival.seq)
                case SubscriptionAltered(before, after):
                    self._altered(before, after, arrival.seq)
                case SubscriptionRemoved(subscription):
                    why = f"message {arrival.seq} deregistered the subscription"
                    self._removed(subscription, Reason.DEREGISTERED, arrival.seq, why)
                case RetainedStored(retained):
                    self.lapsed.stored(retained)
                case RetainedCleared(topic):
                    self.lapsed.cleared(topic)

    def refused(self, subscription: Subscription, reason: Reason, seq: int, why: str) -> None:
        """A RegSub would have made *subscription*; nothing where one like it is there."""
        self.queues[subscription.dest_queue] += 1
        there = self._space.by_identity(subscription.traditional_identity)
        if all(one.topic_string != subscription.topic_string for one in there):
            self._gone(subscription, reason, seq, why)

    def _added(self, subscription: Subscription, seq: int) -> None:
        self.queues[subscription.dest_queue] += 1
        self.prefixes.add(subscription.prefix)
        if self._asked.is_about_subscription(subscription):
            self.since[subscription.sub_id] = seq
            self.near.add(subscription)
            self.former.registered(subscription)

    def _altered(self, before: Subscription, after: Subscription, seq: int) -> None:
        if self._asked.is_about_subscription(after):
            self.near.add(after)
        if (before.topic_string, before.wildcard) != (after.topic_string, after.wildcard):
            why = f"message {seq} changed the subscription from {before.topic_string!r} to {after.topic_string!r}"
            self._gone(before, Reason.DEREGISTERED, seq, why)

    def _removed(self, subscription: Subscription, reason: Reason, seq: int, why: str) -> None:
        self.near.remove(subscription.sub_id)
        self._gone(subscription, reason, seq, why)

    def _gone(self, subscription: Subscription, reason: Reason, seq: int, why: str) -> None:
        if self._asked.is_about_subscription(subscription):
            former = Former(subscription, reason, seq, why, self.is_selected)
            given_up = self.former.add(former, self._space.topic_objects.blocks())
            if given_up is not None:
                self.given_up.append(given_up)
