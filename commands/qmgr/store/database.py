"""The connection to a queue manager's database: how it is opened, and how SQLite's failures become StoreErrors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from commands.disk.errors import (
    DAMAGED,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    SupersededError,
    readable,
)
from commands.disk.files import directory_to_disk
from commands.disk.lock import NAP_S, WriteTurn
from rfh2.errors import StoreError

_TURN_FILE: Final = "turn.lock"
_CACHE_KIB: Final = 16_384
_CHECKPOINT_PAGES: Final = 4_000
_LOG_BYTES: Final = 64 * 1024 * 1024
_LOG_MISSING: Final = (
    "its write-ahead log ({0}-wal) was removed, and with it messages and definitions that were committed; put it back, "
    "or a backup. To go on without them, end all programs that use the queue manager, and delete {0}-shm"
)
# Another program may be opening or closing the database between two looks.
_LOOKS: Final = 3

# Messages of SQLite about values that it cannot read may contain bytes that are not text.
FAILURES: Final = (sqlite3.Error, UnicodeDecodeError)

P = ParamSpec("P")
R = TypeVar("R")


class Durability(StrEnum):
    """What a commit outlasts. FULL: loss of power. NORMAL: the end of any process; power loss may undo the last."""

    FULL = "FULL"
    NORMAL = "NORMAL"


class Database:
    """One connection, with the path and the patience that its errors name.

    failure: the last one since a write transaction began; where SQLite has ended that by itself, the reason. epoch: of
    the command processor whose connection it is; None for all other programs.
    """

    __slots__ = (
        "_durability",
        "_file",
        "_log",
        "_synchronous",
        "_turn",
        "connection",
        "epoch",
        "failure",
        "path",
        "patience_s",
    )

    def __init__(self, path: Path, durability: Durability, patience_s: float, *, create: bool = False) -> None:
        self.path, self.patience_s = str(path), patience_s
        self._durability = self._synchronous = durability
        self.failure: StoreError | None = None
        self.epoch: int | None = None
        self._log: int | None = None
        self._turn = WriteTurn(path.with_name(_TURN_FILE))
        if not create and _is_log_missing(path):
            raise StoreDamagedError(self.path, _LOG_MISSING.format(path.name))
        uri = _uri(path, "rwc" if create else "rw")
        try:
            # Of one thread at a time, which need not be the same one: the listener commits on another.
            self.connection = sqlite3.connect(
                uri, uri=True, timeout=patience_s, isolation_level=None, check_same_thread=False
            )
        except FAILURES as error:
            raise self.translated(error) from error
        self._file = self._file_now()
        try:
            for pragma in (
                f"synchronous = {durability}",
                f"cache_size = -{_CACHE_KIB}",
                f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
                f"journal_size_limit = {_LOG_BYTES}",
                "secure_delete = OFF",
            ):
                self.connection.execute(f"PRAGMA {pragma}").fetchall()
        except FAILURES as error:
            self.connection.close()
            raise self.translated(error) from error

    def begin(self, lasting: bool = True, waits: bool = True) -> None:
        """Begin a write transaction, in turn with other processes. Raises StoreBusyError after ``patience_s``.

        waits: false for StoreBusyError at once.

        Raises SupersededError where another command processor has begun since this one. Nobody can begin one before the
        transaction ends, so what holds here holds at the commit. lasting: whether its commit survives what
        ``durability`` says. Without that a power failure may undo it, until a later commit lasts; a crash of this
        program does not.
        """
        self._synchronise(self._durability if lasting else Durability.NORMAL)
        deadline = time.monotonic() + self.patience_s if waits else 0.0
        self.failure = None
        try:
            if not self._turn.take(deadline):
                raise StoreBusyError(self.path, self.patience_s)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be locked: {error.strerror}") from error
        try:
            self._begin(deadline)
        finally:
            self._turn.give()
        if self.epoch is not None:
            self._require_epoch(self.epoch)

    def _require_epoch(self, epoch: int) -> None:
        found = self.read_epoch()
        if found != epoch:
            self.connection.execute("ROLLBACK")
            raise SupersededError(self.path, epoch, found)

    @property
    def is_replaced(self) -> bool:
        """Whether another file, or none, has the path of the database that is open."""
        return self._file_now() != self._file

    def _file_now(self) -> tuple[int, int] | None:
        try:
            found = Path(self.path).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def read_epoch(self) -> int:
        """The epoch of the last command processor that began."""
        row = self.connection.execute("SELECT epoch FROM state").fetchone()
        with readable(self.path, "epoch of the processor"):
            return int(row[0])

    def _synchronise(self, durability: Durability) -> None:
        if durability is not self._synchronous:
            self.connection.execute(f"PRAGMA synchronous = {durability}").fetchall()
            self._synchronous = durability

    def _begin(self, deadline: float) -> None:
        # SQLite's own wait tries again after ever longer pauses, in which the database would be idle.
        execute = self.connection.execute
        execute("PRAGMA busy_timeout = 0").fetchall()
        try:
            while True:
                try:
                    execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                        raise
                    time.sleep(NAP_S)
                else:
                    return
        finally:
            execute(f"PRAGMA busy_timeout = {int(self.patience_s * 1000)}").fetchall()

    def sync(self) -> None:
        """Wait until what was committed without *lasting* survives what ``durability`` says. Raises StoreError.

        Any thread may, beside another one that works with the connection: SQLite appends commits to its log, and all
        that stands in the log before a moment is on the disk behind it.
        """
        if self._durability is not Durability.FULL:
            return
        try:
            if self._log is None:
                log = Path(f"{self.path}-wal")
                self._log = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
                directory_to_disk(log.parent)
            os.fdatasync(self._log)
        except OSError as error:
            raise StoreError(f"{self.path}: the disk failed ({error.strerror})") from error

    def defer_checkpoints(self) -> None:
        """Leave the log to ``checkpoint``: no commit writes it into the database."""
        self.connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()

    def checkpoint(self, beside: bool = False) -> None:
        """Write the log into the database. Raises StoreError.

        beside: on a connection of its own, so that any thread may while this one writes. What comes meanwhile is left;
        the log begins anew, and does not grow for ever, when nothing is.
        """
        connection = self.connection
        try:
            if beside:
                connection = sqlite3.connect(_uri(self.path), uri=True, timeout=self.patience_s)
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except FAILURES as error:
            raise self._in_words(error) from error
        finally:
            if connection is not self.connection:
                connection.close()

    def is_awaited(self) -> bool:
        """Whether another process waits for the write transaction that is open here."""
        try:
            return self._turn.is_taken()
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be locked: {error.strerror}") from error

    def close(self) -> None:
        """Give back the connection."""
        self._turn.close()
        if self._log is not None:
            os.close(self._log)
            self._log = None
        self.connection.close()

    def translated(self, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
        """*error* in words that say what to do."""
        self.failure = self._in_words(error)
        return self.failure

    def _in_words(self, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, UnicodeDecodeError) or (code is None and "decode" in str(error)):
            return StoreDamagedError(self.path, f"holds what is not text: {DAMAGED}")
        primary = None if code is None else code & 0xFF
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreBusyError(self.path, self.patience_s)
        if primary == sqlite3.SQLITE_FULL:
            return StoreFullError(self.path)
        if primary == sqlite3.SQLITE_NOTADB:
            why = "is not an SQLite database; it was left as it is; restore it from a backup"
            return StoreDamagedError(self.path, why)
        if primary == sqlite3.SQLITE_CORRUPT:
            return StoreDamagedError(self.path, DAMAGED)
        if primary == sqlite3.SQLITE_ERROR:
            # Our own statements are correct, so the schema is not that of this version.
            return StoreDamagedError(self.path, f"{error}: {DAMAGED}")
        if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return StoreError(
                f"{self.path}: cannot be opened for writing ({error}); look at its and its directory's permissions"
            )
        if primary == sqlite3.SQLITE_IOERR:
            return StoreError(f"{self.path}: the disk failed ({error}); nothing of this unit of work was kept")
        if primary == sqlite3.SQLITE_TOOBIG:
            return StoreError(f"{self.path}: a message is longer than the database can hold ({error})")
        return StoreError(f"{self.path}: {error}")


class HasDatabase(Protocol):
    @property
    def database(self) -> Database: ...


S = TypeVar("S", bound=HasDatabase)


def translate_sqlite_errors(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method of something with a ``database``, whose sqlite3 errors leave it as StoreErrors."""

    @wraps(method)
    def translated(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except FAILURES as error:
            raise self.database.translated(error) from error

    return translated


def _uri(path: str | Path, mode: str = "rw") -> str:
    return f"{Path(path).absolute().as_uri()}?mode={mode}"


def _is_log_missing(path: Path) -> bool:
    """Whether the write-ahead log of *path* was removed, and not by SQLite.

    SQLite makes -wal before -shm, and when the last program closes it deletes -shm before -wal. So -shm without -wal
    is what a killed program leaves where somebody has removed the log. If both were removed, nothing tells.
    """
    log, index = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")
    for look in range(_LOOKS):
        if log.exists() or not index.exists():
            return False
        if look < _LOOKS - 1:
            time.sleep(NAP_S)
    return True


# The shortest time that the kernel waits for events.
_SHORTEST_S: Final = 0.001


class LogWatch:
    """When another process may be about to commit: watches the write-ahead log of the database at *path*.

    The kernel tells of a write to the log, but nothing of the commit itself: that becomes visible in shared memory, a
    moment after the last write. So what is heard here means that it is time to look often.

    Nothing is heard where the system has no inotify, where the user's watches are used up, on a file system of the
    network of what other machines write, and before there is a log.
    """

    def __init__(self, path: Path) -> None:
        self._log = Path(f"{path}-wal")
        self._events: Any = None

    def heard(self, timeout_s: float) -> bool:
        """Wait until somebody writes to the log, at most so long; whether somebody has since the last call."""
        events = self._events or self._begun()
        if events is None or timeout_s < _SHORTEST_S:
            time.sleep(timeout_s)
            return False
        return any(events.read(timeout=int(timeout_s * 1000)))

    def _begun(self) -> Any:
        if not self._log.exists():
            return None
        # Linux alone has it; and those who do not wait need not load it.
        with suppress(ImportError, OSError):
            from inotify_simple import INotify, flags  # noqa: PLC0415

            events = INotify(nonblocking=True)
            try:
                events.add_watch(self._log, flags.MODIFY)
            except OSError:
                events.close()
                raise
            self._events = events
        return self._events

    def close(self) -> None:
        """Watch no longer."""
        if self._events is not None:
            self._events.close()
            self._events = None
