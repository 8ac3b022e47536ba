"""Converts messages of NATS to publications of queue managers and back, field by field. Pure.

The payload is never touched.

    to the tree             from                               from the tree
    subject                 topic string                       topic string
    Nats-TTL                Expiry, in seconds, rounded up     Expiry: what is left
    mq.Properties           all properties as JSON, if a header cannot have one of them, or two have one name
    Nats-Msg-Id             the message on the outgoing queue: the server takes it once
    KV-Operation            PURGE: DeletePub                   DEL, PURGE: DeletePub
    other headers           (commands.links.engine.headers)    the same
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from commands.links.engine.headers import CONTENT_TYPE, PERSISTENCE, RETAIN, Record, own_headers
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import BRIDGE, properties_of
from commands.links.nats.subjects import subject_of, topic_of

Headers = dict[str, str]

MOST_HEADER_BYTES: Final = 65_535
"""JetStream keeps the length of the headers in 16 bits; where there are more, it may not even answer."""
MESSAGE_ID: Final = "Nats-Msg-Id"
_TTL, _PROPERTIES = "Nats-TTL", "mq.Properties"
_OPERATION, _REMOVED = "KV-Operation", "Nats-Marker-Reason"
_NO_PROPERTY: Final = frozenset({CONTENT_TYPE, RETAIN.lower(), PERSISTENCE.lower(), _PROPERTIES.lower()})
_NAME: Final = re.compile(r"(?!nats-|kv-|status$|description$)[!#$%&'*+\-.^_`|~0-9A-Za-z]+", re.IGNORECASE)
# The first and the last line, and Nats-Msg-Id with the bridge's name and a MsgId as hexadecimal digits.
_FIRST_AND_LAST, _ID_BYTES = len("NATS/1.0\r\n\r\n"), len(MESSAGE_ID) + len(": -\r\n") + 48
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# Go's longest duration is 292 years; this is 31.
_LONGEST_TTL_S: Final = 999_999_999


@dataclass(frozen=True, slots=True)
class NatsPublication:
    """A message for a subject, without the prefix. key: in the bucket. retain: put there too. clear: cleared there."""

    subject: str
    key: str
    payload: bytes
    headers: Headers
    retain: bool = False
    clear: bool = False

    @property
    def size(self) -> int:
        """About how many bytes count towards the longest payload that the server takes."""
        return len(self.payload) + self.header_bytes

    @property
    def header_bytes(self) -> int:
        """How many bytes the block of headers has at most, with ``Nats-Msg-Id``, which the sender adds."""
        named = sum(len(name) + len(value.encode()) + 4 for name, value in self.headers.items())
        return _FIRST_AND_LAST + named + _ID_BYTES + len(self.headers[BRIDGE])


def message_for(wanted: ForTree, bridge: str, marker_s: int) -> NatsPublication:
    """The message that does what is wanted. marker_s: how long the bucket says that a publication was cleared."""
    subject, key = subject_of(wanted.topic), subject_of(wanted.topic, key=True)
    if wanted.clear:
        headers = {BRIDGE: bridge, _OPERATION: "PURGE", "Nats-Rollup": "sub", _TTL: f"{marker_s}s"}
        return NatsPublication(subject, key, b"", headers, clear=True)
    headers = {BRIDGE: bridge, **dict(own_headers(wanted, "Content-Type", _fits))}
    pairs = properties_of(wanted, bridge)
    if len({name.lower() for name, _ in pairs}) == len(pairs) and all(_is_header(*pair) for pair in pairs):
        headers |= dict(pairs)
    else:
        headers[_PROPERTIES] = json.dumps(pairs)
    if wanted.expiry > 0:
        headers[_TTL] = f"{min(-(-wanted.expiry // 10), _LONGEST_TTL_S)}s"
    return NatsPublication(subject, key, wanted.payload, headers, wanted.retain)


def record_of(subject: str, payload: bytes, headers: Headers, stored_at: float, in_bucket: bool) -> Record:
    """What is in a message. subject: without its prefix. stored_at: when the server got it, seconds since 1970."""
    pairs = [(name, value) for name, value in headers.items() if _NAME.fullmatch(name) and name != _PROPERTIES]
    with suppress(ValueError, TypeError):
        pairs += [(str(name), str(value)) for name, value in json.loads(headers.get(_PROPERTIES, "[]"))]
    is_marker = headers.get(_OPERATION) in ("DEL", "PURGE") or _REMOVED in headers
    ttl_s = _seconds(headers.get(_TTL, ""))
    return Record(
        topic_of(subject, in_bucket),
        payload,
        tuple(pairs),
        near=subject.replace(".", "/"),
        is_kept=in_bucket,
        # What a bridge retains comes by the stream too; what it clears is in the bucket only.
        is_copy=in_bucket and not is_marker,
        clears=is_marker,
        expires_at=None if ttl_s is None else stored_at + ttl_s,
    )


def _is_header(name: str, value: str) -> bool:
    return _NAME.fullmatch(name) is not None and name.lower() not in _NO_PROPERTY and _fits(value)


def _fits(value: str) -> bool:
    return value == value.strip() and (value.isprintable() or not value)


def _seconds(ttl: str) -> float | None:
    """Seconds of a number, or of a duration as Go writes it (1h30m0s); None for others, and for ``never``."""
    if ttl.isascii() and ttl.isdigit():
        return float(ttl[:12])
    parts = _DURATION.findall(ttl)
    if not parts or "".join(number + unit for number, unit in parts) != ttl:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
