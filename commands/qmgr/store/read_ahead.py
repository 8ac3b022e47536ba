"""The first messages of each queue, for one unit of work; no other process gets or puts while it is open.

The first look at a queue reads one message, for a caller that needs no more. The second look reads the next messages in
order, so that a deep queue needs one statement for many messages. Long bodies are read only when their message is
taken. A put to the queue may have to come before all of these: then they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from commands.qmgr.store.database import Database
from commands.qmgr.store.reading import check
from commands.qmgr.store.rows import BODY, BODY_OF_MESSAGE, FIRST_SHORT_MESSAGES, SEQ, MessageRow

_AHEAD: Final = 128


class ReadAhead:
    """The first messages of queues, in queue order: priority descending, then arrival.

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
