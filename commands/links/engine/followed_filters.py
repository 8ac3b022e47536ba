"""The filters that the bridge follows itself, and from where on in each log of the tree; and their file.

For a tree that sends more than the filters select, and older messages than the filter too: JetStream has one consumer
of the bridge for a cover of all filters, Kafka has no filters. So each filter has the position of the last message in
each log when it came, and takes later ones only. A filter begins with ``/``, as does what it selects (``selected``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from commands.links.engine.filter_tree import FilterTree
from commands.links.engine.state_file import read_state, unreadable, write_state
from streams.topic_strings import SEPARATOR

Positions = Mapping[str, int]
"""The number of a message in each log: a sequence number of a stream, an offset in a partition."""
_WHOLE: Final[Positions] = {}


class FollowedFilters:
    """The filters, as the file at *path* keeps them; for several threads. Raises StoreError where it cannot be used.

    synced: those of which the retained publications are known here.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.RLock()
        self._tree = FilterTree()
        self._numbers: dict[str, int] = {}
        self._since: dict[int, Positions] = {}
        self._next, self._changed = 1, False
        self.synced: set[str] = set()
        self._load()

    def all(self) -> tuple[str, ...]:
        """Every filter."""
        with self._lock:
            return tuple(self._numbers)

    def follow(self, filters: Iterable[str], since: Positions) -> None:
        """Have the filters, from *since* on, and keep them.

        Now: a filter that a crash made forgotten would miss what came before the next start.
        """
        with self._lock:
            for topic_filter in filters:
                self.add(topic_filter, since)
            self.save(only_changes=True)

    def add(self, topic_filter: str, since: Positions) -> None:
        """Have the filter, from *since* on; do nothing if it is there. A log without a position is followed whole."""
        with self._lock:
            if topic_filter in self._numbers:
                return
            number = self._numbers[topic_filter] = self._next
            if since:
                self._since[number] = since
            self._next += 1
            self._tree.add(topic_filter, number)
            self._changed = True

    def remove(self, topic_filter: str) -> None:
        """Remove the filter; do nothing if there is none."""
        with self._lock:
            number = self._numbers.pop(topic_filter, None)
            if number is not None:
                self._since.pop(number, None)
                self._tree.remove(topic_filter, number)
                self.synced.discard(topic_filter)
                self._changed = True

    def sync(self, filters: Iterable[str]) -> None:
        """The retained publications under these are known here."""
        with self._lock:
            fresh = {each for each in filters if each in self._numbers} - self.synced
            self.synced |= fresh
            self._changed = self._changed or bool(fresh)

    def restart(self, log: str) -> None:
        """*log* begins anew, with lower numbers: the filters follow it whole."""
        with self._lock:
            for number, since in self._since.items():
                self._since[number] = {each: position for each, position in since.items() if each != log}
            self._changed = True

    def takes(self, topic: str, log: str, position: int) -> bool:
        """Whether a filter selects the message on *topic* at *position* in *log*."""
        with self._lock:
            found = self._tree.match(topic)
            return any(position > self._since.get(number, _WHOLE).get(log, -1) for number in found)

    def first(self, log: str) -> int | None:
        """The position after which the first filter follows *log*; None if there is no filter."""
        with self._lock:
            if not self._numbers:
                return None
            if len(self._since) < len(self._numbers):
                return -1
            return min(since.get(log, -1) for since in self._since.values())

    def passed(self, positions: Positions) -> None:
        """All up to *positions* has come: filters need not remember positions before those."""
        with self._lock:
            for number, since in tuple(self._since.items()):
                if all(positions.get(log, -1) >= position for log, position in since.items()):
                    del self._since[number]

    def save(self, only_changes: bool = False) -> None:
        """Keep them."""
        with self._lock:
            if only_changes and not self._changed:
                return
            filters = {each: self._since.get(number, _WHOLE) for each, number in self._numbers.items()}
            write_state(self._path, {"filters": filters, "synced": sorted(self.synced)})
            self._changed = False

    def _load(self) -> None:
        try:
            state = read_state(self._path)
            if state is None:
                return
            for topic_filter, since in state["filters"].items():
                self.add(topic_filter, _positions(since))
            self.synced = set(state["synced"]) & set(self._numbers)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise unreadable(self._path, error) from error


def selected(topic_string: str) -> str:
    """A topic string as filters select it: with no topics of the tree's own, wildcards select those with $ too."""
    return f"{SEPARATOR}{topic_string}"


def _positions(state: Positions) -> Positions:
    return {str(log): int(position) for log, position in state.items()}
