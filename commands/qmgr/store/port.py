"""The port: what the command processor needs from any queue manager.

``commands.qmgr.store.queue_manager`` is the embedded one. An adapter to another queue manager
(``commands.links.ibmmq``) implements ``Queues`` with that one's own units of work, and may keep ``Knowledge`` elsewhere
as long as both commit together; one that has no savepoints says so (``has_savepoints``).

Order on a queue: priority descending, then arrival. Until a unit of work commits, other programs see neither the
messages that it got nor those that it put; the unit of work itself sees its own changes.

The rows of the table of messages, and reading them in queue order.

The order of the columns stands here alone. Rows are plain tuples, unpacked by whoever needs more than one column: named
tuples cost a tenth of a put. Times are microseconds since 1970 in UTC.

Nothing here changes the database. Pages are read by key, so that no statement stays open between them: a browse that
waits for its reader holds no snapshot, and does not prevent a checkpoint of the write-ahead log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Final, Protocol, Self, runtime_checkable

from commands.broker.counts import Counting
from commands.broker.descriptor import HIGHEST_PRIORITY, leave
from commands.broker.objects import Definition, LocalQueue, Objects
from commands.broker.puts import Outgoing
from commands.broker.times import from_microseconds
from commands.disk.errors import UNREADABLE, StoreDamagedError
from commands.qmgr.store.database import FAILURES, MANY, Connection, Database
from rfh2.captured import CapturedMessage
from streams.operations import Effect, RetainedPublication
from streams.subscriptions import Subscription


@dataclass(slots=True, unsafe_hash=True)
class StoredMessage:
    """A message on a queue, or got from one.

    seq: number of arrival, unique in the queue manager for ever. queue: the local queue, no alias. time: of arrival,
    UTC. user: who put it. md: the descriptor as a get gives it, with the Expiry that is left and the BackoutCount.
    body: headers and data. priority: 0 to 9. expires_at: UTC, None for never. backout_count: how often a get of it was
    backed out.
    """

    seq: int
    queue: str
    time: datetime
    user: str | None
    md: bytes
    body: bytes
    persistent: bool
    priority: int
    expires_at: datetime | None = None
    backout_count: int = 0

    def captured(self, qmgr: str) -> CapturedMessage:
        """This message as queue manager *qmgr* would show it to a person or a program."""
        return CapturedMessage.model_construct(
            seq=self.seq,
            time=self.time,
            qmgr=qmgr,
            queue=self.queue,
            user=self.user,
            md_hex=self.md.hex(),
            body_hex=self.body.hex(),
        )


SHORT_BYTES: Final = 8 * 1024

MessageRow = tuple[int, str, int, int, str | None, int, int | None, bytes, bytes | None, int]
"""One message, in the order of ``COLUMNS``.

rank: its place in the queue, 9 less its priority, or less the queue's where that is FIFO. persistent: 0 or 1. body:
None where it is longer than ``SHORT_BYTES`` and was not asked for.
"""

COLUMNS: Final = (
    "seq",
    "queue",
    "rank",
    "time",
    "user",
    "persistent",
    "expires_at",
    "md",
    "body",
    "backout_count",
)
SEQ: Final = 0
QUEUE: Final = 1
RANK: Final = 2
TIME: Final = 3
USER: Final = 4
PERSISTENT: Final = 5
EXPIRES_AT: Final = 6
MD: Final = 7
BODY: Final = 8


def _columns(**instead: str) -> str:
    # In quotes: "user" alone is a word of PostgreSQL's own.
    return ", ".join(instead.get(name, f'"{name}"') for name in COLUMNS)


ALL_COLUMNS: Final = _columns()


_PLACES: Final = ", ".join("?" for _ in COLUMNS)
INSERT_MESSAGE: Final = f"INSERT INTO messages ({ALL_COLUMNS}) VALUES ({_PLACES})"
DELETE_MESSAGE: Final = "DELETE FROM messages WHERE seq = ?"
INSERT_MESSAGES: Final = f"INSERT INTO messages ({ALL_COLUMNS}) VALUES {', '.join([f'({_PLACES})'] * MANY)}"
DELETE_MESSAGES: Final = f"DELETE FROM messages WHERE seq IN ({', '.join('?' * MANY)})"
MESSAGE_ON_QUEUE: Final = f"SELECT {ALL_COLUMNS} FROM messages WHERE seq = ? AND queue = ?"
FIRST_MESSAGES: Final = f"SELECT {ALL_COLUMNS} FROM messages WHERE queue = ? ORDER BY rank, seq LIMIT ?"
_SHORT_BODY: Final = f"CASE WHEN length(body) <= {SHORT_BYTES} THEN body END"
NEXT_SHORT_MESSAGES: Final = (
    f"SELECT {_columns(body=_SHORT_BODY)} FROM messages WHERE queue = ? AND (rank, seq) > (?, ?)"
    " ORDER BY rank, seq LIMIT ?"
)
"""Those behind a place, without long bodies."""
BEFORE_ALL: Final = (-1, -1)
"""The place before the first message of any queue: rank, seq."""
BODY_OF_MESSAGE: Final = "SELECT body FROM messages WHERE seq = ?"
# By number, which the index has, so that a deep queue's rows are not read.
OLDEST_MESSAGE: Final = "SELECT time FROM messages WHERE seq = (SELECT min(seq) FROM messages WHERE queue = ?)"

_PAGE: Final = 256

_KEYS = """SELECT rank, seq FROM messages WHERE queue = ? AND (rank, seq) > (?, ?) ORDER BY rank, seq LIMIT ?"""

PUT_LANE: Final = "put"
"""Lanes of what units of work have put are called so; then come the owner's words and the queue."""
_DEPTH = f"""SELECT (SELECT count(*) FROM messages WHERE queue = :queue)
    - (SELECT count(*) FROM messages WHERE expires_at <= :now AND queue = :queue)
    + (SELECT count(*) FROM messages WHERE queue >= '{PUT_LANE} ' AND queue < '{PUT_LANE}!'
    AND substr(queue, length(queue) - length(:queue)) = ' ' || :queue)"""


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


def browse_queue(database: Database, queue: str, now_us: int) -> Iterator[StoredMessage]:
    """The messages of a local queue that have not expired at *now_us*, in queue order. Raises StoreError."""
    execute = database.connection.execute
    after = BEFORE_ALL
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


def queue_depth(connection: Connection, queue: str, now_us: int) -> int:
    """How many messages browse would give, and how many more units of work have put (``uncommitted``).

    So IBM MQ counts them too, for CURDEPTH and MAXDEPTH; what a unit of work has got is not counted.
    """
    (count,) = connection.execute(_DEPTH, {"queue": queue, "now": now_us}).fetchone()
    return int(count)


LoadedState = tuple[Objects, list[Subscription], list[RetainedPublication]]


class Queues(Protocol):
    """Messages in, messages out."""

    def get(self, queue: str) -> StoredMessage | None:
        """Take the first message off *queue*, None where it is empty; expired ones are removed and passed over.

        Raises UnknownQueueError (2085), QueueError 2016 where getting is inhibited.
        """

    def get_next(self, queues: Sequence[str]) -> StoredMessage | None:
        """Take the message that arrived first among the first ones of *queues*, None where all are empty.

        A queue that is unknown or inhibited counts as empty: the others go on.
        """

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
        """Put a message; returns its seq. A queue that is not there is made, unless the queue manager is strict.

        md: None for the defaults. time: of arrival, UTC; None is now. user, application: for what *md* leaves blank.
        expires_at: None for what the MQMD's Expiry makes of *time*. Raises UnknownQueueError (2085), QueueError 2051,
        2053, 2082, 2001, 2043 where no message can be put, MessageRefusedError where this one cannot (2030, 2026, 2013,
        2047, 2050); nothing is put then, and the unit of work goes on.
        """

    def browse(self, queue: str) -> Iterator[StoredMessage]:
        """The messages that gets would return, in order; they stay on the queue. Raises UnknownQueueError."""

    def depth(self, queue: str) -> int:
        """How many messages have not expired, those that units of work have put too. Raises UnknownQueueError."""

    def clear_queue(self, queue: str) -> int:
        """Remove all messages; returns how many there were. Raises UnknownQueueError."""

    def find_queue(self, name: str) -> LocalQueue | None:
        """The local queue of that name or behind that alias, None where there is none."""

    def ensure_queue(self, name: str) -> LocalQueue:
        """The same, made with the defaults where there is none.

        Raises UnknownQueueError (2085) where the queue manager is strict or *name* cannot be a queue's, QueueError
        2082, 2001, 2043 for an alias that leads to no local queue.
        """

    def is_gone(self, name: str) -> bool:
        """Whether *name* is known as that of a deleted dynamic queue, for which a put makes no new queue."""

    def discard_expired(self, now: datetime | None = None) -> int:
        """Remove every message that has expired at *now*, from all queues; returns how many there were."""


class Knowledge(Protocol):
    """Definitions, subscriptions, retained publications."""

    @property
    def state_version(self) -> int:
        """The version of the state; if it differs from that at the end of your last unit of work, load again."""

    def load_state(self) -> LoadedState:
        """Everything, subscriptions in the order of their sub_id. Raises StoreDamagedError.

        A retained publication reads its message when it is asked for it, while the queue manager is open.
        """

    def save_effects(self, effects: Iterable[Effect]) -> list[RetainedPublication]:
        """Keep what the topic space changed; deliveries are passed over. Saving an effect twice is harmless.

        Returns what is retained because of these effects as ``load_state`` would: for the topic space to hold instead
        of the messages themselves. Effects that follow one another and store one publication keep it once.
        """

    def take_ended_subscriptions(self) -> list[bytes]:
        """The sub_ids of subscriptions whose temporary dynamic queue was deleted since the last call.

        They are still among the subscriptions: the caller must remove them in this unit of work.
        """

    def save_definition(self, definition: Definition) -> None:
        """Define or replace."""

    def delete_definition(self, kind: str, name: str) -> None:
        """Forget a definition; none is no error. Raises QueueError 2055 where a queue holds messages."""

    def discard_nonpersistent_retained(self) -> int:
        """Delete the retained publications that do not survive a restart (guide 8.5); returns how many."""


@runtime_checkable
class PutsRemotely(Protocol):
    """A unit of work of a queue manager that can itself route messages to other queue managers."""

    def put_remote(
        self, qmgr: str, queue: str, md: bytes | None, body: bytes, *, user: str | None = None, application: str = ""
    ) -> int:
        """Put a message to *queue* at *qmgr*; raises what ``put`` does."""


@runtime_checkable
class PutsAlike(Protocol):
    """A unit of work that puts messages whose columns are known without looking at each."""

    def put_alike(self, puts: Sequence[Outgoing], first: int, time: datetime) -> int:
        """Put *puts* from number *first*; the number of the first one for which ``put`` has to be called.

        That is their number where there is none. time: of arrival, UTC.
        """


@runtime_checkable
class ListsQueues(Protocol):
    """A unit of work that can list the local queues, also those that were created because a put named them."""

    def local_queues(self) -> list[LocalQueue]:
        """Their definitions. Raises StoreDamagedError."""


class Undelivered(Protocol):
    """Messages that could be put nowhere, kept in the order of arrival for each queue (``commands.qmgr.delivery``).

    A queue is named as ``commands.qmgr.delivery.lane_of`` does.
    """

    def queues(self) -> set[str]:
        """The queues for which something is undelivered; "" is the dead-letter queue, whichever that is."""

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
        """Keep a message for *queue*, "" for the dead-letter queue. persistent: whether it may never be given up.

        Raises QueueError where there is no room for it; nothing is kept then, and the unit of work goes on.
        """

    def first(self, queue: str, limit: int, now: datetime) -> Iterable[StoredMessage]:
        """The first *limit* undelivered for *queue*, expired ones too, with the Expiry that is left.

        To go through them raises QueueError where they cannot be read now.
        """

    def is_temporary(self, queue: str) -> bool:
        """Whether they must be dropped with the queue: a temporary dynamic one, deleted without notice."""

    def remove(self, message: StoredMessage) -> None:
        """It was delivered, or has expired."""

    def tried(self, queue: str, most: int | None) -> int:
        """A try failed; returns how many are discarded: not persistent and tried *most* times (None: none)."""

    def total(self) -> tuple[int, int]:
        """How many messages, and how many bytes, are undelivered in all."""


@runtime_checkable
class KeepsUndelivered(Protocol):
    """A unit of work that can keep what can be put nowhere. undelivered: all that is kept, as it sees it."""

    undelivered: Undelivered


@runtime_checkable
class HasPrograms(Protocol):
    """A unit of work of a queue manager to which programs connect, whose own units of work are no commit's."""

    def has_uncommitted(self, queue: str) -> bool:
        """Whether one of them has messages of the local queue, put or got."""

    def in_doubt(self) -> list[tuple[int, bytes]]:
        """Those that are prepared branches of global transactions: numbers and XIDs."""


@runtime_checkable
class CountsMessages(Protocol):
    """A unit of work that counts. counters: what it counted, and what was counted before."""

    @property
    def counters(self) -> Counting: ...


class UnitOfWork(Queues, Knowledge, Protocol):
    """Gets, puts and changes that happen together or not at all.

    As a context manager it commits at the end, and backs out when an exception leaves it.
    """

    @property
    def has_savepoints(self) -> bool:
        """Whether a part can be backed out alone; where not, an exception out of a part dooms the whole."""

    @property
    def is_alone(self) -> bool:
        """Whether nobody else puts before it ends, and it can get whatever there is: what it found empty stays so."""

    @property
    def is_awaited(self) -> bool:
        """Whether another process waits for this one to end before it can begin its own."""

    def commit(self) -> None:
        """Commit durably; the unit of work ends. If it raises StoreError, the unit of work is backed out."""

    def backout(self) -> None:
        """Undo everything, except that the backout count of each message got is increased by one."""

    def savepoint(self) -> AbstractContextManager[None]:
        """A part that an exception backs out alone, if that is possible; the exception is raised again."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class QueueManagerPort(Protocol):
    """A queue manager to work with; not to be shared between threads."""

    @property
    def name(self) -> str:
        """The queue manager's name."""

    def unit_of_work(self) -> UnitOfWork:
        """Begin one; only one at a time. Raises StoreBusyError where another process does not end its own."""

    def processor_lock(self) -> AbstractContextManager[None]:
        """Be the one command processor while inside. Raises QueueManagerInUseError."""

    def end_lost_connections(self) -> int:
        """Delete the temporary dynamic queues of programs that have died; returns how many queues went."""

    def wait_for_change(self, timeout_s: float) -> bool:
        """Wait until another process has committed since the last unit of work here began; whether one has."""

    def close(self) -> None:
        """Give everything back; a unit of work still open is backed out."""
