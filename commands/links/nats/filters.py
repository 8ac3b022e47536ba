"""The filters that the bridge has subscribed to, and from where on in each stream; and their file.

JetStream knows one consumer of the bridge to a stream, which follows a cover of all filters
(``commands.links.nats.subjects.cover``). So what a new filter selects may include messages that are older than it: each
filter has the last sequence number of the stream when it came, and takes later ones only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from commands.links.engine.filter_tree import FilterTree
from commands.links.engine.state_file import read_state, unreadable, write_state

Positions = tuple[int, int]
"""A sequence number of the stream, and one of the bucket."""


class Filters:
    """The filters, as the file at *path* keeps them; for several threads. Raises StoreError where it cannot be used.

    synced: those of which the retained publications are known here. moving: where to begin again in both streams, while
    a consumer is replaced; None else.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.RLock()
        self._tree = FilterTree()
        self._numbers: dict[str, int] = {}
        self._since: dict[int, Positions] = {}
        self._next, self._changed = 1, False
        self.synced: set[str] = set()
        self.moving: Positions | None = None
        self._load()

    def all(self) -> tuple[str, ...]:
        """Every filter."""
        with self._lock:
            return tuple(self._numbers)

    def add(self, topic_filter: str, since: Positions) -> None:
        """Have the filter, from *since* on; do nothing if it is there."""
        with self._lock:
            if topic_filter in self._numbers:
                return
            number = self._numbers[topic_filter] = self._next
            self._since[number] = since
            self._next += 1
            self._tree.add(topic_filter, number)
            self._changed = True

    def remove(self, topic_filter: str) -> None:
        """Remove the filter; do nothing if there is none."""
        with self._lock:
            number = self._numbers.pop(topic_filter, None)
            if number is not None:
                del self._since[number]
                self._tree.remove(topic_filter, number)
                self.synced.discard(topic_filter)
                self._changed = True

    def sync(self, filters: Iterable[str]) -> None:
        """The retained publications under these are known here."""
        with self._lock:
            fresh = {each for each in filters if each in self._numbers} - self.synced
            self.synced |= fresh
            self._changed = self._changed or bool(fresh)

    def forget(self) -> None:
        """JetStream has lost the place of the bridge: it has none of the filters."""
        for topic_filter in self.all():
            self.remove(topic_filter)

    def takes(self, tokens: str, stream: int, sequence: int) -> bool:
        """Whether a filter selects this message. tokens: its topic. stream: 0 for the stream, 1 for the bucket."""
        with self._lock:
            return any(sequence > self._since[number][stream] for number in self._tree.match(tokens))

    def move(self, where: Positions | None) -> None:
        """Consumers are replaced, and begin behind *where*; None: they are there."""
        with self._lock:
            self.moving = where
            self.save()

    def save(self, only_changes: bool = False) -> None:
        """Keep them."""
        with self._lock:
            if only_changes and not self._changed:
                return
            filters = {each: self._since[number] for each, number in self._numbers.items()}
            write_state(self._path, {"filters": filters, "synced": sorted(self.synced), "moving": self.moving})
            self._changed = False

    def _load(self) -> None:
        try:
            state = read_state(self._path)
            if state is None:
                return
            for topic_filter, since in state["filters"].items():
                self.add(topic_filter, _positions(since))
            self.synced = set(state["synced"]) & set(self._numbers)
            self.moving = None if state["moving"] is None else _positions(state["moving"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise unreadable(self._path, error) from error


def _positions(state: Sequence[int]) -> Positions:
    stream, bucket = map(int, state)
    return stream, bucket
