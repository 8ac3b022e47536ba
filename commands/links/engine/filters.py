"""Filters with the wildcards ``+`` and ``#``, the latter at the end only: what patterns become, and what they select.

Pure. Trees of other makes have these two wildcards of the topic-based scheme, whatever they call them. A filter is
text, levels with ``/`` between them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from commands.disk.files import private, put_in_place, to_disk
from rfh2.errors import StoreError, system_words
from streams.patterns import MULTI_LEVEL, SINGLE_LEVEL, parse_char_pattern, parse_topic_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR


def read_state(path: Path) -> dict[str, Any] | None:
    """What was written last; None if there is no file. Raises OSError, ValueError."""
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return state


def unreadable(path: Path, error: Exception) -> StoreError:
    """The error for a file that *error* shows to be damaged."""
    return StoreError(f"{path}: cannot be read ({error}); remove it, and the bridge makes a new one")


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Replace the file; after a crash it is the old one or the new one. Raises StoreError."""
    partial = path.with_suffix(".partial")
    try:
        with open(partial, "w", encoding="utf-8", opener=private) as file:
            json.dump(state, file)
            to_disk(file)
        put_in_place(partial, path)
    except OSError as error:
        raise StoreError(f"{path}: {system_words(error)}") from error


def levels_of(topic_string: str, scheme: WildcardScheme) -> tuple[str, ...] | None:
    """The levels of the narrowest filter that selects all that the pattern does: cut after its first ``#``.

    None if a level of a pattern with character wildcards is + or #, which are no wildcards there. Raises CommandError
    3072 where *topic_string* is no pattern of that scheme.
    """
    if scheme is WildcardScheme.TOPIC:
        levels = parse_topic_pattern(topic_string).levels
        return (*levels[: levels.index(MULTI_LEVEL)], MULTI_LEVEL) if MULTI_LEVEL in levels else levels
    pattern = parse_char_pattern(topic_string)
    literal = tuple(pattern.literal_prefix.split(SEPARATOR))
    known = literal[:-1] if pattern.is_wild else literal
    if MULTI_LEVEL in known or SINGLE_LEVEL in known:
        return None
    return (*known, MULTI_LEVEL) if pattern.is_wild else known


@dataclass(slots=True)
class _FilterNode:
    children: dict[str, _FilterNode] = field(default_factory=dict)
    ids: set[int] = field(default_factory=set)


class FilterTree:
    """Which of many filters select a topic. A wildcard at the beginning selects no topic that begins with $."""

    def __init__(self) -> None:
        self._root = _FilterNode()

    def add(self, topic_filter: str, number: int) -> None:
        """Add a filter."""
        node = self._root
        for level in topic_filter.split(SEPARATOR):
            node = node.children.setdefault(level, _FilterNode())
        node.ids.add(number)

    def remove(self, topic_filter: str, number: int) -> None:
        """Remove a filter, and the nodes that nothing needs any more."""
        path = [self._root]
        levels = topic_filter.split(SEPARATOR)
        for level in levels:
            path.append(path[-1].children[level])
        path[-1].ids.discard(number)
        for at in range(len(levels), 0, -1):
            if path[at].ids or path[at].children:
                break
            del path[at - 1].children[levels[at - 1]]

    def match(self, topic: str) -> list[int]:
        """The numbers of the filters that select *topic*, ascending."""
        found: set[int] = set()
        nodes, wild = [self._root], not topic.startswith("$")
        for level in topic.split(SEPARATOR):
            following = []
            for node in nodes:
                if wild and (rest := node.children.get(MULTI_LEVEL)) is not None:
                    found |= rest.ids
                wanted = (level, SINGLE_LEVEL) if wild else (level,)
                following += [node.children[each] for each in wanted if each in node.children]
            nodes, wild = following, True
        for node in nodes:
            found |= node.ids
            if (rest := node.children.get(MULTI_LEVEL)) is not None:
                found |= rest.ids
        return sorted(found)


def matcher_of(filters: Sequence[str], form: Callable[[str], str]) -> Callable[[str], Sequence[str]]:
    """A function that says which of *filters* select a topic string. form: the topic that filters select of it."""
    tree = FilterTree()
    for number, topic_filter in enumerate(filters):
        tree.add(topic_filter, number)
    return lambda topic_string: [filters[number] for number in tree.match(form(topic_string))]


# The filters that the bridge follows itself, and from where on in each log of the tree; and their file.
#
# For a tree that sends more than the filters select, and older messages than the filter too: JetStream has one
# consumer of the bridge for a cover of all filters, Kafka has no filters. So each filter has the position of the last
# message in each log when it came, and takes later ones only. A filter begins with ``/``, as does what it selects
# (``selected``).

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
