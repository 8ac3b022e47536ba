"""What the topic space changed, brought into the tables that a restart reads."""

from __future__ import annotations

import sqlite3
from typing import Final, assert_never

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


def save_effect(connection: sqlite3.Connection, effect: Effect) -> bool:
    """Keep *effect* in the transaction that is open; whether there was anything to keep. Twice is harmless."""
    match effect:
        case Delivery():
            return False
        case SubscriptionAdded(subscription):
            _save(connection, subscription)
        case SubscriptionAltered(before, after):
            if before.sub_id != after.sub_id:
                connection.execute(_FORGET_SUBSCRIPTION, (before.sub_id,))
            _save(connection, after)
        case SubscriptionRemoved(subscription):
            connection.execute(_FORGET_SUBSCRIPTION, (subscription.sub_id,))
        case RetainedStored(retained):
            connection.execute(_SAVE_RETAINED, retained_row(retained))
        case RetainedCleared(topic_string):
            connection.execute(_FORGET_RETAINED, (topic_string,))
        case _:
            assert_never(effect)
    return True


def _save(connection: sqlite3.Connection, subscription: Subscription) -> None:
    connection.execute(_SAVE_SUBSCRIPTION, (subscription.sub_id, subscription_state(subscription)))
