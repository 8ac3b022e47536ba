"""What a broker holds, for programs that embed it: its subscriptions, its topics, its retained publications.

A view changes nothing and copies nothing. It always shows the current state, so a program can keep it from message to
message. It does not show what has expired by the time of the last message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from streams.operations import Published, RetainedPublication
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import ResolvedTopic
from streams.topic_space import TopicSpace

Clock = Callable[[], datetime]
"""The time of the last message, UTC."""


class SubscriptionsView(Collection[Subscription]):
    """The subscriptions, in the order in which they were made. ``len`` and ``for`` work on it."""

    __slots__ = ("_now", "_space")

    def __init__(self, space: TopicSpace, now: Clock) -> None:
        self._space, self._now = space, now

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Subscription]:
        now = self._now()
        return (s for s in self._space.subscriptions() if s.expires_at is None or s.expires_at > now)

    def __contains__(self, subscription: object) -> bool:
        return any(one == subscription for one in self)

    def __repr__(self) -> str:
        return f"<subscriptions: {len(self)}>"

    def named(self, name: str) -> Subscription | None:
        """The subscription with this SubName; None where there is none."""
        return next((one for one in self if one.name == name), None)

    def of_queue(self, queue: str) -> tuple[Subscription, ...]:
        """The subscriptions whose publications go to *queue*."""
        return tuple(one for one in self if one.dest_queue == queue)

    def matching(self, topic_string: str) -> tuple[Subscription, ...]:
        """The subscriptions that select *topic_string*, with WILDCARD(BLOCK) taken into account.

        A Filter or a registration option can still keep a publication from one of them.
        """
        return self._space.match(topic_string, self._now())


class RetainedView(Mapping[str, Published]):
    """The retained publications by topic string, in ascending order; each has ``message`` and ``published_at``."""

    __slots__ = ("_now", "_space")

    def __init__(self, space: TopicSpace, now: Clock) -> None:
        self._space, self._now = space, now

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        return (one.topic_string for one in self._held())

    def __getitem__(self, topic_string: str) -> Published:
        found = next((one for one in self._held() if one.topic_string == topic_string), None)
        if found is None:
            raise KeyError(topic_string)
        return found.publication

    def __repr__(self) -> str:
        return f"<retained publications: {len(self)}>"

    def matching(self, pattern: str, wildcard: WildcardScheme = WildcardScheme.TOPIC) -> dict[str, Published]:
        """The retained publications that a new subscription to *pattern* would select.

        Raises CommandError 3072 where *pattern* is not a topic string of the wildcard scheme.
        """
        found = self._space.retained(pattern, wildcard, self._now())
        return {one.topic_string: one.publication for one in found}

    def _held(self) -> Iterator[RetainedPublication]:
        now = self._now()
        for one in self._space.retained_publications():
            if one.publication.expires_at is None or one.publication.expires_at > now:
                yield one


@dataclass(frozen=True, slots=True)
class TopicState:
    """What a broker holds at one topic.

    attributes: the attributes that it has from topic objects. subscriptions: the subscriptions that select it.
    retained: its retained publication, if it has one.
    """

    topic_string: str
    attributes: ResolvedTopic
    subscriptions: tuple[Subscription, ...]
    retained: Published | None


class TopicsView(Mapping[str, TopicState]):
    """The topics in use by topic string, in ascending order.

    A topic is in use where a topic object, a retained publication or a subscription without wildcards has its topic
    string.
    """

    __slots__ = ("_retained", "_space", "_subscriptions")

    def __init__(self, space: TopicSpace, subscriptions: SubscriptionsView, retained: RetainedView) -> None:
        self._space, self._subscriptions, self._retained = space, subscriptions, retained

    def __len__(self) -> int:
        return len(self._in_use())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._in_use()))

    def __getitem__(self, topic_string: str) -> TopicState:
        if topic_string not in self._in_use():
            raise KeyError(topic_string)
        return self.at(topic_string)

    def __repr__(self) -> str:
        return f"<topics: {len(self)}>"

    def at(self, topic_string: str) -> TopicState:
        """What a publication on *topic_string* would find there, whether the topic is in use or not."""
        return TopicState(
            topic_string,
            self._space.topic_objects.resolve(topic_string),
            self._subscriptions.matching(topic_string),
            self._retained.get(topic_string),
        )

    def _in_use(self) -> set[str]:
        topics = {one.topic_string for one in self._space.topic_objects if one.topic_string}
        topics.update(self._retained)
        patterns = (parse_pattern(one.topic_string, one.wildcard) for one in self._subscriptions)
        topics.update(pattern.literal for pattern in patterns if not pattern.is_wild)
        return topics
