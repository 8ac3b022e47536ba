"""Kafka as a topic tree (``Adapter``).

A few topics of Kafka have the publications of all topic strings; a compacted one has the retained publications, by
topic string. They belong to all bridges and native programs that share them. Kafka has no filters: the bridge reads
its topics whole.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import Prepared, Sent, TreeUnreachableError, Waiting, too_large
from commands.links.engine.filters import Positions
from commands.links.engine.log_adapter import Following, LogAdapter, LogReader, Placed, batches, capabilities_of
from commands.links.engine.properties import ForTree, TreeMessage
from commands.links.engine.spool import Spool
from commands.links.kafka.cluster import KafkaCluster, KafkaRecord, Routes, record_of, records_for
from commands.qmgr.link_port import Feature, How
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED
from rfh2.errors import StoreError

CAPABILITIES: Final = capabilities_of(
    {
        Feature.SUBSCRIBE: How.EMULATED,
        Feature.PUBLISH: How.DOES,
        Feature.RETAIN: How.DOES,
        Feature.REQUEST: How.EMULATED,
        Feature.CLEAR: How.DOES,
        Feature.CHAR_WILDCARDS: How.EMULATED,
        Feature.INNER_HASH: How.EMULATED,
        Feature.ODD_TOPICS: How.DOES,
        Feature.DOLLAR_TOPICS: How.DOES,
        Feature.EXPIRY: How.EMULATED,
        Feature.PERSISTENCE: How.EMULATED,
        Feature.PRIORITY: How.LOST,
        Feature.ORDER: How.DOES,
        Feature.UNIT_OF_WORK: How.EMULATED,
    }
)


class KafkaAdapter(LogAdapter[Any]):
    """One cluster. state: the directory for what the bridge remembers. epoch: of the processor. Raises ConfigError."""

    kind = "Kafka"
    name = "Kafka"
    log = logging.getLogger("qpubsub.kafka")
    filters_at_once = 1_000
    forgets_filters = False
    capabilities = CAPABILITIES

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str, state: Path, epoch: int | None) -> None:
        self._epoch, self._routes = epoch or 0, Routes(config.kafka)
        self._cluster = KafkaCluster(address, config, self._routes, config.client_id or f"qpubsub-{qmgr}")
        super().__init__(KafkaLogs(self._cluster, self._routes), state / "kafka.json", config.default_format)

    def sender(self, spool: Spool, stop: threading.Event) -> KafkaSender:
        del spool, stop  # queues are never Kafka's, and no call waits for long
        return KafkaSender(self._cluster, self._routes, self._epoch)


class KafkaLogs:
    """The partitions of all topics but that of state (``Logs``); a message is one of confluent-kafka."""

    def __init__(self, cluster: KafkaCluster, routes: Routes) -> None:
        self.bridge = cluster.bridge
        self._cluster, self._routes = cluster, routes
        self._topics = (*routes.publications, routes.retained)
        self._retained = compacted(cluster, routes.retained, self._lighten)

    def make_ready(self) -> None:
        self._cluster.make_ready()

    def ends(self) -> Positions:
        return self._cluster.last(*self._topics)

    def begins(self) -> Positions:
        return self._cluster.last(*self._topics, first=True)

    def reader(self, positions: Positions, following: Following) -> KafkaReader:
        del following  # what no filter selects is read too
        return KafkaReader(self._cluster, positions)

    def follow(self, following: Following) -> None:
        """Do nothing: what no filter selects is read too."""

    def waits(self, positions: Positions) -> bool:
        return any(positions.get(log, -1) < end for log, end in self.ends().items())

    def record(self, message: Any) -> TreeMessage:
        return record_of(message.topic(), message.key(), message.value(), message.headers(), self._routes)

    def retained(self, filters: Sequence[str]) -> Iterable[Any]:
        del filters  # who asks looks at the topics
        return self._retained.read().values()

    def close(self) -> None:
        self._retained.close()

    def _lighten(self, message: Any) -> Any:
        """Of what this bridge retains, only the topic: the queue manager has the rest."""
        if self.record(message).bridge == self.bridge:
            message.set_value(b"")
        return message


# Reads partitions of Kafka: on from a position (``LogReader``), and a compacted topic whole.

M = TypeVar("M")

_AT_ONCE: Final = 1_000


class LastMessages(Generic[M]):
    """For several threads. opened: makes a reader of what is behind positions. ends: how far the logs go.

    entry: the key of a message, and what to keep of it, None for nothing. patience_s: how long to wait for the next.
    """

    def __init__(
        self,
        opened: Callable[[Positions], LogReader[M]],
        ends: Callable[[], Positions],
        entry: Callable[[M], tuple[bytes, M | None]],
        patience_s: float,
    ) -> None:
        self._opened, self._ends, self._entry, self._patience_s = opened, ends, entry, patience_s
        self._lock = threading.Lock()
        self._reader: LogReader[M] | None = None
        self._at: dict[str, int] = {}
        self._last: dict[bytes, M] = {}

    def read(self) -> dict[bytes, M]:
        """What there is now, by key. Raises StoreError."""
        with self._lock:
            ends = self._ends()
            if self._at.keys() != ends.keys() or any(self._at[log] > end for log, end in ends.items()):
                self._close()  # a new process, or other logs of the same names
                self._at, self._last = dict.fromkeys(ends, -1), {}
            while any(self._at[log] < end for log, end in ends.items()):
                self._reader = self._reader or self._opened(self._at)
                try:
                    self._take(self._reader.read(_AT_ONCE, self._patience_s))
                except Exception:
                    self._close()
                    raise
            return dict(self._last)

    def close(self) -> None:
        """Read no more."""
        with self._lock:
            self._close()

    def _take(self, placed: Iterable[Placed[M]]) -> None:
        if not placed:
            raise TreeUnreachableError(f"{', '.join(self._at)} cannot be read to the end")
        for each in placed:
            self._at[each.log] = each.position
            if each.message is not None:
                key, kept = self._entry(each.message)
                self._last.pop(key, None)
                if kept is not None:
                    self._last[key] = kept

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None


with suppress(ImportError):  # the extra is not installed
    from confluent_kafka import KafkaError, KafkaException

Compacted = LastMessages[Any]


class KafkaReader:
    """For one thread."""

    def __init__(self, cluster: KafkaCluster, positions: Positions) -> None:
        self._cluster, self._consumer = cluster, cluster.consumer(positions)

    def read(self, limit: int, timeout_s: float) -> list[Placed[Any]]:
        self._cluster.look_if_down()
        with self._cluster.asking():
            first = self._consumer.poll(timeout_s)
            messages = [] if first is None else [first, *self._consumer.consume(max(limit - 1, 1), 0)]
            return [_placed(each) for each in messages]

    def close(self) -> None:
        with suppress(Exception):
            self._consumer.close()


def _placed(message: Any) -> Placed[Any]:
    """A record, or the end of a partition, which bears the next position. Raises KafkaException."""
    log, error = f"{message.topic()}/{message.partition()}", message.error()
    if error is None:
        return Placed(log, message.offset(), message, message.value() or b"")
    if error.code() == KafkaError._PARTITION_EOF:
        return Placed(log, message.offset() - 1)
    raise KafkaException(error)


def compacted(cluster: KafkaCluster, topic: str, lighten: Callable[[Any], Any] = lambda message: message) -> Compacted:
    """The last records of a compacted topic, by key. lighten: what to keep of a record in memory."""

    def entry(message: Any) -> tuple[bytes, Any]:
        return message.key() or b"", None if message.value() is None else lighten(message)

    return LastMessages(partial(KafkaReader, cluster), partial(cluster.last, topic), entry, cluster.patience_s)


# Publications to Kafka, in transactions that also say what they have sent (``Sender``).
#
# The topic of state has a record of what was sent (``commands.links.kafka.adapter``). A bridge that begins, or has
# lost a connection, takes its name back (``init_transactions``): that ends the last transaction, one way or the
# other. Then the record says which messages are not to be sent again. So readers with read_committed get each
# publication once, whatever was killed.

# What a tree with transactions has of the outgoing queue, in a record that is kept in the tree.
#
# The record is written in the transaction that sends. So a bridge that begins, or does not know how a transaction
# ended, reads there which messages the tree has though they are on the outgoing queue still, and sends each once.
# Pure.

_MARK_BYTES: Final = 8


class SentMarks:
    """A mark for each message that was sent and may be on the outgoing queue. epoch: of the command processor."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._marks: set[str] = set()
        self._is_fresh = False

    def read(self, record: bytes | None) -> int:
        """Have the marks of *record*, None for none yet; returns the epoch of the processor that wrote it, or -1."""
        state: dict[str, Any] = {"epoch": -1, "sent": ""} if record is None else json.loads(record)
        marks, length = state["sent"], 2 * _MARK_BYTES
        self._marks = {marks[at : at + length] for at in range(0, len(marks), length)}
        return int(state["epoch"])

    def record(self, keys: Iterable[bytes]) -> str:
        """The record once the messages with *keys* are sent too."""
        marks = self._marks.union(map(_mark, keys))
        return json.dumps({"epoch": self._epoch, "sent": "".join(sorted(marks))})

    def sent(self, keys: Iterable[bytes]) -> None:
        """The messages with *keys*, and the record, are committed in the tree."""
        before = len(self._marks)
        self._marks.update(map(_mark, keys))
        self._is_fresh = len(self._marks) > before

    def has(self, key: bytes) -> bool:
        """Whether the tree has the message with *key*."""
        return _mark(key) in self._marks

    def left(self) -> None:
        """A batch has left the outgoing queue. If some of it was sent just now, all that was sent before has left."""
        if self._is_fresh:
            self._marks.clear()
            self._is_fresh = False


def _mark(key: bytes) -> str:
    return blake2b(key, digest_size=_MARK_BYTES).hexdigest()


try:
    from confluent_kafka import KafkaError, Producer
except ImportError:  # pragma: no cover - the extra is not installed
    Producer = None  # type: ignore[assignment,misc]

Records = tuple[KafkaRecord, ...]

_MOST_BYTES: Final = 16_000_000


class KafkaSender:
    """epoch: of the command processor; a bridge with a later one has taken over."""

    def __init__(self, cluster: KafkaCluster, routes: Routes, epoch: int) -> None:
        self._cluster, self._routes, self._epoch = cluster, routes, epoch
        self._producer: Producer | None = None
        self._marks, self._over = SentMarks(epoch), ""

    def prepare(self, wanted: ForTree) -> Prepared[Records] | None:
        records = records_for(wanted, self._cluster.bridge, self._routes, time.time_ns() // 1_000_000)
        size, most = max(record.size for record in records), self._cluster.most_bytes
        if size > most:
            raise too_large(wanted.topic, size, most, "Kafka")
        return Prepared(records, wanted.other)

    def send(self, batch: Iterable[Waiting[Records]]) -> Iterator[Sent]:
        self._open()
        for together in batches(batch, lambda each: sum(record.size for record in each.item), _MOST_BYTES):
            new = [each for each in together if not self._marks.has(each.key)]
            yield from (Sent(each.message) for each in together if self._marks.has(each.key))
            yield from self._committed(new)

    def done(self) -> None:
        self._marks.left()

    def close(self) -> None:
        self._producer = None

    def _open(self) -> None:
        """Have a producer, and know what the last one has sent. Raises StoreError."""
        if self._over:
            raise StoreError(self._over)
        if self._producer is not None:
            return
        self._cluster.make_ready()
        producer = self._cluster.producer()
        states = compacted(self._cluster, self._routes.state)
        try:
            last = states.read().get(self._cluster.bridge.encode())
        finally:
            states.close()
        epoch = self._marks.read(None if last is None else last.value())
        if epoch > self._epoch:
            self._over = f"another processor sends to Kafka as {self._cluster.bridge}; end one, or change client_id"
            raise StoreError(self._over)
        self._producer = producer
        if epoch < self._epoch:
            self._transaction(())

    def _committed(self, together: Sequence[Waiting[Records]]) -> Iterator[Sent]:
        """Send these in one transaction, without those that Kafka refuses."""
        while together:
            self._open()
            refused = self._transaction(together)
            for number, error in refused.items():
                is_forbidden = error == KafkaError.TOPIC_AUTHORIZATION_FAILED
                reason = MQRC_NOT_AUTHORIZED if is_forbidden else MQRC_MSG_TOO_BIG_FOR_Q
                why = f"a publication on topic {together[number].wanted.topic:.200}: Kafka refuses it: {error.str()}"
                yield Sent(together[number].message, reason, why)
            if not refused:
                yield from (Sent(waiting.message) for waiting in together)
                return
            together = [waiting for number, waiting in enumerate(together) if number not in refused]

    def _transaction(self, together: Sequence[Waiting[Records]]) -> dict[int, KafkaError]:
        """Commit them; or return those that are refused, and commit nothing. Raises StoreError."""
        producer, refused = self._producer, dict[int, KafkaError]()
        assert producer is not None
        keys = [waiting.key for waiting in together]
        # Whether a transaction that fails is committed only the next producer knows.
        self._producer = None
        try:
            with self._cluster.asking():
                producer.begin_transaction()
                for number, waiting in enumerate(together):
                    answer = partial(self._answered, refused, number)
                    for each in waiting.item:
                        headers: list[tuple[str, str | bytes | None]] = [*each.headers]
                        producer.produce(each.topic, each.value, each.key, headers=headers, on_delivery=answer)
                producer.produce(self._routes.state, self._marks.record(keys), self._cluster.bridge)
                producer.commit_transaction(2 * self._cluster.patience_s)
        except TreeUnreachableError:
            if refused:
                return refused
            raise
        except BufferError as error:
            raise TreeUnreachableError("Kafka does not take publications as fast as they are sent") from error
        self._producer = producer
        self._marks.sent(keys)
        return {}

    def _answered(self, refused: dict[int, KafkaError], number: int, error: KafkaError | None, _message: Any) -> None:
        lasting = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.TOPIC_AUTHORIZATION_FAILED)
        if error is not None and error.code() in lasting:
            refused[number] = error
        elif error is not None:
            self._cluster.look_if_gone(error)
