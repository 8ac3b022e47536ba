"""Converts records of Kafka to publications of queue managers and back, field by field. Pure.

The value is never touched: its schema is the programs' own.

    to the tree             from                               from the tree
    key                     topic string, or as a route says   topic string of a native record, or as a route says
    mq.Topic                topic string                       topic string
    headers                 mq. properties, folder usr         the same (commands.links.engine.properties)
    content-type            Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
    mq.Retain               1: RetainPub; DeletePub, no value  the same
    mq.Persistence          0: not persistent                  persistence
    mq.Expires              Expiry, as milliseconds since 1970 Expiry: what is left
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import BRIDGE, Pairs, content_type_of, is_text_type, native_from, properties_of
from commands.links.kafka.routes import Routes, encoded

Headers = Sequence[tuple[str, bytes]]

_TOPIC, _RETAIN, _PERSISTENCE, _EXPIRES = "mq.Topic", "mq.Retain", "mq.Persistence", "mq.Expires"
_OWN: Final = frozenset({_TOPIC, _RETAIN, _PERSISTENCE, _EXPIRES})
_CONTENT_TYPE: Final = "content-type"
# More than Kafka adds to a record, and to a header of it.
_RECORD_BYTES, _HEADER_BYTES = 120, 12


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """A record for *topic*. value: None for a tombstone."""

    topic: str
    key: bytes
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """At least as many bytes as count towards the longest message of the topic."""
        headers = sum(len(encoded(name)) + len(value) + _HEADER_BYTES for name, value in self.headers)
        return len(self.key) + len(self.value or b"") + headers + _RECORD_BYTES


def records_for(wanted: ForTree, bridge: str, routes: Routes, now_ms: int) -> tuple[KafkaRecord, ...]:
    """The records that do what is wanted; the last one is in the topic of what is retained, if it is about that."""
    topic, key = routes.place_of(wanted.topic)
    pairs = [(_TOPIC, wanted.topic)]
    if wanted.retain or wanted.clear:
        pairs.append((_RETAIN, "1"))
    if wanted.clear:
        pairs.append((BRIDGE, bridge))
    else:
        if not wanted.persistent:
            pairs.append((_PERSISTENCE, "0"))
        if wanted.expiry > 0:
            pairs.append((_EXPIRES, str(now_ms + 100 * wanted.expiry)))
        pairs += [(_CONTENT_TYPE, content_type_of(wanted, str.isprintable)[1]), *properties_of(wanted, bridge)]
    headers = tuple((name, encoded(value)) for name, value in pairs)
    record = KafkaRecord(topic, key, None if wanted.clear else wanted.payload, headers)
    if not (wanted.retain or wanted.clear):
        return (record,)
    return record, KafkaRecord(routes.retained, encoded(wanted.topic), record.value, headers)


def texts_of(headers: Headers | None) -> Pairs:
    """Headers as text; bytes that are no UTF-8 become ``\\x`` and two digits each."""
    return tuple((name, (value or b"").decode("utf-8", "backslashreplace")) for name, value in headers or ())


def bridge_of(texts: Pairs) -> str | None:
    """The bridge that sent the record; None if a native program did."""
    return dict(reversed(texts)).get(BRIDGE)


def topic_string_of(topic: str, key: bytes | None, texts: Pairs, routes: Routes) -> str | None:
    """The topic string of a record; None where it has none."""
    if topic == routes.retained:
        return routes.topic_string_of(topic, key)
    return dict(reversed(texts)).get(_TOPIC) or routes.topic_string_of(topic, key)


def native_of(
    topic_string: str, value: bytes | None, texts: Pairs, is_retained: bool, now_ms: int, default_format: str = ""
) -> NativePublication | None:
    """The publication that came in a record; None if it has expired. is_retained: its topic is that of such records."""
    given = dict(reversed(texts))
    retain = is_retained or given.get(_RETAIN) == "1"
    if value is None and retain:
        return NativePublication(topic_string, b"", retain=True)
    expires = given.get(_EXPIRES, "")
    left_s = (int(expires[:15]) - now_ms) / 1000 if expires.isascii() and expires.isdigit() else None
    if left_s is not None and left_s <= 0:
        return None
    properties = [each for each in texts if each[0] not in _OWN]
    if _CONTENT_TYPE in given:
        properties.remove((_CONTENT_TYPE, given[_CONTENT_TYPE]))
    return native_from(
        topic_string,
        value or b"",
        tuple(properties),
        retain=retain and bool(value),
        persistent=given.get(_PERSISTENCE) != "0",
        expiry_s=left_s,
        is_text=is_text_type(given.get(_CONTENT_TYPE)),
        default_format=default_format,
    )
