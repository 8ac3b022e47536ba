"""Former subscriptions: deregistered, expired, or refused when they were to be registered.

A program may still expect their publications. They are in an index of their own, under the topic that they had, until a
program registers for the same topic again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.explain.why.verdict import Reason
from rfh2.errors import CommandError
from streams.blocking import BlockSet
from streams.index import SubscriptionIndex
from streams.subscriptions import Subscription

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
    """Those of a queue manager. blocks: those under which a subscription would be made."""

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
        """Add one; the oldest one if it is given up for it."""
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
