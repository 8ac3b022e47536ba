"""Reading a queue manager's database: messages in queue order, and the state that the command processor starts with.

Nothing here changes anything. Pages are read by key, so that no statement stays open between them: a browse that waits
for its reader keeps no snapshot, and lets the write-ahead log be taken in.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pydantic import ValidationError

from commands.objects import Definition, Objects, QueueManager, definition_of, kind_of
from commands.queues.database import Database
from commands.queues.descriptor import HIGHEST_PRIORITY, leave
from commands.queues.errors import StoreDamagedError
from commands.queues.port import LoadedState, StoredMessage
from commands.queues.publications import KeptMessages, StoredPublication
from commands.queues.state import from_microseconds, subscription_of
from rfh2.frozen import maker
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription

_stored = maker(StoredMessage)

_PAGE: Final = 256
COLUMNS: Final = "seq, queue, time, user, md, body, persistent, rank, expires_at, backout_count"
_KEYS = """SELECT rank, seq FROM messages WHERE queue = ? AND (rank, seq) > (?, ?) ORDER BY rank, seq LIMIT ?"""
_ONE = f"SELECT {COLUMNS} FROM messages WHERE seq = ? AND queue = ?"
_PUBLICATIONS = "SELECT number, published_at, expires_at, local FROM publications"
_DEPTH = """SELECT (SELECT count(*) FROM messages WHERE queue = :queue)
    - (SELECT count(*) FROM messages WHERE expires_at <= :now AND queue = :queue)"""


def message_of(row: tuple[Any, ...], now_us: int) -> StoredMessage:
    """The message in *row* (COLUMNS), as a get or browse at *now_us* gives it."""
    seq, queue, time, user, md, body, persistent, rank, expires_at, backout_count = row
    left_us = None if expires_at is None else expires_at - now_us
    expiry = None if expires_at is None else from_microseconds(expires_at)
    md = leave(md, left_us, backout_count)
    priority = HIGHEST_PRIORITY - rank
    arrival = from_microseconds(time)
    return _stored(seq, queue, arrival, user, md, body, bool(persistent), priority, expiry, backout_count)


def browse(database: Database, queue: str, now_us: int) -> Iterator[StoredMessage]:
    """The messages of a local queue that have not expired at *now_us*, in queue order. Raises StoreError."""
    execute = database.connection.execute
    after = (-1, -1)
    try:
        while keys := execute(_KEYS, (queue, *after, _PAGE)).fetchall():
            for _rank, seq in keys:
                row = execute(_ONE, (seq, queue)).fetchone()
                if row is not None and (row[8] is None or row[8] > now_us):
                    yield message_of(row, now_us)
            after = keys[-1]
    except sqlite3.Error as error:
        raise database.told(error) from error


def depth(connection: sqlite3.Connection, queue: str, now_us: int) -> int:
    """How many messages browse would give."""
    (count,) = connection.execute(_DEPTH, {"queue": queue, "now": now_us}).fetchone()
    return int(count)


def load_state(connection: sqlite3.Connection, path: str, messages: KeptMessages) -> LoadedState:
    """Definitions, subscriptions by sub_id, and retained publications by topic. Raises StoreDamagedError.

    messages: where the retained publications look for theirs.
    """
    with _all_of_it_kept():
        return load_objects(connection, path), _subscriptions(connection, path), _retained(connection, path, messages)


@contextmanager
def _all_of_it_kept() -> Iterator[None]:
    # Looking for garbage again and again while nothing but what stays is made costs a third of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _subscriptions(connection: sqlite3.Connection, path: str) -> list[Subscription]:
    subscriptions = []
    for sub_id, state in connection.execute("SELECT sub_id, state FROM subscriptions ORDER BY sub_id"):
        try:
            subscriptions.append(subscription_of(state))
        except ValidationError as error:
            raise StoreDamagedError.unreadable(path, f"subscription {sub_id.hex()}") from error
    return subscriptions


def _retained(connection: sqlite3.Connection, path: str, messages: KeptMessages) -> list[RetainedPublication]:
    published: dict[int, StoredPublication] = {}
    for number, at, expires_at, local in connection.execute(_PUBLICATIONS):
        expiry = None if expires_at is None else from_microseconds(expires_at)
        published[number] = StoredPublication(number, from_microseconds(at), expiry, bool(local), messages)
    retained = []
    for topic, number in connection.execute("SELECT topic, publication FROM retained ORDER BY topic"):
        publication = published.get(number)
        if publication is None:
            raise StoreDamagedError.unreadable(path, f"retained publication on {topic}")
        retained.append(RetainedPublication(topic, publication))
    return retained


def load_objects(connection: sqlite3.Connection, path: str) -> Objects:
    """The definitions alone. Raises StoreDamagedError."""
    definitions: list[Definition] = []
    for kind, name, state in connection.execute("SELECT kind, name, state FROM definitions").fetchall():
        with_what = f"definition {name} of kind {kind}"
        try:
            definitions.append(definition_of(kind, state))
        except (ValidationError, KeyError) as error:
            raise StoreDamagedError.unreadable(path, with_what) from error
    return _objects(definitions, path)


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
    """Every definition that *objects* holds."""
    return [
        objects.qmgr,
        *objects.queues.values(),
        *objects.aliases.values(),
        *objects.namelists.values(),
        *objects.topics,
        *objects.authorities.values(),
    ]
