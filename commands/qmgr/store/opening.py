"""How a database becomes that of a queue manager: made, opened, brought up to date, and given to a command processor.

Each command processor begins an epoch: a number in the database that only grows. The connections of a processor have
the epoch that it began (``Database.epoch``), and none of their write transactions begins after another processor has
begun the next one. So a processor that was held up, and whose place another one took, changes nothing when it goes on.
Other programs have no epoch, and write whoever the processor is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from commands.broker.objects import QueueManager, is_object_name
from commands.disk.errors import (
    QueueManagerExistsError,
    QueueManagerNotFoundError,
    StoreDamagedError,
    SupersededError,
    readable,
)
from commands.disk.lock import exclusive
from commands.qmgr.store import schema
from commands.qmgr.store.database import FAILURES, Database, Durability
from commands.qmgr.store.definitions import queue_manager
from rfh2.errors import StoreError

DATABASE = "qmgr.sqlite3"

# MQ's own rule for directory names; neither & nor ! can be part of a queue manager's name, so it can be undone.
_TO_DIRECTORY = str.maketrans("./", "!&")
_FROM_DIRECTORY = str.maketrans("!&", "./")


def directory_of(home: Path, name: str) -> Path:
    """The directory of queue manager *name*: its name, with ``!`` for a period and ``&`` for a slash.

    Raises StoreError for what cannot be the name of a queue manager.
    """
    if not is_object_name(name):
        raise StoreError(f"{name!r} cannot name a queue manager: 1 to 48 of A-Z a-z 0-9 . _ / %")
    return home / name.translate(_TO_DIRECTORY)


def queue_managers(home: Path) -> tuple[str, ...]:
    """The names of the queue managers in *home*, in order; none where there is no such directory.

    What cannot be looked into is passed over: it may be another user's. Raises OSError where *home* cannot be read.
    """
    if not home.is_dir():
        return ()
    found = (entry.name for entry in home.iterdir() if is_there(entry / DATABASE))
    return tuple(sorted(name.translate(_FROM_DIRECTORY) for name in found))


def is_there(path: Path) -> bool:
    """Whether there is such a file, and it can be seen."""
    try:
        return path.is_file()
    except OSError:
        return False


PROCESSOR_LOCK: Final = "run.lock"
_BEGIN_EPOCH: Final = "UPDATE state SET epoch = epoch + 1"
# The first schema that counts epochs.
_COUNTS_EPOCHS: Final = 5


def database_path(home: Path, name: str) -> Path:
    """The database of queue manager *name*. Raises QueueManagerNotFoundError; StoreError for what is no such name."""
    path = directory_of(home, name) / DATABASE
    if not path.is_file():
        raise QueueManagerNotFoundError(name, str(home), queue_managers(home))
    return path


def make(database: Database, qmgr: str, home: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make the tables, and *fill* them, in one transaction. Raises QueueManagerExistsError, StoreError."""
    _require_new(database, qmgr, home)
    _write_ahead(database)
    with _writing(database) as connection:
        # Asked again inside the transaction: another process may be making the same one.
        _require_new(database, qmgr, home)
        schema.migrate(connection, 0)
        fill(connection)


def opened(database: Database, name: str) -> QueueManager:
    """The queue manager in *database*; an older schema is brought up to date.

    Raises StoreDamagedError, StoreError; for an older schema QueueManagerInUseError while a command processor works on
    it, which knows the older tables.
    """
    connection, path = database.connection, database.path
    try:
        if _finished(database) < len(schema.MIGRATIONS):
            lock = exclusive(Path(path).with_name(PROCESSOR_LOCK), name)
            with lock, _writing(database), readable(path, "tables of an earlier version"):
                schema.migrate(connection, schema.version_of(connection, path))
        return queue_manager(connection, path)
    except FAILURES as error:
        raise database.translated(error) from error


def begin_epoch(database: Database, seen: int | None = None) -> int:
    """Begin an epoch, whatever the last one is; the new one. An older schema is brought up to date with it.

    seen: the epoch that is to end. The caller holds the lock of the processor, or has seen that the processor of epoch
    *seen* does not renew its lease. Raises SupersededError where the last epoch is another one than *seen*, StoreError.
    """
    connection, path = database.connection, database.path
    try:
        _finished(database)
        with _writing(database), readable(path, "tables of an earlier version"):
            version = schema.version_of(connection, path)
            last = database.read_epoch() if version >= _COUNTS_EPOCHS else 0
            if seen is not None and last != seen:
                raise SupersededError(path, seen, last)
            if version < len(schema.MIGRATIONS):
                schema.migrate(connection, version)
            connection.execute(_BEGIN_EPOCH)
        return last + 1
    except FAILURES as error:
        raise database.translated(error) from error


def take_over(home: Path, name: str, durability: Durability, patience_s: float, seen: int | None = None) -> int:
    """``begin_epoch`` for queue manager *name*, with a connection of its own. Raises StoreError."""
    database = Database(database_path(home, name), durability, patience_s)
    try:
        return begin_epoch(database, seen)
    finally:
        database.close()


def require_readable(home: Path, name: str) -> None:
    """Refuse what no processor of this version could open, without changing it.

    Raises QueueManagerNotFoundError; StoreDamagedError for another program's database, and for a newer schema.
    """
    database = Database(database_path(home, name), Durability.FULL, 1.0)
    try:
        schema.version_of(database.connection, database.path)
    except FAILURES as error:
        raise database.translated(error) from error
    finally:
        database.close()


def _finished(database: Database) -> int:
    """The schema version of a database that is ready to be used."""
    version = schema.version_of(database.connection, database.path)
    if version == 0:
        raise StoreDamagedError(database.path, "was never finished; run qpubsub create again")
    _write_ahead(database)
    return version


@contextmanager
def _writing(database: Database) -> Iterator[sqlite3.Connection]:
    connection = database.connection
    try:
        database.begin()
        try:
            yield connection
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except FAILURES as error:
        raise database.translated(error) from error


def _require_new(database: Database, name: str, home: Path) -> None:
    try:
        if schema.version_of(database.connection, database.path) > 0:
            raise QueueManagerExistsError(name, str(home))
    except FAILURES as error:
        raise database.translated(error) from error


def _write_ahead(database: Database) -> None:
    # Only when the file is known to be ours, because this changes it.
    try:
        database.connection.execute("PRAGMA journal_mode = WAL").fetchall()
    except FAILURES as error:
        raise database.translated(error) from error
