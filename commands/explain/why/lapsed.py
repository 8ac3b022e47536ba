"""Retained publications that expired: a later subscriber to their topic would have got them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from streams.operations import Publication, RetainedPublication
from streams.patterns import parse_pattern
from streams.retained import RetainedPublications
from streams.subscriptions import Subscription

MOST_LAPSED: Final = 1_000
"""So many expired publications are held; then the oldest one is given up."""


@dataclass(frozen=True, slots=True)
class Lapsed:
    """A publication that was retained for a topic, and expired."""

    topic_string: str
    publication: Publication
    expired_at: datetime


class LapsedPublications:
    """Those of a queue manager."""

    def __init__(self) -> None:
        # The retained publications that will expire, and those that did, by topic; the tree finds the latter.
        self._mortal: dict[str, Publication] = {}
        self._lapsed: dict[str, Lapsed] = {}
        self._tree = RetainedPublications()

    def stored(self, retained: RetainedPublication) -> None:
        """A topic has a new retained publication."""
        topic, publication = retained.topic_string, retained.publication
        self._give_up(topic)
        if isinstance(publication, Publication) and publication.expires_at is not None:
            self._mortal[topic] = publication
        elif self._mortal:
            self._mortal.pop(topic, None)

    def cleared(self, topic: str) -> None:
        """The retained publication of a topic was deleted."""
        self._mortal.pop(topic, None)

    def expired(self, topic: str) -> None:
        """The retained publication of a topic has expired."""
        publication = self._mortal.pop(topic, None)
        if publication is None or publication.expires_at is None:
            return
        # The tree finds nothing that has expired.
        lasting = replace(publication, expires_at=None)
        self._tree.store(RetainedPublication(topic, lasting))
        self._lapsed[topic] = Lapsed(topic, lasting, publication.expires_at)
        if len(self._lapsed) > MOST_LAPSED:
            self._give_up(next(iter(self._lapsed)))

    def match(self, subscription: Subscription, now: datetime) -> list[Lapsed]:
        """Those that a subscription selects."""
        if not self._lapsed:
            return []
        pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        return [self._lapsed[each.topic_string] for each in self._tree.match(pattern, now)]

    def _give_up(self, topic: str) -> None:
        if self._lapsed.pop(topic, None) is not None:
            self._tree.clear(topic)
