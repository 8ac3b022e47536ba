"""Keeps undelivered publications on a queue of the bridge, in IBM MQ's own units of work (``Undelivered``).

    ┌────────┬───────────┬───────┬───────────┬────────────────┬──────┬──────
    │ "OWED" │ temporary │ tried │ Queue  48 │ QueueManager 48 │ MQMD │ body     a message there
    └────────┴───────────┴───────┴───────────┴────────────────┴──────┴──────

Its own MQMD has a CorrelId that is a hash of queue and queue manager, so that MQGET finds those for one queue in the
order in which they were put; all have one priority. It has the Expiry and the persistence of what it holds:
the queue manager lets it expire, and a get says how much is left.

A unit of work cannot see its own puts, and to browse the queue for each publication would cost a call. So the bridge
keeps the number of messages for each queue in memory, from one unit of work to the next. For each new connection it
reads the number from the queue: before it does anything else there, and after the record says that the unit of work of
the last connection is decided (``record``). For that reason a unit of work that changes it has a record.

The number of failed tries of a queue is in memory too. A message says what this number was when it was put: the
difference is the number of tries of the message. After a restart the count of the last messages begins again.

The record: the changes of a unit of work to the state, put by the unit of work itself.

State is in SQLite, messages are in IBM MQ, and no commit includes both. So a unit of work puts its changes, as
messages, on a queue of the bridge, in the same unit of work as the commands that made them: MQCMIT decides for both.
SQLite is changed after that. After a restart or a new connection the bridge reads the queue first:

    MQCMIT did not happen   the queue holds the record before; SQLite does too; the commands are on their queues again
    it did, SQLite did not  the queue holds the next record: SQLite catches up
    both did                nothing to do

Each record replaces the one before, so the queue is never empty after its first use. If it is empty, a unit of work of
a broken connection still holds the record, and the bridge processes nothing until the queue manager has decided. The
bridge opens the queue exclusively: two bridges cannot process the same commands.

A record is one message for each effect, so that it fits where the retained publication in it fitted. Its body is the
length of a JSON text in 4 bytes, the text, then the bytes of the publication. Of several topics in a row that retain
one publication the first has it, and the others name its index (``with``). Units of work that change no state, which is
most of them, have no record.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from struct import Struct
from typing import Any, Final
from uuid import uuid4

from commands.broker.state import (
    PublicationRow,
    publication_of,
    publication_row,
    subscription_of,
    subscription_state,
)
from commands.client.errors import MqError
from commands.disk.errors import UndeliverableError, readable
from commands.links.ibmmq.connection import Connection, Got
from commands.qmgr.delivery import destination, lane_of
from commands.qmgr.store.database import FAILURES, Connection as DatabaseConnection, Database
from commands.qmgr.store.port import StoredMessage
from rfh2 import mqi_constants as m
from rfh2.constants import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, MQRC_UNKNOWN_OBJECT_NAME
from rfh2.errors import DecodeError, QueueError, StoreError
from rfh2.mqmd import Mqmd, decode_mqmd, name_of
from streams import operations

_log = logging.getLogger("qpubsub.mq")

FORMAT: Final = "QPSOWED"
_HEADER: Final = Struct(">4s?3xI48s48s")
_STRUC_ID: Final = b"OWED"
_SYNCPOINT: Final = 0x0002


@dataclass(frozen=True, slots=True)
class Undelivered:
    """What one queue has not got. count, size_bytes: as far as is known; some may have expired. since: UTC.

    volatile: how many are not persistent. tried: the number of failed tries. temporary: whether its queue is temporary.
    """

    since: datetime
    tried: int = 0
    temporary: bool = False
    count: int = 0
    size_bytes: int = 0
    volatile: int = 0

    def plus(self, size_bytes: int, persistent: bool, sign: int = 1) -> Undelivered:
        """The same with one message more, or one less."""
        return replace(
            self,
            count=self.count + sign,
            size_bytes=max(0, self.size_bytes + sign * size_bytes),
            volatile=self.volatile + (0 if persistent else sign),
        )


class UndeliveredBefore:
    """What was undelivered at the end of the last unit of work, by queue. queue: where it is."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.by_queue: dict[str, Undelivered] = {}

    def read(self, connection: Connection) -> None:
        """Look at all that is on the queue, header by header. Raises MqError, StoreError.

        A queue that is not there holds nothing, and can keep nothing.
        """
        self.by_queue = {}
        try:
            handle = opened(connection, self.queue)
        except MqError as error:
            if error.reason != MQRC_UNKNOWN_OBJECT_NAME:
                raise
            text = (
                "%s is missing: where a subscriber's queue and the dead-letter queue both refuse a publication, all"
                " wait. Define it: DEFINE QLOCAL('%s') DEFPSIST(YES) SHARE MAXDEPTH(100000) MAXMSGL(104857600)"
            )
            _log.warning(text, self.queue, self.queue)
            return
        seen = connection.glance(handle, first=True, size=_HEADER.size)
        while seen is not None:
            name, tried, temporary = _header(seen.body, self.queue)
            mqmd = Mqmd.decode(seen.md)
            known = self.by_queue.get(name) or Undelivered(put_at(mqmd), temporary=temporary)
            known = replace(known, tried=max(known.tried, tried))
            size_bytes = max(0, seen.length - _HEADER.size)
            self.by_queue[name] = known.plus(size_bytes, mqmd.persistence == MQPER_PERSISTENT)
            seen = connection.glance(handle, first=False, size=_HEADER.size)
        if self.by_queue:
            total = sum(each.count for each in self.by_queue.values())
            _log.warning("%d publications for %d queues are kept on %s", total, len(self.by_queue), self.queue)


class UndeliveredOnQueue:
    """What is undelivered, for one unit of work (``Undelivered``).

    calling: says what a failed call means to the unit of work. put: a message on the queue, by descriptor and body.
    is_temporary: whether a queue is a temporary dynamic one.
    """

    def __init__(
        self,
        connection: Connection,
        before: UndeliveredBefore,
        calling: Callable[[str], AbstractContextManager[None]],
        put: Callable[[bytes, bytes], None],
        is_temporary: Callable[[str], bool],
    ) -> None:
        self._connection, self._before, self._calling, self._put = connection, before, calling, put
        self._is_temporary = is_temporary
        self._by_queue = before.by_queue
        self._tokens: dict[int, bytes] = {}
        self._added: set[str] = set()
        self.has_changed = False

    def settle(self) -> None:
        """The unit of work is committed."""
        self._before.by_queue = self._by_queue

    def overview(self) -> Iterator[tuple[str, int, datetime]]:
        """Queue, how many, since when."""
        return ((name, known.count, known.since) for name, known in self._by_queue.items())

    def queues(self) -> set[str]:
        return set(self._by_queue)

    def keep(
        self,
        queue: str,
        md: bytes,
        body: bytes,
        *,
        time: datetime,
        user: str | None,
        expires_at: datetime | None,
        persistent: bool,
    ) -> None:
        del user, expires_at  # the MQMD says both
        known = self._by_queue.get(queue) or Undelivered(time, temporary=self._is_temporary(queue))
        described, size = decode_mqmd(md, 0)
        name, qmgr = destination(queue)
        header = _HEADER.pack(_STRUC_ID, known.temporary, known.tried, name.encode(), qmgr.encode())
        outer = Mqmd(
            format=FORMAT,
            expiry=described.expiry,
            persistence=MQPER_PERSISTENT if persistent else MQPER_NOT_PERSISTENT,
            priority=0,
            correl_id=_correl_id(queue),
        )
        self._put(outer.encode(), header + md[:size] + body)
        self._change(queue, known.plus(size + len(body), persistent))
        self._added.add(queue)

    def first(self, queue: str, limit: int, now: datetime) -> Iterator[StoredMessage]:
        del now  # the queue manager's clock
        correl_id = _correl_id(queue)
        for seq in range(limit):
            option = m.MQGMO_BROWSE_NEXT if seq else m.MQGMO_BROWSE_FIRST
            with self._reading():
                got = self._connection.get(self._handle(), option, correl_id=correl_id)
            if got is None:
                if not seq and queue not in self._added:
                    self._change(queue, None)  # what there was has expired
                return
            self._tokens[seq] = got.token
            yield _kept(seq, queue, got)

    def is_temporary(self, queue: str) -> bool:
        known = self._by_queue.get(queue)
        return known is not None and known.temporary

    def remove(self, message: StoredMessage) -> None:
        self._take(self._tokens.pop(message.seq))
        self._less(message.queue, len(message.md) + len(message.body), message.persistent)

    def tried(self, queue: str, most: int | None) -> int:
        known = self._by_queue.get(queue)
        if known is None:
            return 0
        known = replace(known, tried=known.tried + 1)
        self._by_queue = {**self._by_queue, queue: known}
        if most is None or not known.volatile:
            return 0
        try:
            return self._give_up(queue, known.tried - most)
        except QueueError:
            return 0  # it cannot be read now; the next try comes

    def total(self) -> tuple[int, int]:
        return sum(each.count for each in self._by_queue.values()), sum(
            each.size_bytes for each in self._by_queue.values()
        )

    def _give_up(self, queue: str, before: int) -> int:
        """Discard those that are not persistent and were put after at most *before* tries."""
        correl_id, first, count = _correl_id(queue), True, 0
        while True:
            with self._reading():
                seen = self._connection.glance(self._handle(), first, size=_HEADER.size, correl_id=correl_id)
            if seen is None or _header(seen.body, self._before.queue)[1] > before:
                return count
            first = False
            if Mqmd.decode(seen.md).persistence != MQPER_PERSISTENT:
                self._take(seen.token)
                self._less(queue, seen.length - _HEADER.size, persistent=False)
                count += 1

    def _take(self, token: bytes) -> None:
        try:
            with self._calling(self._before.queue):
                self._connection.get(self._handle(), m.MQGMO_SYNCPOINT, token=token)
        except MqError as error:
            if error.reason == m.MQRC_SYNCPOINT_LIMIT_REACHED:
                raise UndeliverableError(f"{error}: MAXUMSGS is too low for all that is to be delivered") from error
            raise

    def _less(self, queue: str, size_bytes: int, persistent: bool) -> None:
        left = self._by_queue[queue].plus(size_bytes, persistent, -1)
        self._change(queue, left if left.count > 0 else None)

    def _change(self, queue: str, undelivered: Undelivered | None) -> None:
        if not self.has_changed:
            self._by_queue, self.has_changed = dict(self._by_queue), True
        if undelivered is None:
            self._by_queue.pop(queue, None)
        else:
            self._by_queue[queue] = undelivered

    def _handle(self) -> Any:
        return opened(self._connection, self._before.queue)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with self._calling(self._before.queue):
                yield
        except MqError as error:
            if error.reason == m.MQRC_GET_INHIBITED:
                raise QueueError(error.reason, self._before.queue, "getting is inhibited") from error
            raise


def opened(connection: Connection, queue: str) -> Any:
    """The queue that keeps what is undelivered. Raises MqError."""
    return connection.queue(queue, m.MQOO_INPUT_SHARED | m.MQOO_BROWSE)


def _correl_id(queue: str) -> bytes:
    return hashlib.sha256(queue.encode()).digest()[:24]


def _header(data: bytes, queue: str) -> tuple[str, int, bool]:
    """The queue (``lane_of``), tries before it was put, whether its queue is temporary. Raises StoreError."""
    if len(data) < _HEADER.size or not data.startswith(_STRUC_ID):
        raise StoreError(f"queue {queue} holds a message that the bridge did not put there; remove it")
    _, temporary, tried, name, qmgr = _HEADER.unpack_from(data)
    return lane_of(_text(name), _text(qmgr)), tried, temporary


def _text(field: bytes) -> str:
    return name_of(field.decode("latin-1"))


def _kept(seq: int, queue: str, got: Got) -> StoredMessage:
    outer = Mqmd.decode(got.md)
    mqmd, size = decode_mqmd(got.body, _HEADER.size)
    described = replace(mqmd, expiry=outer.expiry).encode()
    body = got.body[_HEADER.size + size :]
    user = name_of(mqmd.user_identifier) or None
    persistent = outer.persistence == MQPER_PERSISTENT
    return StoredMessage(seq, queue, put_at(outer), user, described, body, persistent, mqmd.priority)


def put_at(mqmd: Mqmd) -> datetime:
    """When a message was put, UTC; now, where its descriptor does not say."""
    try:
        return datetime.strptime(f"{mqmd.put_date}{mqmd.put_time}0000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)


RECORD_FORMAT: Final = "QPSREC"


class RecordError(StoreError):
    """The record and the state do not belong together; a person must find out why before processing goes on."""


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """The changes of unit of work *batch* of the store named *store*."""

    store: str
    batch: int
    effects: tuple[operations.Effect, ...] = ()

    def messages(self) -> list[bytes]:
        """The bodies of its messages; one at least."""
        count = max(len(self.effects), 1)
        about: dict[str, Any] = {"store": self.store, "batch": self.batch, "of": count}
        if not self.effects:
            return [_body({**about, "index": 0}, b"", b"")]
        return [_body({**about, "index": at, **row}, md, body) for at, (row, md, body) in enumerate(self._rows())]

    def _rows(self) -> list[tuple[dict[str, Any], bytes, bytes]]:
        rows: list[tuple[dict[str, Any], bytes, bytes]] = []
        first: tuple[operations.Published, int] | None = None
        for at, effect in enumerate(self.effects):
            if isinstance(effect, operations.SubscriptionAdded):
                rows.append(({"added": subscription_state(effect.subscription)}, b"", b""))
            elif isinstance(effect, operations.SubscriptionAltered):
                states = [subscription_state(effect.before), subscription_state(effect.after)]
                rows.append(({"altered": states}, b"", b""))
            elif isinstance(effect, operations.SubscriptionRemoved):
                rows.append(({"removed": subscription_state(effect.subscription)}, b"", b""))
            elif isinstance(effect, operations.RetainedStored):
                topic, publication = effect.retained.topic_string, effect.retained.publication
                if first is not None and first[0] is publication:
                    rows.append(({"stored": [topic], "with": first[1]}, b"", b""))
                    continue
                first = publication, at
                *columns, md, body = publication_row(publication)
                rows.append(({"stored": [topic, *columns]}, md, body))
            elif isinstance(effect, operations.RetainedCleared):
                rows.append(({"cleared": effect.topic_string}, b"", b""))
        return rows


def read_record(bodies: Sequence[bytes]) -> UnitRecord | None:
    """The record that these messages make; None where there are none. Raises RecordError where they make none."""
    if not bodies:
        return None
    try:
        rows = [_read(body) for body in bodies]
        rows.sort(key=lambda row: int(row[0]["index"]))
        first = rows[0][0]
        complete = [int(row[0]["index"]) for row in rows] == list(range(first["of"]))
        if not complete or any((r["store"], r["batch"]) != (first["store"], first["batch"]) for r, _, _ in rows):
            raise RecordError(f"the record has {len(rows)} messages that do not belong together")
        publications: dict[int, operations.Publication] = {}
        effects = tuple(effect for row in rows if (effect := _effect(*row, publications)) is not None)
        return UnitRecord(str(first["store"]), int(first["batch"]), effects)
    except (ValueError, KeyError, TypeError, IndexError, DecodeError) as error:
        raise RecordError(f"the message on the record queue is not a record: {error!r}") from error


def _effect(
    row: dict[str, Any], md: bytes, body: bytes, publications: dict[int, operations.Publication]
) -> operations.Effect | None:
    """The effect of one row, None where it has none. publications: those of the rows before, by index."""
    if "added" in row:
        return operations.SubscriptionAdded(subscription_of(row["added"]))
    if "altered" in row:
        before, after = row["altered"]
        return operations.SubscriptionAltered(subscription_of(before), subscription_of(after))
    if "removed" in row:
        return operations.SubscriptionRemoved(subscription_of(row["removed"]))
    if "stored" in row:
        topic, *columns = row["stored"]
        if "with" in row:
            publication = publications[int(row["with"])]
        else:
            at, expires_at, local, persistent = columns
            publication = publication_of(PublicationRow(at, expires_at, local, persistent, md, body))
            publications[int(row["index"])] = publication
        return operations.RetainedStored(operations.RetainedPublication(topic, publication))
    return operations.RetainedCleared(row["cleared"]) if "cleared" in row else None


def _body(row: dict[str, Any], md: bytes, body: bytes) -> bytes:
    text = json.dumps({**row, "md": len(md)}).encode()
    return len(text).to_bytes(4, "big") + text + md + body


def _read(data: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    size = int.from_bytes(data[:4], "big")
    row: dict[str, Any] = json.loads(data[4 : 4 + size])
    rest = data[4 + size :]
    return row, rest[: row["md"]], rest[row["md"] :]


# Values about IBM MQ in the queue manager's SQLite database: the last record applied, and arrival numbers.

_TABLE: Final = "CREATE TABLE IF NOT EXISTS live (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_SAVE: Final = """INSERT INTO live (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
_BLOCK: Final = 100_000


class LiveState:
    """Three values: store (which database this is), applied (the last record followed), reserved (arrival numbers)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next = self._end = 0
        self._in_transaction(lambda connection: connection.execute(_TABLE))
        store = self.read("store")
        if store is None:
            store = uuid4().hex
            self._in_transaction(lambda connection: self._write(connection, "store", str(store)))
        self.store = store

    @property
    def applied(self) -> int:
        """The number of the last record that SQLite holds; 0 before the first."""
        return self._read_number("applied")

    def follow(self, connection: DatabaseConnection, batch: int) -> None:
        """In the transaction that is open: record *batch* is held now."""
        self._write(connection, "applied", str(batch))

    def reserve(self, count: int) -> None:
        """Reserve *count* arrival numbers, unique even after a crash. No transaction may be open."""
        if self._end - self._next >= count:
            return
        start = max(self._read_number("reserved"), self._highest())
        end = start + max(count, _BLOCK)
        self._in_transaction(lambda connection: self._write(connection, "reserved", str(end)))
        self._next, self._end = start, end

    def number(self) -> int:
        """The next arrival number. Raises StoreError where none is reserved."""
        if self._next >= self._end:
            raise StoreError("no arrival number is reserved")
        self._next += 1
        return self._next

    def read(self, name: str) -> str | None:
        """A value; None where there is none."""
        try:
            row = self._database.connection.execute("SELECT value FROM live WHERE name = ?", (name,)).fetchone()
        except FAILURES as error:
            raise self._database.translated(error) from error
        return None if row is None else str(row[0])

    def _highest(self) -> int:
        # Numbers that the embedded queues have given, should the queue manager have been used with those before.
        try:
            return self._database.highest("messages")
        except FAILURES as error:
            raise self._database.translated(error) from error

    def _read_number(self, name: str) -> int:
        with readable(self._database.path, f"value {name} of the live state"):
            return int(self.read(name) or 0)

    @staticmethod
    def _write(connection: DatabaseConnection, name: str, value: str) -> None:
        connection.execute(_SAVE, (name, value))

    def _in_transaction(self, change: Callable[[DatabaseConnection], object]) -> None:
        connection = self._database.connection
        try:
            self._database.begin()
            try:
                change(connection)
                self._database.commit()
            finally:
                self._database.rollback()
        except FAILURES as error:
            raise self._database.translated(error) from error
