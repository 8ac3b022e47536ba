"""The subscriptions of a queue manager: those that are there, those that are not, and where they came from; and what
was published or retained, for subscriptions that nothing reached.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from operator import itemgetter
from typing import Final

from commands.broker.outcome import Arrival
from commands.explain.why.near import NearMisses, folded
from commands.explain.why.verdict import Asked, Reason, expired_sentence
from rfh2.errors import CommandError
from streams import operations as op
from streams.index import SubscriptionIndex
from streams.patterns import TopicPattern, parse_pattern
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace
from streams.topic_strings import BlockSet

_CACHED_TOPICS: Final = 20_000
MOST_FORMER: Final = 10_000
"""So many former subscriptions are held; then the oldest one is given up."""


@dataclass(frozen=True, slots=True)
class Former:
    """A subscription that is not there.

    seq: of the message that ended it or was refused. why: in words. is_selected: whether the question is about that
    message.
    """

    subscription: Subscription
    reason: Reason
    seq: int
    why: str
    is_selected: bool = True

    def has_ended(self, now: datetime) -> bool:
        """Whether it would have expired by now, if that is not why it ended."""
        expires_at = self.subscription.expires_at
        return expires_at is not None and expires_at <= now and self.reason is not Reason.EXPIRED_SUBSCRIPTION


class FormerSubscriptions:
    """Those of a queue manager: deregistered, expired, or refused when they were to be registered.

    A program may still expect their publications. They are in an index of their own, under the topic that they had,
    until a program registers for the same topic again.
    """

    def __init__(self) -> None:
        self._index = SubscriptionIndex(_CACHED_TOPICS)
        self._held: dict[bytes, Former] = {}
        self._by_topic: dict[tuple[str, str, bytes, str], set[bytes]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Former]:
        """In the order in which they were added."""
        return iter(list(self._held.values()))

    def add(self, former: Former, blocks: BlockSet) -> Former | None:
        """Add one; the oldest one if it is given up for it. blocks: those under which it would be made."""
        subscription = former.subscription
        sub_id = subscription.sub_id
        self.remove(sub_id)
        with suppress(CommandError):  # its topic string may be the reason why it was refused; it is held for the end
            self._index.add(subscription, blocks)
        self._held[sub_id] = former
        self._by_topic.setdefault(_place(subscription), set()).add(sub_id)
        if len(self._held) <= MOST_FORMER:
            return None
        return self.remove(next(iter(self._held)))

    def remove(self, sub_id: bytes) -> Former | None:
        """Remove one, if it is there."""
        former = self._held.pop(sub_id, None)
        if former is None:
            return None
        with suppress(CommandError, KeyError):
            self._index.remove(former.subscription)
        place = _place(former.subscription)
        same = self._by_topic[place]
        same.discard(sub_id)
        if not same:
            del self._by_topic[place]
        return former

    def registered(self, subscription: Subscription) -> list[Former]:
        """Remove those that *subscription* takes the place of, and give them: same subscriber, same topic."""
        same = tuple(self._by_topic.get(_place(subscription), ()))
        return [former for sub_id in same if (former := self.remove(sub_id)) is not None]

    def match(self, topic_string: str) -> tuple[Former, ...]:
        """Those whose topic string selects this topic."""
        if not self._held:
            return ()
        return tuple(self._held[subscription.sub_id] for subscription in self._index.match(topic_string))


def _place(subscription: Subscription) -> tuple[str, str, bytes, str]:
    return (*subscription.traditional_identity, subscription.topic_string)


MOST_LAPSED: Final = 1_000
"""So many expired publications are held; then the oldest one is given up."""


class LapsedPublications:
    """Retained publications that expired: a later subscriber to their topic would have got them."""

    def __init__(self) -> None:
        # By topic: the retained publications that will expire, and those that did.
        self._mortal: dict[str, op.Publication] = {}
        self._lapsed: dict[str, op.Publication] = {}

    def stored(self, retained: op.RetainedPublication) -> None:
        """A topic has a new retained publication."""
        topic, publication = retained.topic_string, retained.publication
        self._lapsed.pop(topic, None)
        self._mortal.pop(topic, None)
        if isinstance(publication, op.Publication) and publication.expires_at is not None:
            self._mortal[topic] = publication

    def cleared(self, topic: str) -> None:
        """The retained publication of a topic was deleted."""
        self._mortal.pop(topic, None)

    def expired(self, topic: str) -> None:
        """The retained publication of a topic has expired."""
        publication = self._mortal.pop(topic, None)
        if publication is not None:
            self._lapsed[topic] = publication
            if len(self._lapsed) > MOST_LAPSED:
                del self._lapsed[next(iter(self._lapsed))]

    def match(self, subscription: Subscription) -> list[tuple[str, op.Publication]]:
        """Those that a subscription selects, by topic."""
        pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        return sorted((each for each in self._lapsed.items() if pattern.matches(each[0])), key=itemgetter(0))


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

    def expired(self, effects: Iterable[op.Effect], arrival: Arrival) -> None:
        """Something expired before *arrival*."""
        for effect in effects:
            if isinstance(effect, op.SubscriptionRemoved):
                at = effect.subscription.expires_at
                why = expired_sentence(arrival.now if at is None else at)
                self._removed(effect.subscription, Reason.EXPIRED_SUBSCRIPTION, arrival.seq, why)
            elif isinstance(effect, op.RetainedCleared):
                self.lapsed.expired(effect.topic_string)

    def apply(self, effects: Iterable[op.Effect], arrival: Arrival) -> None:
        """A command had these effects."""
        for effect in effects:
            match effect:
                case op.SubscriptionAdded(subscription):
                    self._added(subscription, arrival.seq)
                case op.SubscriptionAltered(before, after):
                    self._altered(before, after, arrival.seq)
                case op.SubscriptionRemoved(subscription):
                    why = f"message {arrival.seq} deregistered the subscription"
                    self._removed(subscription, Reason.DEREGISTERED, arrival.seq, why)
                case op.RetainedStored(retained):
                    self.lapsed.stored(retained)
                case op.RetainedCleared(topic):
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


MOST_TOPICS: Final = 100_000
"""So many topics are kept; a subscription to another one is said to match none of those published first."""
_MOST_REFUSED: Final = 1_000
_MOST_TRIED: Final = 2_000
_MOST_COMPARED: Final = 500
_ALIKE: Final = 0.7


class SeenTopics:
    """The first topics of a queue manager that something was published on, each with the seq of the first message."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._sorted: list[str] = []
        self._refused: list[tuple[str, int]] = []

    def refused(self, topic: str, seq: int) -> None:
        """A publication on *topic* was refused, or was put where no broker reads."""
        if len(self._refused) < _MOST_REFUSED:
            self._refused.append((topic, seq))

    def add(self, topic: str, seq: int) -> None:
        """Something was published on *topic*."""
        if topic not in self._first and len(self._first) < MOST_TOPICS:
            self._first[topic] = seq

    def no_match_sentence(self, subscription: Subscription, since: int | None) -> str:
        """Why none of the topics reached a subscription. since: the seq with which it was registered."""
        if not self._first:
            if not self._refused:
                return "nothing was published in the capture"
            (topic, seq), others = self._refused[0], len(self._refused) - 1
            more = f", nor {others:,} others" if others else ""
            return f"nothing was published: message {seq} on {topic!r} was not carried out{more}"
        earlier = self._selected(subscription)
        if earlier is not None:
            when = f"published on {earlier!r} first with seq {self._first[earlier]}"
            return f"{when}, but not while the subscription existed{_registered(since)}"
        near = self._nearest(subscription)
        nearest = "" if near is None else f"; the nearest topic is {near!r}"
        return f"nothing was published on a topic that {subscription.topic_string!r} selects{nearest}"

    def _selected(self, subscription: Subscription) -> str | None:
        try:
            pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        except CommandError:
            return None
        if not pattern.is_wild:
            return pattern.literal if pattern.literal in self._first else None
        begins = pattern.literal_topic if isinstance(pattern, TopicPattern) else pattern.literal_prefix
        return next((topic for topic in self._beginning(begins) if pattern.matches(topic)), None)

    def _beginning(self, begins: str) -> list[str]:
        """Some topics that begin like this, in order."""
        if len(self._sorted) != len(self._first):
            self._sorted = sorted(self._first)
        start = bisect_left(self._sorted, begins)
        found = islice(self._sorted, start, start + _MOST_TRIED)
        return [topic for topic in found if topic.startswith(begins)]

    def _nearest(self, subscription: Subscription) -> str | None:
        wanted = folded(subscription.topic_string)
        begins = subscription.topic_string[:1]
        some = self._beginning(begins)[:_MOST_COMPARED] if len(self._first) > _MOST_COMPARED else list(self._first)
        by_key = {folded(topic): topic for topic in some}
        near = get_close_matches(wanted, by_key, n=1, cutoff=_ALIKE)
        return by_key[near[0]] if near else None


def _registered(since: int | None) -> str:
    return "" if since is None or since < 0 else f" (registered with seq {since})"
