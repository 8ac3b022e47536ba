"""The counts of subscriptions, topics and queues, and the counts that one unit of work adds.

DISPLAY SBSTATUS, TPSTATUS and QSTATUS show it, and ``qpubsub status``. Moments are UTC; None is never.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(slots=True)
class SubscriptionCounts:
    """One subscription since it was made.

    delivered: publications put on its queue (NUMMSGS), also those kept for it while the queue and the dead-letter queue
    refuse. last: when the last of these was (LMSGDATE, LMSGTIME). filtered: publications that its selection string kept
    away. dead_letters: publications that went to the dead-letter queue, because its queue refused them.
    """

    delivered: int = 0
    last: datetime | None = None
    filtered: int = 0
    dead_letters: int = 0

    def add(self, other: SubscriptionCounts) -> None:
        """Count what *other*, which is newer, counted as well."""
        self.delivered += other.delivered
        self.filtered += other.filtered
        self.dead_letters += other.dead_letters
        self.last = other.last or self.last


@dataclass(slots=True)
class TopicCounts:
    """One topic string. publications: on it, whoever got them (NUMPUBS). last: LPUBDATE, LPUBTIME."""

    publications: int = 0
    last: datetime | None = None

    def add(self, other: TopicCounts) -> None:
        """Count what *other*, which is newer, counted as well."""
        self.publications += other.publications
        self.last = other.last or self.last


@dataclass(slots=True)
class QueueCounts:
    """One local queue. puts, gets: messages put on it and got from it; last_put, last_get: LPUTDATE, LGETDATE."""

    puts: int = 0
    last_put: datetime | None = None
    gets: int = 0
    last_get: datetime | None = None

    def add(self, other: QueueCounts) -> None:
        """Count what *other*, which is newer, counted as well."""
        self.puts += other.puts
        self.gets += other.gets
        self.last_put = other.last_put or self.last_put
        self.last_get = other.last_get or self.last_get


@dataclass(slots=True)
class Counts:
    """The counts that the commands of one unit of work add.

    delivered, filtered, dead_letters: publications by sub_id. published: publications by topic string. The other two:
    the time of the last of these.
    """

    delivered: dict[bytes, int] = field(default_factory=dict)
    delivered_at: dict[bytes, datetime] = field(default_factory=dict)
    filtered: dict[bytes, int] = field(default_factory=dict)
    dead_letters: dict[bytes, int] = field(default_factory=dict)
    published: dict[str, int] = field(default_factory=dict)
    published_at: dict[str, datetime] = field(default_factory=dict)

    def add_published(self, topic_string: str, now: datetime, times: int = 1) -> None:
        """Publications on one topic. Raises UnicodeEncodeError for half a character, which no database takes."""
        before = self.published.get(topic_string)
        if before is None:
            if not topic_string.isascii():
                topic_string.encode()
            self.published[topic_string] = times
            self.published_at[topic_string] = now
            return
        self.published[topic_string] = before + times
        self.published_at[topic_string] = max(self.published_at[topic_string], now)

    def add_delivered(self, sub_id: bytes, now: datetime, times: int = 1) -> None:
        """Publications for one subscription."""
        self.delivered[sub_id] = self.delivered.get(sub_id, 0) + times
        # Publications that are counted together may be counted in an order other than that of the events.
        last = self.delivered_at.get(sub_id)
        if last is None or last < now:
            self.delivered_at[sub_id] = now

    def add_all_delivered(self, sub_ids: Sequence[bytes], now: datetime) -> None:
        """One publication for each of some subscriptions."""
        delivered, latest = self.delivered, self.delivered_at
        for sub_id in sub_ids:
            delivered[sub_id] = delivered.get(sub_id, 0) + 1
            if latest.get(sub_id, now) <= now:
                latest[sub_id] = now

    def add_filtered(self, sub_id: bytes) -> None:
        """A publication that the selection string of a subscription kept away."""
        self.filtered[sub_id] = self.filtered.get(sub_id, 0) + 1

    def add_dead_letters(self, sub_id: bytes) -> None:
        """A publication for a subscription whose queue refused it."""
        self.dead_letters[sub_id] = self.dead_letters.get(sub_id, 0) + 1

    @property
    def sub_ids(self) -> set[bytes]:
        """The subscriptions that were counted."""
        return self.delivered.keys() | self.filtered.keys() | self.dead_letters.keys()

    def subscription(self, sub_id: bytes) -> SubscriptionCounts:
        """What was counted of one of them."""
        return SubscriptionCounts(
            self.delivered.get(sub_id, 0),
            self.delivered_at.get(sub_id),
            self.filtered.get(sub_id, 0),
            self.dead_letters.get(sub_id, 0),
        )

    def topic(self, topic_string: str) -> TopicCounts:
        """What was counted of one topic."""
        return TopicCounts(self.published[topic_string], self.published_at[topic_string])


class Counting(Protocol):
    """What is counted, as one unit of work sees it.

    Queues are counted by themselves, where the unit of work is theirs.
    """

    def add(self, counts: Counts) -> None:
        """Count the effects of commands; the counts become valid with the commit."""

    def subscriptions(self) -> dict[bytes, SubscriptionCounts]:
        """Those of all subscriptions of which there are any, by sub_id."""

    def topics(self) -> dict[str, TopicCounts]:
        """Those of all topics of which there are any."""

    def queues(self) -> dict[str, QueueCounts]:
        """Those of all queues of which there are any."""

    def oldest(self, queue: str) -> datetime | None:
        """When the message on a local queue that has waited longest arrived; None where there is none."""

    def forget_topics(self, before: datetime | None, in_use: Callable[[], Container[str]], most: int = ...) -> int:
        """Forget topics at which nothing exists and without a publication since *before*; how many were forgotten.

        before: None for no limit of time. in_use: the topic strings of topic objects and subscriptions. most: the most
        topics to leave.
        """
