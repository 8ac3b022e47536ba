"""A subscription's topic string, read under either wildcard scheme (guide 2.5.1.1)."""

from __future__ import annotations

from rfh2.errors import CommandError
from streams.char_wildcards import CharPattern, escape_char_pattern, parse_char_pattern
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import TopicPattern, parse_topic_pattern

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
