"""What stands first on each queue, for one unit of work, which alone takes and puts while it lasts.

The second look at a queue brings the next sixty-four in order, so that taking a deep queue's messages one after the
other costs one look-up in the index for as many; the first look brings one, for who wants no more. A put to the queue
may come before them all: then they are looked up again.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from commands.queues.reading import COLUMNS

Row = tuple[Any, ...]

_AHEAD: Final = 64
_FIRST: Final = "SELECT seq FROM messages WHERE queue = ? ORDER BY rank, seq LIMIT ?"
_TAKE: Final = f"DELETE FROM messages WHERE seq = ? RETURNING {COLUMNS}"


class Heads:
    """The first messages of queues, in queue order: priority descending, then arrival."""

    __slots__ = ("_ahead", "_connection", "_whole")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ahead: dict[str, list[int]] = {}  # the last one is the first of the queue
        self._whole: set[str] = set()  # queues with nothing behind what is in _ahead

    def first(self, queue: str) -> int | None:
        """The seq of the first message of a local queue, expired or not; None where it is empty."""
        ahead = self._ahead.get(queue)
        if not ahead:
            if queue in self._whole:
                return None
            ahead = self._look(queue, 1 if ahead is None else _AHEAD)
        return ahead[-1] if ahead else None

    def take(self, queue: str) -> Row | None:
        """Take the first message off a local queue: its row (COLUMNS); None where it is empty."""
        seq = self.first(queue)
        if seq is None:
            return None
        # The statement is read to its end: one left half-read would keep the transaction from committing.
        row: Row
        (row,) = self._connection.execute(_TAKE, (seq,)).fetchall()
        self._ahead[queue].pop()
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

    def _look(self, queue: str, limit: int) -> list[int]:
        rows = self._connection.execute(_FIRST, (queue, limit)).fetchall()
        ahead = self._ahead[queue] = [seq for (seq,) in reversed(rows)]
        if len(ahead) < limit:
            self._whole.add(queue)
        return ahead
