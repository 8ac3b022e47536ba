"""A subscription's topic string, read under either wildcard scheme (guide 2.5.1.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from rfh2.constants import MQRCCF_TOPIC_ERROR
from rfh2.errors import CommandError
from streams.fragments import Fragment, Wild, fragments_stand_in, literal_texts, read_fragments, texts_stand_in
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_strings import SEPARATOR, check_topic_string, split_levels

# The topic-based wildcard scheme (guide 2.5.1.1.1): what MQRFH2 commands use.
#
# ``#`` and ``+`` are wild only where they are alone in a level; there is no escape character.
#
#     pattern             matches                             does not match
#     USA/+               USA/Alabama                         USA, USA/Alabama/Auburn
#     USA/#               USA, USA/Alabama/Auburn             USAF
#     Sports/#/Arsenal    Sports/Arsenal, Sports/a/b/Arsenal  Sports/Arsenal/a
#     #                   everything
#     +                   every topic of one level            USA/Alabama
#     /#                  /USA, /                             USA
#     USA+, ##, #+        exactly themselves
#
# Several ``#`` in a row have the effect of one. A publication may not be to a topic string in which a level is ``#`` or
# ``+``; one in which they stand beside other characters may be published and subscribed to.

MULTI_LEVEL: Final = "#"
SINGLE_LEVEL: Final = "+"


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A subscription's topic string under the topic-based scheme.

    text: as the subscriber wrote it. levels: its levels, runs of ``#`` made one. literal_depth: how many levels stand
    before the first wildcard; all of them where nothing is wild.
    """

    text: str
    levels: tuple[str, ...]
    literal_depth: int

    @property
    def is_wild(self) -> bool:
        """Whether the pattern can match anything but its own text."""
        return self.literal_depth < len(self.levels)

    @property
    def literal(self) -> str:
        """The one topic string that a pattern without wildcards matches."""
        return self.text

    @property
    def literal_topic(self) -> str:
        """The topic string of the levels before the first wildcard; "" where there are none."""
        return SEPARATOR.join(self.levels[: self.literal_depth])

    @property
    def literal_length(self) -> int:
        """How many characters stand before the first wildcard: what makes one match closer than another (4.8.3)."""
        if not self.is_wild:
            return len(self.text)
        return sum(len(level) + 1 for level in self.levels[: self.literal_depth])

    def matches(self, topic_string: str) -> bool:
        """Whether a publication on *topic_string* is selected; the cost is one step for each level of the topic."""
        if not self.is_wild:
            return topic_string == self.text
        levels = self.levels
        if MULTI_LEVEL in levels[:-1]:
            return self._matches_walking(topic_string.split(SEPARATOR))
        topic = topic_string.split(SEPARATOR, len(levels))
        if levels[-1] == MULTI_LEVEL:
            levels = levels[:-1]
            if len(topic) < len(levels):
                return False
        elif len(topic) != len(levels):
            return False
        for wanted, level in zip(levels, topic, strict=False):  # noqa: SIM110 - all() takes twice the time
            if wanted not in (level, SINGLE_LEVEL):
                return False
        return True

    def _matches_walking(self, topic: list[str]) -> bool:
        if topic[: self.literal_depth] != list(self.levels[: self.literal_depth]):
            return False
        walk = LevelWalk(self)
        state = walk.start
        for level in topic:
            state = walk.after(state, level)
            if not state:
                return False
        return walk.is_whole(state)


class LevelWalk:
    """A wildcard pattern that is followed along the levels of topics, one by one.

    A state is an integer in which bit p is set where the levels so far can be what the first p levels of the pattern
    stand for; 0 is a topic that the pattern selects neither here nor anywhere below. A ``#`` is stepped over at once,
    because it may stand for no level, and stays, because it may stand for more. So a step costs no more than a few
    operations on an integer of as many bits as the pattern has levels, however many ``#`` there are.
    """

    __slots__ = ("_end", "_levels", "_literal", "_multi", "_single", "start")

    def __init__(self, pattern: TopicPattern) -> None:
        self._levels = levels = pattern.levels
        self._end = len(levels)
        self._multi = sum(1 << place for place, level in enumerate(levels) if level == MULTI_LEVEL)
        self._single = sum(1 << place for place, level in enumerate(levels) if level == SINGLE_LEVEL)
        self._literal: dict[str, int] = {}
        for place, level in enumerate(levels):
            if level not in (MULTI_LEVEL, SINGLE_LEVEL):
                self._literal[level] = self._literal.get(level, self._single) | 1 << place
        self.start = 1 | (1 & self._multi) << 1

    def after(self, state: int, level: str) -> int:
        """The state after one level more."""
        stepped = (state & self._literal.get(level, self._single)) << 1 | state & self._multi
        return stepped | (stepped & self._multi) << 1

    def is_whole(self, state: int) -> bool:
        """Whether the levels so far are a topic that the pattern selects."""
        return bool(state >> self._end)

    def is_all_below(self, state: int) -> bool:
        """Whether the pattern selects every topic below."""
        return bool(state >> self._end - 1 & 1) and self._levels[-1] == MULTI_LEVEL

    def only_level(self, state: int) -> str | None:
        """The one level that can come next, where there is only one; None where several can, or none."""
        # Until a '#' is met, which then stays, the pattern leads to one place.
        place = state.bit_length() - 1
        if state & self._multi or place >= self._end or self._levels[place] == SINGLE_LEVEL:
            return None
        return self._levels[place]


def parse_topic_pattern(text: str) -> TopicPattern:
    """Read a subscription's topic string (guide 2.5.1.1.1).

    Raises CommandError 3072 for one that is empty or over 10,240 characters; every other string is a pattern.
    """
    check_topic_string(text)
    levels = split_levels(text)
    if MULTI_LEVEL not in levels and SINGLE_LEVEL not in levels:
        return TopicPattern(text, levels, len(levels))
    merged: list[str] = []
    for level in levels:
        if level == MULTI_LEVEL and merged and merged[-1] == MULTI_LEVEL:
            continue
        merged.append(level)
    depth = next(i for i, level in enumerate(merged) if level in (MULTI_LEVEL, SINGLE_LEVEL))
    return TopicPattern(text, tuple(merged), depth)


def has_topic_wildcards(topic_string: str) -> bool:
    """Whether some level is ``#`` or ``+`` alone, so that the string is a pattern and no topic (guide 2.5.1.1.1)."""
    if MULTI_LEVEL not in topic_string and SINGLE_LEVEL not in topic_string:
        return False
    levels = topic_string.split(SEPARATOR)
    return MULTI_LEVEL in levels or SINGLE_LEVEL in levels


def check_publication_topic(topic_string: str) -> str:
    """The topic string, when a publication may be to it.

    Raises CommandError 3072 where it is empty, over 10,240 characters, or has a wildcard level (guide 2.5.1.1.1,
    "When topic-based wildcards are not wild").
    """
    check_topic_string(topic_string)
    if has_topic_wildcards(topic_string):
        raise CommandError(MQRCCF_TOPIC_ERROR, topic_string, "wildcards are not allowed in a publication's topic")
    return topic_string


# The character-based wildcard scheme (guide 2.5.1.1.2): MQRFH and PCF commands, and WebSphere MQ 6, use it.
#
# ``*`` stands for zero or more characters, ``?`` for exactly one (one Unicode code point); neither stops at a ``/``.
# ``%`` makes the ``*``, ``?`` or ``%`` after it literal. Before anything else, or at the end, ``%`` is an error: the
# syntax does not allow it elsewhere, and either reading (literal, or dropped) could select other topics without notice.
#
#     pattern         matches                               does not match
#     IBM/*/Results   IBM/Software/Results, IBM/a/b/Results IBM/Results
#     IBM/*ware       IBM/Software, IBM/a/Hardware          IBM/Software/x
#     *               everything
#     a?c             abc, a/c                              ac, abbc
#     100%%           100%                                  100%%
#     a%*b            a*b                                   aXb
#
# Matching is greedy and never goes back; streams.fragments explains why, and the cost. A pattern and a topic of 10,240
# characters each take at most about 10 ms, and well below 1 ms if the pattern has no ``?``.

MANY: Final = "*"
ONE: Final = "?"
ESCAPE: Final = "%"

_WILD: Final = {MANY: Wild.MANY, ONE: Wild.ONE}


@dataclass(frozen=True, slots=True)
class CharPattern:
    """A subscription's topic string under the character-based scheme.

    text: as the subscriber wrote it, escapes included. fragments: what stands between the ``*``; one more than there
    are ``*``. literal_prefix: the characters before the first wildcard, unescaped.
    """

    text: str
    fragments: tuple[Fragment, ...]
    literal_prefix: str
    is_wild: bool
    # A pattern with '*' and without '?' (most are) is matched by these plain strings; empty otherwise.
    plain: tuple[str, ...]

    @property
    def literal(self) -> str:
        """The one topic string that a pattern without wildcards matches: the text, unescaped."""
        return self.literal_prefix

    @property
    def literal_depth(self) -> int:
        """How many whole levels stand before the level that holds the first wildcard; all where nothing is wild."""
        separators = self.literal_prefix.count(SEPARATOR)
        return separators if self.is_wild else separators + 1

    @property
    def literal_topic(self) -> str:
        """The topic string of the whole levels before the first wildcard; "" where there are none."""
        return self.literal_prefix.rpartition(SEPARATOR)[0] if self.is_wild else self.literal_prefix

    @property
    def literal_length(self) -> int:
        """How many characters stand before the first wildcard: what makes one match closer than another (4.8.3)."""
        return len(self.literal_prefix)

    def matcher(self) -> Callable[[str], bool]:
        """``matches`` as a function that holds no more than it needs: for an index, which has many patterns."""
        return partial(texts_stand_in, self.plain) if self.plain else self.matches

    def matches(self, topic_string: str) -> bool:
        """Whether a publication on *topic_string* is selected."""
        if self.plain:
            return texts_stand_in(self.plain, topic_string)
        if not self.is_wild:
            return topic_string == self.literal_prefix
        return fragments_stand_in(self.fragments, topic_string)


def parse_char_pattern(text: str) -> CharPattern:
    """Read a subscription's topic string (guide 2.5.1.1.2).

    Raises CommandError 3072 for one that is empty or over 10,240 characters, or in which ``%`` is followed by anything
    but ``*``, ``?`` or ``%``.
    """
    check_topic_string(text)
    if MANY not in text and ONE not in text and ESCAPE not in text:
        return CharPattern(text, (Fragment(len(text), ((0, text),)),), text, False, ())
    fragments = read_fragments(_symbols(text))
    begin = fragments[0].runs[:1]
    prefix = begin[0][1] if begin and begin[0][0] == 0 else ""
    is_wild = len(fragments) > 1 or fragments[0].length > len(prefix)
    return CharPattern(text, fragments, prefix, is_wild, literal_texts(fragments) if len(fragments) > 1 else ())


def _symbols(text: str) -> Iterator[str | Wild]:
    characters = iter(text)
    for character in characters:
        if character == ESCAPE:
            yield _escaped(characters, text)
        else:
            yield _WILD.get(character, character)


def _escaped(characters: Iterator[str], text: str) -> str:
    following = next(characters, "")
    if following not in (MANY, ONE, ESCAPE):
        why = f"'%' must be followed by '*', '?' or '%', not by {following!r}" if following else "'%' at the end"
        raise CommandError(MQRCCF_TOPIC_ERROR, text, why)
    return following


def escape_char_pattern(topic_string: str) -> str:
    """The pattern that matches exactly *topic_string*: ``*``, ``?`` and ``%`` escaped (guide 2.5.1.1.2)."""
    return topic_string.translate({ord(c): ESCAPE + c for c in (MANY, ONE, ESCAPE)})


def has_char_wildcards(text: str) -> bool:
    """Whether a pattern is wild; raises CommandError 3072 as parse_char_pattern does."""
    return parse_char_pattern(text).is_wild


def widen_to_topic_pattern(text: str) -> str:
    """The topic-based pattern of the proxy subscription for a character-based one (guide 3.1.3).

    The first wildcard is replaced by ``#``, back to the nearest ``/``: ``/aaa/bbb/c*d`` becomes ``/aaa/bbb/#``.
    Publications that only the proxy subscription selects are filtered out where they are delivered. A pattern without
    wildcards is its own topic, unescaped.
    """
    pattern = parse_char_pattern(text)
    if not pattern.is_wild:
        return pattern.literal
    levels = pattern.literal_prefix.split(SEPARATOR)[:-1]
    return SEPARATOR.join([*levels, MULTI_LEVEL])


Pattern = TopicPattern | CharPattern


def parse_pattern(text: str, scheme: WildcardScheme) -> Pattern:
    """Read *text* under *scheme*; raises CommandError 3072 where it is no pattern of that scheme.

    >>> from streams import WildcardScheme, parse_pattern
    >>> by_level = parse_pattern("Sport/+/Score", WildcardScheme.TOPIC)
    >>> by_level.matches("Sport/Soccer/Score"), by_level.matches("Sport/Soccer/Final/Score")
    (True, False)
    >>> by_character = parse_pattern("Sport/*Score", WildcardScheme.CHAR)
    >>> by_character.matches("Sport/Soccer/Final/Score")
    True
    """
    return parse_topic_pattern(text) if scheme is WildcardScheme.TOPIC else parse_char_pattern(text)


def is_read_alike(text: str) -> bool:
    """Whether *text* is the same single topic under either scheme, so that it does not matter which one reads it."""
    try:
        by_level, by_character = (parse_pattern(text, scheme) for scheme in (WildcardScheme.TOPIC, WildcardScheme.CHAR))
    except CommandError:
        return False
    return not (by_level.is_wild or by_character.is_wild) and by_level.literal == by_character.literal


def add_pattern_prefix(prefix: str, text: str, scheme: WildcardScheme) -> str:
    """Where a subscription's pattern lies in the topic space, below *prefix* (guide 6.1, 6.2); "" is the root.

    The prefix is a topic string and never wild: under the character scheme it is escaped.
    """
    if not prefix:
        return text
    escaped = escape_char_pattern(prefix) if scheme is WildcardScheme.CHAR else prefix
    return f"{escaped}{SEPARATOR}{text}"


def remove_pattern_prefix(prefix: str, text: str, scheme: WildcardScheme) -> str:
    """What the subscriber wrote before add_pattern_prefix; unchanged where the prefix is not there."""
    if not prefix:
        return text
    escaped = escape_char_pattern(prefix) if scheme is WildcardScheme.CHAR else prefix
    return text.removeprefix(escaped + SEPARATOR)


def written_topic(subscription: Subscription) -> str:
    """The topic as the subscriber wrote it, without the prefix of a stream or a subscription point."""
    return remove_pattern_prefix(subscription.prefix, subscription.topic_string, subscription.wildcard)
