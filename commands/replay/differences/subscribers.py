"""The same subscription in both versions, though it may lie elsewhere in the topic space and bear another sub_id."""

from __future__ import annotations

from dataclasses import replace

from commands.broker import Arrival
from commands.model import QueuedCommand
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd, name_of
from streams.operations import Delivery
from streams.patterns import written_topic
from streams.subscriptions import Subscription
from streams.topic_strings import remove_prefix

Key = tuple[str, str, bytes, str, str, str | None, str | None, str | None, str | None]
"""Whose subscription it is, and to what."""


def key_of(subscription: Subscription) -> Key:
    """Traditional identity, user, topic as the subscriber wrote it, stream, subscription point, filter and name."""
    s = subscription
    return (*s.traditional_identity, s.user, written_topic(s), s.stream, s.sub_point, s.selector, s.name)


def same(one: Subscription | None, other: Subscription | None) -> bool:
    """Whether a subscription is the same in both versions, but for where it lies and which command made it."""
    if one is None or other is None:
        return one is other
    placed = replace(other, sub_id=one.sub_id, created=one.created, topic_string=one.topic_string, prefix=one.prefix)
    return one == placed


def told_topic(delivery: Delivery) -> str:
    """The topic as the subscriber is told it."""
    return remove_prefix(delivery.subscription.prefix, delivery.topic_string)


def queue_of(command: QueuedCommand, arrival: Arrival) -> str:
    """The subscriber queue that a command gives, by its tag or by the descriptor; "" for none."""
    given = name_of(command.q_name or "")
    if given or arrival.md is None:
        return given
    try:
        return name_of(Mqmd.decode(arrival.md).reply_to_q)
    except DecodeError:
        return ""
