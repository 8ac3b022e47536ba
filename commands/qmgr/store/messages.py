"""The rows of the table of messages, and reading them in queue order.

The order of the columns stands here alone. Rows are plain tuples, unpacked by whoever needs more than one column: named
tuples cost a tenth of a put. Times are microseconds since 1970 in UTC.

Nothing here changes the database. Pages are read by key, so that no statement stays open between them: a browse that
waits for its reader holds no snapshot, and does not prevent a checkpoint of the write-ahead log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.broker.descriptor import HIGHEST_PRIORITY, leave
from commands.broker.times import from_microseconds
from commands.disk.errors import UNREADABLE, StoreDamagedError
from commands.qmgr.store.database import FAILURES, MANY, Connection, Database
from rfh2.captured import CapturedMessage


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
