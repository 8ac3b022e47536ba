"""Which subscriptions would match more or fewer topics: each is matched before and after, over all known topics.

Before: streams and subscription points are separate, and a wildcard matches only in its own (guide 6.1). After: all are
in one tree, under the topic objects and WILDCARD(BLOCK) of the target as it will be. The topics are those of the legacy
state: retained publications, registered publishers, subscriptions without wildcards. Topics that only native programs
of the target use are not known here.

A stream's prefix is put before its topics and before the patterns of its subscriptions. So what a subscription matched
before are the topics of its own stream and subscription point that it matches now, those included that WILDCARD(BLOCK)
keeps from it: one index shows both sides.

A topic and a pattern that matches it have the same first level, unless a wildcard is in the first level of the pattern.
So an index has subscriptions of one first level, at most an eighth of all, and is gone before the next one is made.

Cost: each topic is matched in one index, in a few where many subscriptions share a first level, and in those of the
patterns that are wild there.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from migrate.draft import Draft
from migrate.legacy_state import LegacySubscription
from migrate.plan import AddSubscription, Collision, Visibility
from rfh2.errors import CommandError
from streams.index import SubscriptionIndex
from streams.patterns import check_publication_topic, parse_pattern
from streams.topic_objects import DEFAULT_STREAM
from streams.topic_strings import SEPARATOR, BlockSet, add_prefix

EXAMPLES = 5
_SHARES = 8
_FEW = 1_000
"""So many subscriptions are in one index, even if they are more than their share."""
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
    found: list[Collision] = []
    for topic_string, same in groupby(sorted(topics, key=topics.__getitem__), key=topics.__getitem__):
        each = tuple(sorted(same))
        if len(each) > 1:
            found.append(Collision(topic_string, each))
    return tuple(found)


def visibility(draft: Draft, topics: dict[LegacyTopic, str]) -> tuple[Visibility, ...]:
    """The subscriptions that would see other topics than before, by number."""
    gained: dict[bytes, _Examples] = defaultdict(_Examples)
    lost: dict[bytes, _Examples] = defaultdict(_Examples)
    for matcher, theirs in _matchers(draft, topics):
        for topic in theirs:
            saw, sees = matcher.receivers(topic, topics[topic])
            for sub_id in sees - saw:
                gained[sub_id].add(topic)
            for sub_id in saw - sees:
                lost[sub_id].add(topic)
    return tuple(_visibilities(draft, gained, lost))


def _visibilities(draft: Draft, gained: dict[bytes, _Examples], lost: dict[bytes, _Examples]) -> Iterator[Visibility]:
    none = _Examples()
    for step in draft.steps:
        if not isinstance(step, AddSubscription):
            continue
        sub_id = step.subscription.sub_id
        more, less = gained.get(sub_id, none), lost.get(sub_id, none)
        if more.count or less.count:
            pattern = step.subscription.topic_string
            yield Visibility(step.key, pattern, more.shown(), less.shown(), more.count, less.count)


@dataclass(slots=True)
class _Examples:
    """How many topics a subscription gains or loses, and the first few of them."""

    count: int = 0
    first: list[LegacyTopic] = field(default_factory=list)

    def add(self, topic: LegacyTopic) -> None:
        self.count += 1
        insort(self.first, topic)
        del self.first[EXAMPLES:]

    def shown(self) -> tuple[str, ...]:
        return tuple(topic if stream == DEFAULT_STREAM else f"{stream}: {topic}" for stream, _, topic in self.first)


def _matchers(draft: Draft, topics: dict[LegacyTopic, str]) -> Iterator[tuple[_Matcher, Iterable[LegacyTopic]]]:
    """Each subscription in one matcher, with all topics that it may match."""
    blocks = draft.objects.topics.blocks()
    by_level: dict[str | None, list[AddSubscription]] = defaultdict(list)
    count = 0
    for step in draft.steps:
        if isinstance(step, AddSubscription):
            by_level[_first_level(step)].append(step)
            count += 1
    topics_of: dict[str, list[LegacyTopic]] = defaultdict(list)
    for topic, topic_string in topics.items():
        topics_of[_level(topic_string)].append(topic)
    most = max(count // _SHARES, _FEW)
    for level, steps in by_level.items():
        theirs = topics if level is None else topics_of.get(level, ())
        for first in range(0, len(steps) if theirs else 0, most):
            yield _Matcher(draft, steps[first : first + most], blocks), theirs


class _Matcher:
    """Some subscriptions, by the topics that each receives before and after."""

    def __init__(self, draft: Draft, steps: Iterable[AddSubscription], blocks: BlockSet) -> None:
        self._index = SubscriptionIndex()
        self._places: dict[bytes, _Place] = {}
        for step in steps:
            legacy = draft.state.subscriptions[step.number - 1]
            self._index.add(step.subscription, blocks)
            self._places[step.subscription.sub_id] = (legacy.stream, legacy.sub_point or "")

    def receivers(self, topic: LegacyTopic, topic_string: str) -> tuple[set[bytes], set[bytes]]:
        """The sub_ids of those that received a publication on *topic*, and of those that receive it on *topic_string*.

        topic_string: where the topic lies now.
        """
        place = topic[:2]
        sees = {made.sub_id for made in self._index.match_uncached(topic_string)}
        kept_away = {made.sub_id for made in self._index.blocked(topic_string)}
        return {sub_id for sub_id in sees | kept_away if self._places[sub_id] == place}, sees


def _first_level(step: AddSubscription) -> str | None:
    """The first level of all topics that a subscription selects; None where they have several."""
    pattern = parse_pattern(step.subscription.topic_string, step.subscription.wildcard)
    if pattern.is_wild and not pattern.literal_depth:
        return None
    return _level(pattern.literal_topic)


def _level(topic_string: str) -> str:
    return topic_string.partition(SEPARATOR)[0]


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
