"""Branches of global transactions that are prepared: in doubt until a transaction manager says how they end.

Their messages stay on the lanes of ``commands.qmgr.store.uncommitted``, of an owner that is not a connection: neither
the end of a program, nor that of the listener, nor that of the machine ends them.
"""

from __future__ import annotations

from collections.abc import Callable

from commands.qmgr.store import reading
from commands.qmgr.store.database import Database
from commands.qmgr.store.uncommitted import Came, Uncommitted


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
