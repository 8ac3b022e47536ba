"""One registration as metatopics tell it, in PCF or printed: from its fields to a subscription or a publisher.

Neither the header the subscriber registered with nor the expiry of the registration is told; both are in ``unknown``.
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
    """Fields by the names of LegacySubscription; time and options as told."""

    source: Source
    fields: dict[str, str] = field(default_factory=dict)
    identities: list[str] = field(default_factory=list)

    def set(self, name: str, value: str) -> None:
        """One field; ``identities`` may come several times."""
        if name == "identities":
            self.identities.append(value)
        else:
            self.fields[name] = value


def subscription_of(told: Registration, topic: str, stream: str) -> LegacySubscription:
    """The subscription that *told* is."""
    options = REGISTRATION.read([told.fields["options"]] if told.fields.get("options") else [])
    words = tuple(word for word in options.words if word != NONE)
    unknown_options = list(options.unknown)
    correl_id = told.fields.get("correl_id", "")
    if correl_id and not _CORREL_ID.fullmatch(correl_id):
        unknown_options.append(f"CorrelId {correl_id}")
        correl_id = ""
    as_identity = "CorrelAsId" in words or ("options" not in told.fields and correl_id not in ("", _NO_CORREL_ID))
    time = told.fields.get("time", "")
    created = of_hundredths(time)
    if time and created is None:
        unknown_options.append(f"Time {time}")
    return LegacySubscription(
        source=told.source,
        topic=topic,
        stream=stream,
        qmgr=told.fields.get("qmgr", ""),
        queue=told.fields.get("queue", ""),
        correl_id=correl_id if as_identity and correl_id else None,
        user=told.fields.get("user", ""),
        name=told.fields.get("name") or None,
        user_data=told.fields.get("user_data"),
        identities=tuple(told.identities),
        exclusive="JoinExcl" in words or "Locked" in words,
        options=words,
        unknown_options=tuple(unknown_options),
        created=created,
        unknown=("expires_at", "format"),
    )


def publisher_of(told: Registration, topic: str, stream: str) -> Publisher:
    """The publisher that *told* is."""
    options = REGISTRATION.read([told.fields["options"]] if told.fields.get("options") else [])
    correl_id = told.fields.get("correl_id", "")
    return Publisher(
        source=told.source,
        topic=topic,
        stream=stream,
        qmgr=told.fields.get("qmgr", ""),
        queue=told.fields.get("queue", ""),
        correl_id=correl_id if _CORREL_ID.fullmatch(correl_id) else None,
        user=told.fields.get("user", ""),
        options=(*(word for word in options.words if word != NONE), *options.unknown),
    )
