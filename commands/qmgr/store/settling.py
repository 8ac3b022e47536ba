"""When the pending writes of a unit of work are made, and how a part of it is backed out.

A part becomes an SQLite savepoint only with its first statement, and most parts have none. What was pending before the
part is not the part's: it is written before the savepoint, or pends again when the part is backed out.
"""

from __future__ import annotations

import sqlite3

from commands.qmgr.store.write_buffer import NOTHING, Mark, WriteBuffer


class Settling:
    """For one unit of work with the writes *pending*. All of it raises sqlite3.Error."""

    __slots__ = ("_connection", "_earlier", "_part", "_pending", "_savepoint")

    def __init__(self, connection: sqlite3.Connection, pending: WriteBuffer) -> None:
        self._connection, self._pending = connection, pending
        self._part: Mark | None = None  # what was pending when the open part began
        self._savepoint = False  # whether SQLite knows of that part
        # What was pending before the part and was written behind its savepoint.
        self._earlier: WriteBuffer | None = None

    @property
    def is_in_part(self) -> bool:
        """Whether a part is open."""
        return self._part is not None

    def settle(self) -> None:
        """Write all that is pending."""
        part = self._part
        if part is not None and not self._savepoint:
            self._pending.flush(part)
            self._begin_savepoint()
        elif part is not None and part != NOTHING:
            self._earlier = self._pending.copy(part)
        if part is not None:
            self._part = NOTHING
        self._pending.flush()

    def settle_messages(self) -> None:
        """Write what is pending for the table of messages: what is retained may change often until it is written."""
        if self._part is not None:
            if not self._savepoint:
                self._pending.flush_messages(self._part)
                self._begin_savepoint()
            self._part = (0, 0, *self._part[2:])
        self._pending.flush_messages()

    def _begin_savepoint(self) -> None:
        self._connection.execute("SAVEPOINT part")
        self._savepoint = True

    def begin_part(self) -> None:
        """Begin a part; none is open."""
        self._part, self._savepoint = self._pending.mark(), False

    def end_part(self, *, done: bool) -> None:
        """End the open part; if it is not *done*, back it out."""
        part, self._part = self._part, None
        assert part is not None
        earlier, self._earlier = self._earlier, None
        if not done:
            self._pending.back_to(part)
            if earlier is not None:
                self._pending.prepend(earlier)
        if self._savepoint:
            if not done:
                self._connection.execute("ROLLBACK TO part")
            self._connection.execute("RELEASE part")

    def forget_part(self) -> None:
        """The unit of work is over, and no part of it is left."""
        self._part = self._earlier = None
