"""Counts the effects of commands: publications sent to each subscription and excluded by its filter, and published on
each topic.

A command counts when all its messages are put, and with the commit of its unit of work. Publications that the
publication cache answered are counted by cache entry, since these are few; subscriptions and topics are counted from
the entries when the unit of work ends.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime, timedelta

from commands.broker.core import BrokerCore
from commands.broker.counts import Counts
from commands.broker.outcome import Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.qmgr.store.port import CountsMessages, UnitOfWork
from commands.templates.cached_puts import CacheEntry
from streams.operations import PublishToTopic


class _Repeated:
    """How often an entry of the publication cache was used; a plain class, because there is one for each entry."""

    __slots__ = ("last", "times")

    last: datetime

    def __init__(self) -> None:
        self.times = 0


class CommandCounter:
    """Counts the commands of one unit of work."""

    __slots__ = ("_counts", "_repeated")

    def __init__(self) -> None:
        self._counts = Counts()
        self._repeated: dict[CacheEntry, _Repeated] = {}

    def processed(self, outcome: Outcome, done: Sequence[Outgoing | None], now: datetime) -> None:
        """Count a command that the broker processed itself. done: what was put in place of each of its puts."""
        counts = self._counts
        for operation in outcome.operations:
            if type(operation) is PublishToTopic:
                counts.add_published(operation.topic_string, now)
        for copies, put in zip(outcome.copies, done, strict=False):  # a response may follow
            for delivery in copies:
                if put is not None and put.kind is PutKind.PUBLICATION:
                    counts.add_delivered(delivery.subscription.sub_id, now)
                else:
                    counts.add_dead_letters(delivery.subscription.sub_id)
        for subscription in outcome.filtered:
            counts.add_filtered(subscription.sub_id)

    def repeated(self, entry: CacheEntry, now: datetime) -> None:
        """Count one more publication like an earlier one; all of its puts succeeded."""
        found = self._repeated.get(entry)
        if found is None:
            found = self._repeated[entry] = _Repeated()
        found.times += 1
        found.last = now

    def repeated_in_part(self, entry: CacheEntry, refused: Container[int], now: datetime) -> None:
        """Count it where the puts with the numbers *refused* became dead letters."""
        self._published(entry, 1, now, refused)

    def total(self) -> Counts:
        """The counts of the unit of work; after this call it counts nothing more."""
        for entry, each in self._repeated.items():
            self._published(entry, each.times, each.last)
        self._repeated.clear()
        return self._counts

    def _published(self, entry: CacheEntry, times: int, now: datetime, dead: Container[int] = ()) -> None:
        counts = self._counts
        for topic_string in entry.topics:
            counts.add_published(topic_string, now, times)
        for n, sub_id in enumerate(entry.sub_ids):
            if n in dead:
                counts.add_dead_letters(sub_id, times)
            else:
                counts.add_delivered(sub_id, now, times)
        for sub_id in entry.filtered:
            counts.add_filtered(sub_id, times)


def forget_unused_topics(unit: UnitOfWork, broker: BrokerCore, now: datetime) -> int:
    """Forget the counts of topics that have left the topic tree; how many (guide 2.5.3.1).

    As in IBM MQ, a topic leaves the tree when nothing exists at it and no program has published on it
    for TREELIFE seconds.
    """
    if not isinstance(unit, CountsMessages):
        return 0
    life_s = broker.objects.qmgr.treelife
    before = now - timedelta(seconds=life_s) if life_s else None

    def in_use() -> set[str]:
        return {each.topic_string for each in (*broker.objects.topics, *broker.space.subscriptions())}

    return unit.counters.forget_topics(before, in_use)
