"""One registration as metatopics have it, in PCF or printed: from its fields to a subscription or a publisher.

Neither the header the subscriber registered with nor the expiry of the registration is there; both are in ``unknown``.
The options are the sum of MQREGO bits, as a number, or their words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from migrate.legacy_state import LegacySubscription, Publisher, Source
from migrate.readers.moments import of_hundredths
from rfh2.options import NONE, REGISTRATION

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
