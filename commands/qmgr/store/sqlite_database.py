"""A queue manager's database in a file: how SQLite is opened, and how its failures become StoreErrors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

from commands.disk import errors
from commands.disk.files import directory_to_disk, private
from commands.disk.lock import NAP_S, PROCESSOR_LOCK, HolderLock, WriteTurn, exclusive, is_held
from commands.qmgr.store import schema
from commands.qmgr.store.database import FAILURES, MANY, PROCESSOR, Durability
from rfh2.errors import StoreError, system_words

with suppress(ImportError):  # Windows has none, and no queue manager (``lock.require_locks``).
    import fcntl

_CONNECTION_LOCK: Final = "connection-{}.lock"
_TURN_FILE: Final = "turn.lock"
_CACHE_KIB: Final = 16_384
_CHECKPOINT_PAGES: Final = 4_000
_LOG_BYTES: Final = 64 * 1024 * 1024
_PIECE_BYTES: Final = 1024 * 1024
_LOG_MISSING: Final = (
    "its write-ahead log ({0}-wal) was removed, and with it messages and definitions that were committed; put it back, "
    "or a backup. To go on without them, end all programs that use the queue manager, and delete {0}-shm"
)
# Another program may be opening or closing the database between two looks.
_LOOKS: Final = 3
# SQLite's integers end at 2**63; so many more can be given until then.
_MOST_NUMBERS: Final = 2**62


class SqliteDatabase:
    """The ``Database`` in the file *path*. durability: of its lasting commits. create: make the file."""

    __slots__ = (
        "_durability",
        "_file",
        "_locks",
        "_log",
        "_log_watch",
        "_synchronous",
        "_turn",
        "connection",
        "directory",
        "epoch",
        "failure",
        "path",
        "patience_s",
    )

    losses = 0  # a file is not lost as a connection is

    def __init__(self, path: Path, durability: Durability, patience_s: float, *, create: bool = False) -> None:
        self.path, self.directory, self.patience_s = str(path), path.parent, patience_s
        self._durability = self._synchronous = durability
        self.failure: StoreError | None = None
        self.epoch: int | None = None
        self._log: WriteAheadLog | None = None
        self._turn = WriteTurn(path.with_name(_TURN_FILE))
        if not create and _is_log_missing(path):
            raise errors.StoreDamagedError(self.path, _LOG_MISSING.format(path.name))
        mode = "rwc" if create else "rw" if os.access(path, os.W_OK) else "ro"
        if mode == "ro" and not path.with_name(f"{path.name}-wal").exists():
            mode += "&immutable=1"  # no program has it open, and this user can make no write-ahead log
        uri = _uri(path, mode)
        try:
            # Of one thread at a time, which need not be the same one: the listener commits on another.
            self.connection = sqlite3.connect(
                uri, uri=True, timeout=patience_s, isolation_level=None, check_same_thread=False
            )
        except FAILURES as error:
            raise self.translated(error) from error
        self._file = self._file_now()
        self._log_watch = LogWatch(path)
        self._locks: dict[int, int] = {}  # of connections, by their numbers
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
        self._synchronise(self._durability if lasting else Durability.NORMAL)
        deadline = time.monotonic() + self.patience_s if waits else 0.0
        self.failure = None
        try:
            if not self._turn.take(deadline):
                raise errors.StoreBusyError(self.path, self.patience_s)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be locked: {system_words(error)}") from error
        try:
            self._begin(deadline)
        finally:
            self._turn.give()
        if self.epoch is not None:
            self._require_epoch(self.epoch)

    def take_log(self) -> WriteAheadLog:
        self.connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        self._log = WriteAheadLog(self, is_synced=self._durability is Durability.FULL)
        return self._log

    def _require_epoch(self, epoch: int) -> None:
        found = self.read_epoch()
        if found != epoch:
            self.connection.execute("ROLLBACK")
            raise errors.SupersededError(self.path, epoch, found)

    def begin_making(self) -> None:
        self._write_ahead()
        self.begin()

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def savepoint(self) -> None:
        self.connection.execute("SAVEPOINT part")

    def end_savepoint(self, *, done: bool) -> None:
        if not done:
            self.connection.execute("ROLLBACK TO part")
        self.connection.execute("RELEASE part")

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        try:
            yield
            self.connection.execute("COMMIT")
        finally:
            self.rollback()

    def read_each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [self.connection.execute(statement, each).fetchall() for each in values]

    def write(self, one: str, rows: Sequence[Sequence[Any]], many: str = "") -> None:
        whole = len(rows) - len(rows) % MANY if many else 0
        for start in range(0, whole, MANY):
            self.connection.execute(many, tuple(chain.from_iterable(rows[start : start + MANY])))
        self.connection.executemany(one, rows[whole:] if whole else rows)

    def versions(self) -> tuple[int, int]:
        row = self.connection.execute("SELECT version, definitions FROM state").fetchone()
        if row is None or type(row[0]) is not int or type(row[1]) is not int:
            raise errors.StoreDamagedError.unreadable(self.path, "number of the state")
        return row[0], row[1]

    def highest(self, table: str) -> int:
        row = self.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        number = 0 if row is None else row[0]
        if type(number) is not int or not 0 <= number < _MOST_NUMBERS:
            raise errors.StoreDamagedError.unreadable(self.path, f"highest number of {table}")
        return number

    def reached(self, table: str, number: int) -> None:
        pass  # sqlite_sequence has it

    def begin_numbers(self, table: str, number: int) -> None:
        self.connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        if number > 0:
            self.connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, number))

    def beginning(self, seq: int, size_bytes: int) -> bytes | None:
        # Of a long body no more is read.
        with (
            suppress(sqlite3.OperationalError),
            self.connection.blobopen("messages", "body", seq, readonly=True) as body,
        ):
            return body.read(size_bytes)
        return None

    def sizes(self) -> tuple[int, int, int]:
        log = Path(f"{self.path}-wal")
        size, pages, free = (
            int(self.connection.execute(f"PRAGMA {pragma}").fetchone()[0])
            for pragma in ("page_size", "page_count", "freelist_count")
        )
        return size * pages, size * free, log.stat().st_size if log.exists() else 0

    def change(self) -> int:
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def heard(self, nap_s: float, left_s: float) -> bool:
        return self._log_watch.heard(min(nap_s, left_s))

    def processor(self, name: str) -> AbstractContextManager[None]:
        return exclusive(Path(self.path).with_name(PROCESSOR_LOCK), name)

    def lock(self, number: int) -> None:
        path = self._lock_file(number)
        try:
            self._locks[number] = private(str(path), os.O_RDWR | os.O_CREAT)
            fcntl.flock(self._locks[number], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(f"{path}: cannot be locked: {system_words(error)}") from error

    def unlock(self, number: int) -> None:
        with suppress(OSError):
            self._lock_file(number).unlink()
        if number in self._locks:
            os.close(self._locks.pop(number))

    def has_lock(self, number: int) -> bool:
        return number in self._locks

    def is_locked(self, number: int) -> bool:
        return is_held(self._lock_file(number))

    def _lock_file(self, number: int) -> Path:
        return self.directory / _CONNECTION_LOCK.format(number)

    def ask(self, question: str) -> None: ...

    def sessions(self) -> tuple[dict[str, int], int]:
        return {}, 0

    def has_processor(self) -> bool:
        return is_held(Path(self.path).parent)

    def instances(self) -> list[tuple[int, str]]:
        holder = HolderLock(Path(self.path).with_name(PROCESSOR_LOCK)).holder()
        return [(PROCESSOR, holder)] if self.has_processor() else []

    @property
    def newest(self) -> int:
        return len(schema.MIGRATIONS)

    def version(self) -> int:
        version = schema.version_of(self.connection, self.path)
        if version > 0:
            self._write_ahead()
        return version

    def look_at_version(self) -> int:
        return schema.version_of(self.connection, self.path)

    def migrate(self, version: int) -> None:
        schema.migrate(self.connection, version)

    def _write_ahead(self) -> None:
        # Only when the file is known to be ours, because this changes it.
        self.connection.execute("PRAGMA journal_mode = WAL").fetchall()

    @property
    def is_replaced(self) -> bool:
        return self._file_now() != self._file

    def _file_now(self) -> tuple[int, int] | None:
        try:
            found = Path(self.path).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def read_epoch(self) -> int:
        row = self.connection.execute("SELECT epoch FROM state").fetchone()
        with errors.readable(self.path, "epoch of the processor"):
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

    def is_awaited(self) -> bool:
        try:
            return self._turn.is_taken()
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be locked: {system_words(error)}") from error

    def close(self) -> None:
        self._log_watch.close()
        if self._log is not None:
            self._log.close()
        self._turn.close()
        self.connection.close()

    def json_text(self, column: str, key: str) -> str:
        return f"json_extract({column}, '$.{key}')"

    @property
    def topic_index(self) -> str:
        return "(topic)"

    def joined(self, column: str) -> str:
        return f"group_concat({column}, ', ')"

    def translated(self, error: Exception) -> StoreError:
        self.failure = self._in_words(error)
        return self.failure

    def _in_words(self, error: Exception) -> StoreError:
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, UnicodeDecodeError) or (code is None and "decode" in str(error)):
            return errors.StoreDamagedError(self.path, f"holds what is not text: {errors.DAMAGED}")
        primary = None if code is None else code & 0xFF
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return errors.StoreBusyError(self.path, self.patience_s)
        if primary == sqlite3.SQLITE_FULL:
            return errors.StoreFullError(self.path)
        if primary == sqlite3.SQLITE_NOTADB:
            why = "is not an SQLite database; it was left as it is; restore it from a backup"
            return errors.StoreDamagedError(self.path, why)
        if primary == sqlite3.SQLITE_CORRUPT:
            return errors.StoreDamagedError(self.path, errors.DAMAGED)
        if primary == sqlite3.SQLITE_ERROR:
            # Our own statements are correct, so the schema is not that of this version.
            return errors.StoreDamagedError(self.path, f"{error}: {errors.DAMAGED}")
        if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return StoreError(
                f"{self.path}: cannot be opened for writing ({error}); look at its and its directory's permissions"
            )
        if primary == sqlite3.SQLITE_IOERR:
            return StoreError(f"{self.path}: the disk failed ({error}); nothing of this unit of work was kept")
        if primary == sqlite3.SQLITE_TOOBIG:
            return StoreError(f"{self.path}: a message is longer than the database can hold ({error})")
        return StoreError(f"{self.path}: {error}")


def _uri(path: Path, mode: str) -> str:
    return f"{path.absolute().as_uri()}?mode={mode}"


class WriteAheadLog:
    """The ``CommitLog`` of a database. is_synced: whether what is committed is to outlast a power failure.

    SQLite appends commits to its log, so that all of them are on the disk whose bytes were there when it was synced.
    After one failure nothing is promised any more: the kernel may call written the next time what it could not write.
    """

    def __init__(self, database: SqliteDatabase, is_synced: bool) -> None:
        self._database, self._path, self._is_synced = database, Path(database.path), is_synced
        self._file: int | None = None
        self._failure: StoreError | None = None

    def sync(self) -> None:
        """As in ``CommitLog``."""
        if not self._is_synced:
            return
        if self._failure is not None:
            raise self._failure
        try:
            if self._file is None:
                self._file = os.open(f"{self._path}-wal", os.O_RDONLY | os.O_CLOEXEC)
                directory_to_disk(self._path.parent)
            os.fdatasync(self._file)
        except OSError as error:
            why = f"{self._path}: the disk failed: {system_words(error)}; mend it, and start the queue manager again"
            self._failure = StoreError(why)
            self._write_anew()
            raise self._failure from error

    def _write_anew(self) -> None:
        """Write what is in the log once more: a later sync would pass over what this one could not write.

        SQLite's own sync too, when it writes the log back into the database: after a power cut the database would have
        pages that are newer than the log, which is in part what it was before. A failure here fails that one too.
        """
        uri = _uri(self._path, "rw")
        with suppress(OSError, *FAILURES), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")  # meanwhile nobody else writes to it
            with Path(f"{self._path}-wal").open("r+b", buffering=0) as log:
                while piece := log.read(_PIECE_BYTES):
                    log.seek(-len(piece), os.SEEK_CUR)
                    log.write(piece)
                os.fsync(log.fileno())

    def checkpoint(self) -> None:
        """As in ``CommitLog``. The log begins anew, and does not grow for ever, when nothing of it is left."""
        try:
            with closing(sqlite3.connect(_uri(self._path, "rw"), uri=True)) as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except FAILURES as error:
            raise self._database.translated(error) from error

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _is_log_missing(path: Path) -> bool:
    """Whether the write-ahead log of *path* was removed, and not by SQLite.

    SQLite makes -wal before -shm, and when the last program closes it deletes -shm before -wal. So -shm without -wal
    is what a killed program leaves where somebody has removed the log. If both were removed, nothing tells.
    """
    log, index = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")
    for look in range(_LOOKS):
        # An empty file was never finished: making it ended before there was a log.
        if log.exists() or not index.exists() or not path.stat().st_size:
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
