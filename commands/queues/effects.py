"""What the topic space changed, brought into the tables that a restart reads."""

from __future__ import annotations

from typing import Final, assert_never

from commands.queues.pending import Pending
from commands.queues.state import retained_row, subscription_state
from streams.operations import (
    Delivery,
    Effect,
    RetainedCleared,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.subscriptions import Subscription

_SAVE_SUBSCRIPTION: Final = "INSERT OR REPLACE INTO subscriptions (sub_id, state) VALUES (?, ?)"
_FORGET_SUBSCRIPTION: Final = "DELETE FROM subscriptions WHERE sub_id = ?"
_SAVE_RETAINED: Final = """INSERT OR REPLACE INTO retained
    (topic, published_at, expires_at, local, persistent, md, body) VALUES (?, ?, ?, ?, ?, ?, ?)"""
_FORGET_RETAINED: Final = "DELETE FROM retained WHERE topic = ?"


def save_effect(pending: Pending, effect: Effect) -> bool:
    """Have *effect* kept with what is *pending*; whether there was anything to keep. Twice is harmless."""
    match effect:
        case Delivery():
            return False
        case SubscriptionAdded(subscription):
            _save(pending, subscription)
        case SubscriptionAltered(before, after):
            if before.sub_id != after.sub_id:
                pending.execute(_FORGET_SUBSCRIPTION, (before.sub_id,))
            _save(pending, after)
        case SubscriptionRemoved(subscription):
            pending.execute(_FORGET_SUBSCRIPTION, (subscription.sub_id,))
        case RetainedStored(retained):
            pending.execute(_SAVE_RETAINED, retained_row(retained))
        case RetainedCleared(topic_string):
            pending.execute(_FORGET_RETAINED, (topic_string,))
        case _:
            assert_never(effect)
    return True


def _save(pending: Pending, subscription: Subscription) -> None:
    pending.execute(_SAVE_SUBSCRIPTION, (subscription.sub_id, subscription_state(subscription)))
