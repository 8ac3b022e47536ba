"""The names that unnamed subscriptions get: MQSC, PCF and MQSUB know a durable subscription by its name alone."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from rfh2.constants import MQ_SUB_NAME_LENGTH
from rfh2.mqi_constants import MQCI_NONE
from streams.subscriptions import Subscription

PREFIX: Final = "QPS"
_HASH_DIGITS: Final = 8


def sub_name(subscription: Subscription) -> str:
    """The subscription's name, or one made of its traditional identity, stream and topic string.

    Generated names differ where a queue manager sees a difference: two subscriptions of one identity to one topic
    differ in user, selector or subscription point, of which the digits at the end are a digest. Too long a name is cut,
    and then the digits are a digest of all of it.
    """
    if subscription.name is not None:
        return subscription.name
    correl_id = "-" if subscription.correl_id == MQCI_NONE else subscription.correl_id.hex().upper()
    parts = (subscription.dest_qmgr, subscription.dest_queue, correl_id, subscription.stream or "-")
    whole = ":".join((PREFIX, *parts, subscription.topic_string))
    rest = (subscription.user, subscription.selector or "", subscription.sub_point or "")
    digest = sha256("\0".join((whole, *rest)).encode()).hexdigest()[:_HASH_DIGITS]
    return f"{whole[: MQ_SUB_NAME_LENGTH - _HASH_DIGITS - 1]}:{digest}"


def is_made_up(subscription: Subscription) -> bool:
    """Whether the name of *subscription* is one that ``sub_name`` makes."""
    return subscription.name is None
