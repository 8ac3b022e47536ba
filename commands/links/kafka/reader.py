"""Reads partitions of Kafka: on from a position (``LogReader``), and a compacted topic whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from commands.links.engine.followed_filters import Positions
from commands.links.engine.last_messages import LastMessages
from commands.links.engine.logs import Placed
from commands.links.kafka.cluster import KafkaCluster

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
