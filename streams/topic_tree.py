"""The tree of topic-based wildcard patterns, walked once along a topic (guide 2.5.1.1.1).

A node stands for the levels that lead to it. Below it, by what the next level of a pattern is: ``children`` (literal),
``plus`` (``+``) and ``more`` (``#`` with levels after it). A pattern that ends here is in ``here``, one that ends with
``#`` after here in ``tail``. For ``a/+``, ``a/#``, ``a/b/#`` and ``a/#/c``:

    root -- a: tail = a/#
              |-- plus: here = a/+
              |-- b: tail = a/b/#
              `-- more -- c: here = a/#/c

Matching keeps the set of nodes that the levels so far can have led to; it never goes back. A ``more`` node stays in
that set at every further level, because its ``#`` takes any number of them. Such nodes, and they alone, make it
possible to reach a node twice; a tree without any (the usual one) is walked by a simpler loop.

Cost of a match: the nodes on matching paths. Where a topic of very many levels leads from ``more`` node to ``more``
node, these can be as many at each level as the patterns are long; so a walk that has taken more than _STEPS steps for
each level and each pattern with a ``more`` node is given up, and those patterns are tried one by one. At worst, then,
each of them costs a few steps for each level of the topic: about 6 ms where topic and pattern have the 5,120 levels
that fit in 10,240 characters. Of a change: the levels of the pattern. Nodes that hold nothing are taken out again.
"""

from __future__ import annotations

from typing import Final

from streams.subscriptions import Holding, Several, Subscription, with_added, with_removed
from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import MULTI_LEVEL, SINGLE_LEVEL, TopicPattern

_STEPS: Final = 4
# What a walk may always take: it is over before trying anything one by one would be.
_FREE_STEPS: Final = 256


class _PatternNode:
    __slots__ = ("children", "here", "more", "plus", "tail")

    def __init__(self) -> None:
        self.children: dict[str, _PatternNode] | None = None
        self.plus: _PatternNode | None = None
        self.more: _PatternNode | None = None
        self.here: Holding = None
        self.tail: Holding = None

    def is_empty(self) -> bool:
        return self.here is None and self.tail is None and not self.children and self.plus is None and self.more is None


class TopicTree:
    """Wildcard subscriptions of the topic-based scheme. has_patterns: whether there are any."""

    __slots__ = ("_inner", "_root", "has_patterns")

    def __init__(self) -> None:
        self._root = _PatternNode()
        self.has_patterns = False
        # The patterns with a '#' before their end, by where they end; True for the tail.
        self._inner: dict[tuple[_PatternNode, bool], TopicPattern] = {}

    def is_empty(self) -> bool:
        """Whether nothing is held, and no node is left over."""
        return self._root.is_empty()

    def add(self, pattern: TopicPattern, subscription: Subscription) -> None:
        """Add a subscription under its wildcard pattern; one of the same sub_id and pattern is replaced."""
        self.has_patterns = True
        levels = pattern.levels
        is_tail = levels[-1] == MULTI_LEVEL
        node = self._root
        for level in levels[:-1] if is_tail else levels:
            node = self._child(node, level)
        if is_tail:
            node.tail = with_added(node.tail, subscription)
        else:
            node.here = with_added(node.here, subscription)
        if MULTI_LEVEL in levels[:-1]:
            self._inner[node, is_tail] = pattern

    def remove(self, pattern: TopicPattern, sub_id: bytes) -> None:
        """Remove a subscription. Raises KeyError where it is not under this pattern."""
        levels = pattern.levels
        is_tail = levels[-1] == MULTI_LEVEL
        path: list[tuple[_PatternNode, str]] = []
        node = self._root
        for level in levels[:-1] if is_tail else levels:
            below = _peek(node, level)
            if below is None:
                raise KeyError(sub_id)
            path.append((node, level))
            node = below
        if is_tail:
            node.tail = with_removed(node.tail, sub_id)
        else:
            node.here = with_removed(node.here, sub_id)
        if (node.tail if is_tail else node.here) is None:
            self._inner.pop((node, is_tail), None)
        for above, level in reversed(path):
            if not node.is_empty():
                break
            self._drop(above, level)
            node = above
        self.has_patterns = not self._root.is_empty()

    def match(self, topic_string: str) -> list[Subscription | Several]:
        """The subscriptions of every pattern that selects *topic_string*, each pattern once, in no particular order."""
        levels = topic_string.split(SEPARATOR)
        return self._match_revisiting(topic_string, levels) if self._inner else self._match_once(levels)

    def _match_once(self, levels: list[str]) -> list[Subscription | Several]:
        """The patterns that have no '#' but at their end."""
        # What a publication on a new topic costs, so each attribute is read once, and the node that is reached by
        # literal levels alone, mostly the only one, is not put in a list.
        matches: list[Subscription | Several] = []
        literal: _PatternNode | None = self._root
        nodes: list[_PatternNode] = []
        for level in levels:
            following: list[_PatternNode] = []
            if literal is not None:
                tail, children, plus = literal.tail, literal.children, literal.plus
                if tail is not None:
                    matches.append(tail)
                if plus is not None:
                    following.append(plus)
                literal = children.get(level) if children is not None else None
            elif not nodes:
                return matches
            for node in nodes:
                tail, children, plus = node.tail, node.children, node.plus
                if tail is not None:
                    matches.append(tail)
                if children is not None and level in children:
                    following.append(children[level])
                if plus is not None:
                    following.append(plus)
            nodes = following
        if literal is not None:
            nodes.append(literal)
        for node in nodes:
            here, tail = node.here, node.tail
            if here is not None:
                matches.append(here)
            if tail is not None:
                matches.append(tail)
        return matches

    def _match_revisiting(self, topic_string: str, levels: list[str]) -> list[Subscription | Several]:
        # Nodes hash by identity; a dict is a set that keeps its order.
        tails: dict[int, Subscription | Several] = {}
        nodes: dict[_PatternNode, None] = {self._root: None}
        staying: dict[_PatternNode, None] = {}
        steps_left = _FREE_STEPS + _STEPS * len(levels) * len(self._inner)
        for level in [*levels, None]:
            for node in list(nodes):
                if node.more is not None:
                    staying[node.more] = None
            nodes.update(staying)
            steps_left -= len(nodes)
            if steps_left < 0:
                return self._match_one_by_one(topic_string, levels)
            for node in nodes:
                if node.tail is not None:
                    tails[id(node.tail)] = node.tail
            if level is None:
                break
            following: dict[_PatternNode, None] = {}
            for node in nodes:
                child = node.children.get(level) if node.children is not None else None
                if child is not None:
                    following[child] = None
                if node.plus is not None:
                    following[node.plus] = None
            nodes = following
        return [*tails.values(), *(node.here for node in nodes if node.here is not None)]

    def _match_one_by_one(self, topic_string: str, levels: list[str]) -> list[Subscription | Several]:
        matches = self._match_once(levels)
        for (node, is_tail), pattern in self._inner.items():
            held = node.tail if is_tail else node.here
            if held is not None and pattern.matches(topic_string):
                matches.append(held)
        return matches

    def _child(self, node: _PatternNode, level: str) -> _PatternNode:
        below = _peek(node, level)
        if below is None:
            below = _PatternNode()
            if level == SINGLE_LEVEL:
                node.plus = below
            elif level == MULTI_LEVEL:
                node.more = below
            elif node.children is None:
                node.children = {level: below}
            else:
                node.children[level] = below
        return below

    def _drop(self, node: _PatternNode, level: str) -> None:
        if level == SINGLE_LEVEL:
            node.plus = None
        elif level == MULTI_LEVEL:
            node.more = None
        elif node.children is not None:
            del node.children[level]
            if not node.children:
                node.children = None


def _peek(node: _PatternNode, level: str) -> _PatternNode | None:
    if level == SINGLE_LEVEL:
        return node.plus
    if level == MULTI_LEVEL:
        return node.more
    return node.children.get(level) if node.children is not None else None
