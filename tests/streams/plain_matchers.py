"""Which topics a pattern selects, and whether WILDCARD(BLOCK) keeps them away: straight from the guide's words.

Slow, and plain: what the matchers of ``streams`` are compared with. Guide 2.5.1.1 and 2.5.4.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from streams.subscriptions import WildcardScheme


@cache
def topic_selects(pattern: tuple[str, ...], topic: tuple[str, ...]) -> bool:
    """Whether the levels of a pattern under the topic-based scheme select those of a topic (2.5.1.1.1)."""
    if not pattern:
        return not topic
    first, rest = pattern[0], pattern[1:]
    if first == "#":  # "any number of levels", "zero or more levels"
        return any(topic_selects(rest, topic[taken:]) for taken in range(len(topic) + 1))
    if not topic:
        return False
    if first == "+":  # "one, and only one, topic level"
        return topic_selects(rest, topic[1:])
    return first == topic[0] and topic_selects(rest, topic[1:])


@cache
def char_selects(pattern: str, topic: str) -> bool:
    """Whether a pattern under the character-based scheme selects a topic (2.5.1.1.2)."""
    if not pattern:
        return not topic
    first, rest = pattern[0], pattern[1:]
    if first == "*":  # "match zero or more characters"
        return any(char_selects(rest, topic[taken:]) for taken in range(len(topic) + 1))
    if not topic:
        return False
    if first == "?":  # "match exactly one character"
        return char_selects(rest, topic[1:])
    if first == "%":  # "escape the following character"
        first, rest = rest[0], rest[1:]
    return first == topic[0] and char_selects(rest, topic[1:])


def literal_levels(pattern: str, scheme: WildcardScheme) -> list[str] | None:
    """The levels before the one with the first wildcard, unescaped; None where nothing is wild."""
    literal: list[str] = []
    if scheme is WildcardScheme.TOPIC:
        for level in pattern.split("/"):
            if level in {"#", "+"}:
                return literal
            literal.append(level)
        return None
    level, characters = "", iter(pattern)
    for character in characters:
        if character in "*?":
            return literal
        if character == "/":
            literal.append(level)
            level = ""
        else:
            level += next(characters) if character == "%" else character
    return None


def selects(pattern: str, scheme: WildcardScheme, topic: str) -> bool:
    """Whether a pattern selects a topic (2.5.1.1)."""
    if scheme is WildcardScheme.TOPIC:
        return topic_selects(tuple(pattern.split("/")), tuple(topic.split("/")))
    return char_selects(pattern, topic)


def reaches(pattern: str, scheme: WildcardScheme, topic: str, blocking: Collection[str]) -> bool:
    """Whether a publication reaches a subscription; blocking: topic strings with WILDCARD(BLOCK) (2.5.4)."""
    if not selects(pattern, scheme, topic):
        return False
    literal = literal_levels(pattern, scheme)
    if literal is None:
        return True
    for block in blocking:
        levels = block.split("/")
        at_or_above = topic.split("/")[: len(levels)] == levels
        spelt_out = literal[: len(levels)] == levels
        if at_or_above and not spelt_out:
            return False
    return True
