"""Converts messages of NATS to publications of queue managers and back, field by field. Pure.

The payload is never touched.

    to the tree             from                               from the tree
    subject                 topic string                       topic string
    headers                 mq. properties, folder usr         the same (commands.links.engine.properties)
    Content-Type            Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
    mq.Retain               1: RetainPub                       RetainPub
    mq.Persistence          0: not persistent                  persistence
    Nats-TTL                Expiry, in seconds, rounded up     Expiry: what is left
    mq.Properties           all properties as JSON, if a header cannot have one of them, or two have one name
    Nats-Msg-Id             the message on the outgoing queue: the server takes it once
    KV-Operation            PURGE: DeletePub                   DEL, PURGE: DeletePub
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import (
    BRIDGE,
    Pairs,
    content_type_of,
    is_text_type,
    native_from,
    properties_of,
)
from commands.links.nats.subjects import subject_of

Headers = dict[str, str]

MESSAGE_ID: Final = "Nats-Msg-Id"
_TTL: Final = "Nats-TTL"
_CONTENT_TYPE: Final = "Content-Type"
_RETAIN, _PERSISTENCE, _PROPERTIES = "mq.Retain", "mq.Persistence", "mq.Properties"
_OPERATION, _REMOVED = "KV-Operation", "Nats-Marker-Reason"
_OWN: Final = frozenset({_CONTENT_TYPE, _RETAIN, _PERSISTENCE, _PROPERTIES, "Status", "Description"})
_NAME: Final = re.compile(r"(?!nats-|kv-)[!#$%&'*+\-.^_`|~0-9A-Za-z]+", re.IGNORECASE)
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
        return len(self.payload) + sum(len(name) + len(value.encode()) + 4 for name, value in self.headers.items()) + 80


def message_for(wanted: ForTree, bridge: str, marker_s: int) -> NatsPublication:
    """The message that does what is wanted. marker_s: how long the bucket says that a publication was cleared."""
    subject, key = subject_of(wanted.topic), subject_of(wanted.topic, key=True)
    if wanted.clear:
        headers = {BRIDGE: bridge, _OPERATION: "PURGE", "Nats-Rollup": "sub", _TTL: f"{marker_s}s"}
        return NatsPublication(subject, key, b"", headers, clear=True)
    headers = {BRIDGE: bridge, _CONTENT_TYPE: content_type_of(wanted, _fits)[1]}
    pairs = properties_of(wanted, bridge)
    names = {name.lower() for name, _ in pairs}
    if len(names) == len(pairs) and all(_is_header(name, value) for name, value in pairs):
        headers |= dict(pairs)
    else:
        headers[_PROPERTIES] = json.dumps(pairs)
    if wanted.retain:
        headers[_RETAIN] = "1"
    if not wanted.persistent:
        headers[_PERSISTENCE] = "0"
    if wanted.expiry > 0:
        headers[_TTL] = f"{min(-(-wanted.expiry // 10), _LONGEST_TTL_S)}s"
    return NatsPublication(subject, key, wanted.payload, headers, wanted.retain)


def native_of(
    topic: str, payload: bytes, headers: Headers, age_s: float, in_bucket: bool, default_format: str = ""
) -> NativePublication:
    """The publication that came in a message. age_s: how long ago the server got it. in_bucket: of retained ones."""
    if is_marker(headers):
        return NativePublication(topic, b"", retain=True)
    ttl_s = _seconds(headers.get(_TTL, ""))
    return native_from(
        topic,
        payload,
        _pairs(headers),
        retain=(in_bucket or headers.get(_RETAIN) == "1") and bool(payload),
        persistent=headers.get(_PERSISTENCE) != "0",
        expiry_s=None if ttl_s is None else max(ttl_s - age_s, 0.1),
        is_text=is_text_type(headers.get(_CONTENT_TYPE)),
        default_format=default_format,
    )


def is_marker(headers: Headers) -> bool:
    """Whether the message says that a key of the bucket has no value any more."""
    return headers.get(_OPERATION) in ("DEL", "PURGE") or _REMOVED in headers


def bridge_of(headers: Headers) -> str | None:
    """The bridge that sent it; None if a native program did."""
    return headers.get(BRIDGE)


def _pairs(headers: Headers) -> Pairs:
    if _PROPERTIES in headers:
        try:
            return tuple((str(name), str(value)) for name, value in json.loads(headers[_PROPERTIES]))
        except (ValueError, TypeError):
            pass
    return tuple((name, value) for name, value in headers.items() if _NAME.fullmatch(name) and name not in _OWN)


def _is_header(name: str, value: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _OWN and _fits(value)


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
