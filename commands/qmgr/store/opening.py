"""How a database becomes that of a queue manager: made, opened, brought up to date, and given to a command processor.

Each command processor begins an epoch: a number in the database that only grows. The connections of a processor have
the epoch that it began (``Database.epoch``), and none of their write transactions begins after another processor has
begun the next one. So a processor that was held up, and whose place another one took, changes nothing when it goes on.
Other programs have no epoch, and write whoever the processor is.

A queue manager from one home in another: from a directory to PostgreSQL, or back, or on to another of its kind.

The copy is made in one transaction: it is there whole or not at all. Meanwhile nobody works on the original, which
stays as it is. Numbers go with it, so that a message or a dynamic queue never gets one that was given before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from commands.broker.objects import QueueManager, is_object_name
from commands.config.home import Home, PostgresqlHome
from commands.disk.errors import (
    QueueManagerExistsError,
    QueueManagerNotFoundError,
    StoreDamagedError,
    SupersededError,
    readable,
)
from commands.disk.files import directory_to_disk, make_directory, touch
from commands.disk.lock import PROCESSOR_LOCK, HolderLock, exclusive, is_held, require_locks
from commands.qmgr.store.database import FAILURES, Connection, Database, Durability
from commands.qmgr.store.definitions import queue_manager
from commands.qmgr.store.port import COLUMNS
from commands.qmgr.store.schema import NUMBERED
from commands.qmgr.store.sqlite_database import SqliteDatabase
from rfh2.errors import StoreError, system_words

if TYPE_CHECKING:
    from commands.qmgr.store.postgresql_database import PostgresqlDatabase

DATABASE: Final = "qmgr.sqlite3"

# MQ's own rule for directory names; neither & nor ! can be part of a queue manager's name, so it can be undone.
_TO_DIRECTORY = str.maketrans("./", "!&")
_FROM_DIRECTORY = str.maketrans("!&", "./")


_BEGIN_EPOCH: Final = "UPDATE state SET epoch = epoch + 1"
# The first schema that counts epochs.
_COUNTS_EPOCHS: Final = 5


def directory_of(home: Home, name: str) -> Path:
    """The directory of queue manager *name*: its name, with ``!`` for a period and ``&`` for a slash.

    Of one in PostgreSQL, where this machine keeps what is its own. Raises StoreError for what cannot be the name of a
    queue manager.
    """
    if not is_object_name(name):
        raise StoreError(f"{name!r} cannot name a queue manager: 1 to 48 of A-Z a-z 0-9 . _ / %")
    above = home.directory if isinstance(home, PostgresqlHome) else home
    return above / name.translate(_TO_DIRECTORY)


def queue_managers(home: Home) -> tuple[str, ...]:
    """The names of the queue managers in *home*, in order; none where there is no such directory.

    What cannot be looked into is passed over: it may be another user's. Raises OSError where *home* cannot be read,
    StoreError where its server cannot be reached.
    """
    if isinstance(home, PostgresqlHome):
        names: tuple[str, ...] = _postgresql().names(home)
        return names
    if not home.is_dir():
        return ()
    found = (entry.name for entry in home.iterdir() if _is_file(entry / DATABASE))
    return tuple(sorted(name.translate(_FROM_DIRECTORY) for name in found))


def is_there(home: Home, name: str) -> bool:
    """Whether *home* has queue manager *name*, as far as that can be seen. Raises StoreError."""
    if isinstance(home, PostgresqlHome):
        return name in queue_managers(home)
    return _is_file(directory_of(home, name) / DATABASE)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def require_there(home: Home, name: str) -> None:
    """Raises QueueManagerNotFoundError; StoreError for what is no such name."""
    path = directory_of(home, name) / DATABASE
    if not (is_there(home, name) if isinstance(home, PostgresqlHome) else path.is_file()):
        raise QueueManagerNotFoundError(name, str(home), queue_managers(home))


def connect(home: Home, name: str, durability: Durability, patience_s: float, *, create: bool = False) -> Database:
    """A connection to the database of queue manager *name*; with *create* to one that may have to be made.

    Raises QueueManagerNotFoundError, SystemUnsuitableError, StoreError.
    """
    require_locks(f"queue manager {name}")
    directory = directory_of(home, name)
    if isinstance(home, PostgresqlHome):
        found: Database = _postgresql().PostgresqlDatabase(home, name, directory, durability, patience_s, create=create)
        return found
    path = directory / DATABASE
    if create:
        try:
            make_directory(directory)
            touch(path)
            directory_to_disk(directory)
        except OSError as error:
            raise StoreError(f"{directory}: cannot be made: {system_words(error)}") from error
    else:
        require_there(home, name)
    return SqliteDatabase(path, durability, patience_s, create=create)


def connect_postgresql(home: PostgresqlHome, name: str, patience_s: float) -> PostgresqlDatabase:
    """The same for a home in PostgreSQL."""
    found: PostgresqlDatabase = _postgresql().PostgresqlDatabase(
        home, name, directory_of(home, name), Durability.FULL, patience_s
    )
    return found


def _postgresql() -> ModuleType:
    # Loaded where it is used: the driver is an extra.
    return import_module("commands.qmgr.store.postgresql_database")


def make(database: Database, qmgr: str, home: Home, fill: Callable[[Connection], None]) -> None:
    """Make the tables, and *fill* them, in one transaction. Raises QueueManagerExistsError, StoreError."""
    with making(database, qmgr, home):
        fill(database.connection)


@contextmanager
def making(database: Database, qmgr: str, home: Home) -> Iterator[None]:
    """A block that fills the new tables, in one transaction with making them. Raises what ``make`` does."""
    _require_new(database, qmgr, home)
    with _writing(database):
        # Asked again inside the transaction: another process may be making the same one.
        _require_new(database, qmgr, home)
        database.migrate(0)
        yield


def opened(database: Database, name: str) -> QueueManager:
    """The queue manager in *database*; older tables are brought up to date.

    Raises StoreDamagedError, StoreError; for older tables QueueManagerInUseError while a command processor works on
    it, which knows the older ones.
    """
    try:
        if _finished(database) < database.newest:
            with database.processor(name), _writing(database), readable(database.path, "tables of an earlier version"):
                database.migrate(database.look_at_version())
        return queue_manager(database.connection, database.path)
    except FAILURES as error:
        raise database.translated(error) from error


def begin_epoch(database: Database, seen: int | None = None) -> int:
    """Begin an epoch, whatever the last one is; the new one. Older tables are brought up to date with it.

    seen: the epoch that is to end. The caller holds the lock of the processor, or has seen that the processor of epoch
    *seen* does not renew its lease. Raises SupersededError where the last epoch is another one than *seen*, StoreError.
    """
    try:
        _finished(database)
        with _writing(database), readable(database.path, "tables of an earlier version"):
            version = database.look_at_version()
            last = database.read_epoch() if version >= _COUNTS_EPOCHS else 0
            if seen is not None and last != seen:
                raise SupersededError(database.path, seen, last)
            if version < database.newest:
                database.migrate(version)
            database.connection.execute(_BEGIN_EPOCH)
        return last + 1
    except FAILURES as error:
        raise database.translated(error) from error


def take_over(home: Home, name: str, durability: Durability, patience_s: float, seen: int | None = None) -> int:
    """``begin_epoch`` for queue manager *name*, with a connection of its own. Raises StoreError."""
    database = connect(home, name, durability, patience_s)
    try:
        return begin_epoch(database, seen)
    finally:
        database.close()


def processor_of(home: Home, name: str) -> str | None:
    """The command processor of queue manager *name*: its process, in PostgreSQL with its machine: ``PID on HOST``.

    None for none; "" for one that has not said who it is. Raises QueueManagerNotFoundError, StoreError.
    """
    directory = directory_of(home, name)
    if isinstance(home, PostgresqlHome):
        return _postgresql().processor_of(home, name, directory) or None
    require_there(home, name)
    return HolderLock(directory / PROCESSOR_LOCK).holder() if is_held(directory) else None


def delete(home: Home, name: str, require: Callable[[], None]) -> None:
    """Delete queue manager *name* with all that it holds, after *require*, which raises where it must stay.

    Raises QueueManagerNotFoundError, QueueManagerInUseError while a command processor works on it, StoreError.
    """
    directory = directory_of(home, name)
    if isinstance(home, PostgresqlHome):
        _postgresql().delete(home, name, directory, require)
        shutil.rmtree(directory, ignore_errors=True)
        return
    require_there(home, name)
    with exclusive(directory / PROCESSOR_LOCK, name):
        require()
        # In one step, so that what is interrupted leaves no half of a queue manager under its name.
        gone = directory.rename(directory.with_name(f".{directory.name}.deleted"))
        directory_to_disk(home)
    shutil.rmtree(gone)


def require_readable(home: Home, name: str) -> None:
    """Refuse what no processor of this version could open, without changing it.

    Raises QueueManagerNotFoundError; StoreDamagedError for another program's database, and for newer tables.
    """
    database = connect(home, name, Durability.FULL, 1.0)
    try:
        database.look_at_version()
    except FAILURES as error:
        raise database.translated(error) from error
    finally:
        database.close()


def _finished(database: Database) -> int:
    """The version of the tables of a database that is ready to be used."""
    version = database.version()
    if version == 0:
        raise StoreDamagedError(
            database.path, "was never finished; run qpubsub create again. If it was in use, restore a backup"
        )
    return version


@contextmanager
def _writing(database: Database) -> Iterator[None]:
    try:
        database.begin_making()
        try:
            yield
            database.commit()
        finally:
            database.rollback()
    except FAILURES as error:
        raise database.translated(error) from error


def _require_new(database: Database, name: str, home: Home) -> None:
    try:
        if database.look_at_version() > 0:
            raise QueueManagerExistsError(name, str(home))
    except FAILURES as error:
        raise database.translated(error) from error


_PATIENCE_S: Final = 30.0
_PAGE: Final = 64
# The columns of each table; the first one of those in _PAGED is a number, by which many rows are read in turn.
_TABLES: Final = {
    "messages": COLUMNS,
    "definitions": ("kind", "name", "state"),
    "subscriptions": ("sub_id", "state"),
    "publications": ("number", "published_at", "expires_at", "local", "persistent", "md", "body"),
    "retained": ("topic", "publication"),
    "connections": ("number",),
    "dynamic_queues": ("number", "name", "connection"),
    "temporary_subscriptions": ("sub_id", "queue"),
    "ended_subscriptions": ("sub_id",),
    "subscription_counts": ("sub_id", "delivered", "last", "filtered", "dead_letters"),
    "topic_counts": ("topic", "publications", "last"),
    "queue_counts": ("queue", "puts", "last_put", "gets", "last_get"),
    "owed_elsewhere": ("queue", "count", "since"),
    "neighbours": ("qmgr", "cluster", "relation", "status", "refresh"),
    "sent_proxies": ("neighbour", "cluster", "topic"),
    "repository": ("qmgr", "entry"),
    "senders": ("qmgr", "claim"),
    "arrived": ("sender", "seq", "time"),
    "sequences": ("qmgr", "sent", "received"),
    "prepared": ("number", "xid"),
}
_PAGED: Final = ("messages", "publications")


def copy(source: Home, target: Home, name: str) -> bool:
    """Copy queue manager *name* of home *source* to *target*; whether it was not there before, as it is now.

    Raises QueueManagerExistsError where *target* has another one of that name; QueueManagerInUseError while one of them
    is worked on; QueueManagerNotFoundError, StoreError.
    """
    original = connect(source, name, Durability.FULL, _PATIENCE_S)
    try:
        opened(original, name)
        with original.processor(name):
            return copy_of(original, target, name)
    finally:
        original.close()


def copy_of(original: Database, target: Home, name: str) -> bool:
    """The same of one that is open, and of which the caller is the processor. Raises what ``copy`` does."""
    try:
        original.begin()
        try:
            return _copied(original, target, name)
        finally:
            original.rollback()
    except FAILURES as error:
        raise original.translated(error) from error


def _copied(original: Database, target: Home, name: str) -> bool:
    made = connect(target, name, Durability.FULL, _PATIENCE_S, create=True)
    try:
        if made.look_at_version() > 0:
            if _state(made) == _state(original):
                return False
            raise QueueManagerExistsError(name, str(target))
        with making(made, name, target):
            for table, columns in _TABLES.items():
                places, names = ", ".join("?" * len(columns)), _names(columns)
                for page in _pages(original, table, columns):
                    made.connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", page)
            for table in NUMBERED:
                made.begin_numbers(table, original.highest(table))
            versions = (*original.versions(), original.read_epoch())
            made.connection.execute("UPDATE state SET version = ?, definitions = ?, epoch = ?", versions)
        return True
    except FAILURES as error:
        raise made.translated(error) from error
    finally:
        made.close()


def _pages(database: Database, table: str, columns: tuple[str, ...]) -> Iterator[list[tuple[Any, ...]]]:
    names, execute = _names(columns), database.connection.execute
    if table not in _PAGED:
        rows = execute(f"SELECT {names} FROM {table}").fetchall()
        if rows:
            yield rows
        return
    statement = f"SELECT {names} FROM {table} WHERE {columns[0]} > ? ORDER BY {columns[0]} LIMIT ?"
    after = 0
    while rows := execute(statement, (after, _PAGE)).fetchall():
        yield rows
        after = rows[-1][0]


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _state(database: Database) -> tuple[int, ...]:
    """What changes with each unit of work of which anything is left."""
    return (*database.versions(), database.read_epoch(), *(database.highest(table) for table in NUMBERED))
