"""Times as the sources print them; all are UTC, and text that is no time gives None."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_HUNDREDTHS = re.compile(r"\d{16}")
_PRINTED = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?Z?")


def of_hundredths(text: str) -> datetime | None:
    """YYYYMMDDHHMMSSTH, the time of registration in metatopics."""
    if not _HUNDREDTHS.fullmatch(text) or not text.isascii():
        return None
    try:
        moment = datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment + timedelta(milliseconds=10 * int(text[14:]))


def of_printed(text: str) -> datetime | None:
    """YYYY-MM-DD HH:MM:SS, as Message Broker prints it, or the same as ISO 8601 has it."""
    found = _PRINTED.fullmatch(text.strip())
    if found is None:
        return None
    *parts, fraction = found.groups()
    try:
        moment = datetime(*(int(part) for part in parts), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    return moment + timedelta(microseconds=int((fraction or "0").ljust(6, "0")))
