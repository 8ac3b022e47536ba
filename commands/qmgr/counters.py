"""Counting what commands come to: per subscription what it was sent, and what its filter kept away; per topic what was
published.

A command counts once all of it is put, and with the commit of its unit of work. Publications that the publication cache
knew are counted by their entry, of which there are few, and looked into when the unit of work ends.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime, timedelta

from commands.broker.core import BrokerCore, Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.qmgr.publication_cache import CacheEntry
from commands.qmgr.store.counts import Counts
from commands.qmgr.store.port import CountsMessages, UnitOfWork
from streams.operations import PublishToTopic


class _Repeated:
    """How often an entry of the publication cache was used; a plain class, for one is made for each entry."""

    __slots__ = ("entry", "last", "times")

    last: datetime

    def __init__(self, entry: CacheEntry) -> None:
        self.entry = entry
        self.times = 0


class CommandCounter:
    """Counts the commands of one unit of work."""

    __slots__ = ("_counts", "_repeated")

    def __init__(self) -> None:
        self._counts = Counts()
        # By identity, since an entry is as large as its puts: the entry, how often, and when the last time.
        self._repeated: dict[int, _Repeated] = {}

    def processed(self, outcome: Outcome, done: Sequence[Outgoing | None], now: datetime) -> None:
        """A command that went the whole way. done: what was put in place of each of its puts."""
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
        """One more publication like one before; all of its puts were taken."""
        found = self._repeated.get(id(entry))
        if found is None:
            found = self._repeated[id(entry)] = _Repeated(entry)
        found.times += 1
        found.last = now

    def repeated_in_part(self, entry: CacheEntry, refused: Container[int], now: datetime) -> None:
        """The same, where the puts with the numbers *refused* became dead letters."""
        self._published(entry, 1, now, refused)

    def total(self) -> Counts:
        """What was counted; nothing is counted after that."""
        for each in self._repeated.values():
            self._published(each.entry, each.times, each.last)
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
    """Forget what was counted of topics that have left the tree; how many (guide 2.5.3.1).

    As in IBM MQ they leave it when nothing is at them, and nobody has published on them for TREELIFE seconds.
    """
    if not isinstance(unit, CountsMessages):
        return 0
    life_s = broker.objects.qmgr.treelife
    before = now - timedelta(seconds=life_s) if life_s else None

    def in_use() -> set[str]:
        return {each.topic_string for each in (*broker.objects.topics, *broker.space.subscriptions())}

    return unit.counters.forget_topics(before, in_use)
