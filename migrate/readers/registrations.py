"""One registration as metatopics have it, in PCF or printed: from its fields to a subscription or a publisher.

Neither the header the subscriber registered with nor the expiry of the registration is there; both are in ``unknown``.
The options are the sum of MQREGO bits, as a number, or their words.

Times as the sources print them; all are UTC, and text that is no time gives None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from migrate.legacy_state import LegacySubscription, Publisher, Source
from rfh2.options import NONE, REGISTRATION

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


_CORREL_ID = re.compile("[0-9A-Fa-f]{48}")
_NO_CORREL_ID = "0" * 48


@dataclass(slots=True)
class Registration:
    """Fields by the names of LegacySubscription; time and options as they stand there."""

    source: Source
    fields: dict[str, str] = field(default_factory=dict)
    identities: list[str] = field(default_factory=list)

    def set(self, name: str, value: str) -> None:
        """One field; ``identities`` may come several times."""
        if name == "identities":
            self.identities.append(value)
        else:
            self.fields[name] = value


def subscription_of(registration: Registration, topic: str, stream: str) -> LegacySubscription:
    """The subscription of *registration*."""
    options = REGISTRATION.read([registration.fields["options"]] if registration.fields.get("options") else [])
    words = tuple(word for word in options.words if word != NONE)
    unknown_options = list(options.unknown)
    correl_id = registration.fields.get("correl_id", "")
    if correl_id and not _CORREL_ID.fullmatch(correl_id):
        unknown_options.append(f"CorrelId {correl_id}")
        correl_id = ""
    as_identity = "CorrelAsId" in words or (
        "options" not in registration.fields and correl_id not in ("", _NO_CORREL_ID)
    )
    time = registration.fields.get("time", "")
    created = of_hundredths(time)
    if time and created is None:
        unknown_options.append(f"Time {time}")
    return LegacySubscription(
        source=registration.source,
        topic=topic,
        stream=stream,
        qmgr=registration.fields.get("qmgr", ""),
        queue=registration.fields.get("queue", ""),
        correl_id=correl_id if as_identity and correl_id else None,
        user=registration.fields.get("user", ""),
        name=registration.fields.get("name") or None,
        user_data=registration.fields.get("user_data"),
        identities=tuple(registration.identities),
        exclusive="JoinExcl" in words or "Locked" in words,
        options=words,
        unknown_options=tuple(unknown_options),
        created=created,
        unknown=("expires_at", "format"),
    )


def publisher_of(registration: Registration, topic: str, stream: str) -> Publisher:
    """The publisher of *registration*."""
    options = REGISTRATION.read([registration.fields["options"]] if registration.fields.get("options") else [])
    correl_id = registration.fields.get("correl_id", "")
    return Publisher(
        source=registration.source,
        topic=topic,
        stream=stream,
        qmgr=registration.fields.get("qmgr", ""),
        queue=registration.fields.get("queue", ""),
        correl_id=correl_id if _CORREL_ID.fullmatch(correl_id) else None,
        user=registration.fields.get("user", ""),
        options=(*(word for word in options.words if word != NONE), *options.unknown),
    )
