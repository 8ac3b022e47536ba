"""Moments as the database keeps them, and the time until something expires, as Expiry, EXPIRY and SubExpiry have it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from rfh2.constants import LARGEST_MQLONG

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
_TENTH: Final = timedelta(milliseconds=100)


def tenths_until(expires_at: datetime | None, now: datetime) -> int | None:
    """Tenths of a second from *now* to *expires_at*, at least one, at most what an MQLONG holds; None for no expiry.

    If the clock was set back after *expires_at* was computed, the result can be more than the original time.
    """
    if expires_at is None:
        return None
    return min(max(1, (expires_at - now) // _TENTH), LARGEST_MQLONG)


def to_microseconds(moment: datetime) -> int:
    """*moment*, which knows its time zone, as microseconds since 1970 in UTC, exactly."""
    return (moment - EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """The moment, in UTC."""
    return EPOCH + timedelta(microseconds=microseconds)
