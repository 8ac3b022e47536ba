"""The time until something expires, in tenths of a second, as in Expiry, EXPIRY and SubExpiry."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from rfh2.constants import LARGEST_MQLONG

_TENTH: Final = timedelta(milliseconds=100)


def tenths_until(expires_at: datetime | None, now: datetime) -> int | None:
    """Tenths of a second from *now* to *expires_at*, at least one, at most what an MQLONG holds; None for no expiry.

    If the clock was set back after *expires_at* was computed, the result can be more than the original time.
    """
    if expires_at is None:
        return None
    return min(max(1, (expires_at - now) // _TENTH), LARGEST_MQLONG)
