"""Publications to Kafka, in transactions that also say what they have sent (``Sender``).

The topic of state has a record of what was sent (``commands.links.engine.sent_marks``). A bridge that begins, or has
lost a connection, takes its name back (``init_transactions``): that ends the last transaction, one way or the other.
Then the record says which messages are not to be sent again. So readers with read_committed get each publication once,
whatever was killed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from commands.links.engine.adapter import Prepared, Sent, TreeUnreachableError, Waiting, too_large
from commands.links.engine.batches import batches
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.sent_marks import SentMarks
from commands.links.kafka.cluster import KafkaCluster
from commands.links.kafka.reader import compacted
from commands.links.kafka.records import KafkaRecord, records_for
from commands.links.kafka.routes import Routes
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED
from rfh2.errors import StoreError

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
