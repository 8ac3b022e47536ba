"""What the tables need of the database that they are in; there are two: SQLite (``sqlite_database``) and PostgreSQL.

SQL stands once, in what both understand. Statements have ``?`` or ``:name`` where values go, as SQLite has them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, runtime_checkable

from rfh2.errors import StoreError

Values = Sequence[Any] | Mapping[str, Any]


class EngineError(Exception):
    """A failure of PostgreSQL. code: its SQLSTATE; "" where there is no connection."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(code, why)
        self.code, self.why = code, why

    def __str__(self) -> str:
        return self.why


# Messages of SQLite about values that it cannot read may contain bytes that are not text.
FAILURES: Final = (sqlite3.Error, EngineError, UnicodeDecodeError)

P = ParamSpec("P")
R = TypeVar("R")


MANY: Final = 50
"""The rows that ``Database.write`` writes with one statement: so many that the statement itself costs little."""


PROCESSOR: Final = 0
"""The number of the command processor's lock; those of connections are above it."""


class Durability(StrEnum):
    """What a commit outlasts. FULL: loss of power. NORMAL: the end of any process; power loss may undo the last."""

    FULL = "FULL"
    NORMAL = "NORMAL"


class Cursor(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def close(self) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to the database; its methods raise ``FAILURES``."""

    @property
    def in_transaction(self) -> bool:
        """Whether one is open, and can go on."""

    def execute(self, statement: str, values: Values = (), /) -> Cursor: ...
    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> Cursor: ...


class CommitLog(Protocol):
    """The log to which this process appends its commits; for any thread, beside who works with the database."""

    def sync(self) -> None:
        """Wait until what was committed, lasting or not, survives what the durability says. Raises StoreError."""

    def checkpoint(self) -> None:
        """Write the log into the database, as far as it was written when this began. Raises StoreError."""


class Database(Protocol):
    """One connection, with the name and the patience that its errors give; for one thread at a time.

    path: what the errors call it. directory: for what of the queue manager is this machine's alone. failure: the last
    one since a write transaction began; where the database has ended that by itself, the reason. epoch: of the command
    processor whose connection it is; None for all other programs. losses: how often the connection was lost and made
    again; what was committed before, and need not last, may be undone then.
    """

    path: str
    directory: Path
    patience_s: float
    epoch: int | None
    failure: StoreError | None
    losses: int

    @property
    def connection(self) -> Connection: ...

    def take_log(self) -> CommitLog | None:
        """Have no commit write the log into the database: whoever asks does. None where a server does all of that."""

    def begin(self, lasting: bool = True, waits: bool = True) -> None:
        """Begin a write transaction, in turn with other processes. Raises StoreBusyError after ``patience_s``.

        waits: false for StoreBusyError at once.

        Raises SupersededError where another command processor has begun since this one. Nobody can begin one before the
        transaction ends, so what holds here holds at the commit. lasting: whether its commit survives what
        ``durability`` says. Without that a power failure may undo it, until a later commit lasts; a crash of this
        program does not.
        """

    def commit(self) -> None:
        """Commit what ``begin`` began. Raises ``FAILURES``."""

    def rollback(self) -> None:
        """Undo what is open, if anything is. Raises ``FAILURES``."""

    def savepoint(self) -> None:
        """Begin a part of the transaction; none is open."""

    def end_savepoint(self, *, done: bool) -> None:
        """End the part; if it is not *done*, undo it."""

    def one_moment(self) -> AbstractContextManager[None]:
        """A block in which all reads show one moment; it blocks nobody. No transaction is open."""

    def read_each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The rows that *statement* gives for each of *values*."""

    def write(self, one: str, rows: Sequence[Sequence[Any]], many: str = "") -> None:
        """Write *rows* with the statement *one*; or as far as possible with *many*, which takes ``MANY`` rows.

        Where that would be to wait, the rows go with the next statement, and so does a failure: for the transaction
        that is open, which then is over.
        """

    def versions(self) -> tuple[int, int]:
        """The version of the state, and that of the definitions in it. Raises StoreDamagedError."""

    def highest(self, table: str) -> int:
        """The highest number that *table* ever had; 0 where it never had any. Raises StoreDamagedError."""

    def reached(self, table: str, number: int) -> None:
        """Note that *table* has had *number*, where the database does not do it by itself."""

    def begin_numbers(self, table: str, number: int) -> None:
        """Have *table*, which was just made, count from *number* on."""

    def beginning(self, seq: int, size_bytes: int) -> bytes | None:
        """The first bytes of the body of a message; None where it has gone."""

    def sizes(self) -> tuple[int, int, int]:
        """Bytes of the database; of these, what new messages fill before it grows; and of its write-ahead log."""

    def sessions(self) -> tuple[dict[str, int], int]:
        """How many connections to the server each process has for this queue manager; and how many the server allows.

        None, and 0, where there is no server.
        """

    def ask(self, question: str) -> str | None:
        """What the instance of ``run`` that works on another machine answers (``running.tenure``).

        None where none works, or it has the ``directory`` of this machine. Raises NotAnsweredError.
        """

    def change(self) -> int:
        """A number that differs once another connection has committed."""

    def heard(self, nap_s: float, left_s: float) -> bool:
        """Wait until somebody seems about to commit, or has; whether somebody does. The caller has looked (``change``).

        nap_s: for so long at most, where nobody tells of commits; left_s: in any case.
        """

    @property
    def is_replaced(self) -> bool:
        """Whether another database, or none, has the place of the one that is open."""

    def is_awaited(self) -> bool:
        """Whether another process waits for the write transaction that is open here. Raises StoreError.

        It may be as of the last message that was read: a server is not asked for this alone.
        """

    def read_epoch(self) -> int:
        """The epoch of the last command processor that began."""

    def processor(self, name: str) -> AbstractContextManager[None]:
        """Be the one command processor of queue manager *name* while inside. Raises QueueManagerInUseError."""

    def lock(self, number: int) -> None:
        """Lock connection *number* until ``unlock``, or until this process ends. Raises StoreError."""

    def unlock(self, number: int) -> None:
        """Release it; it is no error if nobody has it."""

    def has_lock(self, number: int) -> bool:
        """Whether this connection has lock *number*."""

    def is_locked(self, number: int) -> bool:
        """Whether any process has it."""

    def has_processor(self) -> bool:
        """Whether there is one."""

    def instances(self) -> list[tuple[int, str]]:
        """The instances of ``run``: PROCESSOR for the one that works, other numbers for those that wait.

        With each its process; in PostgreSQL with its machine: ``PID on HOST``.
        """

    @property
    def newest(self) -> int:
        """The version of the tables that this program works with."""

    def version(self) -> int:
        """The version of the tables; 0 for none, or for tables that were never finished.

        Raises StoreDamagedError for another program's, and for those of a newer qpubsub.
        """

    def look_at_version(self) -> int:
        """The same, and nothing is changed."""

    def migrate(self, version: int) -> None:
        """Bring the tables from *version* to the newest, in the write transaction that is open."""

    def begin_making(self) -> None:
        """Begin a write transaction like ``begin``, of a database that has no tables yet, or older ones."""

    def translated(self, error: Exception) -> StoreError:
        """*error*, one of ``FAILURES``, in words that say what to do."""

    def json_text(self, column: str, key: str) -> str:
        """SQL for the text that *key* has in a column of JSON."""

    @property
    def topic_index(self) -> str:
        """SQL for what an index of topic strings, which may be long, is made of."""

    def joined(self, column: str) -> str:
        """SQL for all texts of a column, with commas between them."""

    def close(self) -> None:
        """Give back the connection."""


@runtime_checkable
class HasDatabase(Protocol):
    @property
    def database(self) -> Database: ...


S = TypeVar("S", bound=HasDatabase)


def translate_errors(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method of something with a ``database``, whose errors of the database leave it as StoreErrors."""

    @wraps(method)
    def translated(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except FAILURES as error:
            raise self.database.translated(error) from error

    return translated
