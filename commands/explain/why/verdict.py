"""The answer for one publication and one subscription: delivered, or the rule that kept it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from json.encoder import encode_basestring

from streams.operations import Rule


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


# Answers are as many as puts; json.dumps takes four times as long.
_quoted = encode_basestring


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
        """The same as text: what ``json.dumps`` makes of it without escapes for other characters than it must."""
        topic = "null" if self.topic is None else _quoted(self.topic)
        name = "null" if self.sub_name is None else _quoted(self.sub_name)
        return (
            f'{{"seq": {"null" if self.seq is None else self.seq}, "topic": {topic}, "queue": {_quoted(self.queue)}, '
            f'"sub_name": {name}, "delivered": {"true" if self.delivered else "false"}, '
            f'"reason": "{self.reason.value}", "detail": {_quoted(self.detail)}}}'
        )

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
