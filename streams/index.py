"""Which subscriptions does a topic have? Exact ones, both kinds of wildcard ones, WILDCARD(BLOCK), and a cache on top.

Strategy:

- A subscription without wildcards is found by its topic string in one look-up; wildcard ones are in a TopicTree and a
  CharIndex, which hold nothing for the exact ones.
- The index keeps the matches of a topic. A change to an exact subscription drops only that topic. A change to a
  wildcard subscription is written to a short journal. Each kept answer has its position in the journal. When it is used
  again, only the patterns after that position are tried on its topic. It is determined again if one of them matches, or
  if the journal no longer reaches back to the position.
- A wildcard subscription keeps the set of blocking topic objects that was in effect when it was made (guide 2.5.4).

Answers are in ascending order of sub_id, the order in which deliveries are made.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from operator import attrgetter
from typing import Final

from streams.char_index import CharIndex
from streams.patterns import MULTI_LEVEL, SINGLE_LEVEL, Pattern, TopicPattern, parse_pattern
from streams.subscriptions import Holding, Several, Subscription, flatten, with_added, with_removed
from streams.topic_strings import NO_BLOCKS, SEPARATOR, BlockSet

# The tree of topic-based wildcard patterns, walked once along a topic (guide 2.5.1.1.1).
#
# A node stands for the levels that lead to it. Below it, by what the next level of a pattern is: ``children``
# (literal), ``plus`` (``+``) and ``more`` (``#`` with levels after it). A pattern that ends here is in ``here``, one
# that ends with ``#`` after here in ``tail``. For ``a/+``, ``a/#``, ``a/b/#`` and ``a/#/c``:
#
#     root -- a: tail = a/#
#               |-- plus: here = a/+
#               |-- b: tail = a/b/#
#               `-- more -- c: here = a/#/c
#
# Matching keeps the set of nodes that the levels so far can have led to; it never goes back. A ``more`` node stays in
# that set at every further level, because its ``#`` takes any number of them. Such nodes, and they alone, make it
# possible to reach a node twice; a tree without any (the usual one) is walked by a simpler loop.
#
# Cost of a match: the nodes on matching paths. Where a topic of very many levels leads from ``more`` node to ``more``
# node, these can be as many at each level as the patterns are long; so a walk that has taken more than _STEPS steps for
# each level and each pattern with a ``more`` node is given up, and those patterns are tried one by one. At worst, then,
# each of them costs a few steps for each level of the topic: about 6 ms where topic and pattern have the 5,120 levels
# that fit in 10,240 characters. Of a change: the levels of the pattern. Nodes that hold nothing are taken out again.

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


_SUB_ID: Final = attrgetter("sub_id")

_NONE: Final = range(0)

# In matches. A topic longer than most takes as much more as its characters take.
_TOPIC_COST: Final = 10
_USUAL_LENGTH: Final = 64
_CHARACTERS_TO_A_MATCH: Final = 8

# So many matches of outdated answers are kept before they are removed.
STALE: Final = 4_000

# With a longer journal, it takes more time to check a kept answer than to determine it again.
JOURNAL_LENGTH: Final = 32


def _cost(topic_string: str, matches: int) -> int:
    """What an answer takes of the room."""
    length = len(topic_string)
    if length <= _USUAL_LENGTH:
        return _TOPIC_COST + matches
    return _TOPIC_COST + matches + (length - _USUAL_LENGTH) // _CHARACTERS_TO_A_MATCH


def _in_order(held: list[Subscription | Several]) -> tuple[Subscription, ...]:
    """All that is held, in ascending order of sub_id; one and two, which is most, without the cost of a sort."""
    count = len(held)
    if not count:
        return ()
    first = held[0]
    if not isinstance(first, dict):
        if count == 1:
            return (first,)
        second = held[1]
        if count == 2 and not isinstance(second, dict):
            return (first, second) if first.sub_id < second.sub_id else (second, first)
    return tuple(sorted(flatten(held), key=_SUB_ID))


class SubscriptionIndex:
    """All subscriptions of a queue manager, by the topics they match.

    cached_topics: for how many topics the answer is kept; ten subscriptions in answers count as one topic more, and so
    do 80 characters of topics beyond the first 64 of each, so that the bound is one in bytes.
    """

    __slots__ = (
        "_answers",
        "_answers_since",
        "_block_sets",
        "_blocked_under",
        "_cache_size",
        "_chars",
        "_exact",
        "_first_levels",
        "_good_until",
        "_journal",
        "_journal_end",
        "_room",
        "_several",
        "_stale",
        "_tree",
    )

    def __init__(self, cached_topics: int = 200_000) -> None:
        self._exact: dict[str, Subscription | Several] = {}
        self._tree = TopicTree()
        self._chars = CharIndex()
        # By sub_id: the blocks that a wildcard subscription was made under, if any, and its literal depth.
        self._blocked_under: dict[bytes, tuple[BlockSet, int]] = {}
        # How many subscriptions are under each: mostly there is one, that of now.
        self._block_sets: Counter[BlockSet] = Counter()
        # Of all of them: most topics lie under no block, and the first level shows it.
        self._first_levels: frozenset[str] = frozenset()
        # What topics matched. A tuple for each would be another container for the garbage collector to look through,
        # which costs more than matching; so several matches are a range of one long list, and a single one is bare.
        self._answers: dict[str, Subscription | range] = {}
        self._several: list[Subscription] = []
        # How much of that list is no longer in any answer.
        self._stale = 0
        # How far into the journal an answer is good, where that is not _answers_since.
        self._good_until: dict[str, int] = {}
        self._answers_since = 0
        self._cache_size = self._room = cached_topics * _TOPIC_COST
        self._journal: deque[tuple[str, Pattern]] = deque(maxlen=JOURNAL_LENGTH)
        self._journal_end = 0

    def add(self, subscription: Subscription, blocks: BlockSet = NO_BLOCKS) -> None:
        """Add a subscription, made under these blocks.

        Raises CommandError 3072 where its topic string is no pattern of its scheme; nothing is changed then.
        """
        pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        self._put_under(blocks, pattern, subscription)
        self._put(pattern, subscription)

    def remove(self, subscription: Subscription) -> None:
        """Take out the subscription of this sub_id, topic string and scheme. Raises KeyError where there is none."""
        pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        sub_id = subscription.sub_id
        if isinstance(pattern, TopicPattern) and pattern.is_wild:
            self._tree.remove(pattern, sub_id)
        elif pattern.is_wild:
            self._chars.remove(pattern, sub_id)  # type: ignore[arg-type]
        else:
            holding: Holding = with_removed(self._exact.get(pattern.literal), sub_id)
            if holding is None:
                del self._exact[pattern.literal]
            else:
                self._exact[pattern.literal] = holding
        under = self._blocked_under.pop(sub_id, None)
        if under is not None:
            self._block_sets[under[0]] -= 1
            if not self._block_sets[under[0]]:
                del self._block_sets[under[0]]
                self._first_levels = frozenset().union(*(blocks.first_levels for blocks in self._block_sets))
        self._touch(pattern)

    def replace(self, subscription: Subscription) -> None:
        """Put a new value in the place of the subscription of this sub_id, topic string and scheme; blocks stay."""
        self._put(parse_pattern(subscription.topic_string, subscription.wildcard), subscription)

    def blocks(self, sub_id: bytes) -> BlockSet:
        """The blocks that a subscription was made under; none for one without wildcards."""
        under = self._blocked_under.get(sub_id)
        return under[0] if under is not None else NO_BLOCKS

    def match(self, topic_string: str) -> tuple[Subscription, ...]:
        """The subscriptions that a publication on *topic_string* reaches, in ascending order of sub_id."""
        kept = self._answers.get(topic_string)
        if kept is not None:
            good_until = self._answers_since
            if self._good_until:
                good_until = self._good_until.get(topic_string, good_until)
            if good_until == self._journal_end or self._still_good(topic_string, good_until):
                return tuple(self._several[kept.start : kept.stop]) if isinstance(kept, range) else (kept,)
            del self._answers[topic_string]
            self._leave(topic_string, kept)
        matches = self.match_uncached(topic_string)
        count = len(matches)
        cost = _cost(topic_string, count)
        if self._room < cost:
            # Topics in use return for one match each; to track the age of answers would slow down every match.
            self._forget_answers()
        self._room -= cost
        if count == 1:
            self._answers[topic_string] = matches[0]
        elif count:
            start = len(self._several)
            self._several += matches
            self._answers[topic_string] = range(start, start + count)
        else:
            self._answers[topic_string] = _NONE
        if self._answers_since != self._journal_end:
            self._good_until[topic_string] = self._journal_end
        return matches

    def match_uncached(self, topic_string: str) -> tuple[Subscription, ...]:
        """The same answer as match, determined again."""
        matches: list[Subscription | Several] = self._tree.match(topic_string) if self._tree.has_patterns else []
        if self._chars.by_text:
            matches += self._chars.match(topic_string)
        if matches and self._block_sets and topic_string.partition(SEPARATOR)[0] in self._first_levels:
            blocking = [(blocks, depth) for blocks in self._block_sets if (depth := blocks.depth(topic_string))]
            matches = [s for s in flatten(matches) if not self._is_blocked(s.sub_id, blocking)]
        exact = self._exact.get(topic_string)
        if exact is not None:
            matches.append(exact)
        return _in_order(matches)

    def blocked(self, topic_string: str) -> tuple[Subscription, ...]:
        """The subscriptions that select *topic_string* and that WILDCARD(BLOCK) keeps from it, in order of sub_id."""
        if not self._block_sets:
            return ()
        blocking = [(blocks, depth) for blocks in self._block_sets if (depth := blocks.depth(topic_string))]
        if not blocking:
            return ()
        matches: list[Subscription | Several] = self._tree.match(topic_string) if self._tree.has_patterns else []
        if self._chars.by_text:
            matches += self._chars.match(topic_string)
        return tuple(sorted((s for s in flatten(matches) if self._is_blocked(s.sub_id, blocking)), key=_SUB_ID))

    def _put(self, pattern: Pattern, subscription: Subscription) -> None:
        if isinstance(pattern, TopicPattern) and pattern.is_wild:
            self._tree.add(pattern, subscription)
        elif pattern.is_wild:
            self._chars.add(pattern, subscription)  # type: ignore[arg-type]
        else:
            self._exact[pattern.literal] = with_added(self._exact.get(pattern.literal), subscription)
        self._touch(pattern)

    def _put_under(self, blocks: BlockSet, pattern: Pattern, subscription: Subscription) -> None:
        if not pattern.is_wild or not blocks:
            return
        self._blocked_under[subscription.sub_id] = (blocks, pattern.literal_depth)
        self._block_sets[blocks] += 1
        if self._block_sets[blocks] == 1:
            self._first_levels |= blocks.first_levels

    def _is_blocked(self, sub_id: bytes, blocking: list[tuple[BlockSet, int]]) -> bool:
        """blocking: the sets that have a block at or above the topic, each with the levels of the deepest one."""
        under = self._blocked_under.get(sub_id)
        if under is None:
            return False
        blocks, literal_depth = under
        for other, depth in blocking:
            if other is blocks or other == blocks:
                return depth > literal_depth
        return False

    def _touch(self, pattern: Pattern) -> None:
        if pattern.is_wild:
            begins = pattern.literal_topic if isinstance(pattern, TopicPattern) else pattern.literal_prefix
            self._journal.append((begins, pattern))
            self._journal_end += 1
            if not self._answers:
                self._answers_since = self._journal_end
        else:
            if (kept := self._answers.pop(pattern.literal, None)) is not None:
                self._leave(pattern.literal, kept)
            self._good_until.pop(pattern.literal, None)

    def _leave(self, topic_string: str, kept: Subscription | range) -> None:
        """Drop an outdated answer, so that the subscriptions in it do not stay in memory longer than necessary."""
        if not isinstance(kept, range):
            self._room += _cost(topic_string, 1)
            return
        self._room += _cost(topic_string, len(kept))
        self._stale += len(kept)
        if self._stale > STALE and 2 * self._stale > len(self._several):
            self._throw_out_stale()

    def _throw_out_stale(self) -> None:
        several, self._several, self._stale = self._several, [], 0
        for topic_string, kept in self._answers.items():
            if isinstance(kept, range) and kept:
                start = len(self._several)
                self._several += several[kept.start : kept.stop]
                self._answers[topic_string] = range(start, start + len(kept))

    def _still_good(self, topic_string: str, good_until: int) -> bool:
        since = self._journal_end - good_until
        if since > len(self._journal):
            return False
        for begins, pattern in islice(self._journal, len(self._journal) - since, None):
            # Most changes are elsewhere, and the beginning shows it.
            if topic_string.startswith(begins) and pattern.matches(topic_string):
                return False
        self._good_until[topic_string] = self._journal_end
        return True

    def _forget_answers(self) -> None:
        self._answers.clear()
        self._several.clear()
        self._stale = 0
        self._good_until.clear()
        self._answers_since = self._journal_end
        self._room = self._cache_size
