"""Near misses: subscriptions that would select a topic but for spelling, wildcard scheme, stream or subscription point.

Three spellings are compared: capitals, blanks, and empty levels (slashes). Each has a function that removes it from a
topic string or from a pattern of either wildcard scheme. ``folded`` removes all three: a publication is looked up by
its folded topic among the folded topics of the subscriptions, and those that are found are compared one by one.

Whether a candidate is a near miss is the topic space's decision: a publication must reach the corrected subscription.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final

from commands.broker.context import prefix_of_sub_point, stream_prefix
from commands.broker.core import BrokerCore
from commands.explain.why.verdict import PLACES, Reason, place_sentence
from rfh2.errors import CommandError
from streams.index import SubscriptionIndex
from streams.operations import Published, PublishToTopic
from streams.patterns import add_pattern_prefix, parse_pattern, written_topic
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_strings import SEPARATOR, add_prefix, is_within

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

    >>> from commands.explain.why.near import folded
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


_CACHED_TOPICS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Publishing:
    """A publication on one topic, as far as near misses depend on it."""

    topic_string: str  # resolved
    written: str  # the same without the prefix, as the publisher wrote it
    prefix: str
    stream: str | None  # None: the default one
    sub_point: str | None  # likewise

    @classmethod
    def of(cls, operation: PublishToTopic, prefix: str) -> Publishing:
        """What is published below *prefix*, that of its stream and its subscription point."""
        topic, publication = operation.topic_string, operation.publication
        return cls(topic, without_prefix(prefix, topic), prefix, publication.stream, publication.sub_point)


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A subscription that would select the topic if it were *corrected*. why: the difference in words."""

    subscription: Subscription
    corrected: Subscription
    reason: Reason
    why: str


class NearMisses:
    """The subscriptions of a queue manager that could be near misses.

    Two indexes have their topics as the subscribers wrote them, without prefix and spelling: one under the wildcard
    scheme of each subscription, one under the other scheme, where it has characters that are wildcards there.
    """

    def __init__(self) -> None:
        self._own, self._other = SubscriptionIndex(_CACHED_TOPICS), SubscriptionIndex(_CACHED_TOPICS)
        self._subscriptions: dict[bytes, Subscription] = {}

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._subscriptions.values())

    def add(self, subscription: Subscription) -> None:
        """Add a subscription, or its new value."""
        self.remove(subscription.sub_id)
        self._subscriptions[subscription.sub_id] = subscription
        for index, form in self._forms(subscription):
            with suppress(CommandError):
                index.add(form)

    def remove(self, sub_id: bytes) -> None:
        """Remove a subscription, if it is there."""
        subscription = self._subscriptions.pop(sub_id, None)
        if subscription is not None:
            for index, form in self._forms(subscription):
                with suppress(CommandError, KeyError):
                    index.remove(form)

    def find(self, publishing: Publishing, matching: Sequence[Subscription]) -> Iterator[NearMiss]:
        """The near misses of a publication. matching: the subscriptions that select its topic."""
        key = folded(publishing.written)
        own, other = (self._own.match(key), self._other.match(key)) if key else ((), ())
        selected = {subscription.sub_id for subscription in matching}
        found = [(one.sub_id, False) for one in own if one.sub_id not in selected]
        found += [(one.sub_id, True) for one in other if one.sub_id not in selected]
        for sub_id, by_other_scheme in sorted(found):
            miss = _near_miss(self._subscriptions[sub_id], publishing, by_other_scheme=by_other_scheme)
            if miss is not None:
                yield miss

    def _forms(self, subscription: Subscription) -> Iterator[tuple[SubscriptionIndex, Subscription]]:
        written, scheme = written_topic(subscription), subscription.wildcard
        key = folded(written)
        if key:
            yield self._own, replace(subscription, topic_string=key)
            if has_wildcards_of_other_scheme(written, scheme):
                yield self._other, replace(subscription, topic_string=key, wildcard=other_scheme(scheme))


def first_near_misses(
    subscriptions: Collection[Subscription], topics: Iterable[str], *, elsewhere: bool
) -> dict[bytes, NearMiss]:
    """By sub_id, the first near miss of each subscription among *topics*.

    elsewhere: whether another stream or subscription point is one.
    """
    index = NearMisses()
    for subscription in subscriptions:
        index.add(subscription)
    places = {"": (None, None)} | {s.prefix: (s.stream, s.sub_point) for s in subscriptions}
    found: dict[bytes, NearMiss] = {}
    for topic, (prefix, (stream, sub_point)) in product(topics if subscriptions else (), places.items()):
        if is_within(prefix, topic) and topic != prefix:
            written = without_prefix(prefix, topic)
            for miss in index.find(Publishing(topic, written, prefix, stream, sub_point), ()):
                if elsewhere or miss.reason not in PLACES:
                    found.setdefault(miss.subscription.sub_id, miss)
    return found


def without_prefix(prefix: str, topic_string: str) -> str:
    """The topic as its publisher wrote it, below *prefix*."""
    return topic_string[len(prefix) + 1 :] if prefix else topic_string


def _near_miss(subscription: Subscription, publishing: Publishing, *, by_other_scheme: bool) -> NearMiss | None:
    written, scheme, topic = written_topic(subscription), subscription.wildcard, publishing.written
    same_place = subscription.prefix == publishing.prefix
    text = written
    if by_other_scheme:
        scheme = other_scheme(scheme)
        if not same_place or not selects(written, scheme, topic):
            return None
        reason, why = Reason.WILDCARD_SCHEME, scheme_sentence(written, subscription.wildcard, topic)
    elif selects(written, scheme, topic):
        if same_place:
            return None
        reason = Reason.SUB_POINT if subscription.stream == publishing.stream else Reason.STREAM
        why = place_sentence(subscription, publishing.stream, publishing.sub_point)
    else:
        several = spellings(written, scheme, topic) if same_place else ()
        if not several:
            return None
        reason, why = several[0], spelling_sentence(several, written, topic)
        text = folded(written)
    corrected = _corrected(subscription, text, scheme, publishing)
    return NearMiss(subscription, corrected, reason, why)


def _corrected(subscription: Subscription, text: str, scheme: WildcardScheme, publishing: Publishing) -> Subscription:
    return replace(
        subscription,
        topic_string=add_pattern_prefix(publishing.prefix, text, scheme),
        wildcard=scheme,
        prefix=publishing.prefix,
        stream=publishing.stream,
        sub_point=publishing.sub_point,
    )


def place_prefix(stream: str | None, sub_point: str | None, broker: BrokerCore) -> str:
    """The prefix of what is published on a stream and a subscription point; None is the default one.

    A subscription point that does not exist has none.
    """
    prefix = "" if stream is None else stream_prefix(stream, broker.objects, broker.semantics)
    point = prefix_of_sub_point(sub_point, broker.objects, broker.semantics)
    return add_prefix(prefix, point) if point else prefix


def moved_to(publication: Published, subscription: Subscription, broker: BrokerCore) -> Subscription:
    """*subscription* as it would be if it were registered where *publication* is, for the topic that it names."""
    prefix = place_prefix(publication.stream, publication.sub_point, broker)
    return replace(
        subscription,
        topic_string=add_pattern_prefix(prefix, written_topic(subscription), subscription.wildcard),
        prefix=prefix,
        stream=publication.stream,
        sub_point=publication.sub_point,
    )
