"""Recognizes the same subscription in both versions. Its place in the topic space and its sub_id may differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from commands.broker.outcome import Arrival
from commands.model import DeregisterSubscriber, RegisterSubscriber, RegOpt, RequestUpdate
from rfh2.errors import DecodeError
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd, name_of
from streams.patterns import written_topic
from streams.subscribers import Identity
from streams.subscriptions import Subscription

ForSubscriber: TypeAlias = RegisterSubscriber | DeregisterSubscriber | RequestUpdate
"""A command about subscriptions."""

Key = tuple[str, str, bytes, str, str, str | None, str | None, str | None, str | None]
"""What identifies a subscription in both versions."""


def key_of(subscription: Subscription) -> Key:
    """Traditional identity, user, topic as the subscriber wrote it, stream, subscription point, filter and name."""
    s = subscription
    return (*s.traditional_identity, s.user, written_topic(s), s.stream, s.sub_point, s.selector, s.name)


def same(one: Subscription | None, other: Subscription | None) -> bool:
    """Whether a subscription is the same in both versions, apart from its place and the command that made it."""
    if one is None or other is None:
        return one is other
    placed = replace(other, sub_id=one.sub_id, created=one.created, topic_string=one.topic_string, prefix=one.prefix)
    return one == placed


def identity_of(command: ForSubscriber, arrival: Arrival, qmgr: str) -> Identity:
    """The traditional identity that a command gives, by its tags or by the descriptor (guide 6.7.2).

    qmgr: whose command it is. The queue is "" where the command names none.
    """
    mqmd = descriptor_of(arrival)
    return (
        name_of(command.qmgr_name or "") or name_of(mqmd.reply_to_qmgr) or qmgr,
        name_of(command.q_name or "") or name_of(mqmd.reply_to_q),
        mqmd.correl_id if command.has(RegOpt.CORREL_AS_ID) else MQCI_NONE,
    )


def descriptor_of(arrival: Arrival) -> Mqmd:
    """The message's descriptor; the defaults for one that cannot be read."""
    try:
        return Mqmd() if arrival.md is None else Mqmd.decode(arrival.md)
    except DecodeError:
        return Mqmd()
