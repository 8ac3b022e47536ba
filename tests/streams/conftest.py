"""What the tests of the topic space share: plain matchers written straight from the guide's words, and short makers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import pytest

from rfh2.message import Message
from streams.operations import Publication
from streams.subscriptions import Subscription, WildcardScheme

NOW = datetime(2011, 1, 26, 10, 57, tzinfo=UTC)


@cache
def _topic_selects(pattern: tuple[str, ...], topic: tuple[str, ...]) -> bool:
    if not pattern:
        return not topic
    first, rest = pattern[0], pattern[1:]
    if first == "#":  # "any number of levels", "zero or more levels"
        return any(_topic_selects(rest, topic[taken:]) for taken in range(len(topic) + 1))
    if not topic:
        return False
    if first == "+":  # "one, and only one, topic level"
        return _topic_selects(rest, topic[1:])
    return first == topic[0] and _topic_selects(rest, topic[1:])


@cache
def _char_selects(pattern: str, topic: str) -> bool:
    if not pattern:
        return not topic
    first, rest = pattern[0], pattern[1:]
    if first == "*":  # "match zero or more characters"
        return any(_char_selects(rest, topic[taken:]) for taken in range(len(topic) + 1))
    if not topic:
        return False
    if first == "?":  # "match exactly one character"
        return _char_selects(rest, topic[1:])
    if first == "%":  # "escape the following character"
        first, rest = rest[0], rest[1:]
    return first == topic[0] and _char_selects(rest, topic[1:])


def _literal_levels(pattern: str, scheme: WildcardScheme) -> list[str] | None:
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


def _selects(pattern: str, scheme: WildcardScheme, topic: str) -> bool:
    if scheme is WildcardScheme.TOPIC:
        return _topic_selects(tuple(pattern.split("/")), tuple(topic.split("/")))
    return _char_selects(pattern, topic)


def _reaches(pattern: str, scheme: WildcardScheme, topic: str, blocking: Collection[str]) -> bool:
    if not _selects(pattern, scheme, topic):
        return False
    literal = _literal_levels(pattern, scheme)
    if literal is None:
        return True
    for block in blocking:
        levels = block.split("/")
        at_or_above = topic.split("/")[: len(levels)] == levels
        spelt_out = literal[: len(levels)] == levels
        if at_or_above and not spelt_out:
            return False
    return True


@pytest.fixture(scope="session")
def selects() -> Callable[[str, WildcardScheme, str], bool]:
    """Does this pattern select this topic? By the words of guide 2.5.1.1."""
    return _selects


@pytest.fixture(scope="session")
def reaches() -> Callable[[str, WildcardScheme, str, Collection[str]], bool]:
    """Does a publication reach a subscription, given the topic strings with WILDCARD(BLOCK)? By guide 2.5.4."""
    return _reaches


@pytest.fixture(scope="session")
def now() -> datetime:
    return NOW


@pytest.fixture(scope="session")
def subscription() -> Callable[..., Subscription]:
    """subscription(7, "a/#", ...): a subscription with a number for its sub_id, and a queue of its own."""

    def make(number: int, topic_string: str, **values: Any) -> Subscription:
        values.setdefault("dest_queue", f"Q{number}")
        return Subscription(number.to_bytes(24, "big"), topic_string, dest_qmgr="QM1", created=NOW, **values)

    return make


@pytest.fixture(scope="session")
def publication() -> Callable[..., Publication]:
    """A publication whose message is nothing in particular."""

    def make(text: str = "", **values: Any) -> Publication:
        return Publication(cast(Message, text), NOW, **values)

    return make
