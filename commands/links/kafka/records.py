"""Converts records of Kafka to publications of queue managers and back, field by field. Pure.

The value is never touched: its schema is the programs' own.

    to the tree             from                               from the tree
    key                     topic string, or as a route says   topic string of a native record, or as a route says
    mq.Topic                topic string                       topic string
    mq.Retain, no value     DeletePub                          DeletePub
    mq.Expires              Expiry, as milliseconds since 1970 Expiry: what is left
    other headers           (commands.links.engine.headers)    the same
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commands.links.engine.headers import CONTENT_TYPE, RETAIN, Record, own_headers
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import BRIDGE, properties_of
from commands.links.kafka.routes import Routes, encoded

Headers = Sequence[tuple[str, bytes | None]]

_TOPIC, _EXPIRES = "mq.Topic", "mq.Expires"
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
        headers = sum(len(encoded(name)) + len(value or b"") + _HEADER_BYTES for name, value in self.headers)
        return len(self.key) + len(self.value or b"") + headers + _RECORD_BYTES


def records_for(wanted: ForTree, bridge: str, routes: Routes, now_ms: int) -> tuple[KafkaRecord, ...]:
    """The records that do what is wanted; the last one is in the topic of what is retained, if it is about that."""
    topic, key = routes.place_of(wanted.topic)
    pairs = [(_TOPIC, wanted.topic)]
    if wanted.clear:
        pairs += [(RETAIN, "1"), (BRIDGE, bridge)]
    else:
        if wanted.expiry > 0:
            pairs.append((_EXPIRES, str(now_ms + 100 * wanted.expiry)))
        pairs += [*own_headers(wanted, CONTENT_TYPE, str.isprintable), *properties_of(wanted, bridge)]
    headers = tuple((name, encoded(value)) for name, value in pairs)
    record = KafkaRecord(topic, key, None if wanted.clear else wanted.payload, headers)
    if not (wanted.retain or wanted.clear):
        return (record,)
    return record, KafkaRecord(routes.retained, encoded(wanted.topic), record.value, headers)


def record_of(topic: str, key: bytes | None, value: bytes | None, headers: Headers | None, routes: Routes) -> Record:
    """What is in a record of *topic*. Bytes of headers that are no UTF-8 become ``\\x`` and two digits each."""
    texts = [(name, (text or b"").decode("utf-8", "backslashreplace")) for name, text in headers or ()]
    given, is_kept = dict(reversed(texts)), topic == routes.retained
    expires = given.get(_EXPIRES, "")
    said = None if is_kept else given.get(_TOPIC)
    return Record(
        said or routes.topic_string_of(topic, key),
        value or b"",
        tuple(each for each in texts if each[0] not in (_TOPIC, _EXPIRES)),
        is_kept=is_kept,
        # What a bridge retains or clears comes by the topic of publications too.
        is_copy=is_kept,
        clears=value is None and (is_kept or given.get(RETAIN) == "1"),
        expires_at=int(expires[:15]) / 1000 if expires.isascii() and expires.isdigit() else None,
    )
