"""How a subscription's topic and a publication's topic differ, where they look alike.

Three spellings are compared: capitals, blanks, and empty levels (slashes). Each has a function that removes it from a
topic string or from a pattern of either wildcard scheme. ``folded`` removes all three: subscriptions that could match
if it were not for spelling are found by their folded text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import Final

from commands.explain.why.verdict import Reason
from rfh2.errors import CommandError
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR

_NOT_PLAIN: Final = re.compile(r"\s|\0|//|^/|/$")


def _without_blanks(text: str) -> str:
    """Each level without blanks around it, and with single blanks in it; nulls that fill a field count as blanks."""
    return SEPARATOR.join(" ".join(level.replace("\0", " ").split()) for level in text.split(SEPARATOR))


def _without_slashes(text: str) -> str:
    return SEPARATOR.join(filter(None, text.split(SEPARATOR)))


_SPELLINGS: Final[tuple[tuple[Reason, Callable[[str], str]], ...]] = (
    (Reason.CASE, str.casefold),
    (Reason.BLANK, _without_blanks),
    (Reason.SLASH, _without_slashes),
)
_DIFFERS: Final = {
    Reason.CASE: "case differs",
    Reason.BLANK: "blanks differ",
    Reason.SLASH: "slashes differ",
}


def folded(text: str) -> str:
    """A topic string, or a pattern, without its spelling; it can be empty.

    >>> from commands.explain.why.spelling import folded
    >>> folded("/Sport / Soccer")
    'sport/soccer'
    """
    text = text.casefold()
    return text if _NOT_PLAIN.search(text) is None else _without_slashes(_without_blanks(text))


def selects(written: str, scheme: WildcardScheme, topic: str) -> bool:
    """Whether a subscription to *written* selects *topic*; False where *written* is no pattern of that scheme."""
    try:
        return parse_pattern(written, scheme).matches(topic)
    except CommandError:
        return False


def spellings(written: str, scheme: WildcardScheme, topic: str) -> tuple[Reason, ...]:
    """The fewest spellings that keep *written* from selecting *topic*; none where they are not what keeps it back."""
    for count in range(1, len(_SPELLINGS) + 1):
        for several in combinations(_SPELLINGS, count):
            ours, theirs = written, topic
            for _, without in several:
                ours, theirs = without(ours), without(theirs)
            if selects(ours, scheme, theirs):
                return tuple(reason for reason, _ in several)
    return ()


def spelling_sentence(reasons: tuple[Reason, ...], written: str, topic: str) -> str:
    """The difference in words."""
    return f"the topic is {topic!r}, the subscription says {written!r}: {_differ(reasons)}"


def _differ(reasons: tuple[Reason, ...]) -> str:
    return " and ".join(_DIFFERS[reason] for reason in reasons)


def difference_words(written: str, scheme: WildcardScheme, topic: str) -> str:
    """What keeps *written* from selecting *topic*, in words: wildcards or spelling; empty where it is neither."""
    if has_wildcards_of_other_scheme(written, scheme) and selects(written, other_scheme(scheme), topic):
        return wrong_wildcards(scheme)
    return _differ(spellings(written, scheme, topic))


def other_scheme(scheme: WildcardScheme) -> WildcardScheme:
    """The scheme that *scheme* is not."""
    return WildcardScheme.CHAR if scheme is WildcardScheme.TOPIC else WildcardScheme.TOPIC


def has_wildcards_of_other_scheme(written: str, scheme: WildcardScheme) -> bool:
    """Whether *written* has characters that are wildcards in the other scheme only."""
    if scheme is WildcardScheme.TOPIC:
        return "*" in written or "?" in written
    return ("#" in written or "+" in written) and not {"#", "+"}.isdisjoint(written.split(SEPARATOR))


def wrong_wildcards(scheme: WildcardScheme) -> str:
    """That the wildcards of the other scheme are none in a subscription with this one."""
    wrong, right = ("'*' and '?'", "'#' and '+'") if scheme is WildcardScheme.TOPIC else ("'#' and '+'", "'*' and '?'")
    return f"{wrong} are not wildcards of this subscription, which has the scheme with {right}"


def scheme_sentence(written: str, scheme: WildcardScheme, topic: str) -> str:
    """What is wrong with the wildcards of a subscription, in words."""
    return f"the topic is {topic!r}, the subscription says {written!r}: {wrong_wildcards(scheme)}"
