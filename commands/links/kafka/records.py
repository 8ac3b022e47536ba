"""Converts records of Kafka to publications of queue managers and back, field by field. Pure.

The value is never touched: its schema is the programs' own.

    to the tree             from                               from the tree
    key                     topic string, or as a route says   topic string of a native record, or as a route says
    mq.Topic                topic string                       topic string
    mq.Retain, no value     DeletePub                          DeletePub
    mq.Expires              Expiry, as milliseconds since 1970 Expiry: what is left
    other headers           (commands.links.engine.properties)    the same
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from commands.config.settings import ConfigError, KafkaConfig, KafkaRoute
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import BRIDGE, CONTENT_TYPE, RETAIN, TreeMessage, own_headers, properties_of
from rfh2.errors import CommandError
from streams.patterns import Pattern, parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR

# Which Kafka topic and key a topic string has, and which topic string a native record has. Pure.

_LEGAL: Final = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,240}")
_PART: Final = re.compile(r"\{([^{}]*)\}")
_LEVEL: Final = re.compile("[1-9][0-9]?")


class Routes:
    """The topics of Kafka that the bridge uses. Raises ConfigError where the file gives none that can be.

    publications: without what is retained. retained: what is retained, by topic string. state: of the bridges.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self.publications = tuple(dict.fromkeys((config.topic, *(route.topic for route in config.routes))))
        self.retained, self.state = f"{config.topic}.retained", f"{config.topic}.state"
        for name in self.publications:
            if _LEGAL.fullmatch(name) is None or name in (self.retained, self.state):
                raise ConfigError("[topics.kafka]", f"{name} cannot be the Kafka topic of publications")
        self._patterns = [(self._pattern(route), route) for route in config.routes]
        self._native = {route.topic: route.native for route in reversed(config.routes)}

    def place_of(self, topic_string: str) -> tuple[str, bytes]:
        """The topic and the key of a publication."""
        for pattern, route in self._patterns:
            if pattern.matches(topic_string):
                return route.topic, encoded(_PART.sub(partial(_value, topic_string), route.key))
        return self._config.topic, encoded(topic_string)

    def topic_string_of(self, topic: str, key: bytes | None) -> str | None:
        """The topic string of a record of *topic* that does not say it; None where it has none."""
        template = self._native.get(topic, "{key}")
        if "{key}" not in template:
            return template
        try:
            return None if key is None else template.replace("{key}", key.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            return None

    @staticmethod
    def _pattern(route: KafkaRoute) -> Pattern:
        wrong = [part for part in _PART.findall(route.key) if part != "topic" and _LEVEL.fullmatch(part) is None]
        wrong += [part for part in _PART.findall(route.native) if part != "key"]
        if wrong:
            why = f"{{{wrong[0]}}} is not part of a topic string; key has {{topic}} or {{1}}, native has {{key}}"
            raise ConfigError("[[topics.kafka.routes]]", why)
        try:
            return parse_pattern(route.pattern, WildcardScheme.TOPIC)
        except CommandError as error:
            raise ConfigError("[[topics.kafka.routes]] pattern", f"{route.pattern}: {error}") from error


def encoded(text: str) -> bytes:
    """*text* as Kafka has it: UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def _value(topic_string: str, part: re.Match[str]) -> str:
    if part[1] == "topic":
        return topic_string
    levels = topic_string.split(SEPARATOR)
    return levels[int(part[1]) - 1] if int(part[1]) <= len(levels) else ""


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


def record_of(
    topic: str, key: bytes | None, value: bytes | None, headers: Headers | None, routes: Routes
) -> TreeMessage:
    """What is in a record of *topic*. Bytes of headers that are no UTF-8 become ``\\x`` and two digits each."""
    texts = [(name, (text or b"").decode("utf-8", "backslashreplace")) for name, text in headers or ()]
    given, is_kept = dict(reversed(texts)), topic == routes.retained
    expires = given.get(_EXPIRES, "")
    said = None if is_kept else given.get(_TOPIC)
    return TreeMessage(
        said or routes.topic_string_of(topic, key),
        value or b"",
        tuple(each for each in texts if each[0] not in (_TOPIC, _EXPIRES)),
        is_kept=is_kept,
        # What a bridge retains or clears comes by the topic of publications too.
        is_copy=is_kept,
        clears=value is None and (is_kept or given.get(RETAIN) == "1"),
        expires_at=int(expires[:15]) / 1000 if expires.isascii() and expires.isdigit() else None,
    )
