"""The record: the changes of a unit of work to the state, put by the unit of work itself.

State is in SQLite, messages are in IBM MQ, and no commit includes both. So a unit of work puts its changes, as
messages, on a queue of the bridge, in the same unit of work as the commands that made them: MQCMIT decides for both.
SQLite is changed after that. After a restart or a new connection the bridge reads the queue first:

    MQCMIT did not happen   the queue holds the record before; SQLite does too; the commands are on their queues again
    it did, SQLite did not  the queue holds the next record: SQLite catches up
    both did                nothing to do

Each record replaces the one before, so the queue is never empty after its first use. If it is empty, a unit of work of
a broken connection still holds the record, and the bridge processes nothing until the queue manager has decided. The
bridge opens the queue exclusively: two bridges cannot process the same commands.

A record is one message for each effect, so that it fits where the retained publication in it fitted. Its body is the
length of a JSON text in 4 bytes, the text, then the bytes of the publication. Of several topics in a row that retain
one publication the first has it, and the others name its index (``with``). Units of work that change no state, which is
most of them, have no record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from commands.broker.state import PublicationRow, publication_of, publication_row, subscription_of, subscription_state
from commands.disk.errors import readable
from commands.qmgr.store.database import FAILURES, Connection, Database
from rfh2.errors import DecodeError, StoreError
from streams.operations import (
    Effect,
    Publication,
    Published,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)

FORMAT: Final = "QPSREC"


class RecordError(StoreError):
    """The record and the state do not belong together; a person must find out why before processing goes on."""


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """The changes of unit of work *batch* of the store named *store*."""

    store: str
    batch: int
    effects: tuple[Effect, ...] = ()

    def messages(self) -> list[bytes]:
        """The bodies of its messages; one at least."""
        count = max(len(self.effects), 1)
        about: dict[str, Any] = {"store": self.store, "batch": self.batch, "of": count}
        if not self.effects:
            return [_body({**about, "index": 0}, b"", b"")]
        return [_body({**about, "index": at, **row}, md, body) for at, (row, md, body) in enumerate(self._rows())]

    def _rows(self) -> list[tuple[dict[str, Any], bytes, bytes]]:
        rows: list[tuple[dict[str, Any], bytes, bytes]] = []
        first: tuple[Published, int] | None = None
        for at, effect in enumerate(self.effects):
            if isinstance(effect, SubscriptionAdded):
                rows.append(({"added": subscription_state(effect.subscription)}, b"", b""))
            elif isinstance(effect, SubscriptionAltered):
                states = [subscription_state(effect.before), subscription_state(effect.after)]
                rows.append(({"altered": states}, b"", b""))
            elif isinstance(effect, SubscriptionRemoved):
                rows.append(({"removed": subscription_state(effect.subscription)}, b"", b""))
            elif isinstance(effect, RetainedStored):
                topic, publication = effect.retained.topic_string, effect.retained.publication
                if first is not None and first[0] is publication:
                    rows.append(({"stored": [topic], "with": first[1]}, b"", b""))
                    continue
                first = publication, at
                *columns, md, body = publication_row(publication)
                rows.append(({"stored": [topic, *columns]}, md, body))
            elif isinstance(effect, RetainedCleared):
                rows.append(({"cleared": effect.topic_string}, b"", b""))
        return rows


def read_record(bodies: Sequence[bytes]) -> UnitRecord | None:
    """The record that these messages make; None where there are none. Raises RecordError where they make none."""
    if not bodies:
        return None
    try:
        rows = [_read(body) for body in bodies]
        rows.sort(key=lambda row: int(row[0]["index"]))
        first = rows[0][0]
        complete = [int(row[0]["index"]) for row in rows] == list(range(first["of"]))
        if not complete or any((r["store"], r["batch"]) != (first["store"], first["batch"]) for r, _, _ in rows):
            raise RecordError(f"the record has {len(rows)} messages that do not belong together")
        publications: dict[int, Publication] = {}
        effects = tuple(effect for row in rows if (effect := _effect(*row, publications)) is not None)
        return UnitRecord(str(first["store"]), int(first["batch"]), effects)
    except (ValueError, KeyError, TypeError, IndexError, DecodeError) as error:
        raise RecordError(f"the message on the record queue is not a record: {error!r}") from error


def _effect(row: dict[str, Any], md: bytes, body: bytes, publications: dict[int, Publication]) -> Effect | None:
    """The effect of one row, None where it has none. publications: those of the rows before, by index."""
    if "added" in row:
        return SubscriptionAdded(subscription_of(row["added"]))
    if "altered" in row:
        before, after = row["altered"]
        return SubscriptionAltered(subscription_of(before), subscription_of(after))
    if "removed" in row:
        return SubscriptionRemoved(subscription_of(row["removed"]))
    if "stored" in row:
        topic, *columns = row["stored"]
        if "with" in row:
            publication = publications[int(row["with"])]
        else:
            at, expires_at, local, persistent = columns
            publication = publication_of(PublicationRow(at, expires_at, local, persistent, md, body))
            publications[int(row["index"])] = publication
        return RetainedStored(RetainedPublication(topic, publication))
    return RetainedCleared(row["cleared"]) if "cleared" in row else None


def _body(row: dict[str, Any], md: bytes, body: bytes) -> bytes:
    text = json.dumps({**row, "md": len(md)}).encode()
    return len(text).to_bytes(4, "big") + text + md + body


def _read(data: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    size = int.from_bytes(data[:4], "big")
    row: dict[str, Any] = json.loads(data[4 : 4 + size])
    rest = data[4 + size :]
    return row, rest[: row["md"]], rest[row["md"] :]


# Values about IBM MQ in the queue manager's SQLite database: the last record applied, and arrival numbers.

_TABLE: Final = "CREATE TABLE IF NOT EXISTS live (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_SAVE: Final = """INSERT INTO live (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
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

    def follow(self, connection: Connection, batch: int) -> None:
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
            return self._database.highest("messages")
        except FAILURES as error:
            raise self._database.translated(error) from error

    def _read_number(self, name: str) -> int:
        with readable(self._database.path, f"value {name} of the live state"):
            return int(self.read(name) or 0)

    @staticmethod
    def _write(connection: Connection, name: str, value: str) -> None:
        connection.execute(_SAVE, (name, value))

    def _in_transaction(self, change: Callable[[Connection], object]) -> None:
        connection = self._database.connection
        try:
            self._database.begin()
            try:
                change(connection)
                self._database.commit()
            finally:
                self._database.rollback()
        except FAILURES as error:
            raise self._database.translated(error) from error
