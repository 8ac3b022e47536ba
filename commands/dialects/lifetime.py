"""How long a subscription has to live, as EXPIRY and SubExpiry say it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from streams.subscriptions import Subscription

_TENTH: Final = timedelta(milliseconds=100)


def tenths_left(subscription: Subscription, now: datetime) -> int | None:
    """Tenths of a second from *now* until it expires, at least one; None for ever."""
    if subscription.expires_at is None:
        return None
    return max(1, (subscription.expires_at - now) // _TENTH)
