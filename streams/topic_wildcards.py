"""The topic-based wildcard scheme (guide 2.5.1.1.1): what MQRFH2 commands use.

``#`` and ``+`` are wild only where they are alone in a level; there is no escape character.

    pattern             matches                             does not match
    USA/+               USA/Alabama                         USA, USA/Alabama/Auburn
    USA/#               USA, USA/Alabama/Auburn             USAF
    Sports/#/Arsenal    Sports/Arsenal, Sports/a/b/Arsenal  Sports/Arsenal/a
    #                   everything
    +                   every topic of one level            USA/Alabama
    /#                  /USA, /                             USA
    USA+, ##, #+        exactly themselves

Several ``#`` in a row have the effect of one. A publication may not be to a topic string in which a level is ``#`` or
``+``; one in which they stand beside other characters may be published and subscribed to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rfh2.constants import MQRCCF_TOPIC_ERROR
from rfh2.errors import CommandError
from streams.topic_strings import SEPARATOR, check_topic_string, split_levels

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
