"""A queue manager from one home in another: from a directory to PostgreSQL, or back, or on to another of its kind.

The copy is made in one transaction: it is there whole or not at all. Meanwhile nobody works on the original, which
stays as it is. Numbers go with it, so that a message or a dynamic queue never gets one that was given before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from commands.config.home import Home
from commands.disk.errors import QueueManagerExistsError
from commands.qmgr.store.database import FAILURES, Database, Durability
from commands.qmgr.store.messages import COLUMNS
from commands.qmgr.store.opening import connect, making, opened
from commands.qmgr.store.postgresql_schema import NUMBERED

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
