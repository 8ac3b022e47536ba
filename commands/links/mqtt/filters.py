"""The filters that the bridge has subscribed to at the broker, each with its subscription identifier, and their file.

The broker remembers them across a restart of the bridge, and so does the bridge: what the broker kept meanwhile comes
with the identifiers of then. Filters overlap (``a/#`` and ``a/+/c``), and a broker may send a publication once for each
that selects it; it is taken once, for the oldest filter that selects it. Each SUBSCRIBE for a filter that the broker is
not known to have gets a new identifier. So identifiers ascend in the order in which the broker got the filters, and all
copies of a publication agree on which filter is the oldest. The bridge takes a copy under an identifier that it no
longer knows: a second copy is better than none.

A broker that was killed may have a filter again that it had let go. It would send those second copies for ever, so the
last filters that went are kept too, and are ``doubtful`` at each new connection until they are removed once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from commands.links.engine.filter_tree import FilterTree
from commands.links.engine.state_file import read_state, unreadable, write_state

# So many identifiers are set apart at once: what a crash wastes, of the 268,435,455 that MQTT has (3.8.2.1.2).
_RESERVED: Final = 1_000
_MOST_FORMER: Final = 1_000


class Filters:
    """The filters and their identifiers, as the file at *path* keeps them. Raises StoreError where it cannot.

    acknowledged: those that the broker is known to have. doubtful: former ones that it may have again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tree = FilterTree()
        self._ids: dict[str, int] = {}
        self._next = self._reserved = 1
        self._changed = False
        self._former: dict[str, None] = {}  # the oldest first
        self.acknowledged: set[str] = set()
        self.doubtful: set[str] = set()
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
        self._former.pop(topic_filter, None)
        self._changed = True
        return number

    def remove(self, topic_filter: str) -> None:
        """Remove the filter; do nothing if there is none."""
        self.doubtful.discard(topic_filter)
        number = self._ids.pop(topic_filter, None)
        if number is not None:
            self._tree.remove(topic_filter, number)
            self.acknowledged.discard(topic_filter)
            self._former[topic_filter] = None
            if len(self._former) > _MOST_FORMER:
                del self._former[next(iter(self._former))]
            self._changed = True

    def acknowledge(self, topic_filter: str) -> None:
        """The broker has it."""
        if topic_filter in self._ids and topic_filter not in self.acknowledged:
            self.acknowledged.add(topic_filter)
            self._changed = True

    def connected(self, remembered: bool) -> None:
        """There is a new connection. remembered: the broker has the filters of an earlier one; else it has none."""
        if not remembered:
            self.acknowledged.clear()
            self._former.clear()
            self._changed = True
        self.doubtful = set(self._former)

    def takes(self, topic: str, identifiers: Iterable[int]) -> bool:
        """Whether a copy on *topic*, sent under these identifiers, is the one to take."""
        given = set(identifiers)
        if not given or len(self._ids) <= 1:
            return True
        matching = self._tree.match(topic)
        return not matching or matching[0] in given or not given <= set(matching)

    def _load(self) -> None:
        try:
            state = read_state(self._path)
            if state is None:
                return
            self._next = self._reserved = int(state["next"])
            for topic_filter, number in sorted(state["filters"].items(), key=lambda item: int(item[1])):
                self._ids[topic_filter] = int(number)
                self._tree.add(topic_filter, int(number))
            self.acknowledged = set(state["acknowledged"]) & set(self._ids)
            self._former = {str(each): None for each in state.get("former", ()) if each not in self._ids}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise unreadable(self._path, error) from error

    def save(self, only_changes: bool = False) -> None:
        """Keep them. A filter that a crash makes forgotten is subscribed to again, under a new identifier."""
        if only_changes and not self._changed:
            return
        state = {
            "next": self._reserved,
            "filters": self._ids,
            "acknowledged": sorted(self.acknowledged),
            "former": list(self._former),
        }
        write_state(self._path, state)
        self._changed = False
