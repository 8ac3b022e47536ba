"""A Kafka cluster as the rest of the bridge sees it: its topics, how far they go, and clients for it (librdkafka's).

Converts records of Kafka to publications of queue managers and back, field by field. Pure.

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
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from commands.config.settings import ConfigError, KafkaConfig, KafkaRoute, TopicsConfig
from commands.config.urls import Address
from commands.links.engine import properties as props
from commands.links.engine.adapter import TreeUnreachableError
from commands.links.engine.filters import Positions
from rfh2.distribution import how_to_install
from rfh2.errors import CommandError, StoreError
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


def records_for(wanted: props.ForTree, bridge: str, routes: Routes, now_ms: int) -> tuple[KafkaRecord, ...]:
    """The records that do what is wanted; the last one is in the topic of what is retained, if it is about that."""
    topic, key = routes.place_of(wanted.topic)
    pairs = [(_TOPIC, wanted.topic)]
    if wanted.clear:
        pairs += [(props.RETAIN, "1"), (props.BRIDGE, bridge)]
    else:
        if wanted.expiry > 0:
            pairs.append((_EXPIRES, str(now_ms + 100 * wanted.expiry)))
        pairs += [*props.own_headers(wanted, props.CONTENT_TYPE, str.isprintable), *props.properties_of(wanted, bridge)]
    headers = tuple((name, encoded(value)) for name, value in pairs)
    record = KafkaRecord(topic, key, None if wanted.clear else wanted.payload, headers)
    if not (wanted.retain or wanted.clear):
        return (record,)
    return record, KafkaRecord(routes.retained, encoded(wanted.topic), record.value, headers)


def record_of(
    topic: str, key: bytes | None, value: bytes | None, headers: Headers | None, routes: Routes
) -> props.TreeMessage:
    """What is in a record of *topic*. Bytes of headers that are no UTF-8 become ``\\x`` and two digits each."""
    texts = [(name, (text or b"").decode("utf-8", "backslashreplace")) for name, text in headers or ()]
    given, is_kept = dict(reversed(texts)), topic == routes.retained
    expires = given.get(_EXPIRES, "")
    said = None if is_kept else given.get(_TOPIC)
    return props.TreeMessage(
        said or routes.topic_string_of(topic, key),
        value or b"",
        tuple(each for each in texts if each[0] not in (_TOPIC, _EXPIRES)),
        is_kept=is_kept,
        # What a bridge retains or clears comes by the topic of publications too.
        is_copy=is_kept,
        clears=value is None and (is_kept or given.get(props.RETAIN) == "1"),
        expires_at=int(expires[:15]) / 1000 if expires.isascii() and expires.isdigit() else None,
    )


try:
    from confluent_kafka import KafkaError, KafkaException, TopicCollection
    from confluent_kafka.admin import (  # type: ignore[attr-defined]
        AdminClient,
        ConfigResource,
        NewTopic,
        ResourceType,
    )
except ImportError:  # pragma: no cover - the extra is not installed
    AdminClient = None  # type: ignore[assignment,misc]

_OFTEN_S: Final = 0.1


def client_settings(
    address: Address, config: TopicsConfig, name: str, own: dict[str, Any], reserved: Collection[str] = ()
) -> dict[str, Any]:
    """Those of a client named *name*, with its *own*.

    reserved: what [topics.kafka.client] may not have, beside these. Raises ConfigError where it has.
    """
    user, mechanism = address.user or config.user, config.kafka.sasl_mechanism
    files = {"ca": config.ca_file, "certificate": config.cert_file, "key": config.key_file}
    settings = {
        "bootstrap.servers": ",".join((*address.hosts, *config.servers)),
        "client.id": name,
        "security.protocol": ("SASL_" if mechanism else "") + ("SSL" if address.secure else "PLAINTEXT"),
        "log_level": 2,
        **{f"ssl.{file}.location": str(path) for file, path in files.items() if path is not None},
        **own,
    }
    if mechanism:
        password = config.password() or ""
        settings |= {"sasl.mechanism": mechanism, "sasl.username": user or "", "sasl.password": password}
    for given in config.kafka.client:
        if given in settings or given in reserved:
            raise ConfigError("[topics.kafka.client]", f"{given} is qpubsub's own to set")
    return {**settings, **config.kafka.client}


def partitions_of(admin: AdminClient, topic: str, patience_s: float) -> list[int] | None:
    """The numbers of a topic's partitions; None where the topic is not there."""
    about = admin.describe_topics(TopicCollection([topic]), request_timeout=patience_s)[topic]
    try:
        return [each.id for each in about.result().partitions]
    except KafkaException as error:
        if error.args[0] != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return None


def settings_of(admin: AdminClient, topic: str, patience_s: float) -> dict[str, str]:
    """The settings of a topic; none where it is not there, or the user may not read them."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    asked = admin.describe_configs([resource], request_timeout=patience_s)
    try:
        return {name: str(entry.value) for name, entry in asked[resource].result().items()}
    except KafkaException as error:
        if error.args[0] not in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART}:
            raise
        return {}


def make_topic(
    admin: AdminClient,
    topic: str,
    partitions: int,
    replicas: int,
    settings: Mapping[str, str],
    patience_s: float,
    *,
    check_only: bool = False,
) -> None:
    """Make a topic, and wait until it is there; that somebody else made it meanwhile is no error.

    check_only: only ask whether it could be made. Raises StoreError if that is refused.
    """
    new = NewTopic(topic, partitions, replicas, config=dict(settings))
    asked = admin.create_topics([new], validate_only=check_only, request_timeout=patience_s)
    try:
        asked[topic].result()
    except KafkaException as error:
        if error.args[0] != KafkaError.TOPIC_ALREADY_EXISTS:
            raise StoreError(f"Kafka topic {topic} cannot be made: {error.args[0].str()}") from error
    end = time.monotonic() + patience_s
    while not check_only and partitions_of(admin, topic, patience_s) is None and time.monotonic() < end:
        time.sleep(_OFTEN_S)


try:
    from confluent_kafka import (
        Consumer,
        IsolationLevel,
        KafkaError,
        KafkaException,
        Producer,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import (  # type: ignore[attr-defined]
        AdminClient,
        OffsetSpec,
    )
except ImportError:  # pragma: no cover - the extra is not installed
    Consumer = None  # type: ignore[assignment,misc]

# What a broker takes if its administrator has not said otherwise.
_MOST_BYTES: Final = 1_048_588
_COMPACTED: Final = {"cleanup.policy": "compact"}
# Each transaction replaces the record: only the last ones are worth keeping.
_STATE: Final = {**_COMPACTED, "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
# What the promises of the bridge rest on.
_OF_CONSUMERS: Final[dict[str, Any]] = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
}
# A topic was deleted; a name of confluent-kafka is not in all its versions.
_GONE: Final = ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")
# The topic says what is too long, not the client.
_OF_PRODUCERS: Final[dict[str, Any]] = {
    "transaction.timeout.ms": 30_000,
    "partitioner": "murmur2_random",
    "message.max.bytes": 1_000_000_000,
}


class KafkaCluster:
    """For several threads. bridge: its name there. most_bytes: the longest message that the topics take.

    Raises ConfigError where confluent-kafka is missing or refuses its settings.
    """

    def __init__(self, address: Address, config: TopicsConfig, routes: Routes, bridge: str) -> None:
        if Consumer is None:
            raise ConfigError("--topics", f"kafka:// needs the package confluent-kafka: {how_to_install('kafka')}")
        self.bridge, self.patience_s, self.most_bytes = bridge, config.patience_s, _MOST_BYTES
        self.topics = (*routes.publications, routes.retained, routes.state)
        self._address, self._config, self._routes = address, config, routes
        self._said, self._is_down, self._is_ready, self._lock = "", False, False, threading.Lock()
        try:
            reserved = {**_OF_CONSUMERS, **_OF_PRODUCERS}
            self._settings = client_settings(address, config, bridge, {"error_cb": self._failed}, reserved)
            self._admin = AdminClient(self._settings)
        except KafkaException as error:
            raise ConfigError("[topics]", f"confluent-kafka refuses it: {error.args[0].str()}") from error

    # Clients

    def producer(self, more: str = "") -> Producer:
        """A producer of transactions, under the bridge's name, after its last one has ended. more: behind the name."""
        # A batch of records may not be longer than a message may.
        own = {"transactional.id": self.bridge + more, "batch.size": min(self.most_bytes - 1_000, 1_000_000)}
        with self.asking():
            producer = Producer({**self._settings, **_OF_PRODUCERS, **own})
            producer.init_transactions(2 * self.patience_s)
            return producer

    def consumer(self, positions: Positions) -> Consumer:
        """A consumer that reads behind *positions*, and says where a partition ends."""
        consumer = Consumer({**self._settings, **_OF_CONSUMERS, "group.id": self.bridge})
        consumer.assign([_partition(log, position + 1) for log, position in positions.items()])
        return consumer

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Calls to the cluster. What the library raises inside becomes a TreeUnreachableError."""
        try:
            yield
        except KafkaException as error:
            self.look_if_gone(error.args[0])
            self._admin.poll(0)  # for what the library reports beside the calls
            said = f" ({self._said})" if self._is_down and self._said else ""
            why = f"Kafka at {self._address}: {error.args[0].str()}{said}"
            raise TreeUnreachableError(why) from error

    def look_if_down(self) -> None:
        """Raise TreeUnreachableError where no broker answers: a consumer says nothing then."""
        if self._is_down:
            self.logs(self._routes.state)

    def look_if_gone(self, error: KafkaError) -> None:
        """Where *error* says that a topic is not there any more, ``make_ready`` looks for it again, and makes it."""
        if error.code() in [getattr(KafkaError, name, None) for name in _GONE]:
            self._is_ready = False

    def _failed(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._is_down = True
        else:
            self._said = error.str()

    # Topics

    def logs(self, *topics: str) -> list[str]:
        """The partitions of *topics*, as ``topic/number``. Raises StoreError."""
        with self.asking():
            found = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=self.patience_s)
            logs = [f"{topic}/{each.id}" for topic, about in found.items() for each in about.result().partitions]
        self._is_down = False
        return logs

    def copies_of(self, topic: str) -> int:
        """How many brokers are to keep each partition of *topic*, at least. Raises StoreError."""
        with self.asking():
            found = self._admin.describe_topics(TopicCollection([topic]), request_timeout=self.patience_s)
            return min(len(each.replicas) for each in found[topic].result().partitions)

    def last(self, *topics: str, first: bool = False) -> dict[str, int]:
        """The offset of the last committed record in each partition; that before the first one. Raises StoreError."""
        self.make_ready()
        spec = (OffsetSpec.earliest if first else OffsetSpec.latest)()  # type: ignore[no-untyped-call]
        wanted = {_partition(log): spec for log in self.logs(*topics)}
        level = IsolationLevel.READ_COMMITTED
        with self.asking():
            found = self._admin.list_offsets(wanted, isolation_level=level, request_timeout=self.patience_s)
            return {f"{each.topic}/{each.partition}": about.result().offset - 1 for each, about in found.items()}

    def make_ready(self) -> None:
        """Make the topics that are not there, once, and ask how long a message may be. Raises StoreError."""
        with self._lock:
            if not self._is_ready:
                for topic in self.missing():
                    self.make(topic)
                self.most_bytes = self.longest() or _MOST_BYTES
                self._is_ready = True

    def missing(self) -> list[str]:
        """The topics that are not there. Raises StoreError."""
        with self.asking():
            return [each for each in self.topics if partitions_of(self._admin, each, self.patience_s) is None]

    def make(self, topic: str, check_only: bool = False) -> None:
        """Make a topic. Raises StoreError if that is refused."""
        kept_ms = 1000 * self._config.session_expiry_s or -1
        settings = {self._routes.retained: _COMPACTED, self._routes.state: _STATE}
        partitions = 1 if topic in settings else self._config.kafka.partitions
        config = settings.get(topic, {"retention.ms": str(kept_ms)})
        with self.asking():
            make_topic(
                self._admin, topic, partitions, self._config.replicas, config, self.patience_s, check_only=check_only
            )

    def longest(self) -> int | None:
        """The longest message that all topics take, None where the user may not know it. Raises StoreError."""
        limits = [settings.get("max.message.bytes") for settings in map(self.settings_of, self.topics)]
        return min((int(each) for each in limits if each is not None), default=None)

    def settings_of(self, topic: str) -> dict[str, str]:
        """The settings of a topic; none where it is not there, or the user may not read them. Raises StoreError."""
        with self.asking():
            return settings_of(self._admin, topic, self.patience_s)


def _partition(log: str, offset: int = 0) -> TopicPartition:
    topic, _, number = log.rpartition("/")
    return TopicPartition(topic, int(number), offset)
