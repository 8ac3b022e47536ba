"""The embedded queue manager: one database, in a directory of its own or a schema of PostgreSQL.

Any number of processes read at once; one writes at a time, and the others wait for it (``patience_s``). A crash at any
instant leaves the last commit: what a unit of work had got is back on its queues. Messages that are not persistent live
through a restart too, which MQ does not promise; non-persistent retained publications do not (guide 8.5): ``run`` drops
them when it starts, by ``discard_nonpersistent_retained``.

The contents of a queue manager as counts, without reading the messages: to show its status while it works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from commands.broker.counts import QueueCounts, SubscriptionCounts, TopicCounts
from commands.broker.objects import LocalQueue, Objects, QueueManager, kind_of, state_of
from commands.broker.times import from_microseconds, to_microseconds
from commands.config.home import Home
from commands.disk.errors import (
    StoreDamagedError,
    UnknownQueueError,
    readable,
)
from commands.disk.files import open_to_others
from commands.network.cluster_topics import RepositoryEntry
from commands.qmgr.store import opening, reading
from commands.qmgr.store.connection import ProgramConnection
from commands.qmgr.store.counters import queue_counts, subscription_counts, topic_counts
from commands.qmgr.store.database import Connection, Database, Durability, translate_errors
from commands.qmgr.store.definitions import Queue, look_up, look_up_namelist, resolved, was_made
from commands.qmgr.store.message_table import undelivered_overview
from commands.qmgr.store.neighbours import NeighbourRecord, SequenceNumbers, neighbours_in, repository_in, sequence_in
from commands.qmgr.store.port import OLDEST_MESSAGE, LoadedState, StoredMessage, browse_queue, queue_depth
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork, Tables
from rfh2.errors import StoreError
from streams.topic_objects import Namelist

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


PATIENCE_S: Final = 30.0
_FIRST_NAP_S, _LONGEST_NAP_S, _GROWTH = 0.000_2, 0.01, 1.5


def utc_now() -> datetime:
    """The default clock of a queue manager."""
    return datetime.now(UTC)


class QueueManagerStore:
    """One queue manager, opened (``QueueManagerPort``). For one thread; close it, or use it as a context manager."""

    def __init__(self, home: Home, name: str, database: Database, clock: Callable[[], datetime]) -> None:
        self.home = home
        self.database = database
        self._name = name
        self.clock = clock
        self._tables = Tables(database, clock)
        self._unit: EmbeddedUnitOfWork | None = None
        self._change = self._read_change()

    @classmethod
    def create(
        cls,
        home: Home,
        definition: QueueManager,
        *,
        durability: Durability = Durability.FULL,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], datetime] = utc_now,
    ) -> Self:
        """Make queue manager *definition* in *home*, with the objects of a new one, and open it.

        Its files are for the caller alone, or for the group of a directory prepared for one (``permissions``). Raises
        QueueManagerExistsError; SystemUnsuitableError on Windows; StoreError for a bad name or where the disk does not
        let it.
        """
        database = opening.connect(home, definition.name, durability, patience_s, create=True)
        try:
            opening.make(database, definition.name, home, lambda connection: _define(connection, definition))
        except BaseException:
            database.close()
            raise
        return cls(home, definition.name, database, clock)

    @classmethod
    def open(
        cls,
        home: Home,
        name: str,
        *,
        durability: Durability = Durability.FULL,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], datetime] = utc_now,
        epoch: int | None = None,
    ) -> Self:
        """Open queue manager *name* in *home*; a database of an older schema is brought up to date.

        epoch: that of the command processor whose connection it is (``opening``): whoever began it holds the lock of
        the processor, and a unit of work raises SupersededError once there is a later one. patience_s: how long to wait
        for another process's unit of work. clock: the time of gets, of expiry, and of puts that give none. Raises
        QueueManagerNotFoundError, SystemUnsuitableError on Windows, StoreDamagedError, StoreBusyError, StoreError; for
        an older schema QueueManagerInUseError while a command processor works on it.
        """
        database = opening.connect(home, name, durability, patience_s)
        database.epoch = epoch
        try:
            qmgr = opening.opened(database, name)
            if qmgr.name != name:
                raise StoreDamagedError(database.path, f"holds queue manager {qmgr.name}, not {name}; was it copied?")
        except BaseException:
            database.close()
            raise
        return cls(home, name, database, clock)

    @property
    def directory(self) -> Path:
        """That of the queue manager; of one in PostgreSQL for what is this machine's alone."""
        return self.database.directory

    @property
    def is_open_to_others(self) -> bool:
        """Whether any user of the machine can read or write some of its files."""
        return open_to_others(self.directory)

    @property
    def name(self) -> str:
        """The queue manager's name."""
        return self._name

    @property
    def is_replaced(self) -> bool:
        """Whether the file that is open here is not that of the queue manager any more, as after a backup was copied.

        What is written here then is lost with the file.
        """
        return self.database.is_replaced

    @translate_errors
    def unit_of_work(self, lasting: bool = True, waits: bool = True) -> EmbeddedUnitOfWork:
        """Begin one. Raises StoreError where the last one is still open, StoreBusyError where another process's is.

        lasting, waits: as ``Database.begin`` says.
        """
        if self._unit is not None and self._unit.is_open:
            raise StoreError("a unit of work is open; end it before the next one")
        self.database.begin(lasting, waits)
        try:
            self._change = self._read_change()
            self._unit = EmbeddedUnitOfWork(self._tables)
        except BaseException:
            self.database.rollback()
            raise
        return self._unit

    @translate_errors
    def browse(self, queue: str) -> Iterator[StoredMessage]:
        """The messages on *queue*, in queue order, without blocking other processes. Raises UnknownQueueError."""
        self._tables.pending.flush()
        return browse_queue(self.database, self._local(queue), self._now_us())

    @translate_errors
    def depth(self, queue: str) -> int:
        """How many messages of *queue* have not expired, as ``Queues.depth`` says. Raises UnknownQueueError."""
        self._tables.pending.flush()
        return queue_depth(self.database.connection, self._local(queue), self._now_us())

    @translate_errors
    def find_queue(self, name: str) -> LocalQueue | None:
        """The local queue of that name or behind that alias, None where there is none."""
        return resolved(self._look_up(name), self._look_up)

    @translate_errors
    def find_namelist(self, name: str) -> Namelist | None:
        """The namelist of that name, None where there is none; without reading other definitions."""
        with self.one_moment():
            return look_up_namelist(self.database, name)

    @translate_errors
    def is_gone(self, name: str) -> bool:
        """Whether *name* is that of a dynamic queue that was deleted."""
        return self._look_up(name) is None and was_made(self.database, name)

    @translate_errors
    def definitions_version(self) -> int:
        """A number that changes with the definitions. Raises StoreDamagedError."""
        self._tables.pending.flush()
        return self.database.versions()[1]

    @translate_errors
    def repository(self) -> list[RepositoryEntry]:
        """What is known of others that share a cluster, by name. Raises StoreDamagedError."""
        with self.one_moment() as connection:
            return repository_in(connection, self.database.path)

    @translate_errors
    def load_objects(self) -> Objects:
        """The definitions alone. Raises StoreDamagedError."""
        with self.one_moment() as connection:
            return reading.load_objects(connection, self.database.path)

    @translate_errors
    def repository_entry(self) -> RepositoryEntry:
        """What others that share a cluster have to know of this queue manager. Raises StoreDamagedError."""
        with self.one_moment() as connection:
            if not connection.execute("SELECT 1 FROM definitions WHERE kind = 'channel' LIMIT 1").fetchone():
                return RepositoryEntry(self._name)  # in no cluster, as most are
            return RepositoryEntry.of(reading.load_objects(connection, self.database.path))

    @translate_errors
    def local_queues(self) -> list[LocalQueue]:
        """The definitions of all local queues. Raises StoreDamagedError."""
        self._tables.pending.flush()
        return reading.local_queues(self.database)

    @translate_errors
    def numbers_left(self, seqs: Iterable[int]) -> set[int]:
        """Those of *seqs* that are still messages, on whatever queue, or of a program's unit of work."""
        self._tables.pending.flush()
        find = self.database.connection.execute
        return {seq for seq in seqs if find("SELECT 1 FROM messages WHERE seq = ?", (seq,)).fetchone()}

    @translate_errors
    def neighbours(self) -> list[NeighbourRecord]:
        """The parent and the children, by name, as they were last recorded. Raises StoreDamagedError."""
        self._tables.pending.flush()
        return neighbours_in(self.database)

    @translate_errors
    def sequence(self, qmgr: str) -> SequenceNumbers:
        """The sequence numbers of batches carried to another queue manager, and from there."""
        self._tables.pending.flush()
        return sequence_in(self.database, qmgr)

    @translate_errors
    def load_state(self) -> LoadedState:
        """Definitions, subscriptions and retained publications as of one moment. Raises StoreDamagedError."""
        with self.one_moment() as connection:
            return reading.load_state(connection, self.database.path, self._tables.state.retained)

    @translate_errors
    def counts(self) -> tuple[dict[bytes, SubscriptionCounts], dict[str, TopicCounts]]:
        """What was counted of subscriptions, by sub_id, and of topics; those without a count are not among them."""
        with self.one_moment() as connection:
            return subscription_counts(connection), topic_counts(connection)

    @translate_errors
    def overview(self) -> Overview:
        """Counts of the contents, fast however many messages there are. Raises StoreDamagedError."""
        with self.one_moment():
            return overview(self.database, self._now_us())

    @translate_errors
    def beginnings(self, queue: str, size_bytes: int, limit: int) -> list[tuple[bytes, bytes]]:
        """Descriptor and first bytes of the first *limit* messages of *queue*. Raises UnknownQueueError."""
        self._tables.pending.flush()
        return list(beginnings(self.database, self._local(queue), size_bytes, limit))

    @contextmanager
    def one_moment(self) -> Iterator[Connection]:
        """A block in which all reads show the state of one moment, also messages of retained publications.

        It is the open transaction, or a read transaction, which does not block other processes.
        """
        self._tables.pending.flush()
        connection = self.database.connection
        if connection.in_transaction:
            yield connection
            return
        with self.database.one_moment():
            yield connection

    def connect(self) -> ProgramConnection:
        """A program's connection, to open queues with (``commands.qmgr.store.connection``); end it before ``close``."""
        return ProgramConnection(self)

    def end_lost_connections(self) -> int:
        """Delete the temporary dynamic queues of programs that died with a connection; returns how many went."""
        gone = 0
        numbers = [number for (number,) in self._rows("SELECT number FROM connections")]
        for number in numbers:
            if not self.database.is_locked(number):
                with self.unit_of_work() as unit:
                    unit.uncommitted.end(str(number))
                    gone += unit.dynamic.disconnect(number)
                self.database.unlock(number)
        return gone

    @contextmanager
    def processor_lock(self) -> Iterator[None]:
        """Be the one command processor while inside. Raises QueueManagerInUseError on entering, StoreError."""
        if self.database.epoch is not None:
            yield
            return
        with self.database.processor(self.name):
            self.database.epoch = opening.begin_epoch(self.database)
            try:
                yield
            finally:
                self.database.epoch = None

    def has_processor(self) -> bool:
        """Whether a command processor works on it now."""
        return self.database.has_processor()

    @translate_errors
    def wait_for_change(self, timeout_s: float) -> bool:
        """Wait until another connection has committed since the last unit of work here began; whether one has.

        No commit is missed between a look at a queue and the wait: a commit in between ends the wait at once. The wait
        takes less than a hundredth of a core.
        """
        end = time.monotonic() + timeout_s
        nap_s = _FIRST_NAP_S
        while (version := self._read_change()) == self._change:
            left_s = end - time.monotonic()
            if left_s <= 0:
                return False
            heard = self.database.heard(nap_s, left_s)
            nap_s = _FIRST_NAP_S if heard else min(nap_s * _GROWTH, _LONGEST_NAP_S)
        self._change = version
        return True

    @translate_errors
    def data_version(self) -> int:
        """A number that changes when another connection commits."""
        return self._read_change()

    def close(self) -> None:
        """Close the database; a unit of work still open is backed out."""
        try:
            if self._unit is not None and self._unit.is_open:
                self._unit.backout()
        finally:
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _look_up(self, name: str) -> Queue | None:
        return look_up(self.database, name)

    def _local(self, name: str) -> str:
        found = self.find_queue(name)
        if found is None:
            raise UnknownQueueError(name)
        return found.name

    def _now_us(self) -> int:
        return to_microseconds(self.clock())

    @translate_errors
    def _rows(self, statement: str) -> list[tuple[int]]:
        return self.database.connection.execute(statement).fetchall()

    @translate_errors
    def _read_change(self) -> int:
        return self.database.change()


def _define(connection: Connection, definition: QueueManager) -> None:
    for made in reading.definitions_in(Objects(definition)):
        row = (kind_of(made), made.name, state_of(made))
        connection.execute("INSERT INTO definitions (kind, name, state) VALUES (?, ?, ?)", row)
