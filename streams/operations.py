"""The vocabulary of modern publish/subscribe: operations on the topic space, and the effects they have.

A queued command is translated into operations (guide 7.2); the topic space applies them, and answers with effects: what
changed, and which publication goes to which subscription. Operations and effects are values.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from rfh2.message import Message, decode
from streams.subscriptions import HIGHEST_PUB_LEVEL, Subscription, WildcardScheme

Excluded = tuple[str, str, bytes | None] | frozenset[bytes] | None
"""Whom a publication does not go to: a destination (queue manager, queue, and correlation identifier or None for any),
or the subscriptions with these sub_ids."""


class Published(Protocol):
    """A publication for code that forwards it: a ``Publication``, or one whose message is stored elsewhere.

    message: the publisher's. published_at: when it arrived at the queue manager, UTC. stream, sub_point: those it was
    published on, None for the default ones. Only version 6 asks: there each is a topic space of its own.
    """

    @property
    def message(self) -> Message:
        """Raises StoreError where it is kept elsewhere and cannot be read."""

    @property
    def published_at(self) -> datetime: ...

    @property
    def expires_at(self) -> datetime | None: ...

    @property
    def local(self) -> bool: ...

    @property
    def stream(self) -> str | None: ...

    @property
    def sub_point(self) -> str | None: ...


@dataclass(slots=True, unsafe_hash=True)
class Publication:
    """``Published``, with the message in it."""

    message: Message
    published_at: datetime
    expires_at: datetime | None = None
    local: bool = False
    stream: str | None = None
    sub_point: str | None = None


@dataclass(frozen=True, slots=True)
class UnreadPublication:
    """``Published``, as the bytes in which it arrived, which can be decoded and are exactly the message's own.

    persistent: whether the message is.
    """

    md: bytes
    body: bytes
    persistent: bool
    published_at: datetime
    local: bool = False
    stream: str | None = None
    sub_point: str | None = None
    expires_at: datetime | None = None

    @property
    def message(self) -> Message:
        """Decoded anew at each call."""
        return decode(self.body, self.md)


@dataclass(frozen=True, slots=True)
class RetainedPublication:
    """The one publication that a topic keeps for future subscribers (guide 2.3.2).

    Topics that keep the same one share it.
    """

    topic_string: str
    publication: Published


@dataclass(frozen=True, slots=True)
class Subscribe:
    """MQSUB CREATE, DEFINE SUB. send_retained: matching retained publications go to the new subscriber at once."""

    subscription: Subscription
    send_retained: bool


@dataclass(frozen=True, slots=True)
class AlterSubscription:
    """MQSUB ALTER or RESUME, ALTER SUB: the subscription with this sub_id takes this value."""

    subscription: Subscription
    send_retained: bool


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """MQCLOSE with MQCO_REMOVE_SUB, DELETE SUB."""

    subscription: Subscription


@dataclass(slots=True, unsafe_hash=True)
class PublishToTopic:
    """MQPUT to a topic.

    retain: MQPMO_RETAIN. not_to: OtherSubsOnly, MQPMO_NOT_OWN_SUBS: what is left out. pub_level: guide 4.6.1.
    came_from: the neighbour that sent it on, "" for a publication made at this queue manager. was_retained: the
    neighbour sends what it retains, for a new proxy subscription (guide 3.5).
    """

    topic_string: str
    publication: Publication
    retain: bool = False
    not_to: Excluded = None
    pub_level: int = HIGHEST_PUB_LEVEL
    came_from: str = ""
    was_retained: bool = False


@dataclass(frozen=True, slots=True)
class ClearRetained:
    """CLEAR TOPICSTR CLRTYPE(RETAINED), PCF Clear Topic String; the topic string may hold wildcards.

    stream: as for a publication. of_scope: whether only what was published with the same scope goes, local or global,
    as in version 6.
    """

    topic_string: str
    wildcard: WildcardScheme = WildcardScheme.TOPIC
    local: bool = False
    stream: str | None = None
    of_scope: bool = False


@dataclass(frozen=True, slots=True)
class RequestRetained:
    """MQSUBRQ: send the retained publications that this subscription matches."""

    subscription: Subscription


Operation = Subscribe | AlterSubscription | Unsubscribe | PublishToTopic | ClearRetained | RequestRetained


@dataclass(frozen=True, slots=True)
class SubscriptionAdded:
    subscription: Subscription


@dataclass(frozen=True, slots=True)
class SubscriptionAltered:
    before: Subscription
    after: Subscription


@dataclass(frozen=True, slots=True)
class SubscriptionRemoved:
    subscription: Subscription


@dataclass(slots=True, unsafe_hash=True)
class Delivery:
    """This publication goes to this subscription. from_retained: a retained one, to a new or asking subscriber."""

    subscription: Subscription
    topic_string: str
    publication: Published
    from_retained: bool = False


@dataclass(frozen=True, slots=True)
class RetainedStored:
    retained: RetainedPublication


@dataclass(frozen=True, slots=True)
class RetainedCleared:
    topic_string: str


class Rule(StrEnum):
    """Why a subscription whose topic string selects a publication's topic does not get it."""

    BLOCKED = "blocked"
    """WILDCARD(BLOCK) on a topic object at or above the topic (guide 2.5.4)."""
    REQUEST_ONLY = "request-only"
    """PubOnReqOnly: publications go to it by MQSUBRQ alone (guide 4.8.2)."""
    SCOPE = "scope"
    """One of the two is Local and the other is not, in version 6; or its scope is QMGR, and the publication came from
    another queue manager (guide 3.3.2, 7.5)."""
    STREAM = "stream"
    """They are on different streams; version 6 only."""
    SUB_POINT = "sub-point"
    """They are on different subscription points; version 6 only."""
    FILTER = "filter"
    """Its selection string is not true of the publication."""
    LEVEL = "level"
    """A subscription of a higher level takes it, or its own level is above the publication's (guide 4.6.1)."""
    GROUP = "group"
    """Another subscription of its group is closer to the topic (guide 4.8.3)."""
    OWN_PUBLICATION = "own-publication"
    """It is the publisher's own, and the publisher asked for OtherSubsOnly."""
    NEW_ONLY = "new-only"
    """NewPubsOnly: what was retained before does not go to it (guide 4.8.2)."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """This publication did not go to this subscription, although its topic string selects the topic.

    came_from: the neighbour that sent the publication on, "" where it was made at this queue manager.
    """

    subscription: Subscription
    topic_string: str
    publication: Published
    rule: Rule
    came_from: str = ""


Effect = SubscriptionAdded | SubscriptionAltered | SubscriptionRemoved | Delivery | RetainedStored | RetainedCleared
