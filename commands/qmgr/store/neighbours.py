"""What an embedded queue manager records of those that it exchanges messages with, as one unit of work sees it.

neighbours, sent_proxies   for the network: who is connected, and which proxy subscriptions they were sent
repository                 for clusters: what is known of other members
senders, arrived           for channels (``commands.links.channels``): what came from which queue manager
sequences                  also for channels: whether both ends remember the same past

A channel puts the messages of another queue manager here, and removes them there afterwards, in a unit of work of the
other database. A message is recorded as arrived in the unit of work that puts it, and forgotten when it is known that
it was removed. So whoever carries it again, after a crash in between, finds that it has arrived. Only the channel that
claimed the sender last may put messages: one that was held up meanwhile could bring what is forgotten already.

Batches of messages have sequence numbers, as those of an IBM MQ channel. Each end records the last one in the commit in
which it puts or removes the batch. Where the two differ by more than a crash in between can explain, a database is not
the one that it was: a backup was restored, or the queue manager was made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from commands.disk.errors import readable
from commands.network.cluster_topics import RepositoryEntry, entry_of, text_of
from commands.network.topology import Link, NeighbourStatus, Refresh, Relation
from commands.qmgr.store.database import Connection, Database, translate_errors

Arrived = tuple[int, int]
"""A message of another queue manager: its number there, and the microsecond in which it was put there."""

_ALL: Final = "SELECT qmgr, cluster, relation, status, refresh FROM neighbours ORDER BY qmgr, cluster"
_SAVE: Final = """INSERT INTO neighbours (qmgr, cluster, relation, status, refresh) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (qmgr, cluster) DO UPDATE
    SET relation = excluded.relation, status = excluded.status, refresh = excluded.refresh"""
_SENT: Final = "INSERT INTO sent_proxies (neighbour, cluster, topic) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_WITHDRAWN: Final = "DELETE FROM sent_proxies WHERE neighbour = ? AND cluster = ? AND topic = ?"
_LEARN: Final = """INSERT INTO repository (qmgr, entry) VALUES (?, ?)
    ON CONFLICT (qmgr) DO UPDATE SET entry = excluded.entry"""
_CLAIM: Final = """INSERT INTO senders (qmgr, claim) VALUES (?, ?)
    ON CONFLICT (qmgr) DO UPDATE SET claim = excluded.claim"""
_ARRIVED: Final = "INSERT INTO arrived (sender, seq, time) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_SEQUENCE: Final = "SELECT sent, received FROM sequences WHERE qmgr = ?"
_NUMBER_SENT: Final = """INSERT INTO sequences (qmgr, sent) VALUES (?, ?)
    ON CONFLICT (qmgr) DO UPDATE SET sent = excluded.sent"""
_NUMBER_RECEIVED: Final = """INSERT INTO sequences (qmgr, received) VALUES (?, ?)
    ON CONFLICT (qmgr) DO UPDATE SET received = excluded.received"""
_GONE: Final = "DELETE FROM arrived WHERE sender = ? AND seq = ? AND time = ?"


@dataclass(frozen=True, slots=True)
class NeighbourRecord:
    """A queue manager that this one is connected with. refresh: what it is to get again.

    cluster: of a member; "" for parent and child. A queue manager may be several of these, with a record for each.
    """

    qmgr: str
    relation: Relation
    status: NeighbourStatus
    refresh: Refresh = Refresh.NOTHING
    cluster: str = ""

    @property
    def link(self) -> Link:
        """The connection with it."""
        return Link(self.qmgr, self.cluster)


@dataclass(frozen=True, slots=True)
class SequenceNumbers:
    """Of the last batch of messages that was carried to another queue manager, and of the last one from there."""

    sent: int = 0
    received: int = 0


def neighbours_in(database: Database) -> list[NeighbourRecord]:
    """All neighbours, by name and cluster. Raises StoreDamagedError; ``FAILURES``, which the caller translates."""
    rows = database.connection.execute(_ALL).fetchall()
    with readable(database.path, "neighbours"):
        return [
            NeighbourRecord(qmgr, Relation(relation), NeighbourStatus(status), Refresh(refresh), cluster)
            for qmgr, cluster, relation, status, refresh in rows
        ]


def repository_in(connection: Connection, path: str) -> list[RepositoryEntry]:
    """What is known of other queue managers that share a cluster. Raises StoreDamagedError."""
    found = []
    for qmgr, entry in connection.execute("SELECT qmgr, entry FROM repository ORDER BY qmgr").fetchall():
        with readable(path, f"cluster repository's entry of {qmgr}"):
            found.append(entry_of(entry))
    return found


def sequence_in(database: Database, qmgr: str) -> SequenceNumbers:
    """Those for another queue manager; zero where nothing was carried yet. Raises ``FAILURES``."""
    found = database.connection.execute(_SEQUENCE, (qmgr,)).fetchone()
    return SequenceNumbers() if found is None else SequenceNumbers(*found)


class NeighbourRecords:
    """Those of a queue manager, in its units of work. flush: writes what is pending. changed: told that they did."""

    __slots__ = ("_changed", "_flush", "database")

    def __init__(self, database: Database, flush: Callable[[], None], changed: Callable[[], None]) -> None:
        self.database, self._flush, self._changed = database, flush, changed

    @translate_errors
    def all(self) -> list[NeighbourRecord]:
        """All neighbours, by name and cluster. Raises StoreDamagedError."""
        self._flush()
        return neighbours_in(self.database)

    @translate_errors
    def save(self, record: NeighbourRecord) -> None:
        """Record a neighbour, or another state of it."""
        self._flush()
        row = (record.qmgr, record.cluster, record.relation.value, record.status.value, record.refresh.value)
        self.database.connection.execute(_SAVE, row)
        self._changed()

    @translate_errors
    def forget(self, link: Link) -> None:
        """There is no such neighbour any more."""
        self._flush()
        of = (link.neighbour, link.cluster)
        self.database.connection.execute("DELETE FROM neighbours WHERE qmgr = ? AND cluster = ?", of)
        self.database.connection.execute("DELETE FROM sent_proxies WHERE neighbour = ? AND cluster = ?", of)
        self._changed()

    @translate_errors
    def repository(self) -> list[RepositoryEntry]:
        """What is known of other members of clusters, by name. Raises StoreDamagedError."""
        self._flush()
        return repository_in(self.database.connection, self.database.path)

    @translate_errors
    def learn(self, entry: RepositoryEntry) -> None:
        """Know this of a queue manager from now on; nothing any more if it is in no cluster."""
        self._flush()
        if entry.clusters:
            self.database.connection.execute(_LEARN, (entry.qmgr, text_of(entry)))
        else:
            self.database.connection.execute("DELETE FROM repository WHERE qmgr = ?", (entry.qmgr,))
        self._changed()

    @translate_errors
    def ask_refresh(self, refresh: Refresh, qmgr: str | None = None, cluster: str | None = None) -> int:
        """Have neighbours get *refresh* again; returns how many there are.

        All of them, or those with this name, or in this cluster.
        """
        self._flush()
        change = """UPDATE neighbours SET refresh = CASE WHEN refresh < :refresh THEN :refresh ELSE refresh END
            WHERE qmgr = coalesce(:qmgr, qmgr) AND cluster = coalesce(:cluster, cluster)"""
        values = {"refresh": refresh.value, "qmgr": qmgr, "cluster": cluster}
        count = self.database.connection.execute(change, values).rowcount
        if count:
            self._changed()
        return count

    @translate_errors
    def sent_proxies(self, link: Link) -> set[str]:
        """The topic strings of proxy subscriptions that went by *link*, and that were not withdrawn."""
        self._flush()
        query = "SELECT topic FROM sent_proxies WHERE neighbour = ? AND cluster = ?"
        return {topic for (topic,) in self.database.connection.execute(query, (link.neighbour, link.cluster))}

    @translate_errors
    def proxies_sent(self, link: Link, topics: Iterable[str]) -> None:
        """Note that these are sent by *link*."""
        self._flush()
        rows = [(link.neighbour, link.cluster, topic) for topic in topics]
        self.database.connection.executemany(_SENT, rows)

    @translate_errors
    def proxies_withdrawn(self, link: Link, topics: Iterable[str]) -> None:
        """Note that these are withdrawn."""
        self._flush()
        rows = [(link.neighbour, link.cluster, topic) for topic in topics]
        self.database.connection.executemany(_WITHDRAWN, rows)

    @translate_errors
    def claim(self, sender: str, claim: str) -> set[Arrived]:
        """Have only the channel named *claim* bring messages of *sender*; returns those that arrived, not forgotten."""
        self._flush()
        self.database.connection.execute(_CLAIM, (sender, claim))
        return self.arrived(sender)

    @translate_errors
    def is_claimed(self, sender: str, claim: str) -> bool:
        """Whether *claim* is still the channel that may bring messages of *sender*."""
        self._flush()
        found = self.database.connection.execute("SELECT claim FROM senders WHERE qmgr = ?", (sender,)).fetchone()
        return found is not None and found[0] == claim

    @translate_errors
    def has_sent(self, qmgr: str) -> bool:
        """Whether a channel has ever begun to bring messages of *qmgr*."""
        self._flush()
        return self.database.connection.execute("SELECT 1 FROM senders WHERE qmgr = ?", (qmgr,)).fetchone() is not None

    @translate_errors
    def arrived(self, sender: str) -> set[Arrived]:
        """The messages of *sender* that have arrived and may still be on its transmission queue."""
        self._flush()
        return set(self.database.connection.execute("SELECT seq, time FROM arrived WHERE sender = ?", (sender,)))

    @translate_errors
    def arrive(self, sender: str, messages: Iterable[Arrived], gone: Iterable[Arrived]) -> None:
        """Record *messages* as arrived; forget *gone*, which have left the transmission queue."""
        self._flush()
        self.database.connection.executemany(_GONE, [(sender, *each) for each in gone])
        self.database.connection.executemany(_ARRIVED, [(sender, *each) for each in messages])

    @translate_errors
    def sequence(self, qmgr: str) -> SequenceNumbers:
        """The sequence numbers for *qmgr*; zero where nothing was carried yet."""
        self._flush()
        return sequence_in(self.database, qmgr)

    @translate_errors
    def number_sent(self, receiver: str, number: int) -> None:
        """Note the sequence number of the last batch that was carried to *receiver*."""
        self._flush()
        self.database.connection.execute(_NUMBER_SENT, (receiver, number))

    @translate_errors
    def number_received(self, sender: str, number: int) -> None:
        """Note the sequence number of the last batch that came from *sender*."""
        self._flush()
        self.database.connection.execute(_NUMBER_RECEIVED, (sender, number))


@runtime_checkable
class KnowsNeighbours(Protocol):
    """A unit of work of a queue manager that can be in a network. neighbours: what it has recorded of them."""

    @property
    def neighbours(self) -> NeighbourRecords: ...
