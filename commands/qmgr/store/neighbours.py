"""What an embedded queue manager records of those that it exchanges messages with, as one unit of work sees it.

neighbours, sent_proxies   for the network: who is connected, and which proxy subscriptions they were sent
senders, arrived           for carriers (``commands.links.embedded``): what came from which queue manager
sequences                  also for carriers: whether both ends remember the same past

A carrier puts the messages of another queue manager here, and removes them there afterwards, in a unit of work of the
other database. A message is recorded as arrived in the unit of work that puts it, and forgotten when it is known that
it was removed. So whoever carries it again, after a crash in between, finds that it has arrived. Only the carrier that
claimed the sender last may put messages: one that was held up meanwhile could bring what is forgotten already.

Batches of messages have sequence numbers, as those of an IBM MQ channel. Each end records the last one in the commit in
which it puts or removes the batch. Where the two differ by more than a crash in between can explain, a database is not
the one that it was: a backup was restored, or the queue manager was made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from commands.network.neighbours import NeighbourStatus, Refresh, Relation
from commands.qmgr.store.database import Database, translate_sqlite_errors
from commands.qmgr.store.errors import readable

Arrived = tuple[int, int]
"""A message of another queue manager: its number there, and the microsecond in which it was put there."""

_ALL: Final = "SELECT qmgr, relation, status, refresh FROM neighbours ORDER BY qmgr"
_SAVE: Final = "INSERT OR REPLACE INTO neighbours (qmgr, relation, status, refresh) VALUES (?, ?, ?, ?)"
_SENT: Final = "INSERT OR IGNORE INTO sent_proxies (neighbour, topic) VALUES (?, ?)"
_WITHDRAWN: Final = "DELETE FROM sent_proxies WHERE neighbour = ? AND topic = ?"
_CLAIM: Final = "INSERT OR REPLACE INTO senders (qmgr, claim) VALUES (?, ?)"
_ARRIVED: Final = "INSERT OR IGNORE INTO arrived (sender, seq, time) VALUES (?, ?, ?)"
_SEQUENCE: Final = "SELECT sent, received FROM sequences WHERE qmgr = ?"
_NUMBER_SENT: Final = """INSERT INTO sequences (qmgr, sent) VALUES (?, ?)
    ON CONFLICT (qmgr) DO UPDATE SET sent = excluded.sent"""
_NUMBER_RECEIVED: Final = """INSERT INTO sequences (qmgr, received) VALUES (?, ?)
    ON CONFLICT (qmgr) DO UPDATE SET received = excluded.received"""
_GONE: Final = "DELETE FROM arrived WHERE sender = ? AND seq = ? AND time = ?"


@dataclass(frozen=True, slots=True)
class NeighbourRecord:
    """A queue manager that this one is connected with. refresh: what it is to get again."""

    qmgr: str
    relation: Relation
    status: NeighbourStatus
    refresh: Refresh = Refresh.NOTHING


@dataclass(frozen=True, slots=True)
class SequenceNumbers:
    """Of the last batch of messages that was carried to another queue manager, and of the last one from there."""

    sent: int = 0
    received: int = 0


def neighbours_in(database: Database) -> list[NeighbourRecord]:
    """All neighbours, by name. Raises StoreDamagedError; sqlite3 errors, which the caller translates."""
    rows = database.connection.execute(_ALL).fetchall()
    with readable(database.path, "neighbours"):
        return [
            NeighbourRecord(qmgr, Relation(relation), NeighbourStatus(status), Refresh(refresh))
            for qmgr, relation, status, refresh in rows
        ]


def sequence_in(database: Database, qmgr: str) -> SequenceNumbers:
    """Those for another queue manager; zero where nothing was carried yet. Raises sqlite3 errors."""
    found = database.connection.execute(_SEQUENCE, (qmgr,)).fetchone()
    return SequenceNumbers() if found is None else SequenceNumbers(*found)


class NeighbourRecords:
    """Those of one unit of work. settle: has the database know what is pending. changed: told that the state has."""

    __slots__ = ("_changed", "_settle", "database")

    def __init__(self, database: Database, settle: Callable[[], None], changed: Callable[[], None]) -> None:
        self.database, self._settle, self._changed = database, settle, changed

    @translate_sqlite_errors
    def all(self) -> list[NeighbourRecord]:
        """All neighbours, by name. Raises StoreDamagedError."""
        self._settle()
        return neighbours_in(self.database)

    @translate_sqlite_errors
    def save(self, record: NeighbourRecord) -> None:
        """Record a neighbour, or another state of it."""
        self._settle()
        row = (record.qmgr, record.relation.value, record.status.value, record.refresh.value)
        self.database.connection.execute(_SAVE, row)
        self._changed()

    @translate_sqlite_errors
    def forget(self, qmgr: str) -> None:
        """It is no neighbour any more."""
        self._settle()
        self.database.connection.execute("DELETE FROM neighbours WHERE qmgr = ?", (qmgr,))
        self.database.connection.execute("DELETE FROM sent_proxies WHERE neighbour = ?", (qmgr,))
        self._changed()

    @translate_sqlite_errors
    def ask_refresh(self, refresh: Refresh, qmgr: str | None = None) -> int:
        """Have all neighbours, or the one of that name, get *refresh* again; returns how many there are."""
        self._settle()
        change = "UPDATE neighbours SET refresh = max(refresh, ?)"
        if qmgr is None:
            count = self.database.connection.execute(change, (refresh.value,)).rowcount
        else:
            count = self.database.connection.execute(f"{change} WHERE qmgr = ?", (refresh.value, qmgr)).rowcount
        if count:
            self._changed()
        return count

    @translate_sqlite_errors
    def sent_proxies(self, neighbour: str) -> set[str]:
        """The topic strings of proxy subscriptions that *neighbour* was sent, and that were not withdrawn."""
        self._settle()
        found = self.database.connection.execute("SELECT topic FROM sent_proxies WHERE neighbour = ?", (neighbour,))
        return {topic for (topic,) in found}

    @translate_sqlite_errors
    def proxies_sent(self, neighbour: str, topics: Iterable[str]) -> None:
        """Note that *neighbour* is sent these."""
        self._settle()
        self.database.connection.executemany(_SENT, [(neighbour, topic) for topic in topics])

    @translate_sqlite_errors
    def proxies_withdrawn(self, neighbour: str, topics: Iterable[str]) -> None:
        """Note that these are withdrawn."""
        self._settle()
        self.database.connection.executemany(_WITHDRAWN, [(neighbour, topic) for topic in topics])

    @translate_sqlite_errors
    def claim(self, sender: str, claim: str) -> set[Arrived]:
        """Have only the carrier named *claim* bring messages of *sender*; returns those that arrived, not forgotten."""
        self._settle()
        self.database.connection.execute(_CLAIM, (sender, claim))
        return self.arrived(sender)

    @translate_sqlite_errors
    def is_claimed(self, sender: str, claim: str) -> bool:
        """Whether *claim* is still the carrier that may bring messages of *sender*."""
        self._settle()
        found = self.database.connection.execute("SELECT claim FROM senders WHERE qmgr = ?", (sender,)).fetchone()
        return found is not None and found[0] == claim

    @translate_sqlite_errors
    def has_sent(self, qmgr: str) -> bool:
        """Whether a carrier has ever begun to bring messages of *qmgr*."""
        self._settle()
        return self.database.connection.execute("SELECT 1 FROM senders WHERE qmgr = ?", (qmgr,)).fetchone() is not None

    @translate_sqlite_errors
    def arrived(self, sender: str) -> set[Arrived]:
        """The messages of *sender* that have arrived and may still be on its transmission queue."""
        self._settle()
        return set(self.database.connection.execute("SELECT seq, time FROM arrived WHERE sender = ?", (sender,)))

    @translate_sqlite_errors
    def arrive(self, sender: str, messages: Iterable[Arrived], gone: Iterable[Arrived]) -> None:
        """Record *messages* as arrived; forget *gone*, which have left the transmission queue."""
        self._settle()
        self.database.connection.executemany(_GONE, [(sender, *each) for each in gone])
        self.database.connection.executemany(_ARRIVED, [(sender, *each) for each in messages])

    @translate_sqlite_errors
    def sequence(self, qmgr: str) -> SequenceNumbers:
        """The sequence numbers for *qmgr*; zero where nothing was carried yet."""
        self._settle()
        return sequence_in(self.database, qmgr)

    @translate_sqlite_errors
    def number_sent(self, receiver: str, number: int) -> None:
        """Note the sequence number of the last batch that was carried to *receiver*."""
        self._settle()
        self.database.connection.execute(_NUMBER_SENT, (receiver, number))

    @translate_sqlite_errors
    def number_received(self, sender: str, number: int) -> None:
        """Note the sequence number of the last batch that came from *sender*."""
        self._settle()
        self.database.connection.execute(_NUMBER_RECEIVED, (sender, number))
