"""The character-based wildcard scheme (guide 2.5.1.1.2): what MQRFH commands use, and all that WebSphere MQ 6 knew.

``*`` stands for zero or more characters, ``?`` for exactly one (one Unicode code point); neither stops at a ``/``.
``%`` makes the ``*``, ``?`` or ``%`` after it literal. Before anything else, or at the end, ``%`` is an error: the
syntax allows it nowhere else, and either reading of it (literal, or dropped) could silently select other topics.

    pattern         matches                               does not match
    IBM/*/Results   IBM/Software/Results, IBM/a/b/Results IBM/Results
    IBM/*ware       IBM/Software, IBM/a/Hardware          IBM/Software/x
    *               everything
    a?c             abc, a/c                              ac, abbc
    100%%           100%                                  100%%
    a%*b            a*b                                   aXb

Matching is greedy and never goes back: between two ``*`` the leftmost place will do, so that no pattern, however it is
written, costs more than its length times the topic's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rfh2.constants import MQRCCF_TOPIC_ERROR
from rfh2.errors import CommandError
from streams.topic_strings import SEPARATOR, check_topic_string
from streams.topic_wildcards import MULTI_LEVEL

MANY: Final = "*"
ONE: Final = "?"
ESCAPE: Final = "%"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A stretch of pattern between two ``*``: literal runs at fixed offsets, any character in the gaps.

    length: in characters, gaps included. runs: (offset, literal text), ascending, none empty.
    """

    length: int
    runs: tuple[tuple[int, str], ...]

    def stands_at(self, text: str, start: int) -> bool:
        """Whether the fragment fits at *start*; the caller has seen that the text is long enough."""
        return all(text.startswith(run, start + offset) for offset, run in self.runs)

    def find(self, text: str, start: int, end: int) -> int:
        """The leftmost place in text[start:end] where the fragment fits, or -1."""
        if not self.runs:
            return start if start + self.length <= end else -1
        offset, run = self.runs[0]
        tail = self.length - offset
        while True:
            found = text.find(run, start + offset, end - tail + len(run))
            if found < 0:
                return -1
            start = found - offset
            if self.stands_at(text, start):
                return start
            start += 1


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

    def matches(self, topic_string: str) -> bool:
        """Whether a publication on *topic_string* is selected."""
        plain = self.plain
        if plain:
            first, last = plain[0], plain[-1]
            if (first and not topic_string.startswith(first)) or (last and not topic_string.endswith(last)):
                return False
            place, end = len(first), len(topic_string) - len(last)
            for run in plain[1:-1]:
                found = topic_string.find(run, place, end)
                if found < 0:
                    return False
                place = found + len(run)
            return place <= end
        if not self.is_wild:
            return topic_string == self.literal_prefix
        return self._matches_fragments(topic_string)

    def _matches_fragments(self, topic_string: str) -> bool:
        first, last = self.fragments[0], self.fragments[-1]
        place, end = first.length, len(topic_string) - last.length
        if len(self.fragments) == 1:
            return end == 0 and first.stands_at(topic_string, 0)
        if place > end or not first.stands_at(topic_string, 0) or not last.stands_at(topic_string, end):
            return False
        for fragment in self.fragments[1:-1]:
            found = fragment.find(topic_string, place, end)
            if found < 0:
                return False
            place = found + fragment.length
        return True


def parse_char_pattern(text: str) -> CharPattern:
    """Read a subscription's topic string (guide 2.5.1.1.2).

    Raises CommandError 3072 for one that is empty or over 10,240 characters, or in which ``%`` is followed by anything
    but ``*``, ``?`` or ``%``.
    """
    check_topic_string(text)
    if MANY not in text and ONE not in text and ESCAPE not in text:
        return CharPattern(text, (Fragment(len(text), ((0, text),)),), text, False, ())
    fragments: list[Fragment] = []
    runs: list[tuple[int, str]] = []
    run: list[str] = []
    length = 0
    prefix: str | None = None
    wild = False
    characters = iter(text)

    def end_run() -> None:
        nonlocal prefix
        if prefix is None:
            prefix = "".join(run)
        if run:
            runs.append((length - len(run), "".join(run)))
            run.clear()

    for character in characters:
        if character == MANY:
            end_run()
            fragments.append(Fragment(length, tuple(runs)))
            runs.clear()
            length = 0
            wild = True
            continue
        if character == ONE:
            end_run()
            wild = True
        else:
            run.append(_escaped(characters, text) if character == ESCAPE else character)
        length += 1
    end_run()
    fragments.append(Fragment(length, tuple(runs)))
    plain: tuple[str, ...] = ()
    if len(fragments) > 1 and all(f.length == sum(len(r) for _, r in f.runs) for f in fragments):
        plain = tuple("".join(r for _, r in f.runs) for f in fragments)
    return CharPattern(text, tuple(fragments), prefix or "", wild, plain)


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

    The first wildcard is replaced by ``#``, back to the nearest ``/``: ``/aaa/bbb/c*d`` becomes ``/aaa/bbb/#``. What is
    selected besides is filtered out where it is delivered. A pattern without wildcards is its own topic, unescaped.
    """
    pattern = parse_char_pattern(text)
    if not pattern.is_wild:
        return pattern.literal
    levels = pattern.literal_prefix.split(SEPARATOR)[:-1]
    return SEPARATOR.join([*levels, MULTI_LEVEL])
