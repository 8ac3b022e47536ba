"""How long something has to live, in tenths of a second, as Expiry, EXPIRY and SubExpiry say it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from rfh2.constants import LARGEST_MQLONG

_TENTH: Final = timedelta(milliseconds=100)


def tenths_until(expires_at: datetime | None, now: datetime) -> int | None:
    """Tenths of a second from *now* to *expires_at*, at least one, at most what an MQLONG holds; None for ever.

    The clock may have been set back since the end was reckoned: then there may be more left than there ever was.
    """
    if expires_at is None:
        return None
    return min(max(1, (expires_at - now) // _TENTH), LARGEST_MQLONG)
