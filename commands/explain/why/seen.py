"""The topics on which something was published: for subscriptions that none of them reached."""

from __future__ import annotations

from bisect import bisect_left
from difflib import get_close_matches
from itertools import islice
from typing import Final

from commands.explain.why.spelling import folded
from rfh2.errors import CommandError
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription
from streams.topic_wildcards import TopicPattern

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
