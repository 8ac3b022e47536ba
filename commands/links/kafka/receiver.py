"""Records of Kafka, by a consumer of all partitions (``Receiver``).

The bridge keeps its position itself, in the unit of work of the commands that came up to there: no group is balanced,
and nothing comes twice, whatever was killed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from commands.links.engine.adapter import Arrivals
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.config import TopicsConfig
from commands.links.engine.followed_filters import FollowedFilters, Positions
from commands.links.engine.inbound_writer import Unreadable
from commands.links.kafka.cluster import KafkaCluster, log_of
from commands.links.kafka.records import bridge_of, native_of, texts_of, topic_string_of
from commands.links.kafka.routes import Routes

_log = logging.getLogger("qpubsub.kafka")

# How often to look for new partitions, and to keep a position before which there was nothing for a subscriber.
_LOOK_S: Final = 60.0
_KEEP_S: Final = 10.0


class KafkaReceiver:
    """kept: the position that was committed last."""

    def __init__(self, cluster: KafkaCluster, routes: Routes, config: TopicsConfig, filters: FollowedFilters) -> None:
        self._cluster, self._routes, self._config, self._filters = cluster, routes, config, filters
        self._consumer: Any = None
        self._position: dict[str, int] = {}
        self._behind: dict[str, int] = {}
        self._taken: Arrivals | None = None
        self._undone: Arrivals | None = None
        self._wake, self._look_at, self._keep_at = threading.Event(), 0.0, 0.0
        self.ends: Positions = {}
        self.kept: Callable[[], Positions | None]

    @property
    def topics(self) -> tuple[str, ...]:
        """Where native publications are."""
        return (*self._routes.publications, self._routes.retained)

    def follow(self) -> None:
        """There may be a first filter."""
        self._wake.set()

    @property
    def is_waiting(self) -> bool:
        if self._taken or self._undone:
            return True
        return bool(self._filters.all()) and any(self._position.get(log, -1) < end for log, end in self.ends.items())

    def take(self, limit: int, timeout_s: float) -> Arrivals:
        if self._undone is None and not self._filters.all():
            self._close()
            self._position = {}
            self._wake.wait(timeout_s)
            self._wake.clear()
            return Arrivals()
        if self._undone is None:
            self._undone = self._read(limit, timeout_s)
        self._taken, self._undone = self._undone, None
        if not self._taken.count:
            self.accept()
            return Arrivals()
        return self._taken

    def accept(self) -> None:
        self._taken = None
        self._position |= self._behind
        self._filters.passed(self._position)

    def undo(self) -> None:
        self._taken, self._undone = None, self._taken or self._undone

    def close(self) -> None:
        self._close()

    def _read(self, limit: int, timeout_s: float) -> Arrivals:
        try:
            if self._cluster.is_down:
                self._cluster.logs(self._routes.retained)
            self._look()
            with self._cluster.asking():
                first = self._consumer.poll(timeout_s)
                messages = [] if first is None else [first, *self._consumer.consume(max(limit - 1, 1), 0)]
                behind = {log_of(each): self._cluster.offset_of(each) for each in messages}
        except Exception:
            # What it has given and nobody took comes again from another one.
            self._close()
            raise
        self._behind = behind
        natives = [native for each in messages if each.error() is None and (native := self._native(each)) is not None]
        count = sum(each.error() is None for each in messages)
        position = None
        if count and (natives or time.monotonic() > self._keep_at):
            position, self._keep_at = self._position | behind, time.monotonic() + _KEEP_S
        return Arrivals(natives, count, position=position)

    def _look(self) -> None:
        """Have a consumer of all partitions that there are. Raises StoreError."""
        if self._consumer is not None and time.monotonic() < self._look_at:
            return
        ends = self._cluster.last(*self.topics)
        if not ends.keys() - self._position.keys() and self._consumer is not None:
            self._look_at = time.monotonic() + _LOOK_S
            return
        begins = self._cluster.last(*self.topics, first=True)
        known = self._position or self.kept() or {}
        for log, end in ends.items():
            since = self._filters.first(log)
            position = known.get(log, end if since is None else since)
            # A position that a new subscriber does not need is an earlier one.
            position = max(position, since if since is not None else end)
            if position < begins[log] or position > end:
                if position >= 0:
                    text = "partition %s: what natives published at offsets %d to %d is gone"
                    _log.warning(text, log, position + 1, begins[log])
                position = begins[log]
            self._position[log] = position
        self._close()
        self._consumer = self._cluster.consumer(self._position)
        self._look_at = time.monotonic() + _LOOK_S

    def _close(self) -> None:
        if self._consumer is not None:
            with suppress(Exception):
                self._consumer.close()
        self._consumer = None

    def _native(self, message: Any) -> NativePublication | Unreadable | None:
        """The publication; None for one that no subscription needs, or that this bridge has sent or has already."""
        try:
            texts, topic = texts_of(message.headers()), message.topic()
            by = bridge_of(texts)
            # What another bridge retains or clears comes by the topic of publications too.
            if by == self._cluster.bridge or (by is not None and topic == self._routes.retained):
                return None
            topic_string = topic_string_of(topic, message.key(), texts, self._routes)
            if topic_string is None:
                _log.error("a record of Kafka topic %s has a key that is no topic string", topic)
                return Unreadable(message.value() or b"")
            if not self._filters.takes(selected(topic_string), log_of(message), message.offset()):
                return None
            return self.native(topic_string, message)
        except Exception as error:
            # A fault of ours, or a value nobody thought of: it must not keep what is behind it waiting.
            _log.error("a record of Kafka topic %s cannot be read", message.topic(), exc_info=error)
            return Unreadable(message.value() or b"")

    def native(self, topic_string: str, message: Any) -> NativePublication | None:
        """The publication in a record; None if it has expired."""
        now_ms, is_retained = time.time_ns() // 1_000_000, message.topic() == self._routes.retained
        texts, fmt = texts_of(message.headers()), self._config.default_format
        return native_of(topic_string, message.value(), texts, is_retained, now_ms, fmt)


def selected(topic_string: str) -> str:
    """A topic string as filters select it: Kafka has no topics of its own, so wildcards select those with $ too."""
    return f"/{topic_string}"
