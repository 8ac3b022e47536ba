"""Topic strings: levels, the prefix of a stream or a subscription point, and what is valid (guide 2.5.1, 2.5.2).

A topic string is levels with a ``/`` between each two; a leading or a trailing ``/``, or two in a row, makes an empty
level, which is a level like any other. There is no limit to the number of levels or to the length of one (2.5.3), but
the whole string has at most 10,240 characters.

    "Sport/Soccer"   ("Sport", "Soccer")
    "/Sport"         ("", "Sport")
    "/"              ("", "")

WILDCARD(BLOCK): which topics a wildcard subscription does not reach (guide 2.5.4, "Controlling wildcard usage").

A topic object with WILDCARD(BLOCK) at topic string B keeps publications at B and below B from subscriptions whose
wildcard lies above B: those whose levels before the first wildcard do not contain B.

    BLOCK at Sports/Football; published to Sports/Football/Arsenal
    Sports/#                  blocked       Sports/Football/#         delivered
    Sports/#/Arsenal          blocked       Sports/Football/Arsenal   delivered: not a wildcard subscription
    Sports/+/Arsenal          blocked       Sports/Football/+         delivered

If a subscription matches topic T, both its literal levels and each B above T are beginnings of T. The literal levels
therefore contain B exactly if B has no more levels than they have. So one number per topic and block set is enough: the
levels of the deepest B at or above T.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from rfh2.constants import MQ_TOPIC_STR_LENGTH, MQRCCF_TOPIC_ERROR
from rfh2.errors import CommandError
from rfh2.mqi_constants import MQRC_TOPIC_STRING_ERROR

SEPARATOR: Final = "/"


def split_levels(topic_string: str) -> tuple[str, ...]:
    """The levels of a topic string, empty ones included; the inverse of join_levels (guide 2.5.1)."""
    return tuple(topic_string.split(SEPARATOR))


def join_levels(levels: tuple[str, ...]) -> str:
    """The topic string with these levels; the inverse of split_levels (guide 2.5.1)."""
    return SEPARATOR.join(levels)


def is_present(field: str | None) -> bool:
    """Whether TOPICSTR or ObjectString counts as given: not empty, not begun by a blank or a null (guide 2.5.2)."""
    return field is not None and field[:1] not in ("", " ", "\0")


def construct_topic_string(topicstr: str | None, object_string: str | None) -> str:
    """The full topic string that MQOPEN and MQSUB make of a topic object and a subtopic (guide 2.5.2, table 1).

    Raises CommandError 2425 (MQRC_TOPIC_STRING_ERROR) where neither is present.
    """
    present = [field for field in (topicstr, object_string) if field is not None and is_present(field)]
    if not present:
        raise CommandError(MQRC_TOPIC_STRING_ERROR, object_string, "neither TOPICSTR nor an object string is given")
    return SEPARATOR.join(present)


def add_prefix(prefix: str, topic_string: str) -> str:
    """Where a publication's topic string lies in the topic space, below *prefix* (guide 6.1, 6.2); "" is the root.

    Unlike construct_topic_string, a topic string that begins with a blank is still a topic string: what a command
    names must never silently become the prefix itself.
    """
    return f"{prefix}{SEPARATOR}{topic_string}" if prefix else topic_string


def remove_prefix(prefix: str, topic_string: str) -> str:
    """What a subscriber below *prefix* sees: the topic string without the prefix (guide 6.1).

    "" where the topic is the prefix itself; unchanged where the topic is not below the prefix.
    """
    if not prefix:
        return topic_string
    if topic_string == prefix:
        return ""
    return topic_string.removeprefix(prefix + SEPARATOR)


def is_within(prefix: str, topic_string: str) -> bool:
    """Whether a topic string is *prefix* or lies below it, level by level; everything lies below ""."""
    return not prefix or topic_string == prefix or topic_string.startswith(prefix + SEPARATOR)


def at_and_above(topic_string: str, lengths: Iterable[int]) -> Iterator[str]:
    """The topic string and those of the topics above it that have one of these lengths; the nearest first.

    lengths: in characters, all above 0, in descending order. A topic of thousands of levels has thousands of topics
    above it, of thousands of characters each; a caller that knows the lengths it needs avoids making the others.
    """
    size = len(topic_string)
    for length in lengths:
        if length == size or (length < size and topic_string[length] == SEPARATOR):
            yield topic_string[:length]


def check_topic_string(topic_string: str | None) -> str:
    """The topic string, when it may name a topic at all.

    Raises CommandError 3072 for a null or zero-length one, and for one over 10,240 characters (guide 2.5.1.1.1 note 1).

    >>> from streams import check_topic_string
    >>> check_topic_string("Sport//Soccer")
    'Sport//Soccer'
    """
    if not topic_string or topic_string[0] == "\0":
        raise CommandError(MQRCCF_TOPIC_ERROR, topic_string, "a null or zero-length topic string is invalid")
    if len(topic_string) > MQ_TOPIC_STR_LENGTH:
        why = f"the topic string has {len(topic_string)} characters, more than {MQ_TOPIC_STR_LENGTH}"
        raise CommandError(MQRCCF_TOPIC_ERROR, topic_string, why)
    return topic_string


@dataclass(frozen=True, slots=True)
class BlockSet:
    """The topic strings of all topic objects with WILDCARD(BLOCK) at one moment; the root ("") blocks nothing.

    first_levels: of these topic strings; a topic with another one lies under no block. lengths: of these topic strings,
    each once, in descending order.
    """

    topic_strings: frozenset[str] = frozenset()
    first_levels: frozenset[str] = field(init=False, repr=False, compare=False)
    lengths: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first_levels = frozenset(string.partition(SEPARATOR)[0] for string in self.topic_strings)
        object.__setattr__(self, "first_levels", first_levels)
        lengths = sorted({len(string) for string in self.topic_strings if string}, reverse=True)
        object.__setattr__(self, "lengths", tuple(lengths))

    def __bool__(self) -> bool:
        return bool(self.topic_strings)

    def depth(self, topic_string: str) -> int:
        """How many levels the deepest blocking topic string at or above *topic_string* has; 0 where there is none."""
        if topic_string.partition(SEPARATOR)[0] not in self.first_levels:
            return 0
        above = at_and_above(topic_string, self.lengths)
        return next((block.count(SEPARATOR) + 1 for block in above if block in self.topic_strings), 0)

    def blocks(self, topic_string: str, literal_depth: int) -> bool:
        """Whether a wildcard subscription that matches *topic_string* is kept from it.

        literal_depth: how many whole levels the subscription has before its first wildcard.
        """
        return self.depth(topic_string) > literal_depth


NO_BLOCKS = BlockSet()
