"""What a restart reads: definitions, subscriptions, and retained publications without their messages.

The messages stay in the database until they are needed. However many topics retain a publication, it is one row and one
object. A cache of limited size keeps the messages read last, so that memory grows with the number of topics and not
with the size of their publications. Nothing here changes the database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from commands.broker.objects import Definition, LocalQueue, Objects, QueueManager, definition_of
from commands.broker.state import subscription_of
from commands.broker.times import from_microseconds
from commands.disk.errors import DAMAGED, UNREADABLE, StoreDamagedError, readable
from commands.network.cluster_topics import give_copies
from commands.qmgr.store.database import FAILURES, Connection, Database
from commands.qmgr.store.neighbours import repository_in
from commands.qmgr.store.port import LoadedState
from rfh2.errors import StoreError
from rfh2.message import Message, decode
from streams.operations import RetainedPublication
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription

CACHE_BYTES: Final = 16 * 1024 * 1024
# What a small message takes beside its bytes once it is decoded.
_OVERHEAD_BYTES: Final = 4 * 1024

_MESSAGE: Final = "SELECT md, body FROM publications WHERE number = ?"
_TOPIC: Final = "SELECT topic FROM retained WHERE publication = ? LIMIT 1"


class KeptMessages:
    """The messages of a database's retained publications. flush: called before the table is read.

    The cache holds at most ``CACHE_BYTES``, and the message asked for last however long it is.
    """

    __slots__ = ("_cache", "_database", "_flush", "_most_bytes", "_size_bytes")

    def __init__(self, database: Database, flush: Callable[[], None], most_bytes: int = CACHE_BYTES) -> None:
        self._database, self._flush, self._most_bytes = database, flush, most_bytes
        # The one used last is the last one. What was not asked for since it was written is not decoded.
        self._cache: dict[int, tuple[Message | tuple[bytes, bytes], int]] = {}
        self._size_bytes = 0

    def message(self, number: int) -> Message:
        """The message of publication *number*. Raises StoreDamagedError where it cannot be read, StoreError."""
        found = self._cache.pop(number, None)
        if found is not None:
            held, size_bytes = found
            message = held if isinstance(held, Message) else self._decoded(number, *held)
            self._cache[number] = message, size_bytes
            return message
        self._flush()
        try:
            row = self._database.connection.execute(_MESSAGE, (number,)).fetchone()
        except FAILURES as error:
            raise self._database.translated(error) from error
        if row is None:
            raise StoreError(f"{self._database.path}: a retained publication was cleared meanwhile; try again")
        md, body = row
        message = self._decoded(number, md, body)
        self._keep(number, message, len(md) + len(body))
        return message

    def _decoded(self, number: int, md: bytes, body: bytes) -> Message:
        try:
            return decode(body, md)
        except UNREADABLE as error:
            raise self._unreadable(number) from error

    def _unreadable(self, number: int) -> StoreDamagedError:
        topics = self._database.connection.execute(_TOPIC, (number,)).fetchall()
        return StoreDamagedError.unreadable(
            self._database.path, f"retained publication on {topics[0][0] if topics else '?'}"
        )

    def keep(self, number: int, md: bytes, body: bytes) -> None:
        """Put a message that is about to be written into the cache."""
        self._keep(number, (md, body), len(md) + len(body))

    def _keep(self, number: int, message: Message | tuple[bytes, bytes], size_bytes: int) -> None:
        size_bytes += _OVERHEAD_BYTES
        self._cache[number] = message, size_bytes
        self._size_bytes += size_bytes
        while self._size_bytes > self._most_bytes and len(self._cache) > 1:
            _, gone_bytes = self._cache.pop(next(iter(self._cache)))
            self._size_bytes -= gone_bytes

    def forget(self) -> None:
        """Messages were not written, so their numbers will be used again: remove them from the cache."""
        self._cache.clear()
        self._size_bytes = 0


@dataclass(frozen=True, slots=True)
class StoredPublication:
    """A ``Published`` of a database. number: never given twice there.

    Good as long as the database is open; only version 6, which a queue manager does not run, asks for stream and
    subscription point.
    """

    number: int
    published_at: datetime
    expires_at: datetime | None
    local: bool
    messages: KeptMessages = field(repr=False, compare=False)

    @property
    def message(self) -> Message:
        """Raises StoreDamagedError, StoreError."""
        return self.messages.message(self.number)

    @property
    def stream(self) -> str | None:
        """Not kept."""
        return None

    @property
    def sub_point(self) -> str | None:
        """Not kept."""
        return None


_PUBLICATIONS = "SELECT number, published_at, expires_at, local FROM publications"


def load_state(connection: Connection, path: str, messages: KeptMessages) -> LoadedState:
    """Definitions, subscriptions by sub_id, and retained publications by topic. Raises StoreDamagedError.

    messages: where the retained publications look for theirs.
    """
    try:
        return load_objects(connection, path), _subscriptions(connection, path), _retained(connection, path, messages)
    except MemoryError as error:
        # What a damaged row says of its length may be more than there is.
        raise StoreDamagedError(path, f"there is not enough memory for a row of the state: {DAMAGED}") from error


def numbered(database: Database, table: str, insert: str, *values: object) -> int:
    """Insert a row with the next number of *table*, which is never given twice; the number."""
    number = database.highest(table) + 1
    database.connection.execute(insert, (number, *values))
    database.reached(table, number)
    return number


def _subscriptions(connection: Connection, path: str) -> list[Subscription]:
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


def _retained(connection: Connection, path: str, messages: KeptMessages) -> list[RetainedPublication]:
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


def load_objects(connection: Connection, path: str) -> Objects:
    """The definitions alone, and copies of cluster topics. Raises StoreDamagedError."""
    definitions: list[Definition] = []
    for kind, name, state in connection.execute("SELECT kind, name, state FROM definitions").fetchall():
        with readable(path, f"definition {name} of kind {kind}"):
            definition = definition_of(kind, state)
            if definition.name != name:
                raise ValueError("it is the definition of another object")
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
    objects.forget()
    for definition in definitions:
        objects.put(definition)
    return objects


def definitions_in(objects: Objects) -> list[Definition]:
    """Every definition that *objects* holds, without the copies of cluster topics."""
    return [
        objects.qmgr,
        *objects.topics.own,
        *objects.named,
    ]
