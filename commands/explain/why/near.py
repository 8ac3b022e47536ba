"""Near misses: subscriptions that would select a topic but for spelling, wildcard scheme, stream or subscription point.

They are found by an index, not one by one. It has each subscription by its topic as the subscriber wrote it, without
prefix and spelling, under its own scheme, and under the other one where it has characters that are wildcards there. A
publication is looked up by its topic in the same form: what is found has the actual matches in it, and the near misses.

Whether a candidate is a near miss is the topic space's decision: a publication must reach the corrected subscription.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from commands.explain.why.rules import place_sentence
from commands.explain.why.spelling import (
    folded,
    has_wildcards_of_other_scheme,
    other_scheme,
    scheme_sentence,
    selects,
    spelling_sentence,
    spellings,
)
from commands.explain.why.verdict import Reason
from rfh2.errors import CommandError
from streams.index import SubscriptionIndex
from streams.patterns import add_pattern_prefix, written_topic
from streams.subscriptions import Subscription, WildcardScheme

_CACHED_TOPICS: Final = 20_000
_FOREIGN: Final = b"\1"
_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Publishing:
    """A publication on one topic, as far as near misses depend on it.

    topic_string: resolved. written: without *prefix*, as the publisher wrote it. stream, sub_point: None for the
    default ones.
    """

    topic_string: str
    written: str
    prefix: str
    stream: str | None
    sub_point: str | None


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A subscription that would select the topic if it were *corrected*. why: the difference in words."""

    subscription: Subscription
    corrected: Subscription
    reason: Reason
    why: str


class NearMisses:
    """The subscriptions of a queue manager that could be near misses."""

    def __init__(self) -> None:
        self._index = SubscriptionIndex(_CACHED_TOPICS)
        self._held: dict[bytes, tuple[Subscription, ...]] = {}
        self._subscriptions: dict[bytes, Subscription] = {}
        # With the value of the subscription for which it is true.
        self._known: dict[tuple[bytes, str, str], tuple[Subscription, NearMiss | None]] = {}

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._subscriptions.values())

    def __contains__(self, sub_id: bytes) -> bool:
        return sub_id in self._subscriptions

    def add(self, subscription: Subscription) -> None:
        """Add a subscription, or its new value."""
        self.remove(subscription.sub_id)
        held = []
        for variant in _variants(subscription):
            with suppress(CommandError):
                self._index.add(variant)
                held.append(variant)
        self._held[subscription.sub_id] = tuple(held)
        self._subscriptions[subscription.sub_id] = subscription

    def remove(self, sub_id: bytes) -> None:
        """Remove a subscription, if it is there."""
        for variant in self._held.pop(sub_id, ()):
            self._index.remove(variant)
        self._subscriptions.pop(sub_id, None)

    def find(self, publishing: Publishing, matching: tuple[Subscription, ...]) -> Iterator[NearMiss]:
        """The near misses of a publication. matching: the subscriptions that select its topic."""
        key = folded(publishing.written)
        candidates = self._index.match(key) if key else ()
        if not candidates:
            return
        if len(candidates) == len(matching) and all(
            one.sub_id == other.sub_id for one, other in zip(candidates, matching, strict=True)
        ):
            return
        selected = {subscription.sub_id for subscription in matching}
        for candidate in candidates:
            sub_id = candidate.sub_id
            is_foreign = len(sub_id) > 24
            if (sub_id[:24] if is_foreign else sub_id) in selected:
                continue
            subscription = self._subscriptions[sub_id[:24]]
            place = (sub_id, publishing.topic_string, publishing.prefix)
            known = self._known.get(place)
            if known is None or known[0] is not subscription:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                found = _near_miss(subscription, candidate, publishing, is_foreign=is_foreign)
                known = self._known[place] = (subscription, found)
            found = known[1]
            if found is not None:
                yield found


def _variants(subscription: Subscription) -> Iterator[Subscription]:
    """The forms by which a subscription is found; the sub_id of the other scheme's form is longer."""
    written, scheme = written_topic(subscription), subscription.wildcard
    key = folded(written)
    if not key:
        return
    yield replace(subscription, topic_string=key)
    if has_wildcards_of_other_scheme(written, scheme):
        sub_id = subscription.sub_id + _FOREIGN
        yield replace(subscription, sub_id=sub_id, topic_string=key, wildcard=other_scheme(scheme))


def _near_miss(
    subscription: Subscription, candidate: Subscription, publishing: Publishing, *, is_foreign: bool
) -> NearMiss | None:
    written, scheme, topic = written_topic(subscription), subscription.wildcard, publishing.written
    same_place = subscription.prefix == publishing.prefix
    text = written
    if is_foreign:
        scheme = candidate.wildcard
        if not same_place or not selects(written, scheme, topic):
            return None
        reason, why = Reason.WILDCARD_SCHEME, scheme_sentence(written, subscription.wildcard, topic)
    elif selects(written, scheme, topic):
        if same_place:
            return None
        reason = Reason.SUB_POINT if subscription.stream == publishing.stream else Reason.STREAM
        why = place_sentence(subscription, publishing.stream, publishing.sub_point)
    else:
        if not same_place:
            return None
        several = spellings(written, scheme, topic)
        if not several:
            return None
        reason, why = several[0], spelling_sentence(several, written, topic)
        text = candidate.topic_string
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
