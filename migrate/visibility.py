"""Which subscriptions would match more or fewer topics: each is matched before and after, over all known topics.

Before: streams and subscription points are separate, and a wildcard matches only in its own (guide 6.1). After: all are
in one tree, under the topic objects and WILDCARD(BLOCK) of the target as it will be. The topics are those of the legacy
state: retained publications, registered publishers, subscriptions without wildcards. Topics that only native programs
of the target use are not known here.

Cost: each topic is matched once in an index of the subscriptions of either side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from migrate.draft import Draft
from migrate.legacy_state import Key, LegacySubscription
from migrate.plan import AddSubscription, Collision, Visibility
from rfh2.errors import CommandError
from streams.index import SubscriptionIndex
from streams.namelists import DEFAULT_STREAM
from streams.patterns import parse_pattern
from streams.topic_strings import add_prefix
from streams.topic_wildcards import check_publication_topic

EXAMPLES = 5
_Place = tuple[str, str]

LegacyTopic = tuple[str, str, str]
"""A topic as version 6 knew it: stream, subscription point ("" for the default one), topic."""


def known_topics(draft: Draft) -> dict[LegacyTopic, str]:
    """The topics of the legacy state that can be published to, and where each lies in the target."""
    found: dict[LegacyTopic, str] = {}
    for stream, point, topic in _topics(draft):
        place = draft.streams.get(stream)
        sub_point = draft.sub_points.get(point) if point else None
        if place is None or (point and sub_point is None) or (stream, point, topic) in found:
            continue
        prefix = place.prefix
        if sub_point is not None:
            prefix = add_prefix(prefix, sub_point.prefix)
        try:
            found[stream, point, topic] = check_publication_topic(add_prefix(prefix, topic))
        except CommandError:
            continue
    return found


def collisions(topics: dict[LegacyTopic, str]) -> tuple[Collision, ...]:
    """Different topics that are one now (guide 6.1, third reason for adding a stream by hand)."""
    by_string: dict[str, list[LegacyTopic]] = defaultdict(list)
    for legacy, topic_string in topics.items():
        by_string[topic_string].append(legacy)
    return tuple(
        Collision(topic_string, tuple(sorted(each)))
        for topic_string, each in sorted(by_string.items())
        if len(each) > 1
    )


def visibility(draft: Draft, topics: dict[LegacyTopic, str]) -> tuple[Visibility, ...]:
    """The subscriptions that would see other topics than before, by number."""
    made = {step.subscription.sub_id: step for step in draft.steps if isinstance(step, AddSubscription)}
    by_place: dict[_Place, list[AddSubscription]] = defaultdict(list)
    for step in made.values():
        legacy = _item(draft, step.key)
        by_place[legacy.stream, legacy.sub_point or ""].append(step)
    gained: dict[bytes, list[str]] = defaultdict(list)
    lost: dict[bytes, list[str]] = defaultdict(list)
    # An index of one stream or subscription point at a time, to have less in memory.
    for place, theirs in groupby(sorted(topics.items()), key=lambda each: each[0][:2]):
        before = _Before(draft, by_place.get(place, ()))
        for (stream, _, topic), topic_string in theirs:
            saw = before.match(topic)
            sees = {s.sub_id for s in draft.space.match_once(topic_string, draft.now) if s.sub_id in made}
            if saw == sees:
                continue
            shown = topic if stream == DEFAULT_STREAM else f"{stream}: {topic}"
            for sub_id in sees - saw:
                gained[sub_id].append(shown)
            for sub_id in saw - sees:
                lost[sub_id].append(shown)
    return tuple(
        Visibility(
            step.key,
            step.subscription.topic_string,
            tuple(gained[sub_id][:EXAMPLES]),
            tuple(lost[sub_id][:EXAMPLES]),
            len(gained[sub_id]),
            len(lost[sub_id]),
        )
        for sub_id, step in made.items()
        if sub_id in gained or sub_id in lost
    )


class _Before:
    """The subscriptions of one stream or subscription point as version 6 matched them, separately from all others."""

    def __init__(self, draft: Draft, steps: Iterable[AddSubscription]) -> None:
        self._literal: dict[str, list[bytes]] = {}
        self._wild = SubscriptionIndex()
        for step in steps:
            legacy = _item(draft, step.key)
            literal = _literal(legacy)
            if literal is not None:
                self._literal.setdefault(literal, []).append(step.subscription.sub_id)
            else:
                self._wild.add(replace(step.subscription, topic_string=legacy.topic))

    def match(self, topic: str) -> set[bytes]:
        """The sub_ids of those that received a publication on *topic*."""
        wild = {s.sub_id for s in self._wild.match_uncached(topic)}
        return wild.union(self._literal.get(topic, ()))


def _topics(draft: Draft) -> Iterator[LegacyTopic]:
    state = draft.state
    for retained in state.retained:
        yield retained.stream, retained.sub_point or "", retained.topic
    for publisher in state.publishers:
        yield publisher.stream, "", publisher.topic
    for subscription in state.subscriptions:
        literal = _literal(subscription)
        if literal:
            yield subscription.stream, subscription.sub_point or "", literal


def _literal(subscription: LegacySubscription) -> str | None:
    try:
        pattern = parse_pattern(subscription.topic, subscription.scheme)
    except CommandError:
        return None
    return None if pattern.is_wild else pattern.literal


def _item(draft: Draft, key: Key) -> LegacySubscription:
    return draft.state.subscriptions[key[1] - 1]
