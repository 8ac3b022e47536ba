"""The embedded queue manager's unit of work: one SQLite write transaction.

Only one is open at a time in all processes, so what it reads stays true until it ends. It reads queue depths, sequence
numbers and definitions once and then counts in memory. Its writes wait in memory, to be made many at a time
(``commands.qmgr.store.write_buffer``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from types import TracebackType
from typing import Final, Self

from commands.broker.descriptor import default_descriptor
from commands.broker.objects import (
    DEFAULT_STREAM,
    TEMPORARY,
    UNLIMITED_DEPTH,
    Definition,
    LocalQueue,
    Objects,
    QueueManager,
)
from commands.broker.puts import Outgoing
from commands.broker.state import LAST_US, to_microseconds
from commands.disk.errors import MessageRefusedError, QueueError, UnknownQueueError
from commands.qmgr.store import reading
from commands.qmgr.store.counters import Counters, Mark as CountsMark
from commands.qmgr.store.database import FAILURES, Database, translate_sqlite_errors
from commands.qmgr.store.definitions import DefinitionCache, QueueDefinitions
from commands.qmgr.store.dynamic_queues import Close, DynamicQueues
from commands.qmgr.store.effects import EffectKeeper
from commands.qmgr.store.messages import (
    TIME,
    Arrivals,
    MessageRow,
    ReadAhead,
    browse_queue,
    message_of,
    publication,
    queue_depth,
)
from commands.qmgr.store.neighbours import NeighbourRecords
from commands.qmgr.store.owed import OwedMessages
from commands.qmgr.store.port import LoadedState, StoredMessage
from commands.qmgr.store.prepared import Prepared
from commands.qmgr.store.reading import KeptMessages
from commands.qmgr.store.uncommitted import Uncommitted
from commands.qmgr.store.write_buffer import Settling, WriteBuffer
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_PUT_INHIBITED, MQRC_Q_FULL
from rfh2.errors import StoreError
from rfh2.mqi_constants import MQRC_GET_INHIBITED, MQRC_OBJECT_IN_USE, MQRC_Q_NOT_EMPTY
from streams.operations import Delivery, Effect, RetainedPublication

_COUNT_BACKOUT: Final = "UPDATE messages SET backout_count = backout_count + 1 WHERE seq = ?"
_SAVE_VERSIONS: Final = "UPDATE state SET version = ?, definitions = ?"


class _Part:
    """A part of a unit of work that is backed out alone, and after its end the next one."""

    __slots__ = ("_before", "_unit")

    def __init__(self, unit: SqliteUnitOfWork) -> None:
        self._unit = unit

    def __enter__(self) -> None:
        self._before = self._unit._begin_part()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unit._end_part(self._before, error is None)


class SqliteUnitOfWork:
    """A ``UnitOfWork`` (commands.qmgr.store.port has the words); made by ``QueueManagerStore.unit_of_work`` alone."""

    has_savepoints = is_alone = True

    __slots__ = (
        "_arrivals",
        "_asked",
        "_cache",
        "_clock",
        "_connection",
        "_depths",
        "_got",
        "_keeper",
        "_open",
        "_parts",
        "_pending",
        "_queues",
        "_read_ahead",
        "_seq",
        "_settling",
        "_versions",
        "_versions_before",
        "counters",
        "database",
        "dynamic",
        "neighbours",
        "owed",
        "prepared",
        "uncommitted",
    )

    def __init__(
        self, database: Database, cache: DefinitionCache, messages: KeptMessages, clock: Callable[[], datetime]
    ) -> None:
        self.database = database
        self._connection = database.connection
        self._cache = cache
        self._queues = QueueDefinitions(database, cache, self.settle, self.is_gone)
        self.dynamic = DynamicQueues(database, self._queues, clock, self.settle, self._emptied)
        self._arrivals = Arrivals()
        self._clock = clock
        # The queues of the last get_next, and the local queues that they were, until a definition changes.
        self._asked: tuple[Sequence[str], int, list[str]] = ((), -1, [])
        self._got: list[int] = []
        self._depths: dict[str, int] = {}
        self._pending = WriteBuffer(database.connection)
        self._settling = Settling(database.connection, self._pending)
        self.counters = Counters(database, self.settle)
        self._keeper = EffectKeeper(
            database,
            pending=self._pending,
            messages=messages,
            settle=self.settle,
            find_queue=self.find_queue,
            removed=self.counters.removed,
            unmanaged=self._delete_managed,
        )
        self._read_ahead = ReadAhead(database, self._settle_messages)
        self.uncommitted = Uncommitted(database, self.settle, self._emptied, self._pending, self._read_ahead)
        self.prepared = Prepared(database, self.uncommitted, lambda name: self.find_queue(name) is not None)
        self.neighbours = NeighbourRecords(database, self.settle, self._state_changed)
        self.owed = OwedMessages(database, self._pending, self.settle, self._take_seq)
        self._parts = _Part(self)  # one after the other
        self._seq: int | None = None
        self._versions = self._versions_before = reading.versions(database)
        cache.at(self._versions[1])
        self._open = True

    # Messages

    @translate_sqlite_errors
    def get(self, queue: str) -> StoredMessage | None:
        self._require_open()
        local = self._queues.known(queue)
        if not local.get_enabled:
            raise QueueError(MQRC_GET_INHIBITED, local.name, "getting is inhibited")
        now_us = to_microseconds(self._clock())
        while (row := self._read_ahead.take(local.name)) is not None:
            if self._is_given(row, now_us):
                return message_of(self.database, row, now_us)
        return None

    @translate_sqlite_errors
    def get_next(self, queues: Sequence[str]) -> StoredMessage | None:
        self._require_open()
        read_ahead = self._read_ahead
        now_us = to_microseconds(self._clock())
        asked, changes, names = self._asked
        if asked is not queues or changes != self._cache.changes:
            found = [self._queues.find(each) for each in queues]
            names = [queue.name for queue in found if queue is not None and queue.get_enabled]
            self._asked = queues, self._cache.changes, names
        while (of := read_ahead.first_of(names)) is not None:
            row = read_ahead.take(of)
            if row is not None and self._is_given(row, now_us):
                return message_of(self.database, row, now_us)
        return None

    @translate_sqlite_errors
    def put(
        self,
        queue: str,
        md: bytes | None,
        body: bytes,
        *,
        time: datetime | None = None,
        user: str | None = None,
        application: str = "",
        expires_at: datetime | None = None,
    ) -> int:
        self._require_open()
        found = self._cache.queues.get(queue)
        if type(found) is not LocalQueue:
            target = self._queues.topic_behind(queue)
            if target is not None:
                command = publication(queue, target, default_descriptor(body) if md is None else md, body)
                return self.put(
                    DEFAULT_STREAM, *command, time=time, user=user, application=application, expires_at=expires_at
                )
        local = found if type(found) is LocalQueue else self._queues.ensure(queue)
        name = local.name
        if not local.put_enabled:
            raise QueueError(MQRC_PUT_INHIBITED, name, "putting is inhibited")
        if len(body) > local.max_message_length:
            why = f"the message has {len(body)} bytes, MAXMSGL is {local.max_message_length}"
            raise MessageRefusedError(MQRC_MSG_TOO_BIG_FOR_Q, name, why)
        if local.max_depth < UNLIMITED_DEPTH and self._counted(name) >= local.max_depth:
            raise QueueError(MQRC_Q_FULL, name, f"it is full (MAXDEPTH {local.max_depth})")
        if time is None:
            time = self._clock()
        seq = self._next_seq()
        qmgr = self._cache.qmgr or self._queues.qmgr()
        row = self._arrivals.row(local, qmgr.name, seq, md, body, time, user, application, expires_at)
        if self._pending.put(row):
            self.settle()
        self._seq = seq
        counters = self.counters
        counters.put.append(name)
        counters.put_us.append(row[TIME])
        self._read_ahead.changed(name)
        if name in self._depths:
            self._depths[name] += 1
        return seq

    @translate_sqlite_errors
    def put_alike(self, puts: Sequence[Outgoing], first: int, time: datetime) -> int:
        self._require_open()
        known, pending, depths, counters = self._cache.queues, self._pending, self._depths, self.counters
        time_us = self._arrivals.time_us(time)
        seq = self._next_seq()
        count = len(puts)
        for n in range(first, count):
            put = puts[n]
            columns, local, body = put.accepted, known.get(put.queue), put.body
            if (
                columns is None
                or type(local) is not LocalQueue
                or not local.put_enabled
                or len(body) > local.max_message_length
                or local.max_depth < UNLIMITED_DEPTH
            ):
                return n
            rank, persistent, user, lifetime_us = columns
            if persistent and local.definition_type == TEMPORARY:
                return n
            name = local.name
            end_us = None if lifetime_us is None else min(time_us + lifetime_us, LAST_US)
            if pending.put((seq, name, rank, time_us, user, persistent, end_us, put.md, body, 0)):
                self.settle()
            self._seq = seq
            seq += 1
            counters.put.append(name)
            counters.put_us.append(time_us)
            self._read_ahead.changed(name)
            if name in depths:
                depths[name] += 1
        return count

    @translate_sqlite_errors
    def browse(self, queue: str) -> Iterator[StoredMessage]:
        self._require_open()
        self.settle()
        return browse_queue(self.database, self._queues.known(queue).name, to_microseconds(self._clock()))

    @translate_sqlite_errors
    def depth(self, queue: str) -> int:
        self._require_open()
        self.settle()
        return queue_depth(self._connection, self._queues.known(queue).name, to_microseconds(self._clock()))

    @translate_sqlite_errors
    def clear_queue(self, queue: str) -> int:
        self._require_open()
        name = self._queues.known(queue).name
        self._emptied(name)
        self.settle()
        return self._connection.execute("DELETE FROM messages WHERE queue = ?", (name,)).rowcount

    @translate_sqlite_errors
    def discard(self, queue: str, seqs: Sequence[int]) -> int:
        """Remove these messages of *queue*, wherever they are on it; returns how many were there.

        Raises UnknownQueueError. It is no get: nothing is counted where the unit of work is backed out.
        """
        self._require_open()
        name = self._queues.known(queue).name
        self._depths.pop(name, None)
        self._read_ahead.changed(name)
        self.settle()
        rows = [(seq, name) for seq in seqs]
        return self._connection.executemany("DELETE FROM messages WHERE seq = ? AND queue = ?", rows).rowcount

    @translate_sqlite_errors
    def discard_expired(self) -> int:
        self._require_open()
        self._depths.clear()
        self._read_ahead.forget()
        self.settle()
        now_us = to_microseconds(self._clock())
        return self._connection.execute("DELETE FROM messages WHERE expires_at <= ?", (now_us,)).rowcount

    # Queues

    @translate_sqlite_errors
    def find_queue(self, name: str) -> LocalQueue | None:
        return self._queues.find(name)

    @translate_sqlite_errors
    def ensure_queue(self, name: str) -> LocalQueue:
        return self._queues.ensure(name)

    @translate_sqlite_errors
    def topic_behind(self, name: str) -> str | None:
        """The topic string of the topic object that *name* is an alias of; None for other names. Raises QueueError."""
        return self._queues.topic_behind(name)

    @translate_sqlite_errors
    def topic_string_of(self, topic_object: str) -> str:
        """The topic string of the topic object of that name. Raises UnknownQueueError (2085)."""
        found = self._queues.topic_string_of(topic_object)
        if found is None:
            raise UnknownQueueError(topic_object, "there is no such topic object")
        return found

    @translate_sqlite_errors
    def queue_manager(self) -> QueueManager:
        """The queue manager's own definition. Raises StoreDamagedError."""
        return self._queues.qmgr()

    @translate_sqlite_errors
    def is_gone(self, name: str) -> bool:
        return self.dynamic.is_gone(name)

    # Knowledge

    @translate_sqlite_errors
    def take_ended_subscriptions(self) -> list[bytes]:
        self._require_open()
        return self.dynamic.take_ended()

    @property
    def state_version(self) -> int:
        return self._versions[0]

    @property
    def definitions_version(self) -> int | None:
        """The version of the definitions; None where this unit of work has changed them."""
        return self._versions[1] if self._versions[1] == self._versions_before[1] else None

    @translate_sqlite_errors
    def load_objects(self) -> Objects:
        """The definitions alone. Raises StoreDamagedError."""
        self._require_open()
        self.settle()
        return reading.load_objects(self._connection, self.database.path)

    @translate_sqlite_errors
    def load_state(self) -> LoadedState:
        self._require_open()
        self.settle()
        return reading.load_state(self._connection, self.database.path, self._keeper.messages)

    @translate_sqlite_errors
    def local_queues(self) -> list[LocalQueue]:
        self._require_open()
        self.settle()
        return reading.local_queues(self.database)

    @translate_sqlite_errors
    def save_effects(self, effects: Iterable[Effect]) -> list[RetainedPublication]:
        self._require_open()
        kept = [effect for effect in effects if not isinstance(effect, Delivery)]
        if not kept:
            return []
        self._state_changed()
        return self._keeper.keep(kept)

    @translate_sqlite_errors
    def save_definition(self, definition: Definition) -> None:
        self._require_open()
        if isinstance(definition, QueueManager) and definition.name != self._queues.qmgr().name:
            raise StoreError(f"queue manager {self._queues.qmgr().name} cannot become {definition.name}")
        self._queues.save(definition)
        self._state_changed(definitions=True)

    @translate_sqlite_errors
    def delete_definition(self, kind: str, name: str) -> None:
        self._require_open()
        if kind == "qmgr":
            raise StoreError(f"queue manager {name} cannot delete its own definition")
        if kind == "qlocal" and self._read_ahead.first(name) is not None:
            raise QueueError(MQRC_Q_NOT_EMPTY, name, "it holds messages")
        if kind == "qlocal" and self.uncommitted.concerns(name):
            raise QueueError(MQRC_OBJECT_IN_USE, name, "a program has messages of it in a unit of work")
        self._queues.delete(kind, name)
        if kind == "qlocal":
            self.dynamic.deleted(name)
            self.counters.deleted_queue(name)
        self._state_changed(definitions=True)

    @translate_sqlite_errors
    def discard_nonpersistent_retained(self) -> int:
        self._require_open()
        gone = self._keeper.discard_nonpersistent()
        if gone:
            self._state_changed()
        return gone

    # The unit itself

    @property
    def is_open(self) -> bool:
        """Whether it has been neither committed nor backed out."""
        return self._open

    @property
    def is_awaited(self) -> bool:
        return self.database.is_awaited()

    @translate_sqlite_errors
    def settle(self) -> None:
        """Write all pending changes to the database: before a table is read, or written by other means."""
        self._write(self._settling.settle)

    def _settle_messages(self) -> None:
        self._write(self._settling.settle_messages)

    def _write(self, pending: Callable[[], None]) -> None:
        try:
            pending()
        except FAILURES:
            # Some of it may be written: what is left of this unit of work is no whole.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def commit(self) -> None:
        self._require_open()
        try:
            self._pending.flush()
            self.counters.write()
            self._connection.execute("COMMIT")
        except FAILURES as error:
            self.backout()
            raise self.database.translated(error) from error
        self._open = False
        self._cache.version = self._versions[1]

    def backout(self) -> None:
        if not self._open:
            raise StoreError("this unit of work is over; there is nothing left to back out")
        self._open = False
        self._pending.clear()
        self._keeper.messages.forget()
        self._cache.at(-1)
        # SQLite itself rolls back when, say, the disk is full; then there is nothing left to do here.
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except FAILURES as error:
                raise self.database.translated(error) from error
        if self._got:
            # The messages are back already. Where there is no room or no patience to count that, they are not lost.
            with suppress(*FAILURES, StoreError):
                self._count_backouts(self._got)

    def savepoint(self) -> AbstractContextManager[None]:
        self._require_open()
        if self._settling.is_in_part:
            raise StoreError("a part of the unit of work is open; end it before the next one")
        return self._parts

    def _begin_part(self) -> tuple[int | None, tuple[int, int], int, CountsMark]:
        self._settling.begin_part()
        counters = self.counters
        return self._seq, self._versions, len(self._got), (len(counters.put), len(counters.got), len(counters.added))

    def _end_part(self, before: tuple[int | None, tuple[int, int], int, CountsMark], done: bool) -> None:
        if not self._open or not self._connection.in_transaction:
            self._settling.forget_part()
            return
        try:
            changed = self._settling.end_part(done=done)
        except FAILURES as error:
            raise self.database.translated(error) from error
        if done:
            return
        self._seq, self._versions, got, counted = before
        self.counters.back_to(counted)
        if not changed:
            return
        came_back = self._got[got:]
        del self._got[got:]
        self._depths.clear()
        self._read_ahead.forget()
        self.owed.forget()
        self._cache.forget()
        self._count_backout(came_back)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._open:
            return
        if error is None and self._connection.in_transaction:
            self.commit()
            return
        self.backout()
        if error is None:
            raise StoreError(f"{self.database.path}: the unit of work failed, and was backed out")

    @translate_sqlite_errors
    def _count_backout(self, seqs: Sequence[int]) -> None:
        self._connection.executemany(_COUNT_BACKOUT, [(seq,) for seq in seqs])

    def _count_backouts(self, seqs: list[int]) -> None:
        self.database.begin()
        try:
            self._count_backout(seqs)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _require_open(self) -> None:
        if self._open and self._connection.in_transaction:
            return
        # SQLite may have ended the transaction, when the disk was full: a statement after it would commit by itself.
        if self._open and self.database.failure is not None:
            raise StoreError(f"this unit of work is over: {self.database.failure}") from self.database.failure
        raise StoreError("this unit of work is over; begin another one")

    def _is_given(self, row: MessageRow, now_us: int) -> bool:
        """Whether the caller gets the message in *row*, just removed: it does unless the message has expired."""
        seq, queue, _, _, _, _, expires_at, _, _, _ = row
        self._pending.take(seq)
        if expires_at is not None and expires_at <= now_us:
            # It may or may not have been among those counted.
            self._depths.pop(queue, None)
            return False
        self._got.append(seq)
        self.counters.got.append(queue)
        self.counters.got_us.append(now_us)
        if queue in self._depths:
            self._depths[queue] -= 1
        return True

    def _delete_managed(self, queue: str) -> None:
        """The subscription for which a permanent dynamic queue was made is gone, and so is the queue (guide 2.4.1).

        Unless a program has it open (guide 4.3).
        """
        if self.find_queue(queue) is not None and not self.dynamic.is_adopted(queue):
            self.dynamic.close(queue, maker=False, option=Close.PURGE)

    def _emptied(self, queue: str, seq: int | None = None) -> None:
        self._depths.pop(queue, None)
        if seq is None:
            self._read_ahead.changed(queue)
        else:
            self._read_ahead.gone(queue, seq)
        self.owed.forget()

    def _counted(self, queue: str) -> int:
        count = self._depths.get(queue)
        if count is None:
            self.settle()
            count = self._depths[queue] = queue_depth(self._connection, queue, to_microseconds(self._clock()))
        return count

    def _next_seq(self) -> int:
        if self._seq is None:
            self._seq = reading.highest(self.database, "messages")
        return self._seq + 1

    def _take_seq(self) -> int:
        self._seq = self._next_seq()
        return self._seq

    def _state_changed(self, definitions: bool = False) -> None:
        # Once is enough: nobody else can look before the unit of work ends.
        state, known = self._versions_before
        changed = (state + 1, known + 1 if definitions else self._versions[1])
        if changed != self._versions:
            self._versions = changed
            self._pending.execute(_SAVE_VERSIONS, changed)


Begin = Callable[[], SqliteUnitOfWork]
"""Begins a unit of work of the store."""
