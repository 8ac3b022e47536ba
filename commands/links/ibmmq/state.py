"""Values about IBM MQ in the queue manager's SQLite database: the last record applied, and arrival numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from commands.disk.errors import readable
from commands.qmgr.store.database import FAILURES, Database
from commands.qmgr.store.reading import highest
from rfh2.errors import StoreError

_TABLE: Final = "CREATE TABLE IF NOT EXISTS live (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_BLOCK: Final = 100_000


class LiveState:
    """Three values: store (which database this is), applied (the last record followed), reserved (arrival numbers)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next = self._end = 0
        self._in_transaction(lambda connection: connection.execute(_TABLE))
        store = self.read("store")
        if store is None:
            store = uuid4().hex
            self._in_transaction(lambda connection: self._write(connection, "store", str(store)))
        self.store = store

    @property
    def applied(self) -> int:
        """The number of the last record that SQLite holds; 0 before the first."""
        return self._read_number("applied")

    def follow(self, connection: sqlite3.Connection, batch: int) -> None:
        """In the transaction that is open: record *batch* is held now."""
        self._write(connection, "applied", str(batch))

    def reserve(self, count: int) -> None:
        """Reserve *count* arrival numbers, unique even after a crash. No transaction may be open."""
        if self._end - self._next >= count:
            return
        start = max(self._read_number("reserved"), self._highest())
        end = start + max(count, _BLOCK)
        self._in_transaction(lambda connection: self._write(connection, "reserved", str(end)))
        self._next, self._end = start, end

    def number(self) -> int:
        """The next arrival number. Raises StoreError where none is reserved."""
        if self._next >= self._end:
            raise StoreError("no arrival number is reserved")
        self._next += 1
        return self._next

    def read(self, name: str) -> str | None:
        """A value; None where there is none."""
        try:
            row = self._database.connection.execute("SELECT value FROM live WHERE name = ?", (name,)).fetchone()
        except FAILURES as error:
            raise self._database.translated(error) from error
        return None if row is None else str(row[0])

    def _highest(self) -> int:
        # Numbers that the embedded queues have given, should the queue manager have been used with those before.
        try:
            return highest(self._database, "messages")
        except FAILURES as error:
            raise self._database.translated(error) from error

    def _read_number(self, name: str) -> int:
        with readable(self._database.path, f"value {name} of the live state"):
            return int(self.read(name) or 0)

    @staticmethod
    def _write(connection: sqlite3.Connection, name: str, value: str) -> None:
        connection.execute("INSERT OR REPLACE INTO live (name, value) VALUES (?, ?)", (name, value))

    def _in_transaction(self, change: Callable[[sqlite3.Connection], object]) -> None:
        connection = self._database.connection
        try:
            self._database.begin()
            try:
                change(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except FAILURES as error:
            raise self._database.translated(error) from error
