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
from streams.patterns import Pattern, parse_pattern
from streams.subscriptions import Holding, Several, Subscription, flatten, with_added, with_removed
from streams.topic_strings import NO_BLOCKS, SEPARATOR, BlockSet
from streams.topic_tree import TopicTree
from streams.topic_wildcards import TopicPattern

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
