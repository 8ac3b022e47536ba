"""The tables of counts: a unit of work adds its counts to them when it commits.

It writes one row for each subscription, topic and queue that it touched, however many messages it moved. Until then its
counts are in memory, and a part that is backed out removes its own (``back_to``); a reader sees the sum of both. The
counts of a subscription or a queue are deleted with it. ``forget_topics`` deletes old counts of topics at which nothing
exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from datetime import datetime
from typing import Final

from commands.broker.counts import Counts, QueueCounts, SubscriptionCounts, TopicCounts
from commands.broker.times import from_microseconds, to_microseconds
from commands.qmgr.store.database import Connection, translate_errors
from commands.qmgr.store.port import OLDEST_MESSAGE
from commands.qmgr.store.write_buffer import WriteBuffer

Mark = tuple[int, int, int]

_ADD_SUBSCRIPTION: Final = """INSERT INTO subscription_counts AS c VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (sub_id) DO UPDATE SET
    delivered = c.delivered + excluded.delivered, last = coalesce(excluded.last, c.last),
    filtered = c.filtered + excluded.filtered, dead_letters = c.dead_letters + excluded.dead_letters"""
_ADD_TOPIC: Final = """INSERT INTO topic_counts AS c VALUES (?, ?, ?) ON CONFLICT (topic) DO UPDATE SET
    publications = c.publications + excluded.publications, last = excluded.last"""
_ADD_QUEUE: Final = """INSERT INTO queue_counts AS c VALUES (?, ?, ?, ?, ?) ON CONFLICT (queue) DO UPDATE SET
    puts = c.puts + excluded.puts, last_put = coalesce(excluded.last_put, c.last_put),
    gets = c.gets + excluded.gets, last_get = coalesce(excluded.last_get, c.last_get)"""
_FORGET_SUBSCRIPTION: Final = """DELETE FROM subscription_counts WHERE sub_id = ?1
    AND NOT EXISTS (SELECT 1 FROM subscriptions WHERE sub_id = ?1)"""
_FORGET_QUEUE: Final = """DELETE FROM queue_counts WHERE queue = ?1
    AND NOT EXISTS (SELECT 1 FROM definitions WHERE kind = 'qlocal' AND name = ?1)"""
_OLD_TOPICS: Final = """SELECT topic FROM topic_counts WHERE last < ?
    AND NOT EXISTS (SELECT 1 FROM retained WHERE retained.topic = topic_counts.topic)"""
_OLDEST_TOPICS: Final = """SELECT topic FROM topic_counts
    WHERE NOT EXISTS (SELECT 1 FROM retained WHERE retained.topic = topic_counts.topic) ORDER BY last"""
_FORGET_TOPIC: Final = "DELETE FROM topic_counts WHERE topic = ?"

# The most topics with counts, whatever TREELIFE says. Beyond it, those at which nothing exists are forgotten, oldest
# first.
MOST_TOPICS: Final = 200_000


class Counters:
    """Counting, in units of work (``Counting``).

    put, put_us: the queue of each message put, and the moment in microseconds; got, got_us: of each message got. The
    unit of work appends to these: no more is done for each message.
    """

    __slots__ = (
        "_connection",
        "_deleted_queues",
        "_pending",
        "_removed",
        "added",
        "database",
        "got",
        "got_us",
        "put",
        "put_us",
    )

    def __init__(self, pending: WriteBuffer) -> None:
        self.database, self._pending = pending.database, pending
        self._connection = pending.database.connection
        self.put: list[str] = []
        self.put_us: list[int] = []
        self.got: list[str] = []
        self.got_us: list[int] = []
        self.added: list[Counts] = []
        # Of what is gone, or may be: a part may have been backed out since.
        self._removed: list[bytes] = []
        self._deleted_queues: list[str] = []

    def begin(self) -> None:
        """A unit of work begins: nothing is counted."""
        self.back_to((0, 0, 0))
        self._removed.clear()
        self._deleted_queues.clear()

    # Counting

    def add(self, counts: Counts) -> None:
        """Count the effects of commands of this unit of work; *counts* must not change afterwards."""
        self.added.append(counts)

    def removed(self, sub_id: bytes) -> None:
        """A subscription ended: delete its counts."""
        self._removed.append(sub_id)

    def deleted_queue(self, name: str) -> None:
        """A local queue was deleted: delete its counts."""
        self._deleted_queues.append(name)

    def mark(self) -> Mark:
        """How much is counted, for ``back_to``."""
        return len(self.put), len(self.got), len(self.added)

    def back_to(self, mark: Mark) -> None:
        """Forget the counts made since *mark*."""
        put, got, added = mark
        del self.put[put:], self.put_us[put:], self.got[got:], self.got_us[got:], self.added[added:]

    def write(self) -> None:
        """Add it all to the tables, just before the commit. Raises ``FAILURES``."""
        many = self.database.write
        for counts in self.added:
            if counts.published:
                last = counts.published_at
                many(_ADD_TOPIC, [(topic, n, _us(last[topic])) for topic, n in counts.published.items()])
            if sub_ids := counts.sub_ids:
                many(_ADD_SUBSCRIPTION, [_subscription_row(sub_id, counts) for sub_id in sub_ids])
        if self.put or self.got:
            many(_ADD_QUEUE, self._queue_rows())
        if self._removed:
            many(_FORGET_SUBSCRIPTION, [(sub_id,) for sub_id in self._removed])
        if self._deleted_queues:
            many(_FORGET_QUEUE, [(name,) for name in self._deleted_queues])

    def _queue_rows(self) -> list[tuple[str, int, int | None, int, int | None]]:
        puts, last_put = Counter(self.put), dict(zip(self.put, self.put_us, strict=True))
        gets, last_get = Counter(self.got), dict(zip(self.got, self.got_us, strict=True))
        return [(name, puts[name], last_put.get(name), gets[name], last_get.get(name)) for name in puts | gets]

    # Looking

    @translate_errors
    def subscriptions(self) -> dict[bytes, SubscriptionCounts]:
        """Those of all subscriptions of which there are any."""
        found = subscription_counts(self._connection)
        for counts in self.added:
            for sub_id in counts.sub_ids:
                found.setdefault(sub_id, SubscriptionCounts()).add(counts.subscription(sub_id))
        return found

    @translate_errors
    def topics(self) -> dict[str, TopicCounts]:
        """Those of all topics of which there are any."""
        found = topic_counts(self._connection)
        for counts in self.added:
            for topic in counts.published:
                found.setdefault(topic, TopicCounts()).add(counts.topic(topic))
        return found

    @translate_errors
    def queues(self) -> dict[str, QueueCounts]:
        """Those of all queues of which there are any."""
        found = queue_counts(self._connection)
        for name, puts, last_put, gets, last_get in self._queue_rows():
            more = QueueCounts(puts, _moment(last_put), gets, _moment(last_get))
            found.setdefault(name, QueueCounts()).add(more)
        return found

    @translate_errors
    def oldest(self, queue: str) -> datetime | None:
        """When the message on a local queue that has waited longest arrived; None where there is none."""
        self._pending.flush()
        row = self._connection.execute(OLDEST_MESSAGE, (queue,)).fetchone()
        return None if row is None else _moment(row[0])

    # Forgetting

    @translate_errors
    def forget_topics(
        self, before: datetime | None, in_use: Callable[[], Container[str]], most: int = MOST_TOPICS
    ) -> int:
        """Forget topics at which nothing exists and without a publication since *before*; how many were forgotten.

        before: None for no limit of time. in_use: the topic strings of topic objects and subscriptions; called only if
        there is something to forget. most: the most topics to leave, however recent their last publication.
        """
        execute = self._connection.execute
        gone: list[tuple[str]] = [] if before is None else execute(_OLD_TOPICS, (to_microseconds(before),)).fetchall()
        (count,) = execute("SELECT count(*) FROM topic_counts").fetchone()
        if not gone and count <= most:
            return 0
        used = in_use()
        gone = [row for row in gone if row[0] not in used]
        if count - len(gone) > most:
            oldest = execute(_OLDEST_TOPICS)
            gone = [row for row in oldest if row[0] not in used][: max(count - most, len(gone))]
        self._connection.executemany(_FORGET_TOPIC, gone)
        return len(gone)


def subscription_counts(connection: Connection) -> dict[bytes, SubscriptionCounts]:
    """What is committed of all subscriptions, by sub_id."""
    rows = connection.execute("SELECT sub_id, delivered, last, filtered, dead_letters FROM subscription_counts")
    return {sub_id: SubscriptionCounts(count, _moment(last), *rest) for sub_id, count, last, *rest in rows}


def topic_counts(connection: Connection) -> dict[str, TopicCounts]:
    """What is committed of all topics."""
    rows = connection.execute("SELECT topic, publications, last FROM topic_counts")
    return {topic: TopicCounts(count, _moment(last)) for topic, count, last in rows}


def queue_counts(connection: Connection) -> dict[str, QueueCounts]:
    """What is committed of all queues."""
    rows = connection.execute("SELECT queue, puts, last_put, gets, last_get FROM queue_counts")
    return {
        queue: QueueCounts(puts, _moment(last_put), gets, _moment(last_get))
        for queue, puts, last_put, gets, last_get in rows
    }


def _subscription_row(sub_id: bytes, counts: Counts) -> tuple[bytes, int, int | None, int, int]:
    last, filtered, dead = counts.delivered_at.get(sub_id), counts.filtered.get(sub_id, 0), counts.dead_letters
    return sub_id, counts.delivered.get(sub_id, 0), _us(last), filtered, dead.get(sub_id, 0)


def _us(moment: datetime | None) -> int | None:
    return None if moment is None else to_microseconds(moment)


def _moment(time_us: int | None) -> datetime | None:
    return None if time_us is None else from_microseconds(time_us)
