"""Retained publications: at most one a topic, found again under either wildcard scheme (guide 2.3.2, 4.8.2).

They are in a tree of levels. A node without content and without children is removed. A look-up visits only nodes that
the pattern can select: a literal level leads to one child, ``+`` to all children, ``#`` to the whole subtree. A
character pattern follows its whole literal levels, then the children that begin like the level with the wildcard, and
is tried on everything below. Answers are in ascending order of topic string.

A retained publication is not found after it has expired, even if expire() has not removed it yet.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime

from streams.operations import RetainedPublication
from streams.patterns import CharPattern, LevelWalk, Pattern, TopicPattern
from streams.topic_strings import NO_BLOCKS, SEPARATOR, BlockSet


class _TopicNode:
    __slots__ = ("children", "retained")

    def __init__(self) -> None:
        self.children: dict[str, _TopicNode] = {}
        self.retained: RetainedPublication | None = None


class RetainedPublications:
    """The retained publications of a queue manager."""

    __slots__ = ("_by_topic", "_expiries", "_root")

    def __init__(self) -> None:
        self._root = _TopicNode()
        self._by_topic: dict[str, RetainedPublication] = {}
        # (expires_at, topic string), with entries of publications since replaced, which are skipped.
        self._expiries: list[tuple[datetime, str]] = []

    def __len__(self) -> int:
        """How many are held, including expired ones that expire() has not yet removed."""
        return len(self._by_topic)

    def store(self, retained: RetainedPublication) -> None:
        """Keep this one for its topic, instead of the one before it."""
        node = self._root
        for level in retained.topic_string.split(SEPARATOR):
            below = node.children.get(level)
            if below is None:
                below = node.children[level] = _TopicNode()
            node = below
        before = node.retained
        node.retained = retained
        self._by_topic[retained.topic_string] = retained
        expires_at = retained.publication.expires_at
        if expires_at is not None and (before is None or before.publication.expires_at != expires_at):
            heapq.heappush(self._expiries, (expires_at, retained.topic_string))
            if len(self._expiries) > 2 * len(self._by_topic) + 64:
                self._drop_stale_expiries()

    def clear(self, topic_string: str) -> bool:
        """Forget the retained publication of a topic; whether there was one."""
        if self._by_topic.pop(topic_string, None) is None:
            return False
        levels = topic_string.split(SEPARATOR)
        path = [self._root]
        for level in levels:
            path.append(path[-1].children[level])
        path[-1].retained = None
        for above, level, node in zip(reversed(path[:-1]), reversed(levels), reversed(path[1:]), strict=True):
            if node.children or node.retained is not None:
                break
            del above.children[level]
        return True

    def get(self, topic_string: str, now: datetime) -> RetainedPublication | None:
        """The retained publication of a topic, unless it has expired."""
        retained = self._by_topic.get(topic_string)
        return retained if retained is not None and _is_live(retained, now) else None

    def match(self, pattern: Pattern, now: datetime, blocks: BlockSet = NO_BLOCKS) -> list[RetainedPublication]:
        """Those that *pattern* selects and that have not expired, in ascending order of topic string.

        blocks: those that the subscription was made under; they keep from it what they would keep of a publication.
        """
        if not pattern.is_wild:
            retained = self.get(pattern.literal, now)
            return [] if retained is None else [retained]
        found = self._topic_walk(pattern) if isinstance(pattern, TopicPattern) else self._char_walk(pattern)
        live = [retained for retained in found if _is_live(retained, now)]
        if blocks:
            depth = pattern.literal_depth
            live = [retained for retained in live if not blocks.blocks(retained.topic_string, depth)]
        live.sort(key=_topic_string)
        return live

    def is_due(self, now: datetime) -> bool:
        """Whether something may have expired."""
        return bool(self._expiries and self._expiries[0][0] <= now)

    def expire(self, now: datetime) -> list[str]:
        """Take out what has expired; the topic strings, in order of expiry. Costs nothing while nothing is due."""
        gone: list[str] = []
        while self._expiries and self._expiries[0][0] <= now:
            expires_at, topic_string = heapq.heappop(self._expiries)
            retained = self._by_topic.get(topic_string)
            if retained is not None and retained.publication.expires_at == expires_at:
                self.clear(topic_string)
                gone.append(topic_string)
        return gone

    def __iter__(self) -> Iterator[RetainedPublication]:
        """All that are held, in ascending order of topic string."""
        return iter(sorted(self._by_topic.values(), key=_topic_string))

    def _drop_stale_expiries(self) -> None:
        current = ((r.publication.expires_at, topic) for topic, r in self._by_topic.items())
        self._expiries = [(expires_at, topic) for expires_at, topic in current if expires_at is not None]
        heapq.heapify(self._expiries)

    def _topic_walk(self, pattern: TopicPattern) -> Iterator[RetainedPublication]:
        walk = LevelWalk(pattern)
        stack: list[tuple[_TopicNode, int]] = [(self._root, walk.start)]
        while stack:
            node, state = stack.pop()
            if node.retained is not None and walk.is_whole(state):
                yield node.retained
            if walk.is_all_below(state):
                for child in node.children.values():
                    yield from _subtree(child)
                continue
            only = walk.only_level(state)
            if only is not None:
                below = node.children.get(only)
                if below is not None:
                    stack.append((below, walk.after(state, only)))
                continue
            for level, child in node.children.items():
                after = walk.after(state, level)
                if after:
                    stack.append((child, after))

    def _char_walk(self, pattern: CharPattern) -> Iterator[RetainedPublication]:
        *whole, begun = pattern.literal_prefix.split(SEPARATOR)
        node: _TopicNode | None = self._root
        for level in whole:
            node = node.children.get(level) if node is not None else None
        if node is None:
            return
        for level, child in node.children.items():
            if level.startswith(begun):
                for retained in _subtree(child):
                    if pattern.matches(retained.topic_string):
                        yield retained


def _subtree(node: _TopicNode) -> Iterator[RetainedPublication]:
    stack = [node]
    while stack:
        node = stack.pop()
        if node.retained is not None:
            yield node.retained
        stack.extend(node.children.values())


def _is_live(retained: RetainedPublication, now: datetime) -> bool:
    expires_at = retained.publication.expires_at
    return expires_at is None or expires_at > now


def _topic_string(retained: RetainedPublication) -> str:
    return retained.topic_string
