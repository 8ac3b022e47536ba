"""Messages of programs' units of work that are not over, and finding messages by their ids.

A program's unit of work lasts as long as it likes, the database's must be short. So a message that a program gets in
syncpoint leaves its queue for a lane that no program can name: ``got ``, the connection, the conversation, and the
queue; one that it puts waits on a lane that begins with ``put ``. A commit deletes the first and moves the second
to their queues, in one transaction. A backout puts the first back in their old places, with a higher BackoutCount, and
deletes the second; so does the end of a connection whose program died (``QueueManagerStore.end_lost_connections``).

A deferred message is put when its program ends, in whatever way, unless the program takes it back or has it put before.
JMS programs leave the DeregSub of their subscriptions in this way, in case they die.

``Search`` looks for a message of a queue among many, a bounded number at a time and without a write transaction.

Within one priority a new message always has the highest number, so what was looked at is one number for each priority,
and no message is looked at twice. The exceptions are messages that come to the queue with an old number: those of units
of work that end. ``Search.came`` is told of them.

    priority 9   1 4 7 | 12        up to 7 was looked at: 12 is next, before anything of a lower priority
    priority 0   2 3 5 6 8 | 9 10  up to 8
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Final, NamedTuple

from commands.broker.descriptor import HIGHEST_PRIORITY, reports_expiration
from commands.broker.times import to_microseconds
from commands.qmgr.store.database import FAILURES, Database
from commands.qmgr.store.message_table import MessageTable
from commands.qmgr.store.port import (
    ALL_COLUMNS,
    BEFORE_ALL,
    BODY,
    EXPIRES_AT,
    PUT_LANE,
    QUEUE,
    SEQ,
    MessageRow,
    check,
)
from commands.qmgr.store.write_buffer import WriteBuffer

_GOT: Final = "got {} "
_PUT: Final = f"{PUT_LANE} {{}} "
_DEFERRED: Final = "deferred {} "
# Where the ids stand in the descriptor, counted from 1 (wire formats, section 1).
ID_CONDITIONS: Final = {
    "msg_id": "substr(md, 49, 24) = :msg_id",
    "correl_id": "substr(md, 73, 24) = :correl_id",
    "group_id": "substr(md, 325, 24) = :group_id",
    "seq": "seq = :seq",
}
"""By the names of ``Match``."""
_OF_GROUP: Final = (
    "SELECT md FROM messages WHERE queue = :queue AND (expires_at IS NULL OR expires_at > :now)"
    f" AND {ID_CONDITIONS['group_id']}"
)
_FIND: Final = (
    "SELECT {columns} FROM messages WHERE queue = :queue AND (expires_at IS NULL OR expires_at > :now)"
    " AND {place}{conditions} ORDER BY rank, seq LIMIT 1"
)
# Ranges of the index: one condition on rank and seq would be looked for from the beginning of the rank.
_PLACES: Final = ("rank = :rank AND seq > :after", "rank > :rank")
_EXPIRED: Final = "SELECT seq, substr(md, 1, 12) FROM messages WHERE expires_at <= ?"
_MESSAGE: Final = f"SELECT {ALL_COLUMNS} FROM messages WHERE seq = ?"
_MOVE: Final = "UPDATE messages SET queue = ? || queue WHERE seq = ?"
_COUNT: Final = "SELECT count(*) FROM messages WHERE queue >= ? AND queue < ?"
_LANES: Final = "SELECT queue, min(seq) FROM messages WHERE queue >= ? AND queue < ? GROUP BY queue"
_BACK: Final = """UPDATE messages
    SET queue = substr(queue, CAST(? AS INTEGER)), backout_count = backout_count + ? WHERE queue = ?"""
_DEFERRED_OF_ID: Final = "SELECT seq, queue FROM messages WHERE queue >= ? AND queue < ? AND substr(md, 49, 24) = ?"
_BACK_ONE: Final = "UPDATE messages SET queue = ? WHERE seq = ?"
_PASS_ON: Final = "UPDATE messages SET queue = ? || substr(queue, CAST(? AS INTEGER)) WHERE queue >= ? AND queue < ?"
_DELETE: Final = "DELETE FROM messages WHERE queue >= ? AND queue < ?"
Came = dict[str, int]
"""The queues that have more messages, and the lowest number among these."""


class Match(NamedTuple):
    """Which message of a queue: those of these ids; None matches any. seq: the one of this number."""

    msg_id: bytes | None = None
    correl_id: bytes | None = None
    group_id: bytes | None = None
    seq: int | None = None

    @property
    def ids(self) -> dict[str, bytes | int]:
        """What is to match, by its name."""
        return {name: value for name in ID_CONDITIONS if (value := getattr(self, name)) is not None}


ANY: Final = Match()


def descriptors_of_group(database: Database, queue: str, group_id: bytes, now_us: int) -> list[bytes]:
    """The descriptors of the messages of a group that are on a local queue. Raises StoreError."""
    values = {"queue": queue, "group_id": group_id, "now": now_us}
    try:
        return [md for (md,) in database.connection.execute(_OF_GROUP, values).fetchall()]
    except FAILURES as error:
        raise database.translated(error) from error


class Uncommitted:
    """Those of programs, in a unit of work of the database.

    An owner is words, as in ``3 7``; it has also what belongs to those that begin with it and a blank.
    """

    __slots__ = ("_connection", "_database", "_messages", "_pending")

    def __init__(self, pending: WriteBuffer, messages: MessageTable) -> None:
        self._database, self._connection, self._pending = pending.database, pending.database.connection, pending
        self._messages = messages

    def find(
        self, queue: str, now_us: int, match: Match = ANY, after: tuple[int, int] = BEFORE_ALL
    ) -> MessageRow | None:
        """The first message of a local queue that *match* fits, behind the place *after*: its rank and seq.

        Raises StoreDamagedError.
        """
        if match == ANY and after == BEFORE_ALL:
            first = self._messages.first(queue)
            if first is None or first[EXPIRES_AT] is None:
                return first
        if self._pending.has_messages:
            self._pending.flush()
        wanted = match.ids
        conditions = "".join(f" AND {ID_CONDITIONS[name]}" for name in wanted)
        values = {"queue": queue, "now": now_us, "rank": after[0], "after": after[1], **wanted}
        for place in _PLACES if after != BEFORE_ALL else _PLACES[1:]:
            statement = _FIND.format(columns=ALL_COLUMNS, place=place, conditions=conditions)
            row: MessageRow | None = self._connection.execute(statement, values).fetchone()
            if row is not None:
                check(self._database, row)
                return row
        return None

    def counts(self, owner: str) -> tuple[int, int]:
        """How many messages of *owner*'s unit of work were put, and got."""
        self._pending.flush()
        put, got = (self._connection.execute(_COUNT, _range(lane, owner)).fetchone()[0] for lane in (_PUT, _GOT))
        return put, got

    def concerns(self, queue: str) -> bool:
        """Whether a unit of work that is not over has a message of *queue*, got, put or deferred."""
        return self._has(queue, (_GOT, _PUT, _DEFERRED))

    def has_uncommitted(self, queue: str) -> bool:
        """The same of those got and put."""
        return self._has(queue, (_GOT, _PUT))

    def _has(self, queue: str, of: tuple[str, ...]) -> bool:
        self._pending.flush()
        kinds = (lane.removesuffix("{} ") for lane in of)
        found = (self._connection.execute(_LANES, (kind, kind[:-1] + "!")).fetchall() for kind in kinds)
        return any(lane.endswith(f" {queue}") for lanes in found for lane, _ in lanes)

    def message(self, seq: int) -> MessageRow:
        """The message of that number, wherever it is. Raises StoreDamagedError."""
        pending = self._pending.last_put(seq)
        if pending is not None:
            return pending
        self._pending.flush()
        row: MessageRow = self._connection.execute(_MESSAGE, (seq,)).fetchone()
        check(self._database, row)
        return row

    def expired(self, now: datetime) -> list[MessageRow]:
        """The messages that have expired at *now* and ask for a report of that. Raises StoreDamagedError."""
        self._pending.flush()
        found = self._connection.execute(_EXPIRED, (to_microseconds(now),)).fetchall()
        return [self.message(seq) for seq, md in found if reports_expiration(md)]

    def remove(self, queue: str, seq: int) -> None:
        """Take a message off its queue for good."""
        self._pending.take(seq)
        self._messages.removed(queue, seq)

    def got(self, queue: str, seq: int, owner: str) -> None:
        """Take a message off its queue until *owner*'s unit of work ends."""
        self._move(queue, seq, _GOT.format(owner))

    def put(self, queue: str, seq: int, owner: str) -> None:
        """Hide a message that was just put on its queue until *owner*'s unit of work ends."""
        self._move(queue, seq, _PUT.format(owner))

    def defer(self, queue: str, seq: int, owner: str) -> None:
        """Hide a message that was just put on its queue until *owner* ends."""
        self._move(queue, seq, _DEFERRED.format(owner))

    def _move(self, queue: str, seq: int, lane: str) -> None:
        pending = self._pending.last_put(seq)
        if pending is not None:
            self._pending.move_last(lane + pending[QUEUE])
        else:
            self._pending.flush()
            self._connection.execute(_MOVE, (lane, seq))
        self._messages.removed(queue, seq)

    def activate(self, owner: str, msg_id: bytes, put: bool) -> Came:
        """Put a deferred message on its queue, or with *put* false delete it; returns the queue that has it."""
        self._pending.flush()
        values = (*_range(_DEFERRED, owner), msg_id)
        found = self._connection.execute(_DEFERRED_OF_ID, values).fetchone()
        if found is None:
            return {}
        seq, lane = found
        queue = lane.rpartition(" ")[2]
        if put:
            self._connection.execute(_BACK_ONE, (queue, seq))
        else:
            self._connection.execute("DELETE FROM messages WHERE seq = ?", (seq,))
        self._messages.changed(queue)
        return {queue: seq} if put else {}

    def end(self, owner: str) -> Came:
        """The owner ends: undo its unit of work, put what it deferred; returns the queues that have more messages."""
        came = self.backout(owner)
        for queue, seq in self._returned(_DEFERRED, owner, 0).items():
            came[queue] = min(seq, came.get(queue, seq))
        return came

    def pass_on(self, owner: str, heir: str) -> bool:
        """Have the unit of work belong to *heir*; whether there is anything in it."""
        self._pending.flush()
        found = 0
        for lane in (_GOT, _PUT):
            values = (lane.format(heir), len(lane.format(owner)) + 1, *_range(lane, owner))
            found += self._connection.execute(_PASS_ON, values).rowcount
        return found > 0

    def discard(self, owner: str, exists: Callable[[str], bool]) -> None:
        """Delete what is in the unit of work and belongs to queues that there are not."""
        self._pending.flush()
        for lane in (_GOT, _PUT):
            for name, _ in self._connection.execute(_LANES, _range(lane, owner)).fetchall():
                if not exists(name.rpartition(" ")[2]):
                    self._connection.execute("DELETE FROM messages WHERE queue = ?", (name,))

    def commit(self, owner: str) -> Came:
        """End the unit of work; returns the queues that have new messages."""
        self._pending.flush()
        self._connection.execute(_DELETE, _range(_GOT, owner))
        return self._returned(_PUT, owner, 0)

    def backout(self, owner: str) -> Came:
        """Undo the unit of work; returns the queues to which messages came back."""
        self._pending.flush()
        self._connection.execute(_DELETE, _range(_PUT, owner))
        return self._returned(_GOT, owner, 1)

    def _returned(self, lane: str, owner: str, backouts: int) -> Came:
        came: Came = {}
        for name, seq in self._connection.execute(_LANES, _range(lane, owner)).fetchall():
            queue = name.rpartition(" ")[2]
            self._connection.execute(_BACK, (len(name) - len(queue) + 1, backouts, name))
            self._messages.changed(queue)
            came[queue] = min(seq, came.get(queue, seq))
        return came


def _range(lane: str, owner: str) -> tuple[str, str]:
    first = lane.format(owner)
    return first, first[:-1] + "!"


_KEYS: Final = "SELECT seq FROM messages WHERE queue = ? AND rank = ? AND seq > ? ORDER BY seq LIMIT ?"
_ROWS: Final = (
    f"SELECT {ALL_COLUMNS} FROM messages WHERE queue = :queue AND rank = :rank AND seq > :after AND seq <= :last"
    " AND (expires_at IS NULL OR expires_at > :now){conditions} ORDER BY seq"
)
# What takes some milliseconds: ids are compared by SQLite, headers are read here.
_MOST_KEYS: Final = 2_000
_MOST_ROWS: Final = 100
_MOST_BYTES: Final = 1024 * 1024


class Search:
    """For the messages of a local queue that *match* fits, behind the place *after* (rank and seq), in queue order."""

    __slots__ = ("__weakref__", "_looked", "after", "looked_at", "match", "queue")

    def __init__(self, queue: str, match: Match, after: tuple[int, int] = BEFORE_ALL) -> None:
        self.queue, self.match, self.after = queue, match, after
        rank, seq = after
        ranks = range(max(rank, 0), HIGHEST_PRIORITY + 1)
        self._looked = {each: seq if each == rank else -1 for each in ranks}
        self.looked_at = 0
        """Messages whose headers were read."""

    def came(self, seq: int) -> None:
        """A message with this number, which may be an old one, has come to the queue."""
        first, behind = self.after
        for rank, looked in self._looked.items():
            self._looked[rank] = max(min(looked, seq - 1), behind if rank == first else -1)

    def turn(self, database: Database, now_us: int, fits: Callable[[MessageRow], bool]) -> tuple[int | None, bool]:
        """Look at some more: the number of a message that *fits*, and whether that, or that there is none, is known.

        What is found is found again, unless it has gone from the queue. Raises StoreError.
        """
        try:
            return self._turn(database, now_us, fits)
        except FAILURES as error:
            raise database.translated(error) from error

    def _turn(self, database: Database, now_us: int, fits: Callable[[MessageRow], bool]) -> tuple[int | None, bool]:
        execute, keys_left, rows_left, bytes_left = database.connection.execute, _MOST_KEYS, _MOST_ROWS, _MOST_BYTES
        ids = self.match.ids
        statement = _ROWS.format(conditions="".join(f" AND {ID_CONDITIONS[name]}" for name in ids))
        for rank in self._looked:
            while True:
                if keys_left <= 0 or rows_left <= 0 or bytes_left <= 0:
                    return None, False
                after = self._looked[rank]
                # Without ids each row is read here, and not more of them than there is time for.
                most = keys_left if ids else min(keys_left, rows_left)
                keys = execute(_KEYS, (self.queue, rank, after, most)).fetchall()
                if not keys:
                    break
                keys_left -= len(keys)
                last = keys[-1][0]
                values = {"queue": self.queue, "rank": rank, "after": after, "last": last, "now": now_us, **ids}
                with closing(execute(statement, values)) as rows:
                    for row in rows:
                        check(database, row)
                        self.looked_at += 1
                        if fits(row):
                            self._looked[rank] = row[SEQ] - 1
                            return row[SEQ], True
                        rows_left -= 1
                        bytes_left -= len(row[BODY] or b"")
                        if rows_left <= 0 or bytes_left <= 0:
                            last = row[SEQ]
                            break
                self._looked[rank] = last
        return None, True
