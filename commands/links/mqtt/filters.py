"""The filters that the bridge has subscribed to at the broker, each with its subscription identifier, and their file.

The broker remembers them across a restart of the bridge, and so does the bridge: what the broker kept meanwhile comes
with the identifiers of then. Filters overlap (``a/#`` and ``a/+/c``), and a broker may send a publication once for each
that selects it; it is taken once, for the oldest filter that selects it. Each SUBSCRIBE for a filter that the broker is
not known to have gets a new identifier. So identifiers ascend in the order in which the broker got the filters, and all
copies of a publication agree on which filter is the oldest. The bridge takes a copy under an identifier that it no
longer knows: a second copy is better than none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from commands.links.mqtt.topics import selects
from commands.qmgr.store.permissions import private
from rfh2.errors import StoreError
from streams.topic_strings import SEPARATOR

# So many identifiers are set apart at once: what a crash wastes, of the 268,435,455 that MQTT has (3.8.2.1.2).
_RESERVED: Final = 1_000


@dataclass(slots=True)
class _FilterNode:
    children: dict[str, _FilterNode] = field(default_factory=dict)
    ids: set[int] = field(default_factory=set)


class FilterTree:
    """Which of many filters select a topic."""

    def __init__(self) -> None:
        self._root = _FilterNode()
        self._filters: dict[int, str] = {}

    def add(self, topic_filter: str, number: int) -> None:
        """Add a filter."""
        node = self._root
        for level in topic_filter.split(SEPARATOR):
            node = node.children.setdefault(level, _FilterNode())
        node.ids.add(number)
        self._filters[number] = topic_filter

    def remove(self, topic_filter: str, number: int) -> None:
        """Remove a filter, and the nodes that nothing needs any more."""
        path = [self._root]
        levels = topic_filter.split(SEPARATOR)
        for level in levels:
            path.append(path[-1].children[level])
        path[-1].ids.discard(number)
        del self._filters[number]
        for at in range(len(levels), 0, -1):
            if path[at].ids or path[at].children:
                break
            del path[at - 1].children[levels[at - 1]]

    def match(self, topic: str) -> list[int]:
        """The numbers of the filters that select *topic*, ascending."""
        found: set[int] = set()
        nodes = [self._root]
        for level in topic.split(SEPARATOR):
            following = []
            for node in nodes:
                if (rest := node.children.get("#")) is not None:
                    found |= rest.ids
                following += [node.children[wanted] for wanted in (level, "+") if wanted in node.children]
            nodes = following
        for node in nodes:
            found |= node.ids
            if (rest := node.children.get("#")) is not None:
                found |= rest.ids
        # A wildcard at the beginning selects no topic that begins with $.
        return sorted(n for n in found if not topic.startswith("$") or selects(self._filters[n], topic))


class Filters:
    """The filters and their identifiers, as the file at *path* keeps them. Raises StoreError where it cannot.

    acknowledged: those that the broker is known to have.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tree = FilterTree()
        self._ids: dict[str, int] = {}
        self._next = self._reserved = 1
        self._changed = False
        self.acknowledged: set[str] = set()
        self._load()

    def number(self, topic_filter: str) -> int | None:
        """Its identifier, None where there is no such filter."""
        return self._ids.get(topic_filter)

    def all(self) -> tuple[str, ...]:
        """Every filter, the oldest first."""
        return tuple(self._ids)

    def add(self, topic_filter: str) -> int:
        """Have *topic_filter*; returns its identifier: a new one, unless the broker is known to have the filter."""
        if topic_filter in self.acknowledged:
            return self._ids[topic_filter]
        self.remove(topic_filter)
        if self._next >= self._reserved:
            self._reserved = self._next + _RESERVED
            self.save()
        number = self._ids[topic_filter] = self._next
        self._next += 1
        self._tree.add(topic_filter, number)
        self._changed = True
        return number

    def remove(self, topic_filter: str) -> None:
        """Remove the filter; do nothing if there is none."""
        number = self._ids.pop(topic_filter, None)
        if number is not None:
            self._tree.remove(topic_filter, number)
            self.acknowledged.discard(topic_filter)
            self._changed = True

    def acknowledge(self, topic_filter: str) -> None:
        """The broker has it."""
        if topic_filter in self._ids and topic_filter not in self.acknowledged:
            self.acknowledged.add(topic_filter)
            self._changed = True

    def forgotten(self) -> None:
        """The broker has none of the filters."""
        self.acknowledged.clear()
        self._changed = True

    def takes(self, topic: str, identifiers: Iterable[int]) -> bool:
        """Whether a copy on *topic*, sent under these identifiers, is the one to take."""
        given = set(identifiers)
        if not given or len(self._ids) <= 1:
            return True
        matching = self._tree.match(topic)
        return not matching or matching[0] in given or not given <= set(matching)

    def _load(self) -> None:
        try:
            state: dict[str, Any] = json.loads(self._path.read_text())
            self._next = self._reserved = int(state["next"])
            for topic_filter, number in sorted(state["filters"].items(), key=lambda item: int(item[1])):
                self._ids[topic_filter] = int(number)
                self._tree.add(topic_filter, int(number))
            self.acknowledged = set(state["acknowledged"]) & set(self._ids)
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self._path}: cannot be read ({error}); remove it, and the bridge makes it anew"
            ) from error

    def save(self, only_changes: bool = False) -> None:
        """Keep them. A filter that a crash makes forgotten is subscribed to again, under a new identifier."""
        if only_changes and not self._changed:
            return
        state = {"next": self._reserved, "filters": self._ids, "acknowledged": sorted(self.acknowledged)}
        partial = self._path.with_suffix(".partial")
        try:
            with open(partial, "w", encoding="utf-8", opener=private) as file:
                json.dump(state, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        self._changed = False
