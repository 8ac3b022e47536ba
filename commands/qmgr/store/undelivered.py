"""Publications that neither their queue nor the dead-letter queue took: kept until one of them does.

They are ordinary messages in the database's own table, on lanes that no program can name: ``owed `` and the name of the
queue, or no name for dead letters, whose queue may change. A lane is in the order of arrival, and no later message is
put on its queue before those in the lane. They expire as messages do.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from commands.broker.descriptor import TENTH_US
from commands.broker.times import LAST_US, to_microseconds
from commands.qmgr.store.database import FAILURES, Connection, Database
from commands.qmgr.store.message_table import MessageTable
from commands.qmgr.store.messages import FIRST_MESSAGES, StoredMessage, message_of
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2.mqmd import Mqmd

_LANE: Final = "owed "
_BEFORE, _BEHIND = "owed", "owed!"
_NEXT_LANE: Final = "SELECT min(queue) FROM messages WHERE queue > ? AND queue < ?"
_TOTAL: Final = "SELECT count(*), coalesce(sum(length(body)), 0) FROM messages WHERE queue > ? AND queue < ?"
_TRIED: Final = "UPDATE messages SET backout_count = backout_count + 1 WHERE queue = ? AND persistent = 0"
_GIVEN_UP: Final = "DELETE FROM messages WHERE queue = ? AND persistent = 0 AND backout_count >= ?"


class UndeliveredMessages:
    """What is undelivered, in units of work (``Undelivered``)."""

    __slots__ = ("_connection", "_database", "_lanes", "_messages", "_pending")

    def __init__(self, pending: WriteBuffer, messages: MessageTable) -> None:
        self._database, self._connection, self._pending = pending.database, pending.database.connection, pending
        self._messages = messages
        self._lanes: set[str] | None = None

    def queues(self) -> set[str]:
        """The queues for which something is undelivered."""
        if self._lanes is None:
            self._pending.flush()
            self._lanes = set()
            after = _BEFORE
            while (row := self._connection.execute(_NEXT_LANE, (after, _BEHIND)).fetchone())[0] is not None:
                (after,) = row
                self._lanes.add(after.removeprefix(_LANE))
        return self._lanes

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
        """Keep a message for *queue*. persistent: whether it may never be given up."""
        end_us = None if expires_at is None else to_microseconds(expires_at)
        if end_us is None and (expiry := Mqmd.decode(md).expiry) > 0:
            end_us = min(to_microseconds(time) + expiry * TENTH_US, LAST_US)
        self.queues().add(queue)
        lane = _LANE + queue
        self._messages.keep(lane, md, body, time=time, user=user, persistent=persistent, expires_at_us=end_us)

    def first(self, queue: str, limit: int, now: datetime) -> list[StoredMessage]:
        """The first *limit* undelivered for *queue*, expired ones too, with the Expiry that is left."""
        self._pending.flush()
        now_us = to_microseconds(now)
        rows = self._connection.execute(FIRST_MESSAGES, (_LANE + queue, limit)).fetchall()
        return [message_of(self._database, row, now_us) for row in rows]

    def is_temporary(self, queue: str) -> bool:
        """False: those for a temporary dynamic queue are deleted with it (``dynamic_queues``)."""
        del queue
        return False

    def remove(self, message: StoredMessage) -> None:
        """It was delivered, or has expired."""
        self._pending.take(message.seq)
        self._lanes = None

    def tried(self, queue: str, most: int | None) -> int:
        """A try failed; returns how many are discarded: not persistent and tried *most* times (None: none)."""
        self._pending.flush()
        self._connection.execute(_TRIED, (_LANE + queue,))
        if most is None:
            return 0
        self._lanes = None
        return self._connection.execute(_GIVEN_UP, (_LANE + queue, most)).rowcount

    def total(self) -> tuple[int, int]:
        """How many messages, and how many bytes, are undelivered in all."""
        self._pending.flush()
        count, size_bytes = self._connection.execute(_TOTAL, (_BEFORE, _BEHIND)).fetchone()
        return int(count), int(size_bytes)

    def drop(self, queue: str) -> None:
        """Delete all that is undelivered for *queue*; nothing is pending."""
        self._connection.execute("DELETE FROM messages WHERE queue = ?", (_LANE + queue,))
        self._lanes = None

    def forget(self) -> None:
        """Forget what is known: anything may have changed."""
        self._lanes = None


def undelivered_overview(connection: Connection) -> list[tuple[str, int, int]]:
    """Queue, how many messages are undelivered for it, and when the first of them arrived, in microseconds.

    Of what is kept elsewhere, as of the last time that ``note_undelivered_elsewhere`` noted it.
    """
    statement = "SELECT queue, count(*), min(time) FROM messages WHERE queue > ? AND queue < ? GROUP BY queue"
    rows = connection.execute(statement, (_BEFORE, _BEHIND)).fetchall()
    rows += connection.execute("SELECT queue, count, since FROM owed_elsewhere ORDER BY queue").fetchall()
    return [(name.removeprefix(_LANE), int(count), int(time_us)) for name, count, time_us in rows]


def note_undelivered_elsewhere(database: Database, rows: Iterable[tuple[str, int, datetime]]) -> None:
    """Note, for ``status``, what is kept where the queues are another queue manager's: queue, how many, since when.

    In the open transaction. The note is only for display: the messages themselves say what is kept. Raises StoreError.
    """
    connection = database.connection
    noted = [(queue, count, to_microseconds(since)) for queue, count, since in rows]
    try:
        connection.execute("DELETE FROM owed_elsewhere")
        connection.executemany("INSERT INTO owed_elsewhere (queue, count, since) VALUES (?, ?, ?)", noted)
    except FAILURES as error:
        raise database.translated(error) from error
