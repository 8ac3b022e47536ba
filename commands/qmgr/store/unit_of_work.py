"""The embedded queue manager's unit of work: one write transaction, over tables that live with the store.

Only one is open at a time in all processes, so what it reads stays true until it ends. Its writes wait in memory, to be
made many at a time (``commands.qmgr.store.write_buffer``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from commands.qmgr.store import reading
from commands.qmgr.store.counters import Counters
from commands.qmgr.store.database import FAILURES, Database
from commands.qmgr.store.definitions import QueueDefinitions
from commands.qmgr.store.message_table import MessageTable, UndeliveredMessages
from commands.qmgr.store.neighbours import NeighbourRecords
from commands.qmgr.store.state_table import DynamicQueues, StateTable
from commands.qmgr.store.uncommitted import Came, Uncommitted
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2.errors import StoreError

# Branches of global transactions that are prepared: in doubt until a transaction manager says how they end.
#
# Their messages stay on the lanes of ``commands.qmgr.store.uncommitted``, of an owner that is not a connection: neither
# the end of a program, nor that of the listener, nor that of the machine ends them.


class Prepared:
    """Those of one queue manager. exists: whether there is a local queue of that name."""

    __slots__ = ("_connection", "_database", "_exists", "_uncommitted")

    def __init__(self, database: Database, uncommitted: Uncommitted, exists: Callable[[str], bool]) -> None:
        self._database, self._connection = database, database.connection
        self._uncommitted, self._exists = uncommitted, exists

    def add(self, xid: bytes, owner: str) -> bool:
        """Prepare branch *xid*, whose messages are *owner*'s; whether it has any. If not, nothing is kept of it."""
        number = reading.numbered(self._database, "prepared", "INSERT INTO prepared (number, xid) VALUES (?, ?)", xid)
        has_messages = self._uncommitted.pass_on(owner, f"xa {number}")
        if not has_messages:
            self._connection.execute("DELETE FROM prepared WHERE number = ?", (number,))
        return has_messages

    def number(self, xid: bytes) -> int | None:
        """The number of the branch; None where it is not prepared."""
        row = self._connection.execute("SELECT number FROM prepared WHERE xid = ?", (xid,)).fetchone()
        return None if row is None else int(row[0])

    def in_doubt(self) -> list[tuple[int, bytes]]:
        """All branches, the oldest first: numbers and XIDs."""
        return self._connection.execute("SELECT number, xid FROM prepared ORDER BY number").fetchall()

    def counts(self, number: int) -> tuple[int, int]:
        """How many messages a branch has put, and got."""
        return self._uncommitted.counts(f"xa {number}")

    def resolve(self, number: int, commit: bool) -> Came | None:
        """The same as ``end``, of a branch that may not be there any more: None then."""
        if not any(number == known for known, _ in self.in_doubt()):
            return None
        return self.end(number, commit)

    def end(self, number: int, commit: bool) -> Came:
        """Commit the branch, or back it out; returns the queues that have more messages.

        What belongs to a dynamic queue that has gone meanwhile goes too.
        """
        owner = f"xa {number}"
        self._uncommitted.discard(owner, self._exists)
        came = self._uncommitted.commit(owner) if commit else self._uncommitted.backout(owner)
        self._connection.execute("DELETE FROM prepared WHERE number = ?", (number,))
        return came


class Tables:
    """What a queue manager's database has, for whoever has its unit of work open; made once for a database."""

    __slots__ = (
        "counters",
        "database",
        "definitions",
        "dynamic",
        "messages",
        "neighbours",
        "pending",
        "prepared",
        "state",
        "uncommitted",
        "undelivered",
    )

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database = database
        self.pending = pending = WriteBuffer(database)
        self.counters = Counters(pending)
        self.definitions = QueueDefinitions(pending)
        self.messages = MessageTable(pending, self.definitions, self.counters, clock)
        self.undelivered = UndeliveredMessages(pending, self.messages)
        self.uncommitted = Uncommitted(pending, self.messages)
        self.prepared = Prepared(database, self.uncommitted, lambda name: self.definitions.find(name) is not None)
        self.dynamic = DynamicQueues(pending, self.definitions, self.messages, self.undelivered.drop, clock)
        self.state = StateTable(pending, self.definitions, self.counters, self.dynamic, self.messages, self.uncommitted)
        self.neighbours = NeighbourRecords(database, pending.flush, self.state.changed)

    def begin(self) -> None:
        """A unit of work begins: anything may have changed. Raises StoreDamagedError; ``FAILURES``."""
        self.state.begin()
        self.messages.begin()
        self.undelivered.forget()
        self.counters.begin()


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _of(table: str, method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[EmbeddedUnitOfWork, P], R]:
    """A *method* of that one of the ``Tables``, for a unit of work that is open; its ``FAILURES`` are StoreErrors."""

    @wraps(method)
    def called(self: EmbeddedUnitOfWork, /, *args: P.args, **kwargs: P.kwargs) -> R:
        tables = self._tables if self._is_open and self._connection.in_transaction else self._require_open()
        try:
            return method(getattr(tables, table), *args, **kwargs)
        except FAILURES as error:
            raise self.database.translated(error) from error

    return called


class _Part:
    """A part of a unit of work that is backed out alone, and after its end the next one."""

    __slots__ = ("_before", "_tables", "_unit")

    def __init__(self, unit: EmbeddedUnitOfWork, tables: Tables) -> None:
        self._unit, self._tables = unit, tables

    def __enter__(self) -> None:
        tables = self._tables
        tables.pending.begin_part()
        messages = tables.messages
        self._before = messages.last, len(messages.got), tables.state.versions, tables.counters.mark()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tables, database = self._tables, self._tables.database
        if not self._unit.is_open or not database.connection.in_transaction:
            return
        try:
            changed = tables.pending.end_part(done=error is None)
            if error is None:
                return
            messages = tables.messages
            messages.last, got, tables.state.versions, counted = self._before
            came_back = messages.got[got:]
            del messages.got[got:]
            tables.counters.back_to(counted)
            if not changed:
                return
            messages.forget()
            tables.undelivered.forget()
            tables.definitions.forget()
            messages.count_backouts(came_back)
        except FAILURES as failure:
            raise database.translated(failure) from failure


class EmbeddedUnitOfWork:
    """A ``UnitOfWork`` (commands.qmgr.store.port has the words); made by ``QueueManagerStore.unit_of_work`` alone.

    It has begun; once it has ended it takes no call, whether another one is open or not.
    """

    has_savepoints = is_alone = True

    __slots__ = ("_connection", "_is_open", "_parts", "_tables", "database")

    def __init__(self, tables: Tables) -> None:
        self.database = tables.database
        self._connection = tables.database.connection
        self._tables = tables
        self._parts = _Part(self, tables)  # one after the other
        tables.begin()
        self._is_open = True

    get = _of("messages", MessageTable.get)
    get_next = _of("messages", MessageTable.get_next)
    put = _of("messages", MessageTable.put)
    put_alike = _of("messages", MessageTable.put_alike)
    browse = _of("messages", MessageTable.browse)
    depth = _of("messages", MessageTable.depth)
    is_new = _of("messages", MessageTable.is_new)
    newest = _of("messages", MessageTable.newest)
    clear_queue = _of("messages", MessageTable.clear_queue)
    discard = _of("messages", MessageTable.discard)
    expired = _of("uncommitted", Uncommitted.expired)
    has_uncommitted = _of("uncommitted", Uncommitted.has_uncommitted)
    in_doubt = _of("prepared", Prepared.in_doubt)
    discard_expired = _of("messages", MessageTable.discard_expired)

    find_queue = _of("definitions", QueueDefinitions.find)
    ensure_queue = _of("definitions", QueueDefinitions.ensure)
    look_up = _of("definitions", QueueDefinitions.look_up)
    topic_behind = _of("definitions", QueueDefinitions.topic_behind)
    topic_string_of = _of("definitions", QueueDefinitions.topic_string_of)
    queue_manager = _of("definitions", QueueDefinitions.qmgr)
    is_gone = _of("definitions", QueueDefinitions.is_gone)

    load_state = _of("state", StateTable.load)
    load_objects = _of("state", StateTable.load_objects)
    local_queues = _of("state", StateTable.local_queues)
    save_effects = _of("state", StateTable.save)
    discard_nonpersistent_retained = _of("state", StateTable.discard_nonpersistent)
    take_ended_subscriptions = _of("dynamic", DynamicQueues.take_ended)

    save_definition = _of("state", StateTable.save_definition)
    delete_definition = _of("state", StateTable.delete_definition)

    @property
    def counters(self) -> Counters:
        """What is counted."""
        return self._require_open().counters

    @property
    def dynamic(self) -> DynamicQueues:
        """The dynamic queues, and the connections that they belong to."""
        return self._require_open().dynamic

    @property
    def neighbours(self) -> NeighbourRecords:
        """What is recorded of other queue managers."""
        return self._require_open().neighbours

    @property
    def undelivered(self) -> UndeliveredMessages:
        """What could be put nowhere."""
        return self._require_open().undelivered

    @property
    def prepared(self) -> Prepared:
        """Branches of global transactions that are in doubt."""
        return self._require_open().prepared

    @property
    def uncommitted(self) -> Uncommitted:
        """Messages of programs' units of work."""
        return self._require_open().uncommitted

    @property
    def state_version(self) -> int:
        return self._tables.state.versions[0]

    @property
    def definitions_version(self) -> int | None:
        """The version of the definitions; None where this unit of work has changed them."""
        return self._require_open().state.definitions_version

    @property
    def is_open(self) -> bool:
        """Whether it has been neither committed nor backed out."""
        return self._is_open

    @property
    def is_awaited(self) -> bool:
        return self.database.is_awaited()

    def commit(self) -> None:
        tables = self._require_open()
        try:
            tables.pending.write()
            tables.counters.write()
            self.database.commit()
        except Exception as error:
            self.backout()  # also after a fault of this program: else no unit of work could begin any more
            if isinstance(error, FAILURES):
                raise self.database.translated(error) from error
            raise
        self._is_open = False
        tables.pending.clear()
        tables.definitions.version = tables.state.versions[1]

    def backout(self) -> None:
        if not self._is_open:
            raise StoreError("this unit of work is over; there is nothing left to back out")
        tables = self._tables
        self._is_open = False
        tables.pending.clear()
        tables.state.retained.forget()
        tables.definitions.at(-1)
        # The database itself rolls back when, say, the disk is full; then there is nothing left to do here.
        try:
            self.database.rollback()
        except FAILURES as error:
            raise self.database.translated(error) from error
        if tables.messages.got:
            # The messages are back already. Where there is no room or no patience to count that, they are not lost.
            with suppress(*FAILURES, StoreError):
                self._count_backouts()

    def savepoint(self) -> AbstractContextManager[None]:
        if self._require_open().pending.is_in_part:
            raise StoreError("a part of the unit of work is open; end it before the next one")
        return self._parts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_open:
            return
        if error is None and self._connection.in_transaction:
            self.commit()
            return
        self.backout()
        if error is None:
            raise StoreError(f"{self.database.path}: the unit of work failed, and was backed out")

    def _count_backouts(self) -> None:
        self.database.begin()
        try:
            self._tables.messages.count_backouts(self._tables.messages.got)
            self.database.commit()
        finally:
            self.database.rollback()

    def _require_open(self) -> Tables:
        if self._is_open and self._connection.in_transaction:
            return self._tables
        # The database may have ended it, when the disk was full: a statement after it would commit by itself.
        if self._is_open and self.database.failure is not None:
            raise StoreError(f"this unit of work is over: {self.database.failure}") from self.database.failure
        raise StoreError("this unit of work is over; begin another one")


Begin = Callable[[], EmbeddedUnitOfWork]
"""Begins a unit of work of the store."""
