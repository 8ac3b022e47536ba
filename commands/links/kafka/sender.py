"""Publications to Kafka, in transactions that also say what they have sent (``Sender``).

A record in the topic of state has marks of the messages that may still be on the outgoing queue though Kafka has them;
it is written in the transaction that sends them. A bridge that begins, or has lost a connection, takes its name back
(``init_transactions``): that ends the last transaction, one way or the other. Then the record says which messages are
not to be sent again. So readers with read_committed get each publication once, whatever was killed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from commands.links.engine.adapter import NotCarriedError, Prepared, Sent, TreeUnreachableError, Waiting
from commands.links.engine.message_for_tree import ForTree
from commands.links.kafka.cluster import KafkaCluster
from commands.links.kafka.compacted import CompactedTopic
from commands.links.kafka.records import KafkaRecord, records_for
from commands.links.kafka.routes import Routes
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED
from rfh2.errors import StoreError

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
except ImportError:  # pragma: no cover - the extra is not installed
    Producer = None  # type: ignore[assignment,misc]

Records = tuple[KafkaRecord, ...]

_MOST_BYTES: Final = 16_000_000
_MARK_BYTES: Final = 8


class KafkaSender:
    """epoch: of the command processor; a bridge with a later one has taken over."""

    def __init__(self, cluster: KafkaCluster, routes: Routes, patience_s: float, epoch: int) -> None:
        self._cluster, self._routes, self._patience_s, self._epoch = cluster, routes, patience_s, epoch
        self._producer: Producer | None = None
        # What Kafka has and the outgoing queue may have; whether some of it is in the batch of now, not older.
        self._sent: set[str] = set()
        self._is_fresh = False
        self._over = ""

    def prepare(self, wanted: ForTree) -> Prepared[Records] | None:
        records = records_for(wanted, self._cluster.bridge, self._routes, time.time_ns() // 1_000_000)
        size, most = max(record.size for record in records), self._cluster.most_bytes
        if size > most:
            why = f"topic {wanted.topic:.200}: {size} bytes, Kafka takes {most} (max.message.bytes)"
            raise NotCarriedError(MQRC_MSG_TOO_BIG_FOR_Q, why)
        return Prepared(records, wanted.other)

    def send(self, batch: Iterable[Waiting[Records]]) -> Iterator[Sent]:
        self._open()
        together: list[Waiting[Records]] = []
        size = 0
        for waiting in batch:
            if _mark(waiting) in self._sent:
                yield Sent(waiting.message)
                continue
            together.append(waiting)
            size += sum(record.size for record in waiting.item)
            if size > _MOST_BYTES:
                yield from self._committed(together)
                together, size = [], 0
        yield from self._committed(together)

    def done(self) -> None:
        # The queue is in order: what was sent before the messages that are done now has left it earlier.
        if self._is_fresh:
            self._sent.clear()
            self._is_fresh = False

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
        with self._cluster.asking():
            producer.init_transactions(2 * self._patience_s)
        states = CompactedTopic(self._cluster, self._routes.state, lambda message: message.value(), self._patience_s)
        try:
            last = states.read().get(self._cluster.bridge.encode())
        finally:
            states.close()
        state: dict[str, Any] = {"epoch": -1, "sent": ""} if last is None else json.loads(last)
        if state["epoch"] > self._epoch:
            self._over = f"another processor sends to Kafka as {self._cluster.bridge}; end one, or change client_id"
            raise StoreError(self._over)
        marks, length = state["sent"], 2 * _MARK_BYTES
        self._sent = {marks[at : at + length] for at in range(0, len(marks), length)}
        self._producer = producer
        if state["epoch"] < self._epoch:
            self._transaction(())

    def _committed(self, together: Sequence[Waiting[Records]]) -> Iterator[Sent]:
        """Send these in one transaction, without those that Kafka refuses."""
        while together:
            self._open()
            refused = self._transaction(together)
            for number, error in refused.items():
                reason = MQRC_MSG_TOO_BIG_FOR_Q
                if error == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    reason = MQRC_NOT_AUTHORIZED
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
        marks = self._sent | {_mark(waiting) for waiting in together}
        state = json.dumps({"epoch": self._epoch, "sent": "".join(sorted(marks))})
        try:
            producer.begin_transaction()
            for number, waiting in enumerate(together):
                answer = partial(_answered, refused, number)
                for each in waiting.item:
                    producer.produce(each.topic, each.value, each.key, headers=list(each.headers), on_delivery=answer)
            producer.produce(self._routes.state, state, self._cluster.bridge)
            producer.commit_transaction(2 * self._patience_s)
        except (KafkaException, BufferError) as error:
            # Whether it is committed only the next producer knows.
            self._producer = None
            if refused:
                return refused
            if isinstance(error, BufferError):
                raise TreeUnreachableError("Kafka does not take publications as fast as they are sent") from error
            raise self._cluster.failure(error.args[0]) from error
        self._sent, self._is_fresh = marks, bool(together)
        return {}


def _mark(waiting: Waiting[Records]) -> str:
    return blake2b(waiting.key, digest_size=_MARK_BYTES).hexdigest()


def _answered(refused: dict[int, KafkaError], number: int, error: KafkaError | None, _message: Any) -> None:
    lasting = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    if error is not None and error.code() in lasting:
        refused[number] = error
