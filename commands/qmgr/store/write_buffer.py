"""The pending writes of a unit of work: when they are made, and how a part of it is backed out.

They are written many rows at a time, which takes a third of the time. Whoever reads a table has what is pending for it
written before (``flush``), so a reader sees no difference. A part that is backed out removes what it added without
touching a table.

A part becomes a savepoint only with its first statement, and most parts have none. What was pending before the
part is not the part's: it is written before the savepoint, or pends again when the part is backed out.

A value that the database cannot hold is refused at once, while its cause is known: UnicodeEncodeError for text with
half a character in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, cast

from commands.broker.state import PublicationRow
from commands.qmgr.store.database import FAILURES, MANY, Database, translate_errors
from commands.qmgr.store.port import (
    BODY,
    DELETE_MESSAGE,
    DELETE_MESSAGES,
    INSERT_MESSAGE,
    INSERT_MESSAGES,
    SEQ,
    MessageRow,
)

Values = tuple[str | bytes | int | None, ...]
Mark = tuple[int, int, int, int]
_Writes = tuple[list[MessageRow], list[tuple[int]], list[tuple[int, PublicationRow]], list[tuple[str, Values]]]
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

# The most memory for pending writes; the most messages, so few that a server is at work on some of a batch while the
# next ones are made; and the size from which a message is written at once, to show if there is space.
_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_ROWS: Final = 2_000
_MOST_MESSAGES: Final = 250
_LONG_BYTES: Final = 64 * 1024


class WriteBuffer:
    """What the open unit of work of *database* has still to write, inside its transaction; made once for a database."""

    __slots__ = ("_bytes", "_earlier", "_part", "_published", "_put", "_savepoint", "_statements", "_taken", "database")

    def __init__(self, database: Database) -> None:
        self.database = database
        self._put: list[MessageRow] = []
        self._taken: list[tuple[int]] = []
        self._published: list[tuple[int, PublicationRow]] = []
        self._statements: list[tuple[str, Values]] = []
        self._bytes = 0
        self._part: Mark | None = None  # what was pending when the open part began
        self._savepoint = False  # whether the database knows of that part
        # What was pending before the part and was written behind its savepoint.
        self._earlier: _Writes | None = None

    # What is to be written

    def put(self, rows: Sequence[MessageRow]) -> None:
        """Messages more, with their bodies."""
        is_long = False
        for _, _, _, _, user, _, _, _, body, _ in rows:
            if user is not None and not user.isascii():
                user.encode()
            size_bytes = len(body or b"")
            self._bytes += size_bytes
            if size_bytes > _LONG_BYTES:
                is_long = True
        put = self._put
        put += rows
        if is_long:
            self.flush()
        elif self._bytes > _MOST_BYTES or len(put) > _MOST_MESSAGES:
            self._make_room()

    def take(self, seq: int) -> None:
        """A message less."""
        self._taken.append((seq,))

    def flush_if_many_taken(self) -> None:
        """Write what was taken where it is so much that who reads behind it takes long to pass it (SQLite does)."""
        if len(self._taken) > _MOST_ROWS:
            self._make_room()

    @property
    def has_messages(self) -> bool:
        """Whether the table of messages is not yet what it is to be."""
        return bool(self._put or self._taken)

    def last_put(self, seq: int) -> MessageRow | None:
        """Message number *seq*, if it was put last and is not written yet."""
        return self._put[-1] if self._put and self._put[-1][SEQ] == seq else None

    def move_last(self, queue: str) -> None:
        """Have the message that was put last on *queue*."""
        seq, _, *rest = self._put[-1]
        self._put[-1] = cast(MessageRow, (seq, queue, *rest))

    def publish(self, number: int, row: PublicationRow) -> None:
        """A publication to retain, and its number."""
        self._published.append((number, row))
        self._bytes += len(row.body)

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

    # Writing it

    @translate_errors
    def flush(self) -> None:
        """Write all that is pending: before a table is read, or written by other means. Raises StoreError."""
        self._flush(messages_alone=False)

    @translate_errors
    def flush_messages(self) -> None:
        """Write the messages that are pending, before they are read: what is retained may change often until then.

        Nothing else may be written after it but by ``flush``.
        """
        if self.has_messages:
            self._flush(messages_alone=True)

    def flush_if_much(self) -> None:
        """Write all that is pending where it takes much memory."""
        if self._bytes > _MOST_BYTES or len(self._statements) > _MOST_ROWS:
            self.flush()

    @translate_errors
    def _make_room(self) -> None:
        """Write the messages that are many: of the open part only where no others are, and the taken many at a time."""
        put, taken, *others = self._part or NOTHING
        gone = taken if taken >= _MOST_MESSAGES else 0
        if self._savepoint or not (put or gone):
            self._flush(messages_alone=True)
            return
        self._flush(messages_alone=True, before_part=(put, gone, 0, 0))
        self._part = (0, taken - gone, others[0], others[1])

    def _flush(self, messages_alone: bool, before_part: Mark | None = None) -> None:
        connection, part = self.database.connection, self._part
        if not connection.in_transaction:
            return  # of a unit of work that the database has ended
        write = self._write_messages if messages_alone else self.write
        try:
            if before_part is not None:
                self._write_messages(before_part)
                return
            if part is not None:
                if not self._savepoint:
                    write(part)
                    self.database.savepoint()
                    self._savepoint = True
                elif not messages_alone and part != NOTHING:
                    self._earlier = self._first(part)
                self._part = (0, 0, *part[2:]) if messages_alone else NOTHING
            write()
        except FAILURES:
            # Some of it may be written: what is left of this unit of work is no whole.
            self.database.rollback()
            raise

    def write(self, mark: Mark | None = None) -> None:
        """Make the writes, or those that there were at *mark* alone.

        Raises ``FAILURES``; then the transaction, or the part of it, has to be backed out.
        """
        put, taken, published, statements = self._mark() if mark is None else mark
        self._write_messages((put, taken, published, statements))
        if statements:
            self._write_statements(published, statements)
        if published:
            self._bytes -= _size_bytes((), self._published[:published])
        del self._published[:published], self._statements[:statements]

    def _write_messages(self, mark: Mark | None = None) -> None:
        put, taken, _, _ = self._mark() if mark is None else mark
        # What is put takes the pages that what is taken leaves. No message is both: a get writes what was put before.
        if taken:
            self.database.write(DELETE_MESSAGE, self._taken[:taken], DELETE_MESSAGES)
        if put:
            self.database.write(INSERT_MESSAGE, self._put[:put], INSERT_MESSAGES)
            self.database.reached("messages", self._put[put - 1][SEQ])
            self._bytes -= _size_bytes(self._put[:put], ())
        del self._put[:put], self._taken[:taken]

    def _write_statements(self, published: int, count: int) -> None:
        """Write the first publications and statements. What is retained only until the next one is not written."""
        statements = self._statements[:count]
        last = {values[0]: n for n, (statement, values) in enumerate(statements) if statement is _RETAIN}
        retained = {statements[n][1][1] for n in last.values()}
        if published:
            rows = [(number, *row) for number, row in self._published[:published] if number in retained]
            self.database.write(_PUBLISH, rows, _PUBLISH_MANY)
            self.database.reached("publications", self._published[published - 1][0])
        lasting = (each for n, each in enumerate(statements) if each[0] is not _RETAIN or last[each[1][0]] == n)
        for statement, group in groupby(lasting, key=itemgetter(0)):
            several = [values for _, values in group]
            self.database.write(statement, several, _RETAIN_MANY if statement is _RETAIN else "")

    # Parts

    @property
    def is_in_part(self) -> bool:
        """Whether a part is open."""
        return self._part is not None

    def begin_part(self) -> None:
        """Begin a part; none is open."""
        self._part, self._savepoint = self._mark(), False

    def end_part(self, *, done: bool) -> bool:
        """End the open part; if it is not *done*, back it out. Whether that may have changed anything.

        Raises ``FAILURES``.
        """
        part, self._part = self._part, None
        earlier, self._earlier = self._earlier, None
        changed = True
        if not done:
            assert part is not None
            changed = self._savepoint or part != self._mark()
            self._back_to(part)
            if earlier is not None:
                self._put[:0], self._taken[:0], self._published[:0], self._statements[:0] = earlier
                self._bytes += _size_bytes(earlier[0], earlier[2])
        if self._savepoint:
            self.database.end_savepoint(done=done)
        return changed

    def clear(self) -> None:
        """The unit of work is over: forget all of it, and its open part."""
        self._part = self._earlier = None
        self._back_to(NOTHING)

    def _mark(self) -> Mark:
        return len(self._put), len(self._taken), len(self._published), len(self._statements)

    def _back_to(self, mark: Mark) -> None:
        """Forget what was added since *mark*; nothing was flushed meanwhile."""
        put, taken, published, statements = mark
        self._bytes -= _size_bytes(self._put[put:], self._published[published:])
        del self._put[put:], self._taken[taken:], self._published[published:], self._statements[statements:]

    def _first(self, mark: Mark) -> _Writes:
        put, taken, published, statements = mark
        return self._put[:put], self._taken[:taken], self._published[:published], self._statements[:statements]


def _size_bytes(put: Sequence[MessageRow], published: Sequence[tuple[int, PublicationRow]]) -> int:
    return sum(len(row[BODY] or b"") for row in put) + sum(len(row.body) for _, row in published)


def _check_text(text: str) -> None:
    if not text.isascii():
        text.encode()
