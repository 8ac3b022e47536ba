"""Subscriptions, topics and messages in pages, which the database sorts, searches and cuts: for people who look.

Subscriptions are kept as JSON, and have no index by topic or queue. A listing copies the columns that it needs to a
temporary table of its own connection, and copies again when the state has changed: at once where that is quick, and of
a large queue manager so seldom that it takes a tenth of the time at most. A page of 100,000 subscriptions takes
hundredths of a second. Nothing here changes the queue manager, or holds up its processor.

The topic tree is listed one level at a time (``TopicLevels``): what is below a topic is found by seeking, however many
topics there are.

All that has a topic string is in order by it: retained publications, counts of publications, subscriptions and topic
objects. A child of ``a`` is the first topic string in ``a/`` to ``a0`` (0 follows / in ASCII); the next
child is sought behind all that is below that one. So a level costs two seeks or so for each child that is shown.

    Sport  Sport!  Sport/Golf  Sport/Soccer/A  Sport/Soccer/B
    below the root: Sport, Sport! (Sport/Golf is below Sport, which was found)    below Sport: Golf, Soccer (2 below)

A chain of levels at which nothing is, and which have one child each, is one node, as in ``commands.explain.pictures``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from commands.broker.state import subscription_of
from commands.broker.times import from_microseconds, to_microseconds
from commands.disk.errors import StoreDamagedError
from commands.qmgr.store.database import Connection, Database, translate_errors
from commands.qmgr.store.port import MESSAGE_ON_QUEUE, MessageRow, StoredMessage, check, message_of
from commands.qmgr.store.queue_manager import QueueManagerStore
from streams.subscriptions import Subscription
from streams.topic_strings import SEPARATOR

_SHARE: Final = 10
# What is copied of subscriptions: the column, and its key in their JSON.
_LISTED: Final = {
    "topic": "topic_string",
    "name": "name",
    "queue": "dest_queue",
    "qmgr": "dest_qmgr",
    '"user"': "user",
}
_SUBSCRIPTIONS: Final = "FROM listed AS s LEFT JOIN subscription_counts AS c USING (sub_id)"
_SUBSCRIPTION_COLUMNS: Final = (
    'sub_id, s.topic, s.name, s.queue, s.qmgr, s."user", c.delivered, c.last, c.filtered, c.dead_letters'
)
_SUBSCRIPTION_SORTS: Final = {
    "topic": "s.topic",
    "queue": "s.queue",
    "name": "s.name",
    "user": 's."user"',
    "delivered": "coalesce(c.delivered, 0)",
    "last": "coalesce(c.last, 0)",
    "filtered": "coalesce(c.filtered, 0)",
    "dead": "coalesce(c.dead_letters, 0)",
}
_TOPICS: Final = """FROM (SELECT topic FROM topic_counts UNION SELECT topic FROM retained) AS t
    LEFT JOIN topic_counts AS c USING (topic) LEFT JOIN retained AS r USING (topic)"""
_TOPIC_COLUMNS: Final = "t.topic, c.publications, c.last, r.publication IS NOT NULL"
_TOPIC_SORTS: Final = {
    "topic": "t.topic",
    "published": "coalesce(c.publications, 0)",
    "last": "coalesce(c.last, 0)",
    "retained": "r.publication IS NOT NULL",
}
_MESSAGES: Final = """SELECT seq, rank, time, "user", persistent, length(body), md,
    substr(body, 1, CAST(? AS INTEGER)) FROM messages
    WHERE queue = ? AND (rank, seq) > (?, ?) AND (expires_at IS NULL OR expires_at > ?) ORDER BY rank, seq LIMIT ?"""
_SIZE: Final = "SELECT length(body) FROM messages WHERE seq = ? AND queue = ?"
_RETAINED: Final = "SELECT publication FROM retained WHERE topic = ?"

SUBSCRIPTION_SORTS: Final = tuple(_SUBSCRIPTION_SORTS)
TOPIC_SORTS: Final = tuple(_TOPIC_SORTS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A page that is asked for. search: text in one of the columns, "" for all. sort: a column; first: from 0."""

    search: str = ""
    sort: str = "topic"
    descending: bool = False
    first: int = 0
    most: int = 100


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """A subscription in a list, with its counts."""

    sub_id: bytes
    topic: str
    name: str | None
    queue: str
    qmgr: str
    user: str
    delivered: int
    last: datetime | None
    filtered: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic on which somebody published, or which retains a publication."""

    topic: str
    published: int
    last: datetime | None
    retained: bool


@dataclass(frozen=True, slots=True)
class MessageRowOnQueue:
    """A message in a list. place: of it in the queue, for the page behind it. head: its first bytes."""

    seq: int
    place: tuple[int, int]
    time: datetime
    user: str | None
    persistent: bool
    size_bytes: int
    md: bytes
    head: bytes


class Listing:
    """The lists of one queue manager, read through *store*, which stays the caller's. For one thread."""

    def __init__(self, store: QueueManagerStore) -> None:
        self._store = store
        self._version: int | None = None
        self._not_before = 0.0

    @property
    def database(self) -> Database:
        """The database of the store."""
        return self._store.database

    @translate_errors
    def fresh(self) -> Connection:
        """The connection, with ``listed`` and ``topic_objects`` as new as the large copies allow."""
        connection = self.database.connection
        version = self.database.versions()[0]
        began = time.monotonic()
        if version != self._version and began >= self._not_before:
            with self._store.one_moment():
                for statement in _copies(self.database):
                    connection.execute(statement)
            ended = time.monotonic()
            self._version, self._not_before = version, ended + _SHARE * (ended - began)
        return connection

    @translate_errors
    def subscriptions(self, wanted: Wanted) -> tuple[list[SubscriptionRow], int]:
        """A page, and how many there are in all. Raises KeyError for a sort that is not in SUBSCRIPTION_SORTS."""
        connection = self.fresh()
        where, values = _searched(("s.topic", "s.name", "s.queue", 's."user"'), wanted.search)
        order = _order(_SUBSCRIPTION_SORTS[wanted.sort], "s.sub_id", wanted.descending)
        # SQLite sorts keys alone in a third of the time that whole rows take.
        page = f"SELECT sub_id {_SUBSCRIPTIONS}{where}{order} LIMIT ? OFFSET ?"
        found = connection.execute(
            f"SELECT {_SUBSCRIPTION_COLUMNS} {_SUBSCRIPTIONS} WHERE sub_id IN ({page}){order}",
            (*values, wanted.most, wanted.first),
        )
        rows = [_subscription_row(row) for row in found.fetchall()]
        # The join does not change their number, and takes most of the time.
        (count,) = connection.execute(f"SELECT count(*) FROM listed AS s{where}", values).fetchone()
        return rows, count

    @translate_errors
    def topics(self, wanted: Wanted) -> tuple[list[TopicRow], int]:
        """The same for topics. Raises KeyError for a sort that is not in TOPIC_SORTS."""
        connection = self.database.connection
        where, values = _searched(("t.topic",), wanted.search)
        order = _order(_TOPIC_SORTS[wanted.sort], "t.topic", wanted.descending)
        found = connection.execute(
            f"SELECT {_TOPIC_COLUMNS} {_TOPICS}{where}{order} LIMIT ? OFFSET ?",
            (*values, wanted.most, wanted.first),
        )
        rows = [TopicRow(topic, count or 0, _moment(last), bool(kept)) for topic, count, last, kept in found.fetchall()]
        union = "(SELECT topic FROM topic_counts UNION SELECT topic FROM retained) AS t"
        (count,) = connection.execute(f"SELECT count(*) FROM {union}{where}", values).fetchone()
        return rows, count

    @translate_errors
    def subscription(self, sub_id: bytes) -> tuple[Subscription, SubscriptionRow] | None:
        """One subscription as it is now, and its counts; None where there is none. Raises StoreDamagedError."""
        connection = self.database.connection
        found = connection.execute("SELECT state FROM subscriptions WHERE sub_id = ?", (sub_id,)).fetchone()
        if found is None:
            return None
        try:
            known = subscription_of(found[0])
        except ValueError as error:
            raise StoreDamagedError.unreadable(self.database.path, f"subscription {sub_id.hex()}") from error
        counts = connection.execute(
            "SELECT delivered, last, filtered, dead_letters FROM subscription_counts WHERE sub_id = ?", (sub_id,)
        ).fetchone()
        delivered, last, filtered, dead = counts or (0, None, 0, 0)
        about = (sub_id, known.topic_string, known.name, known.dest_queue, known.dest_qmgr, known.user)
        return known, SubscriptionRow(*about, delivered, _moment(last), filtered, dead)

    @translate_errors
    def subscriptions_at(self, topic: str, most: int) -> list[SubscriptionRow]:
        """The first *most* subscriptions whose topic string is exactly *topic*."""
        found = self.fresh().execute(
            f"SELECT {_SUBSCRIPTION_COLUMNS} {_SUBSCRIPTIONS} WHERE s.topic = ? ORDER BY s.sub_id LIMIT ?",
            (topic, most),
        )
        return [_subscription_row(row) for row in found.fetchall()]

    @translate_errors
    def messages(
        self, queue: str, after: tuple[int, int], most: int, head_bytes: int, now: datetime
    ) -> list[MessageRowOnQueue]:
        """The messages of a local queue behind a place, (-1, -1) for the first, with *head_bytes* of each."""
        values = (head_bytes, queue, *after, to_microseconds(now), most)
        return [
            MessageRowOnQueue(seq, (rank, seq), from_microseconds(at), user, bool(persistent), size, md, head)
            for seq, rank, at, user, persistent, size, md, head in self.database.connection.execute(_MESSAGES, values)
        ]

    @translate_errors
    def size_of(self, queue: str, seq: int) -> int | None:
        """How many bytes a message of a local queue has; None where it is not there any more."""
        found = self.database.connection.execute(_SIZE, (seq, queue)).fetchone()
        return None if found is None else int(found[0])

    @translate_errors
    def message(self, queue: str, seq: int, now: datetime) -> StoredMessage | None:
        """One message of a local queue; None where it is not there any more. Raises StoreDamagedError."""
        row: MessageRow | None = self.database.connection.execute(MESSAGE_ON_QUEUE, (seq, queue)).fetchone()
        if row is None:
            return None
        check(self.database, row)
        return message_of(self.database, row, to_microseconds(now))

    @translate_errors
    def retained(self, topic: str) -> tuple[datetime, bytes, bytes] | None:
        """When the publication that *topic* retains was published, its descriptor and its body; None for none."""
        found = self.database.connection.execute(
            f"SELECT published_at, md, body FROM publications WHERE number = ({_RETAINED})", (topic,)
        ).fetchone()
        return None if found is None else (from_microseconds(found[0]), found[1], found[2])


def _copies(database: Database) -> Iterator[str]:
    """The statements that copy."""
    text = database.json_text
    columns = ", ".join(f"{text('state', key)} AS {column}" for column, key in _LISTED.items())
    topic = text("state", "topic_string")
    for table, copied in (
        ("listed", f"SELECT sub_id, {columns} FROM subscriptions"),
        ("topic_objects", f"SELECT {topic} AS topic, name FROM definitions WHERE kind = 'topic' AND {topic} <> ''"),
    ):
        yield f"DROP TABLE IF EXISTS {table}"
        yield f"CREATE TEMP TABLE {table} AS {copied}"
        yield f"CREATE INDEX {table}_by_topic ON {table} {database.topic_index}"
    yield "CREATE INDEX listed_by_sub_id ON listed (sub_id)"


def _subscription_row(row: tuple[Any, ...]) -> SubscriptionRow:
    sub_id, topic, name, queue, qmgr, user, delivered, last, filtered, dead = row
    counts = delivered or 0, _moment(last), filtered or 0, dead or 0
    return SubscriptionRow(sub_id, topic, name, queue, qmgr, user, *counts)


def _searched(columns: tuple[str, ...], search: str) -> tuple[str, tuple[str, ...]]:
    """A WHERE, and its values: *search* is in one of *columns*, small and capital letters of ASCII alike."""
    if not search:
        return "", ()
    pattern = "%" + "".join(f"\\{c}" if c in "%_\\" else c for c in search) + "%"
    return " WHERE (" + " OR ".join(rf"{c} LIKE ? ESCAPE '\'" for c in columns) + ")", (pattern,) * len(columns)


def _order(column: str, tie: str, descending: bool) -> str:
    direction = "DESC NULLS LAST" if descending else "ASC NULLS FIRST"
    return f" ORDER BY {column} {direction}, {tie} {direction}"


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_microseconds(microseconds)


# What follows the separator: the topic strings below one end before it.
_BEHIND: Final = chr(ord(SEPARATOR) + 1)
# No topic string is greater; the last code point is no character.
_END: Final = "\U0010ffff"
_SOURCES: Final = ("retained", "topic_counts", "listed", "topic_objects")
_ONE: Final = (
    "SELECT * FROM (SELECT topic FROM {0} WHERE topic >= ?1 AND topic < ?2 ORDER BY topic{1} LIMIT 1) AS of_{0}"
)
_FIRST: Final = " UNION ALL ".join(_ONE.format(source, "") for source in _SOURCES)
_LAST: Final = " UNION ALL ".join(_ONE.format(source, " DESC") for source in _SOURCES)
MOST_BELOW: Final = 1_000
"""Topic strings below a node that are counted; there may be more."""

_IN_SPAN: Final = "SELECT topic FROM {} WHERE topic >= ?1 AND topic < ?2"
_BELOW: Final = (
    f"SELECT count(*) FROM (SELECT topic FROM ({' UNION '.join(map(_IN_SPAN.format, _SOURCES))}) AS every "
    f"LIMIT {MOST_BELOW}) AS counted"
)
_AT: Final = """SELECT EXISTS (SELECT 1 FROM retained WHERE topic = ?1),
    (SELECT publications FROM topic_counts WHERE topic = ?1),
    (SELECT count(*) FROM listed WHERE topic = ?1),
    (SELECT {names} FROM topic_objects WHERE topic = ?1)"""


@dataclass(frozen=True, slots=True)
class TopicNode:
    """A node. label: the levels that lead here from the node above. subscriptions: with exactly this topic string.

    below: topic strings below it, MOST_BELOW at most.
    """

    label: str
    topic: str
    retained: bool
    published: int
    subscriptions: int
    objects: str
    below: int

    @property
    def has_children(self) -> bool:
        """Whether a topic string is below it."""
        return self.below > 0


class TopicLevels:
    """The tree of one listing. For one thread."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    @property
    def database(self) -> Database:
        """The database of the listing."""
        return self._listing.database

    @translate_errors
    def below(self, under: str | None, after: str, most: int) -> tuple[list[TopicNode], str]:
        """At most *most* children of topic *under*, and where the next page begins; "" where there is none.

        under: None for the root. after: what the page before gave, "" for the first.
        """
        connection = self._listing.fresh()
        names = self.database.joined("name")
        begin, end = ("", _END) if under is None else (under + SEPARATOR, under + _BEHIND)
        cursor = max(begin, after)
        nodes: list[TopicNode] = []
        while (found := _outermost(connection, _FIRST, cursor, end)) is not None:
            child = begin + found[len(begin) :].partition(SEPARATOR)[0]
            behind = child + _BEHIND
            if found == child:
                # What stands between a topic and what is below it is no child of it: "a!" between "a" and "a/b".
                cursor = found + "\1"
            elif _is_there(connection, names, child):
                cursor = behind
                continue
            else:
                cursor = behind
            # "a" is in the order before "a!", and "a/b" behind it: a child is shown where it is first met.
            if len(nodes) == most:
                return nodes, found
            nodes.append(self._node(connection, begin, child))
        return nodes, ""

    @translate_errors
    def at(self, topic: str) -> TopicNode:
        """What is at a topic."""
        return self._node(self._listing.fresh(), "", topic, follows=False)

    def _node(self, connection: Connection, begin: str, topic: str, follows: bool = True) -> TopicNode:
        names = self.database.joined("name")
        if follows and not _is_there(connection, names, topic):
            topic = _chain(connection, topic)
        retained, published, subscriptions, objects = connection.execute(_AT.format(names=names), (topic,)).fetchone()
        (below,) = connection.execute(_BELOW, (topic + SEPARATOR, topic + _BEHIND)).fetchone()
        label = topic[len(begin) :]
        return TopicNode(label, topic, bool(retained), published or 0, subscriptions, objects or "", below)


def _outermost(connection: Connection, statement: str, begin: str, end: str) -> str | None:
    found = [topic for (topic,) in connection.execute(statement, (begin, end))]
    if not found:
        return None
    # Python compares code points, and SQLite their bytes in UTF-8: the order is the same.
    return str(min(found) if statement is _FIRST else max(found))


def _is_there(connection: Connection, names: str, topic: str) -> bool:
    return any(any(values) for values in connection.execute(_AT.format(names=names), (topic,)))


def _chain(connection: Connection, topic: str) -> str:
    """The topic where the chain of single levels from *topic* ends: what all topic strings below it begin with."""
    span = topic + SEPARATOR, topic + _BEHIND
    first, last = _outermost(connection, _FIRST, *span), _outermost(connection, _LAST, *span)
    assert first is not None
    assert last is not None
    common = []
    for one, other in zip(first.split(SEPARATOR), last.split(SEPARATOR), strict=False):
        if one != other:
            break
        common.append(one)
    chain = SEPARATOR.join(common)
    # "a!" stands between "a" and "a/b", which have "a" in common, and does not begin with it.
    if chain != topic and _outermost(connection, _FIRST, chain + "\1", chain + SEPARATOR) is not None:
        chain = SEPARATOR.join(common[:-1])
    return chain
