"""A topic of Kafka as the place of a capture: a record for each message, and all that there is in its value.

    key     the queue manager: so all records are in one partition, and in the order of seq
    value   the captured message as a line of JSON, with MQMD and body; what a consumer prints is a capture file

A message leaves its queue when the brokers have acknowledged its record (all replicas in sync; the producer is
idempotent, so a record that it sends again is there once). A capture that was interrupted goes on from what the end of
the topic has (``captured_once``): so a topic is for one queue manager.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from pydantic import ValidationError

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address
from commands.links.kafka.cluster import client_settings, make_topic, partitions_of, settings_of
from commands.running.capture_files import MOST_IN_DOUBT, CapturedOnce
from rfh2.captured import CapturedMessage
from rfh2.distribution import how_to_install
from rfh2.errors import StoreError

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

    _NO_LEADER_YET: Final = (
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    )
except ImportError:  # pragma: no cover - the extra is not installed
    Consumer = None  # type: ignore[assignment,misc]

PATIENCE_S: Final = 60.0
_NAP_S: Final = 0.1
_READER: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}
_WRITER: Final[dict[str, Any]] = {
    "enable.idempotence": True,
    "acks": "all",
    "partitioner": "murmur2_random",
    # The topic says what is too long, not the client.
    "message.max.bytes": 1_000_000_000,
    "batch.size": 1_000_000,
    "linger.ms": 5,
}


class KafkaUnreachableError(StoreError):
    """Kafka did not do what was asked: nobody answered in time, or it refuses."""


class CaptureTopic:
    """The topic *topic*, for captures of queue manager *qmgr*. patience_s: for the brokers to acknowledge.

    Raises ConfigError where confluent-kafka is missing or the topic cannot be for this; KafkaUnreachableError.
    """

    def __init__(
        self, address: Address, topic: str, config: TopicsConfig, qmgr: str, patience_s: float = PATIENCE_S
    ) -> None:
        if Consumer is None:
            raise ConfigError("--to", f"kafka:// needs the package confluent-kafka: {how_to_install('kafka')}")
        self._address, self._topic, self._qmgr, self._patience_s = address, topic, qmgr, patience_s
        self.once = CapturedOnce()
        name = f"qpubsub-capture-{qmgr}"
        writer = {**_WRITER, "message.timeout.ms": int(patience_s * 1000)}
        reader = client_settings(address, config, name, {**_READER, "group.id": name})
        with self._asking():
            self._admin = AdminClient(client_settings(address, config, name, {}))
            self._make_topic(config.replicas)
            self._recover(reader)
            self._producer = Producer(client_settings(address, config, name, writer))

    def __str__(self) -> str:
        return f"{self._address}/{self._topic}"

    @property
    def is_new(self) -> bool:
        """Whether no message was captured there before."""
        return self.once.seq == 0

    def add(self, messages: Sequence[CapturedMessage]) -> int:
        """Have *messages* in the topic, but for those that are there; how many are new.

        Raises KafkaUnreachableError: then some of them may be there, and must stay on their queues.
        """
        new, failed = self.once.new(messages), list[KafkaError]()

        def answered(error: KafkaError | None, _record: object) -> None:
            if error is not None:
                failed.append(error)

        with self._asking():
            for message in new:
                value = message.model_dump_json().encode("utf-8", "surrogatepass")
                self._produce(value, answered)
            left = self._producer.flush(self._patience_s + 1)
        if failed or left:
            self._producer.purge()
            why = failed[0].str() if failed else "it does not answer"
            raise KafkaUnreachableError(f"{self}: {why}; give the command again: nothing is lost or doubled")
        self.once.kept()
        return len(new)

    def roll(self) -> None:
        """Nothing: a topic has no files."""

    def finish(self) -> None:
        """Nothing: each record is complete."""

    def close(self) -> None:
        """Let the clients go."""
        self._producer.purge()
        self._producer.flush(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _produce(self, value: bytes, answered: Any) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, self._qmgr.encode(), on_delivery=answered)
            except BufferError:
                self._producer.poll(_NAP_S)  # its queue is full
            else:
                return

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise KafkaUnreachableError(f"{self}: {error.args[0].str()}") from error

    def _make_topic(self, replicas: int) -> None:
        """Make the topic where it is not there; what is in it stays for ever then."""
        if partitions_of(self._admin, self._topic, self._patience_s) is None:
            make_topic(self._admin, self._topic, 1, replicas, {"retention.ms": "-1"}, self._patience_s)
        elif "compact" in settings_of(self._admin, self._topic, self._patience_s).get("cleanup.policy", ""):
            why = f"topic {self._topic} is compacted, and would keep one message; give one with cleanup.policy=delete"
            raise ConfigError("--to", why)

    def _recover(self, settings: dict[str, Any]) -> None:
        """Go on where an earlier process ended."""
        consumer = Consumer(settings)
        try:
            last, count = self._end(consumer)
        finally:
            consumer.close()
        for message in last:
            if message.qmgr != self._qmgr:
                why = f"topic {self._topic} has messages of {message.qmgr or 'no queue manager'}, not of {self._qmgr}"
                raise ConfigError("--to", f"{why}: give each queue manager a topic of its own")
        # Old records may be gone: the numbers behind them are not given again all the same.
        self.once.seq = max([count, *(message.seq for message in last)])
        self.once.may_come_again(heapq.nlargest(MOST_IN_DOUBT, last, key=lambda message: message.seq))

    def _end(self, consumer: Consumer) -> tuple[list[CapturedMessage], int]:
        """The last messages of each partition, and how many records there ever were. Raises ConfigError."""
        starts, left, count = list[TopicPartition](), set[int](), 0
        for number in partitions_of(self._admin, self._topic, self._patience_s) or ():
            low, high = self._bounds(consumer, TopicPartition(self._topic, number))
            count += high
            if high > low:
                starts.append(TopicPartition(self._topic, number, max(low, high - MOST_IN_DOUBT)))
                left.add(number)
        consumer.assign(starts)
        found: list[CapturedMessage] = []
        end = time.monotonic() + self._patience_s
        while left:
            record = consumer.poll(_NAP_S)
            if record is None:
                if time.monotonic() > end:
                    raise KafkaUnreachableError(f"{self}: its end could not be read in {self._patience_s:.0f} s")
                continue
            error = record.error()
            if error is None:
                found.append(self._message(record))
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(record.partition())
            else:
                raise KafkaException(error)
        return found, count

    def _bounds(self, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
        """The first offset of a partition, and the next one."""
        end = time.monotonic() + self._patience_s
        while True:
            try:
                return consumer.get_watermark_offsets(partition, timeout=self._patience_s, cached=False)
            except KafkaException as error:
                # A broker that has just started, or the topic with it, has to find its leader first.
                if error.args[0] not in _NO_LEADER_YET or time.monotonic() > end:
                    raise
            time.sleep(_NAP_S)

    def _message(self, record: Any) -> CapturedMessage:
        try:
            return CapturedMessage.model_validate_json(record.value() or b"")
        except ValidationError as error:
            where = f"record {record.offset()} of partition {record.partition()}"
            why = f"topic {self._topic}: {where} is not a captured message; give a topic of its own"
            raise ConfigError("--to", why) from error
