"""Which answers are asked for: by queue, topic, subscription name, message."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from difflib import get_close_matches

from commands.explain.why.verdict import Verdict
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import TopicPattern, parse_topic_pattern

ANY_SCHEME = WildcardScheme.TOPIC
"""The wildcards in ``topic``."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. None asks for all.

    queue: the subscriber's. topic: a topic string, which may have the wildcards # and +; without the prefix of a stream
    too. sub: a subscription name. seq: of the message. Raises CommandError 3072 where *topic* is not a topic string.
    """

    queue: str | None = None
    topic: str | None = None
    sub: str | None = None
    seq: int | None = None
    _pattern: TopicPattern | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.topic is not None:
            object.__setattr__(self, "_pattern", parse_topic_pattern(self.topic))

    @property
    def names_subscriber(self) -> bool:
        """Whether the question is about one queue or one subscription."""
        return self.queue is not None or self.sub is not None

    @property
    def names_publication(self) -> bool:
        """Whether the question is about one message or one topic."""
        return self.topic is not None or self.seq is not None

    @property
    def subscriber_words(self) -> str:
        """The queue and the name that the question names, to follow "subscription"; empty where it names none."""
        queue = "" if self.queue is None else f" for queue {self.queue}"
        return queue if self.sub is None else f"{queue} with the name {self.sub}"

    def similar_queues(self, queues: Collection[str]) -> str:
        """Which of *queues* may be meant, to end a sentence; empty where the queue is one, or none is like it."""
        near = [] if self.queue is None or self.queue in queues else get_close_matches(self.queue, sorted(queues), n=3)
        return f"; similar queues: {', '.join(near)}" if near else ""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not (self.names_subscriber or self.names_publication)

    def is_about(self, queue: str, name: str | None) -> bool:
        """Whether the question is about a subscription with this queue and name."""
        return (self.queue is None or self.queue == queue) and (self.sub is None or self.sub == name)

    def is_about_subscription(self, subscription: Subscription) -> bool:
        """The same for a subscription."""
        return self.is_about(subscription.dest_queue, subscription.name)

    def is_about_topic(self, topic: str | None) -> bool:
        """Whether the question is about this topic, with the prefix of its stream or without."""
        pattern = self._pattern
        if pattern is None:
            return True
        return topic is not None and (pattern.matches(topic) or topic.endswith(f"{SEPARATOR}{self.topic}"))

    def is_about_publication(self, seq: int | None, topic: str | None) -> bool:
        """Whether the question is about this message and topic."""
        return (self.seq is None or self.seq == seq) and self.is_about_topic(topic)

    def has(self, verdict: Verdict) -> bool:
        """Whether *verdict* answers the question."""
        return self.is_about(verdict.queue, verdict.sub_name) and self.is_about_publication(verdict.seq, verdict.topic)
