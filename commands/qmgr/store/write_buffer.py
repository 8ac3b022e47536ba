"""The pending writes of a unit of work: when they are made, and how a part of it is backed out.

They are written many rows at a time, which takes a third of the time. The unit of work writes what is pending for a
table (``flush``) before it reads the table, so a reader sees no difference. A part that is backed out removes what it
added (``mark``, ``back_to``) without touching a table.

A part becomes an SQLite savepoint only with its first statement, and most parts have none. What was pending before the
part is not the part's: it is written before the savepoint, or pends again when the part is backed out.

A value that the database cannot hold is refused at once, while its cause is known: UnicodeEncodeError for text with
half a character in it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

from commands.broker.state import PublicationRow
from commands.qmgr.store.messages import (
    BODY,
    DELETE_MESSAGE,
    DELETE_MESSAGES,
    INSERT_MESSAGE,
    INSERT_MESSAGES,
    MANY,
    SEQ,
    USER,
    MessageRow,
)

Values = tuple[str | bytes | int | None, ...]
Mark = tuple[int, int, int, int]
NOTHING: Final[Mark] = (0, 0, 0, 0)


# Not REPLACE: with it, the table's triggers would not delete the earlier publication.
def _retaining(rows: int) -> str:
    values = ", ".join(["(?, ?)"] * rows)
    return f"""INSERT INTO retained (topic, publication) VALUES {values}
        ON CONFLICT (topic) DO UPDATE SET publication = excluded.publication"""


def _publishing(rows: int) -> str:
    values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * rows)
    return f"INSERT INTO publications (number, published_at, expires_at, local, persistent, md, body) VALUES {values}"


_RETAIN, _RETAIN_MANY = _retaining(1), _retaining(MANY)
_PUBLISH, _PUBLISH_MANY = _publishing(1), _publishing(MANY)

# The most memory for pending writes; and the size from which a message is written at once, to show if there is space.
_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_ROWS: Final = 2_000
_LONG_BYTES: Final = 64 * 1024


class WriteBuffer:
    """The writes of one unit of work that are still to be made, for one connection, inside its transaction."""

    __slots__ = ("_bytes", "_connection", "_published", "_put", "_statements", "_taken")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._put: list[MessageRow] = []
        self._taken: list[tuple[int]] = []
        self._published: list[tuple[int, PublicationRow]] = []
        self._statements: list[tuple[str, Values]] = []
        self._bytes = 0

    def put(self, row: MessageRow) -> bool:
        """A message more, with its body; whether to flush now."""
        put, size_bytes, user = self._put, len(row[BODY] or b""), row[USER]
        if user is not None:
            _check_text(user)
        put.append(row)
        self._bytes += size_bytes
        return size_bytes > _LONG_BYTES or self._bytes > _MOST_BYTES or len(put) > _MOST_ROWS

    def take(self, seq: int) -> None:
        """A message less."""
        self._taken.append((seq,))

    @property
    def has_messages(self) -> bool:
        """Whether the table of messages is not what it is to be."""
        return bool(self._put or self._taken)

    def last_put(self, seq: int) -> MessageRow | None:
        """Message number *seq*, if it was put last and is not written yet."""
        return self._put[-1] if self._put and self._put[-1][SEQ] == seq else None

    def move_last(self, queue: str) -> None:
        """Have the message that was put last on *queue*."""
        seq, _, *rest = self._put[-1]
        self._put[-1] = (seq, queue, *rest)

    def publish(self, number: int, row: PublicationRow) -> None:
        """A publication to retain, and its number."""
        self._published.append((number, row))
        self._bytes += len(row.body)

    @property
    def is_much(self) -> bool:
        """Whether to flush now, for the memory that it takes."""
        return self._bytes > _MOST_BYTES or len(self._statements) > _MOST_ROWS

    def retain(self, topic: str, number: int) -> None:
        """*topic* retains publication *number*, and no earlier one; in the order of other statements."""
        _check_text(topic)
        self._statements.append((_RETAIN, (topic, number)))

    def execute(self, statement: str, values: Values) -> None:
        """Any other statement, in the order of these; for tables that hold no messages."""
        for value in values:
            if isinstance(value, str):
                _check_text(value)
        self._statements.append((statement, values))

    def mark(self) -> Mark:
        """How much there is, for ``back_to``."""
        return len(self._put), len(self._taken), len(self._published), len(self._statements)

    def back_to(self, mark: Mark) -> None:
        """Forget what was added since *mark*; nothing was flushed meanwhile."""
        put, taken, published, statements = mark
        if len(self._put) > put or len(self._published) > published:
            self._bytes -= _size_bytes(self._put[put:], self._published[published:])
        del self._put[put:], self._taken[taken:], self._published[published:], self._statements[statements:]

    def flush(self, mark: Mark | None = None) -> None:
        """Make the writes, or those that there were at *mark* alone.

        Raises sqlite3.Error; then the transaction, or the part of it, has to be backed out.
        """
        put, taken, published, statements = self.mark() if mark is None else mark
        self.flush_messages((put, taken, published, statements))
        if statements:
            self._write_statements(published, statements)
        self._bytes -= _size_bytes((), self._published[:published]) if published else 0
        del self._published[:published], self._statements[:statements]

    def flush_messages(self, mark: Mark | None = None) -> None:
        """As ``flush``, but only for the table of messages."""
        put, taken, _, _ = self.mark() if mark is None else mark
        # What is put takes the pages that what is taken leaves. No message is both: a get writes what was put before.
        if taken:
            self._write(DELETE_MESSAGES, DELETE_MESSAGE, self._taken[:taken])
        if put:
            self._write(INSERT_MESSAGES, INSERT_MESSAGE, self._put[:put])
        self._bytes -= _size_bytes(self._put[:put], ()) if put else 0
        del self._put[:put], self._taken[:taken]

    def _write_statements(self, published: int, count: int) -> None:
        """Write the first publications and statements. What is retained only until the next one is not written."""
        statements = self._statements[:count]
        last = {values[0]: n for n, (statement, values) in enumerate(statements) if statement is _RETAIN}
        retained = {statements[n][1][1] for n in last.values()}
        if published:
            rows = [(number, *row) for number, row in self._published[:published] if number in retained]
            self._write(_PUBLISH_MANY, _PUBLISH, rows)
        lasting = (each for n, each in enumerate(statements) if each[0] is not _RETAIN or last[each[1][0]] == n)
        for statement, group in groupby(lasting, key=itemgetter(0)):
            several = [values for _, values in group]
            if statement is _RETAIN:
                self._write(_RETAIN_MANY, _RETAIN, several)
            else:
                self._connection.executemany(statement, several)

    def _write(self, many: str, one: str, rows: Sequence[Sequence[object]]) -> None:
        """Write *rows*: as far as possible with statement *many*, which takes ``MANY`` at a time."""
        whole = len(rows) - len(rows) % MANY
        for start in range(0, whole, MANY):
            self._connection.execute(many, tuple(chain.from_iterable(rows[start : start + MANY])))
        self._connection.executemany(one, rows[whole:])

    def copy(self, mark: Mark) -> WriteBuffer:
        """What there was at *mark*."""
        put, taken, published, statements = mark
        copy = WriteBuffer(self._connection)
        copy._put, copy._taken = self._put[:put], self._taken[:taken]
        copy._published, copy._statements = self._published[:published], self._statements[:statements]
        copy._bytes = _size_bytes(copy._put, copy._published)
        return copy

    def prepend(self, earlier: WriteBuffer) -> None:
        """Have what is pending in *earlier* before all else."""
        self._put[:0], self._taken[:0] = earlier._put, earlier._taken
        self._published[:0], self._statements[:0] = earlier._published, earlier._statements
        self._bytes += earlier._bytes

    def clear(self) -> None:
        """Forget all of it."""
        self.back_to(NOTHING)


def _size_bytes(put: Sequence[MessageRow], published: Sequence[tuple[int, PublicationRow]]) -> int:
    return sum(len(row[BODY] or b"") for row in put) + sum(len(row.body) for _, row in published)


def _check_text(text: str) -> None:
    if not text.isascii():
        text.encode()


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

    def end_part(self, *, done: bool) -> bool:
        """End the open part; if it is not *done*, back it out. Whether it may have changed anything."""
        part, self._part = self._part, None
        assert part is not None
        changed = self._savepoint or part != self._pending.mark()
        earlier, self._earlier = self._earlier, None
        if not done:
            self._pending.back_to(part)
            if earlier is not None:
                self._pending.prepend(earlier)
        if self._savepoint:
            if not done:
                self._connection.execute("ROLLBACK TO part")
            self._connection.execute("RELEASE part")
        return changed

    def forget_part(self) -> None:
        """The unit of work is over, and no part of it is left."""
        self._part = self._earlier = None
