"""Subscribers: the subscriptions of each traditional identity (guide 6.7.2), also for one of its topics.

Most subscribers have one subscription, which takes one entry. A subscriber with several, perhaps many thousands on one
queue, has them by topic, so that the time to find, add or remove one does not depend on their number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from streams.patterns import written_topic
from streams.subscriptions import Several, Subscription, flatten, with_added, with_removed

Identity = tuple[str, str, bytes]

_SUB_ID: Final = attrgetter("sub_id")


@dataclass(slots=True)
class _Many:
    """The subscriptions of one subscriber who has had several. users: how many of them each user registered."""

    topics: dict[str, Subscription | Several] = field(default_factory=dict)
    users: Counter[str] = field(default_factory=Counter)

    def add(self, subscription: Subscription) -> None:
        topic = written_topic(subscription)
        self.topics[topic] = with_added(self.topics.get(topic), subscription)
        self.users[subscription.user] += 1

    def remove(self, subscription: Subscription) -> None:
        topic = written_topic(subscription)
        left = with_removed(self.topics[topic], subscription.sub_id)
        if left is None:
            del self.topics[topic]
        else:
            self.topics[topic] = left
        self.users[subscription.user] -= 1
        if not self.users[subscription.user]:
            del self.users[subscription.user]


class Subscribers:
    """All subscriptions of a queue manager, by traditional identity: queue manager, queue, correlation identifier."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[Identity, Subscription | _Many] = {}

    def add(self, subscription: Subscription) -> None:
        """Add a subscription whose sub_id is not here yet."""
        identity = subscription.traditional_identity
        held = self._held.get(identity)
        if held is None:
            self._held[identity] = subscription
            return
        if not isinstance(held, _Many):
            first, held = held, _Many()
            held.add(first)
            self._held[identity] = held
        held.add(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription, as it was added. Raises KeyError where it is not here."""
        identity = subscription.traditional_identity
        held = self._held[identity]
        if isinstance(held, _Many):
            held.remove(subscription)
            if held.topics:
                return
        elif held.sub_id != subscription.sub_id:
            raise KeyError(subscription.sub_id)
        del self._held[identity]

    def of(self, identity: Identity, topic: str | None = None) -> tuple[Subscription, ...]:
        """The subscriptions of *identity*, in order of sub_id. topic: those to this one alone, as it was written."""
        held = self._held.get(identity)
        if held is None:
            return ()
        if not isinstance(held, _Many):
            return (held,) if topic is None or written_topic(held) == topic else ()
        if topic is None:
            return tuple(sorted(flatten(list(held.topics.values())), key=_SUB_ID))
        on_topic = held.topics.get(topic)
        return () if on_topic is None else tuple(sorted(flatten([on_topic]), key=_SUB_ID))

    def users(self, identity: Identity) -> frozenset[str]:
        """The users who registered the subscriptions of *identity*."""
        held = self._held.get(identity)
        if held is None:
            return frozenset()
        return frozenset(held.users) if isinstance(held, _Many) else frozenset((held.user,))
