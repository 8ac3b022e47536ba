"""Converts messages of NATS to publications of queue managers and back, field by field. Pure.

The payload is never touched.

    to the tree             from                               from the tree
    subject                 topic string                       topic string
    Nats-TTL                Expiry, in seconds, rounded up     Expiry: what is left
    mq.Properties           all properties as JSON, if a header cannot have one of them, or two have one name
    Nats-Msg-Id             the message on the outgoing queue: the server takes it once
    KV-Operation            PURGE: DeletePub                   DEL, PURGE: DeletePub
    other headers           (commands.links.engine.properties)    the same
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import (
    BRIDGE,
    CONTENT_TYPE,
    PERSISTENCE,
    RETAIN,
    TreeMessage,
    own_headers,
    properties_of,
)
from streams.patterns import MULTI_LEVEL, SINGLE_LEVEL
from streams.topic_strings import SEPARATOR

# Topic strings and patterns of the queued interface as NATS subjects, and back, without collisions. Pure.
#
# A level becomes a token, and `/` becomes `.`. White space, control characters, `.`, `*`, `>` and `=` become their
# UTF-8, each byte as `=` and two hexadecimal digits. An empty level is `=` alone. A level that is `+` or `#` is
# escaped too. In keys of a bucket, all but letters, digits, `-` and `_` of ASCII is escaped: clients of the key-value
# interface take no others. Filters are those of ``commands.links.engine.log_adapter``.
#
#     Sport/Soccer          mq.Sport.Soccer
#     a.b/c d//é            mq.a=2Eb.c=20d.=.é, key a=2Eb.c=20d.=.=C3=A9
#     /x                    mq.=.x
#     Sport/#               mq.Sport and mq.Sport.>         # selects the topic itself too
#     Sport/+/Arsenal       mq.Sport.*.Arsenal
#     mq.a=2eb, mq.a/b      none: no topic string becomes these subjects
#
# Each topic string has one subject and one key, and each subject or key at most one topic string.

_SPACES: Final = "\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_FORBIDDEN: Final = re.compile(rf"[.*>={_SPACES}\ud800-\udfff]")
_FORBIDDEN_IN_KEYS: Final = re.compile(r"[^A-Za-z0-9_-]")
_BYTES: Final = re.compile("(?:=[0-9A-F]{2})+")
_EMPTY: Final = "="
_WILD: Final = (SINGLE_LEVEL, MULTI_LEVEL)
_NOTHING: Final = "=="
"""A token that no level becomes."""
# With more first levels than these, the server sends everything, and the bridge leaves out what it does not need.
_MOST_COVERED: Final = 50


def subject_of(topic: str, key: bool = False) -> str:
    """The subject of a topic string, without the prefix of all subjects. key: as a key of the bucket."""
    return ".".join(_token(level, key) for level in topic.split(SEPARATOR))


def topic_of(subject: str, key: bool = False) -> str | None:
    """The topic string of a subject without its prefix; None if no topic string becomes this subject."""
    try:
        topic = SEPARATOR.join(map(_level, subject.split(".")))
    except UnicodeDecodeError:
        return None
    return topic if subject_of(topic, key) == subject else None


def why_too_long(topic: str, longest: int) -> str | None:
    """Why the server takes no subject for *topic*, None where it does. longest: bytes of a subject, or of a key."""
    length = len(subject_of(topic, key=True))
    return None if length <= longest else f"a subject of {length} bytes is longer than longest_subject = {longest}"


def wildcards_of(topic_filter: str, prefix: str, key: bool = False) -> tuple[str, ...]:
    """The subjects with NATS wildcards that together select what a filter does. prefix: of all subjects."""
    tokens = [_selecting(each, key) for each in topic_filter.split(SEPARATOR)[1:]]
    below = prefix + ".".join(tokens)
    return (prefix + ".".join(tokens[:-1]), below) if tokens[-1] == ">" and len(tokens) > 1 else (below,)


def cover(filters: Iterable[str], prefix: str, key: bool = False) -> list[str]:
    """Subjects that select at least what *filters* do, and of which no two overlap, as a consumer must have them."""
    first = {each.split(SEPARATOR, 2)[1] for each in filters}
    if first & set(_WILD) or len(first) > _MOST_COVERED:
        return [f"{prefix}>"]
    tokens = [_selecting(each, key) for each in first]
    return sorted(prefix + token + below for token in tokens for below in ("", ".>")) or [prefix + _NOTHING]


def _token(level: str, key: bool = False) -> str:
    if not level:
        return _EMPTY
    if level in _WILD:
        return _escaped(level)
    return (_FORBIDDEN_IN_KEYS if key else _FORBIDDEN).sub(lambda found: _escaped(found[0]), level)


def _selecting(level: str, key: bool) -> str:
    return {SINGLE_LEVEL: "*", MULTI_LEVEL: ">"}.get(level) or _token(level, key)


def _escaped(text: str) -> str:
    return "".join(f"={byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _level(token: str) -> str:
    if token == _EMPTY:
        return ""
    return _BYTES.sub(lambda run: bytes.fromhex(run[0].replace("=", "")).decode("utf-8", "surrogatepass"), token)


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


def record_of(subject: str, payload: bytes, headers: Headers, stored_at: float, in_bucket: bool) -> TreeMessage:
    """What is in a message. subject: without its prefix. stored_at: when the server got it, seconds since 1970."""
    pairs = [(name, value) for name, value in headers.items() if _NAME.fullmatch(name) and name != _PROPERTIES]
    with suppress(ValueError, TypeError):
        pairs += [(str(name), str(value)) for name, value in json.loads(headers.get(_PROPERTIES, "[]"))]
    is_marker = headers.get(_OPERATION) in ("DEL", "PURGE") or _REMOVED in headers
    ttl_s = _seconds(headers.get(_TTL, ""))
    return TreeMessage(
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
