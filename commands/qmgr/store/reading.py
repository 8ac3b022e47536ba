"""Reading a queue manager's database: messages in queue order, and the state that the command processor starts with.

Nothing here changes the database. Pages are read by key, so that no statement stays open between them: a browse that
waits for its reader holds no snapshot, and does not prevent a checkpoint of the write-ahead log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from commands.broker.descriptor import HIGHEST_PRIORITY, leave
from commands.broker.objects import Definition, LocalQueue, Objects, QueueManager, definition_of, kind_of
from commands.broker.state import from_microseconds, subscription_of
from commands.disk.errors import DAMAGED, UNREADABLE, StoreDamagedError, readable
from commands.network.repository import give_copies
from commands.qmgr.store.database import FAILURES, Database
from commands.qmgr.store.neighbours import repository_in
from commands.qmgr.store.port import LoadedState, StoredMessage
from commands.qmgr.store.publications import KeptMessages, StoredPublication
from commands.qmgr.store.rows import EXPIRES_AT, MESSAGE_ON_QUEUE, MessageRow
from streams.operations import RetainedPublication
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription

_PAGE: Final = 256
# SQLite's integers end at 2**63; so many more can be given until then.
_MOST_NUMBERS: Final = 2**62
_KEYS = """SELECT rank, seq FROM messages WHERE queue = ? AND (rank, seq) > (?, ?) ORDER BY rank, seq LIMIT ?"""
_PUBLICATIONS = "SELECT number, published_at, expires_at, local FROM publications"
_DEPTH = """SELECT (SELECT count(*) FROM messages WHERE queue = :queue)
    - (SELECT count(*) FROM messages WHERE expires_at <= :now AND queue = :queue)"""


def check(database: Database, row: MessageRow) -> None:
    """Check the values of *row*. Raises StoreDamagedError."""
    seq, _queue, rank, time, user, persistent, expires_at, md, body, backout_count = row
    if (
        type(md) is bytes
        and (body is None or type(body) is bytes)
        and type(time) is type(persistent) is type(rank) is type(backout_count) is int
        and 0 <= rank <= HIGHEST_PRIORITY
        and (expires_at is None or type(expires_at) is int)
        and (user is None or type(user) is str)
    ):
        return
    raise StoreDamagedError.unreadable(database.path, f"message {seq}")


def message_of(database: Database, row: MessageRow, now_us: int) -> StoredMessage:
    """*row*, checked and with its body, as a get or browse at *now_us* gives it. Raises StoreDamagedError."""
    seq, queue, rank, time, user, persistent, expires_at, md, body, backout_count = row
    assert body is not None
    try:
        left_us = None if expires_at is None else expires_at - now_us
        expiry = None if expires_at is None else from_microseconds(expires_at)
        if left_us is not None or backout_count:
            md = leave(md, left_us, backout_count)
        arrival = from_microseconds(time)
    except UNREADABLE as error:
        raise StoreDamagedError.unreadable(database.path, f"message {seq}") from error
    return StoredMessage(
        seq, queue, arrival, user, md, body, bool(persistent), HIGHEST_PRIORITY - rank, expiry, backout_count
    )


def browse(database: Database, queue: str, now_us: int) -> Iterator[StoredMessage]:
    """The messages of a local queue that have not expired at *now_us*, in queue order. Raises StoreError."""
    execute = database.connection.execute
    after = (-1, -1)
    try:
        while keys := execute(_KEYS, (queue, *after, _PAGE)).fetchall():
            for _rank, seq in keys:
                row: MessageRow | None = execute(MESSAGE_ON_QUEUE, (seq, queue)).fetchone()
                if row is not None:
                    check(database, row)
                    expires_at = row[EXPIRES_AT]
                    if expires_at is None or expires_at > now_us:
                        yield message_of(database, row, now_us)
            after = keys[-1]
    except FAILURES as error:
        raise database.translated(error) from error


def depth(connection: sqlite3.Connection, queue: str, now_us: int) -> int:
    """How many messages browse would give."""
    (count,) = connection.execute(_DEPTH, {"queue": queue, "now": now_us}).fetchone()
    return int(count)


def load_state(connection: sqlite3.Connection, path: str, messages: KeptMessages) -> LoadedState:
    """Definitions, subscriptions by sub_id, and retained publications by topic. Raises StoreDamagedError.

    messages: where the retained publications look for theirs.
    """
    try:
        return load_objects(connection, path), _subscriptions(connection, path), _retained(connection, path, messages)
    except MemoryError as error:
        # What a damaged row says of its length may be more than there is.
        raise StoreDamagedError(path, f"there is not enough memory for a row of the state: {DAMAGED}") from error


def versions(database: Database) -> tuple[int, int]:
    """The version of the state, and that of the definitions in it. Raises StoreDamagedError."""
    row = database.connection.execute("SELECT version, definitions FROM state").fetchone()
    if row is None or type(row[0]) is not int or type(row[1]) is not int:
        raise StoreDamagedError.unreadable(database.path, "number of the state")
    return row[0], row[1]


def highest(database: Database, table: str) -> int:
    """The highest number that *table* ever had; 0 where it never had any. Raises StoreDamagedError."""
    row = database.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    number = 0 if row is None else row[0]
    if type(number) is not int or not 0 <= number < _MOST_NUMBERS:
        raise StoreDamagedError.unreadable(database.path, f"highest number of {table}")
    return number


def _subscriptions(connection: sqlite3.Connection, path: str) -> list[Subscription]:
    subscriptions: list[Subscription] = []
    names = set()
    sub_id: object = None
    try:
        for sub_id, state in connection.execute("SELECT sub_id, state FROM subscriptions ORDER BY sub_id"):
            subscription = subscription_of(state)
            parse_pattern(subscription.topic_string, subscription.wildcard)
            if subscription.sub_id != sub_id or subscription.name in names:
                raise ValueError("it contradicts another row")
            if subscription.name is not None:
                names.add(subscription.name)
            subscriptions.append(subscription)
    except UNREADABLE as error:
        what = f"subscription {sub_id.hex() if isinstance(sub_id, bytes) else sub_id}"
        raise StoreDamagedError.unreadable(path, what) from error
    return subscriptions


def _retained(connection: sqlite3.Connection, path: str, messages: KeptMessages) -> list[RetainedPublication]:
    published: dict[int, StoredPublication] = {}
    for number, at, expires_at, local in connection.execute(_PUBLICATIONS):
        with readable(path, f"retained publication {number}"):
            expiry = None if expires_at is None else from_microseconds(expires_at)
            published[number] = StoredPublication(number, from_microseconds(at), expiry, bool(local), messages)
    retained = []
    for topic, number in connection.execute("SELECT topic, publication FROM retained ORDER BY topic"):
        publication = published.get(number)
        if publication is None or type(topic) is not str:
            raise StoreDamagedError.unreadable(path, f"retained publication on {topic}")
        retained.append(RetainedPublication(topic, publication))
    return retained


def local_queues(database: Database) -> list[LocalQueue]:
    """All local queues. Raises StoreDamagedError."""
    rows = database.connection.execute("SELECT kind, state FROM definitions WHERE kind = 'qlocal'").fetchall()
    with readable(database.path, "definitions of queues"):
        return [found for found in (definition_of(*row) for row in rows) if isinstance(found, LocalQueue)]


def load_objects(connection: sqlite3.Connection, path: str) -> Objects:
    """The definitions alone, and copies of cluster topics. Raises StoreDamagedError."""
    definitions: list[Definition] = []
    for kind, name, state in connection.execute("SELECT kind, name, state FROM definitions").fetchall():
        with readable(path, f"definition {name} of kind {kind}"):
            definition = definition_of(kind, state)
            if definition.name != name:
                raise ValueError("it is another one's")
            definitions.append(definition)
    with readable(path, "definitions"):
        objects = _objects(definitions, path)
    others = repository_in(connection, path)
    if others:
        give_copies(objects, others)
    return objects


def _objects(definitions: list[Definition], path: str) -> Objects:
    # Objects begins with the defaults of a new queue manager; here those that were deleted must not come back.
    qmgr = next((d for d in definitions if isinstance(d, QueueManager)), None)
    if qmgr is None:
        raise StoreDamagedError.unreadable(path, "queue manager's own definition")
    objects = Objects(qmgr)
    for default in definitions_in(objects):
        if not isinstance(default, QueueManager):
            objects.delete(kind_of(default), default.name)
    for definition in definitions:
        objects.put(definition)
    return objects


def definitions_in(objects: Objects) -> list[Definition]:
    """Every definition that *objects* holds, without the copies of cluster topics."""
    return [
        objects.qmgr,
        *objects.queues.values(),
        *objects.aliases.values(),
        *objects.models.values(),
        *objects.namelists.values(),
        *objects.topics.own,
        *objects.authorities.values(),
        *objects.channels.values(),
    ]
