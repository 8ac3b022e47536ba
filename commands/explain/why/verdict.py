"""The answer for one publication and one subscription: delivered, or the rule that kept it back."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum

from streams.operations import Rule
from streams.subscriptions import Subscription
from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import TopicPattern, parse_topic_pattern


class Reason(StrEnum):
    """Why a subscriber did or did not get a publication. The values are fixed: programs read them."""

    DELIVERED = "delivered"
    """The broker puts it to the subscriber's queue."""
    NO_MATCH = "no-match"
    """The subscription selects another topic."""
    WILDCARD_SCHEME = "wildcard-scheme"
    """It would select the topic with the wildcards of the other scheme (guide 2.5.1.1)."""
    CASE = "case"
    """Its topic differs in capitals and small letters only."""
    BLANK = "blank"
    """Its topic differs in blanks only."""
    SLASH = "slash"
    """Its topic differs in empty levels only: a slash at the beginning, at the end, or doubled."""
    STREAM = "stream"
    """The publication is on another stream, or on a queue that no broker reads."""
    SUB_POINT = "sub-point"
    """The publication is on another subscription point."""
    FILTER = "filter"
    """The Filter of the subscription is not true."""
    SCOPE = "scope"
    """One of the two is Local and the other is not; version 6 only."""
    BLOCKED = "blocked"
    """WILDCARD(BLOCK) on a topic object (guide 2.5.4)."""
    PUBLISH_DISABLED = "publish-disabled"
    """PUB(DISABLED) on a topic object."""
    OWN_PUBLICATION = "own-publication"
    """The publisher asked for OtherSubsOnly."""
    REQUEST_ONLY = "request-only"
    """PubOnReqOnly: publications go to it after ReqUpdate only."""
    NEW_ONLY = "new-only"
    """NewPubsOnly: what was retained before does not go to it."""
    EXPIRED_SUBSCRIPTION = "expired-subscription"
    """The subscription had expired."""
    EXPIRED_PUBLICATION = "expired-publication"
    """The retained publication had expired when the subscriber came."""
    DEREGISTERED = "deregistered"
    """The subscription had been deregistered, or changed to another topic."""
    REFUSED = "refused"
    """The RegSub, or the Publish, was refused."""
    LEVEL = "level"
    """A subscription of another SUBLEVEL takes it."""
    GROUP = "group"
    """Another subscription of its group is closer to the topic."""
    AUTHORITY = "authority"
    """The publisher may not publish, or the subscriber may not subscribe, on the topic."""
    QUEUE_FULL = "queue-full"
    """The subscriber's queue is full."""
    QUEUE_GONE = "queue-gone"
    """The subscriber's queue does not exist."""
    DEAD_LETTER = "dead-letter"
    """The publication became a dead letter."""
    TRANSMISSION = "transmission"
    """It was put for another queue manager: it is on a transmission queue here."""
    UNKNOWN = "unknown"
    """The capture lacks what decides it: an MQMD, or a record that could not be read."""


OF_RULE = {rule: Reason(rule.value) for rule in Rule}
"""The reason for each rule of the topic space."""


PLACES = frozenset({Reason.STREAM, Reason.SUB_POINT})
"""The reasons that are no fault where a subscription gets publications of its own stream or subscription point."""

Detail = str | Callable[[], str]
"""A sentence, or what makes it: most sentences are never read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the answer.

    seq: of the message in question: the Publish, or the RegSub or ReqUpdate that asks for what is retained; None for an
    answer about no message. topic: the resolved topic string, None where it is not known. queue: the subscriber's;
    empty where no subscriber is known. delivered: whether the broker puts the publication. say: the detail, or what
    makes it. qmgr: the subscriber's queue manager, empty for this one. amends: a dead letter shows that an earlier put
    to the queue failed; this answer replaces that one. is_asked: False for an answer that nobody asked for; a dead
    letter may be about it.
    """

    seq: int | None
    topic: str | None
    queue: str
    sub_name: str | None
    delivered: bool
    reason: Reason
    say: Detail = field(default="", compare=False, repr=False)
    qmgr: str = ""
    amends: bool = False
    is_asked: bool = True

    @property
    def detail(self) -> str:
        """One sentence with the values that matter; empty where there is nothing to add."""
        return self.say if isinstance(self.say, str) else self.say()

    def json_line(self) -> str:
        """The same as text, without escapes for other characters than JSON demands."""
        return json.dumps({"format": 1, **self.form()}, ensure_ascii=False)

    def form(self) -> dict[str, object]:
        """The answer as a JSON object."""
        return {
            "seq": self.seq,
            "topic": self.topic,
            "queue": self.queue,
            "sub_name": self.sub_name,
            "delivered": self.delivered,
            "reason": self.reason.value,
            "detail": self.detail,
        }


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
