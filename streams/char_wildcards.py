"""The character-based wildcard scheme (guide 2.5.1.1.2): MQRFH and PCF commands, and WebSphere MQ 6, use it.

``*`` stands for zero or more characters, ``?`` for exactly one (one Unicode code point); neither stops at a ``/``.
``%`` makes the ``*``, ``?`` or ``%`` after it literal. Before anything else, or at the end, ``%`` is an error: the
syntax does not allow it elsewhere, and either reading (literal, or dropped) could select other topics without notice.

    pattern         matches                               does not match
    IBM/*/Results   IBM/Software/Results, IBM/a/b/Results IBM/Results
    IBM/*ware       IBM/Software, IBM/a/Hardware          IBM/Software/x
    *               everything
    a?c             abc, a/c                              ac, abbc
    100%%           100%                                  100%%
    a%*b            a*b                                   aXb

Matching is greedy and never goes back; streams.fragments explains why, and the cost. A pattern and a topic of 10,240
characters each take at most about 10 ms, and well below 1 ms if the pattern has no ``?``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from rfh2.constants import MQRCCF_TOPIC_ERROR
from rfh2.errors import CommandError
from streams.fragments import Fragment, Wild, fragments_stand_in, literal_texts, read_fragments, texts_stand_in
from streams.topic_strings import SEPARATOR, check_topic_string
from streams.topic_wildcards import MULTI_LEVEL

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
