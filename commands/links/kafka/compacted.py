"""A compacted topic, read whole: the last record of each key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from commands.links.engine.adapter import TreeUnreachableError
from commands.links.kafka.cluster import KafkaCluster, log_of

T = TypeVar("T")


class CompactedTopic(Generic[T]):
    """For several threads. keep: what to keep in memory of a record. patience_s: how long to wait for the next one."""

    def __init__(self, cluster: KafkaCluster, topic: str, keep: Callable[[Any], T], patience_s: float) -> None:
        self._cluster, self._topic, self._keep, self._patience_s = cluster, topic, keep, patience_s
        self._lock = threading.Lock()
        self._consumer: Any = None
        self._at: dict[str, int] = {}
        self._records: dict[bytes, T] = {}

    def read(self) -> dict[bytes, T]:
        """What the topic has now, by key. Raises StoreError."""
        with self._lock:
            ends = self._cluster.last(self._topic)
            if self._at.keys() != ends.keys() or any(self._at[log] > end for log, end in ends.items()):
                self._close()  # a new process, or another topic of the same name
                self._at, self._records = dict.fromkeys(ends, -1), {}
            if self._consumer is None:
                self._consumer = self._cluster.consumer(self._at)
            while any(self._at[log] < end for log, end in ends.items()):
                message = self._consumer.poll(self._patience_s)
                if message is None:
                    self._close()
                    raise TreeUnreachableError(f"Kafka topic {self._topic} cannot be read to its end")
                with self._cluster.asking():
                    self._take(message)
            return dict(self._records)

    def _take(self, message: Any) -> None:
        self._at[log_of(message)] = self._cluster.offset_of(message)
        if message.error() is None:
            key = message.key() or b""
            self._records.pop(key, None)
            if message.value() is not None:
                self._records[key] = self._keep(message)

    def close(self) -> None:
        """Leave the topic."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._consumer is not None:
            with suppress(Exception):
                self._consumer.close()
        self._consumer = None
