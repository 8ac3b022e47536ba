"""Publications to Kafka, in transactions that also say what they have sent (``Sender``).

The topic of state has a record of what was sent (``commands.links.kafka.sender``). A bridge that begins, or has
lost a connection, takes its name back (``init_transactions``): that ends the last transaction, one way or the other.
Then the record says which messages are not to be sent again. So readers with read_committed get each publication once,
whatever was killed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from commands.links.engine.adapter import Prepared, Sent, TreeUnreachableError, Waiting, too_large
from commands.links.engine.logs import batches
from commands.links.engine.message_for_tree import ForTree
from commands.links.kafka.cluster import KafkaCluster
from commands.links.kafka.reader import compacted
from commands.links.kafka.records import KafkaRecord, Routes, records_for
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED
from rfh2.errors import StoreError

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
