"""What is counted of subscriptions, topics and queues, and what one unit of work adds to it.

DISPLAY SBSTATUS, TPSTATUS and QSTATUS show it, and ``qpubsub status``. Moments are UTC; None is never.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


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


@dataclass(slots=True)
class Counts:
    """What the commands of one unit of work add: subscriptions by sub_id, topics by topic string."""

    subscriptions: dict[bytes, SubscriptionCounts] = field(default_factory=dict)
    topics: dict[str, TopicCounts] = field(default_factory=dict)

    def subscription(self, sub_id: bytes) -> SubscriptionCounts:
        """That of one subscription, to count with."""
        found = self.subscriptions.get(sub_id)
        if found is None:
            found = self.subscriptions[sub_id] = SubscriptionCounts()
        return found

    def sent(self, sub_id: bytes, is_delivered: bool, now: datetime, times: int = 1) -> None:
        """Publications for one subscription; they became dead letters where they were not delivered."""
        found = self.subscription(sub_id)
        if is_delivered:
            found.delivered += times
            found.last = _later(found.last, now)
        else:
            found.dead_letters += times

    def published(self, topic_string: str, now: datetime, times: int = 1) -> None:
        """Publications on one topic. Raises UnicodeEncodeError for half a character, which no database takes."""
        found = self.topic(topic_string)
        found.publications += times
        found.last = _later(found.last, now)

    def topic(self, topic_string: str) -> TopicCounts:
        """That of one topic, to count with. Raises UnicodeEncodeError for half a character, which no database takes."""
        found = self.topics.get(topic_string)
        if found is None:
            if not topic_string.isascii():
                topic_string.encode()
            found = self.topics[topic_string] = TopicCounts()
        return found


def _later(one: datetime | None, other: datetime) -> datetime:
    # What is counted together may be counted in another order than it happened.
    return other if one is None or one < other else one
