"""The view of a topic space for code that makes decisions, wherever its topic tree is.

``streams.topic_space.TopicSpace`` is the embedded one. ``commands.qmgr.linked_tree`` has the one that is linked to
another topic tree, of an MQTT broker or of IBM MQ. Both decide in the same way, by what ``TopicSpaceView`` shows. An
operation either completes or raises with nothing changed.

    operation          embedded                    linked: besides, elsewhere
    Subscribe          adds a subscription         the tree sends what the subscription selects
    AlterSubscription  another value               the same, for what it selects now
    Unsubscribe        removes a subscription      the tree stops, where no other subscription selects it
    PublishToTopic     deliveries, retained        the publication goes into the tree
    ClearRetained      retained publications go    in the tree too
    RequestRetained    retained are delivered      nothing: what the tree retains is known already
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from streams.operations import RetainedPublication
from streams.subscribers import Identity
from streams.subscriptions import Subscription, WildcardScheme


class TopicSpaceView(Protocol):
    """A read-only view of a topic space, for code that makes decisions. No method changes anything."""

    def subscription(self, sub_id: bytes) -> Subscription | None:
        """The subscription of this sub_id, if there is one."""

    def by_name(self, name: str, stream: str | None = None) -> Subscription | None:
        """The subscription of this name, if there is one."""

    def by_identity(self, identity: Identity, topic: str | None = None) -> tuple[Subscription, ...]:
        """The subscriptions of a traditional identity (guide 6.7.2); topic: those to it alone, as it was written."""

    def users_of(self, identity: Identity) -> frozenset[str]:
        """The users that registered the subscriptions of a traditional identity."""

    def subscriptions(self) -> tuple[Subscription, ...]:
        """All subscriptions, in ascending order of sub_id."""

    def match(self, topic_string: str, now: datetime) -> tuple[Subscription, ...]:
        """The subscriptions whose topic string selects this topic, in order of sub_id."""

    def retained(self, topic_string: str, wildcard: WildcardScheme, now: datetime) -> tuple[RetainedPublication, ...]:
        """The retained publications that a subscription made now would select. Raises CommandError 3072."""

    def retained_publications(self) -> tuple[RetainedPublication, ...]:
        """All retained publications, in order of topic string."""
