"""Reads partitions of Kafka: on from a position (``LogReader``), and a compacted topic whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar

from commands.links.engine.adapter import TreeUnreachableError
from commands.links.engine.filters import Positions
from commands.links.engine.logs import LogReader, Placed
from commands.links.kafka.cluster import KafkaCluster

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
