"""Points of time, as people write them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is UTC. Raises ValueError.

    >>> moment("2009-01-28 11:43")
    datetime.datetime(2009, 1, 28, 11, 43, tzinfo=datetime.timezone.utc)
    """
    found = datetime.fromisoformat(text.strip())
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
