"""Publications that both versions put alike, like one before them: nothing differs, and no broker has to say so.

Programs publish messages that differ in few places (``commands.templates``). What a version makes of a publication is
decided by its fixed parts, by its topic, and by the subscriptions that match there; texts and data are passed on. So
where both versions put one publication alike, they put the next one alike that has the same fixed parts and topic,
while the same subscriptions match. It is then not processed at all: it changes nothing, and leads to no more than the
deliveries and signs of the first.

The brokers process everything else: what leaves something retained, and what reaches a subscription that does not get
each publication in an MQRFH2. The same goes for a message before which something has expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from commands.broker.outcome import Arrival, Outcome
from commands.headers.response import Completion
from commands.replay.differences.observe import ComparedMessage
from commands.templates.parts import Parts, ShapeKey, parts_of
from commands.templates.templates import has_no_other_header, is_fit
from streams.operations import PublishToTopic
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

_MOST: Final = 65_536


class Delivered(NamedTuple):
    """A publication as one version puts it. topics: those that it names. whose: a ``Whose``."""

    qmgr: str
    queue: str
    topics: tuple[str, ...]
    whose: int


class Alike(NamedTuple):
    """What a publication leads to that both versions put alike. data: what is behind its header."""

    delivered: Sequence[Delivered]
    signs: Sequence[str]
    data: bytes


@dataclass(slots=True)
class _Matched:
    """The subscriptions that a topic of one version matches. as_of: the changes after which it was last seen to."""

    topic: str
    subscriptions: tuple[Subscription, ...]
    as_of: int

    def is_good(self, space: TopicSpace, arrival: Arrival) -> bool:
        """Whether it still does; nothing is due."""
        if self.as_of != space.subscription_changes:
            if space.match(self.topic, arrival.now) != self.subscriptions:
                return False
            self.as_of = space.subscription_changes
        return True


class _Known(NamedTuple):
    matched: tuple[_Matched, _Matched]
    delivered: Sequence[Delivered]
    signs: Sequence[str]


class AlikePublications:
    """Those of one queue manager. old, new: the topic spaces of version 6 and of version 7."""

    def __init__(self, old: TopicSpace, new: TopicSpace) -> None:
        self._spaces = old, new
        self._known: dict[ShapeKey, dict[bytes, _Known]] = {}
        self._count = 0

    def find(self, arrival: Arrival) -> Alike | None:
        """What *arrival* leads to; None where the brokers have to process it."""
        old, new = self._spaces
        if old.is_due(arrival.now) or new.is_due(arrival.now) or (parts := parts_of(arrival)) is None:
            return None
        known = self._known.get(parts.key, {}).get(parts.topic)
        if known is None:
            return None
        of_old, of_new = known.matched
        if not (of_old.is_good(old, arrival) and of_new.is_good(new, arrival)):
            return None
        return Alike(known.delivered, known.signs, arrival.body[parts.length :])

    def learn(self, step: ComparedMessage, delivered: Sequence[Delivered], signs: Sequence[str]) -> None:
        """Learn from a message in which nothing differs. delivered: its publications."""
        parts = parts_of(step.arrival)
        if parts is None:
            return
        sides = zip(self._spaces, (step.old.outcome, step.new.outcome), strict=True)
        old, new = (_matched(space, step.arrival, parts, outcome) for space, outcome in sides)
        if old is None or new is None:
            return
        if self._count >= _MOST:
            self._known.clear()
            self._count = 0
        self._known.setdefault(parts.key, {})[parts.topic] = _Known((old, new), delivered, signs)
        self._count += 1


def _matched(space: TopicSpace, arrival: Arrival, parts: Parts, outcome: Outcome) -> _Matched | None:
    """What the topic matches; None where another such publication may have another result."""
    if outcome.completion is not Completion.OK or outcome.effects or outcome.lost or len(outcome.operations) != 1:
        return None
    (operation,) = outcome.operations
    if not isinstance(operation, PublishToTopic) or operation.not_to is not None:
        return None
    matched = space.match(operation.topic_string, arrival.now)
    if not has_no_other_header(operation.publication.message, parts) or not all(map(is_fit, matched)):
        return None
    return _Matched(operation.topic_string, matched, space.subscription_changes)
