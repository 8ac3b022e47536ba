"""Looking for a message of a queue among many, a bounded number at a time and without a write transaction.

Within one priority a new message always has the highest number, so what was looked at is one number for each priority,
and no message is looked at twice. The exceptions are messages that come to the queue with an old number: those of units
of work that end (``commands.qmgr.store.uncommitted``). ``Search.came`` is told of them.

    priority 9   1 4 7 | 12        up to 7 was looked at: 12 is next, before anything of a lower priority
    priority 0   2 3 5 6 8 | 9 10  up to 8
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Final

from commands.broker.descriptor import HIGHEST_PRIORITY
from commands.qmgr.store.database import FAILURES, Database
from commands.qmgr.store.reading import check
from commands.qmgr.store.rows import BODY, COLUMNS, SEQ, MessageRow
from commands.qmgr.store.uncommitted import BEFORE_ALL, ID_CONDITIONS, Match

_KEYS: Final = "SELECT seq FROM messages WHERE queue = ? AND rank = ? AND seq > ? ORDER BY seq LIMIT ?"
_ROWS: Final = (
    f"SELECT {', '.join(COLUMNS)} FROM messages WHERE queue = :queue AND rank = :rank AND seq > :after AND seq <= :last"
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
