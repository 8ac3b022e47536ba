"""Filters with the wildcards ``+`` and ``#``, the latter at the end only: what patterns become, and what they select.

Pure. Trees of other makes have these two wildcards of the topic-based scheme, whatever they call them. A filter is
text, levels with ``/`` between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from streams.char_wildcards import parse_char_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import MULTI_LEVEL, SINGLE_LEVEL, parse_topic_pattern


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
