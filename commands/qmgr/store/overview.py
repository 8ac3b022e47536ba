"""The contents of a queue manager as counts, without reading the messages: to show its status while it works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.broker.counts import QueueCounts, SubscriptionCounts, TopicCounts
from commands.broker.objects import LocalQueue, Objects
from commands.broker.times import from_microseconds
from commands.disk.errors import StoreDamagedError, readable
from commands.qmgr.store import reading
from commands.qmgr.store.counters import queue_counts
from commands.qmgr.store.database import Connection, Database
from commands.qmgr.store.messages import OLDEST_MESSAGE, queue_depth
from commands.qmgr.store.neighbours import NeighbourRecord, neighbours_in
from commands.qmgr.store.undelivered import undelivered_overview

_FIRST: Final = "SELECT seq, md FROM messages WHERE queue = ? ORDER BY rank, seq LIMIT ?"

# Of whole numbers: PostgreSQL's sum of them is a decimal.
_SUM: Final = "coalesce(CAST(sum({}) AS BIGINT), 0)"


@dataclass(frozen=True, slots=True)
class QueueOverview:
    """One local queue. oldest: when the message that has waited longest arrived, UTC; None where there is none."""

    definition: LocalQueue
    depth: int
    oldest: datetime | None
    counts: QueueCounts


@dataclass(frozen=True, slots=True)
class Totals:
    """The sum of the counts of all subscriptions and topics.

    reached: subscriptions that were sent anything. topics: of which there are counts. published: on these.
    """

    delivered: SubscriptionCounts
    reached: int
    topics: int
    published: TopicCounts


@dataclass(frozen=True, slots=True)
class Overview:
    """One queue manager at one moment.

    queues: by name. undelivered: for which queue, how many publications that could be put nowhere, since when; "" is
    the dead-letter queue. subscriptions, retained: how many there are. totals: what was counted of subscriptions and
    topics. file_bytes: of the database; free_bytes: of these, what new messages will fill before it grows; log_bytes:
    of its write-ahead log. neighbours: the parent, the children and the members of clusters that are recorded.
    """

    objects: Objects
    queues: tuple[QueueOverview, ...]
    undelivered: tuple[tuple[str, int, datetime], ...]
    subscriptions: int
    retained: int
    totals: Totals
    file_bytes: int
    free_bytes: int
    log_bytes: int
    neighbours: tuple[NeighbourRecord, ...]


def beginnings(database: Database, queue: str, size_bytes: int, limit: int) -> Iterator[tuple[bytes, bytes]]:
    """Descriptor and first bytes of the first *limit* messages of a local queue; of long ones no more is read."""
    connection = database.connection
    for seq, md in connection.execute(_FIRST, (queue, limit)).fetchall():
        if type(md) is not bytes:
            raise StoreDamagedError.unreadable(database.path, f"message {seq}")
        body = database.beginning(seq, size_bytes)
        if body is not None:
            yield md, body


def overview(database: Database, now_us: int) -> Overview:
    """Everything as of one moment; the caller holds a read transaction. Raises StoreDamagedError."""
    connection = database.connection
    objects = reading.load_objects(connection, database.path)
    counted, queues = queue_counts(connection), []
    for name in sorted(objects.queues):
        depth = queue_depth(connection, name, now_us)
        with readable(database.path, f"first message of {name}"):
            found = connection.execute(OLDEST_MESSAGE, (name,)).fetchone() if depth else None
            oldest = None if found is None else from_microseconds(found[0])
        queues.append(QueueOverview(objects.queues[name], depth, oldest, counted.get(name, QueueCounts())))
    counts = (connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("subscriptions", "retained"))
    (subscriptions,), (retained,) = counts
    undelivered = tuple(
        (name, count, from_microseconds(since)) for name, count, since in undelivered_overview(connection)
    )
    totals = _totals(connection)
    held = (undelivered, subscriptions, retained, totals)
    return Overview(objects, tuple(queues), *held, *database.sizes(), tuple(neighbours_in(database)))


def _totals(connection: Connection) -> Totals:
    sums = ", ".join(_SUM.format(each) for each in ("delivered", "filtered", "dead_letters"))
    row = connection.execute(
        f"SELECT {sums}, count(*) FILTER (WHERE delivered > 0), max(last) FROM subscription_counts"
    ).fetchone()
    delivered, filtered, dead, reached, last_us = row
    topics, published, published_us = connection.execute(
        f"SELECT count(*), {_SUM.format('publications')}, max(last) FROM topic_counts"
    ).fetchone()
    last = None if last_us is None else from_microseconds(last_us)
    published_at = None if published_us is None else from_microseconds(published_us)
    counts = SubscriptionCounts(delivered, last, filtered, dead)
    return Totals(counts, reached, topics, TopicCounts(published, published_at))
