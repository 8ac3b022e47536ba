"""The table of messages: its rows, reading them in queue order, and the row that a message becomes when it is put.

The order of the columns stands here alone. Rows are plain tuples, unpacked by whoever needs more than one column: named
tuples cost a tenth of a put. Times are microseconds since 1970 in UTC.

Nothing here changes the database. Pages are read by key, so that no statement stays open between them: a browse that
waits for its reader holds no snapshot, and does not prevent a checkpoint of the write-ahead log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from commands.broker.descriptor import HIGHEST_PRIORITY, arrive, default_descriptor, leave
from commands.broker.objects import TEMPORARY, LocalQueue
from commands.broker.state import LAST_US, from_microseconds, to_microseconds
from commands.disk.errors import UNREADABLE, MessageRefusedError, QueueError, StoreDamagedError
from commands.headers.put_to_topic import publish_command
from commands.qmgr.store.database import FAILURES, Database
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import MQAT_BROKER
from rfh2.errors import DecodeError, EncodeError
from rfh2.inherited_ccsids import put_descriptor, resolved_body
from rfh2.mqi_constants import (
    MQRC_MD_ERROR,
    MQRC_OBJECT_TYPE_ERROR,
    MQRC_PERSISTENT_NOT_ALLOWED,
    MQRC_TOPIC_STRING_ERROR,
)
from rfh2.mqmd import Mqmd

SHORT_BYTES: Final = 8 * 1024

MessageRow = tuple[int, str, int, int, str | None, int, int | None, bytes, bytes | None, int]
"""One message, in the order of ``COLUMNS``.

rank: its place in the queue, 9 less its priority. persistent: 0 or 1. body: None where it is longer than
``SHORT_BYTES`` and was not asked for.
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
EXPIRES_AT: Final = 6
MD: Final = 7
BODY: Final = 8


def _columns(**instead: str) -> str:
    return ", ".join(instead.get(name, name) for name in COLUMNS)


_PLACES: Final = ", ".join("?" for _ in COLUMNS)
INSERT_MESSAGE: Final = f"INSERT INTO messages ({_columns()}) VALUES ({_PLACES})"
DELETE_MESSAGE: Final = "DELETE FROM messages WHERE seq = ?"
MANY: Final = 50
"""The messages of one of the next two statements: so many that the statement itself costs little."""
INSERT_MESSAGES: Final = f"INSERT INTO messages ({_columns()}) VALUES {', '.join([f'({_PLACES})'] * MANY)}"
DELETE_MESSAGES: Final = f"DELETE FROM messages WHERE seq IN ({', '.join('?' * MANY)})"
MESSAGE_ON_QUEUE: Final = f"SELECT {_columns()} FROM messages WHERE seq = ? AND queue = ?"
FIRST_MESSAGES: Final = f"SELECT {_columns()} FROM messages WHERE queue = ? ORDER BY rank, seq LIMIT ?"
_SHORT_BODY: Final = f"CASE WHEN length(body) <= {SHORT_BYTES} THEN body END"
FIRST_SHORT_MESSAGES: Final = (
    f"SELECT {_columns(body=_SHORT_BODY)} FROM messages WHERE queue = ? ORDER BY rank, seq LIMIT ?"
)
"""The same, without long bodies."""
BODY_OF_MESSAGE: Final = "SELECT body FROM messages WHERE seq = ?"
# By number, which the index has, so that a deep queue's rows are not read.
OLDEST_MESSAGE: Final = "SELECT time FROM messages WHERE seq = (SELECT min(seq) FROM messages WHERE queue = ?)"

_PAGE: Final = 256

_KEYS = """SELECT rank, seq FROM messages WHERE queue = ? AND (rank, seq) > (?, ?) ORDER BY rank, seq LIMIT ?"""

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


def browse_queue(database: Database, queue: str, now_us: int) -> Iterator[StoredMessage]:
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


def queue_depth(connection: sqlite3.Connection, queue: str, now_us: int) -> int:
    """How many messages browse would give."""
    (count,) = connection.execute(_DEPTH, {"queue": queue, "now": now_us}).fetchone()
    return int(count)


_AHEAD: Final = 128


class ReadAhead:
    """The first messages of queues, in queue order: priority descending, then arrival; for one unit of work.

    No other process gets or puts while that is open. The first look at a queue reads one message, for a caller that
    needs no more. The second look reads the next messages in order, so that a deep queue needs one statement for many
    messages. Long bodies are read only when their message is taken. A put to the queue may have to come before all of
    these: then they are read again.

    settle: called before a table is read, to have it up to date.
    """

    __slots__ = ("_ahead", "_connection", "_database", "_settle", "_whole")

    def __init__(self, database: Database, settle: Callable[[], None]) -> None:
        self._database, self._connection = database, database.connection
        self._settle = settle
        self._ahead: dict[str, list[MessageRow]] = {}  # the last one is the first of the queue
        self._whole: set[str] = set()  # queues with nothing behind what is in _ahead

    def first(self, queue: str) -> int | None:
        """The seq of the first message of a local queue, expired or not; None where it is empty."""
        ahead = self._ahead.get(queue)
        if ahead:
            return ahead[-1][SEQ]
        if queue in self._whole:
            return None
        ahead = self._look(queue, 1 if ahead is None else _AHEAD)
        return ahead[-1][SEQ] if ahead else None

    def first_of(self, queues: Sequence[str]) -> str | None:
        """Of these local queues the one whose first message came before those of the others; None where all are empty.

        A processor asks before each message: what is known already is looked at here, without a call for each queue.
        """
        known, whole = self._ahead, self._whole
        first: int | None = None
        of: str | None = None
        for queue in queues:
            ahead = known.get(queue)
            if ahead:
                seq: int | None = ahead[-1][SEQ]
            else:
                seq = None if queue in whole else self.first(queue)
            if seq is not None and (first is None or seq < first):
                first, of = seq, queue
        return of

    def take(self, queue: str) -> MessageRow | None:
        """The row of the first message of a local queue, which is first no more; None where it is empty.

        The caller has the message removed.
        """
        ahead = self._ahead.get(queue)
        if not ahead:
            if self.first(queue) is None:
                return None
            ahead = self._ahead[queue]
        row = ahead.pop()
        if row[BODY] is None:
            # Read to the end: a statement left half-read would keep the transaction from committing.
            ((body,),) = self._connection.execute(BODY_OF_MESSAGE, (row[SEQ],)).fetchall()
            seq, name, rank, time, user, persistent, expires_at, md, _, backout_count = row
            row = (seq, name, rank, time, user, persistent, expires_at, md, body, backout_count)
        return row

    def peek(self, queue: str) -> MessageRow | None:
        """The first message of a local queue, with its body, expired or not; None where it is empty."""
        row = self.take(queue)
        if row is not None:
            self._ahead[queue].append(row)
        return row

    def gone(self, queue: str, seq: int) -> None:
        """A message was removed from *queue*, and the caller has told that."""
        ahead = self._ahead.get(queue)
        if ahead and ahead[-1][SEQ] == seq:
            ahead.pop()
        else:
            self.changed(queue)

    def changed(self, queue: str) -> None:
        """A message was put on *queue*, or its messages were removed."""
        if queue in self._ahead:
            del self._ahead[queue]
            self._whole.discard(queue)

    def forget(self) -> None:
        """Anything may have changed."""
        self._ahead.clear()
        self._whole.clear()

    def _look(self, queue: str, limit: int) -> list[MessageRow]:
        self._settle()
        rows: list[MessageRow] = self._connection.execute(FIRST_SHORT_MESSAGES, (queue, limit)).fetchall()
        for row in rows:
            check(self._database, row)
        rows.reverse()
        self._ahead[queue] = rows
        if len(rows) < limit:
            self._whole.add(queue)
        return rows


class Arrivals:
    """Makes the rows of one unit of work; many puts have one time."""

    __slots__ = ("_time", "_time_us")

    def __init__(self) -> None:
        self._time: datetime | None = None
        self._time_us = 0

    def time_us(self, time: datetime) -> int:
        """*time* in microseconds."""
        if time is not self._time:
            self._time, self._time_us = time, to_microseconds(time)
        return self._time_us

    def row(
        self,
        queue: LocalQueue,
        qmgr: str,
        seq: int,
        md: bytes | None,
        body: bytes,
        time: datetime,
        user: str | None,
        application: str,
        expires_at: datetime | None,
    ) -> MessageRow:
        """Message number *seq*, put on *queue* of queue manager *qmgr*; the rest is as for ``Queues.put``.

        Raises MessageRefusedError for a descriptor that no queue takes, and for a persistent message to a *queue* that
        is deleted with its program (2048).
        """
        arrived = arrive(
            default_descriptor(body) if md is None else md,
            queue=queue.name,
            def_priority=queue.def_priority,
            def_persistent=queue.def_persistent,
            qmgr=qmgr,
            unique=seq,
            time=time,
            user=user,
            application=application,
        )
        if arrived.persistent and queue.definition_type == TEMPORARY:
            why = "it is a temporary dynamic queue, which takes no persistent messages"
            raise MessageRefusedError(MQRC_PERSISTENT_NOT_ALLOWED, queue.name, why)
        time_us = self.time_us(time)
        if expires_at is not None:
            end_us: int | None = to_microseconds(expires_at)
        else:
            end_us = None if arrived.lifetime_us is None else min(time_us + arrived.lifetime_us, LAST_US)
        rank = HIGHEST_PRIORITY - arrived.priority
        descriptor = put_descriptor(arrived.md, body, md)
        body = resolved_body(body, descriptor)
        return (seq, queue.name, rank, time_us, arrived.user, arrived.persistent, end_us, descriptor, body, 0)


def publication(alias: str, topic: str, md: bytes, body: bytes) -> tuple[bytes, bytes]:
    """The Publish command that a message put on *alias*, an alias of a topic object, becomes (guide 7.7).

    topic: the object's topic string. Raises QueueError 2425 where that is empty, 2043 for what a broker puts:
    subscribers and replies are on queues, and a subscription that feeds its own topic would never end;
    MessageRefusedError 2026 for a descriptor or headers that cannot be read.
    """
    if not topic:
        raise QueueError(MQRC_TOPIC_STRING_ERROR, alias, "it is an alias of a topic object without a TOPICSTR")
    try:
        mqmd = Mqmd.decode(md)
        if mqmd.put_appl_type == MQAT_BROKER:
            raise QueueError(MQRC_OBJECT_TYPE_ERROR, alias, "it is an alias of a topic, and takes nothing from brokers")
        mqmd, command = publish_command(topic, mqmd, body)
        return mqmd.encode(), command
    except (DecodeError, EncodeError) as error:
        raise MessageRefusedError(MQRC_MD_ERROR, alias, str(error)) from error
