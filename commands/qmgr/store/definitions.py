"""Looking up single definitions in a queue manager's database, and keeping those that every message needs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from commands.broker.objects import PREDEFINED, AliasQueue, LocalQueue, QueueManager, definition_of
from commands.disk.errors import StoreDamagedError, readable
from commands.qmgr.store.database import Database
from streams.topic_objects import Namelist

Queue = LocalQueue | AliasQueue


class DefinitionCache:
    """The definitions that units of work of one connection have met, good for one definitions version.

    changes: grows whenever *queues* changes.
    """

    __slots__ = ("_dynamic", "changes", "qmgr", "queues", "version")

    def __init__(self) -> None:
        self.qmgr: QueueManager | None = None
        self.queues: dict[str, Queue] = {}
        self._dynamic: set[str] = set()  # those of dynamic queues, which change no version
        self.version = -1
        self.changes = 0

    def at(self, version: int) -> None:
        """From now on the definitions are those of *version*; -1 for none at all."""
        if version != self.version:
            self.forget()
            self.version = version
        self.changes += 1
        for name in self._dynamic:
            self.queues.pop(name, None)
        self._dynamic.clear()

    def keep(self, queue: Queue) -> None:
        """*queue* was read or defined."""
        self.queues[queue.name] = queue
        self.changes += 1
        if isinstance(queue, LocalQueue) and queue.definition_type != PREDEFINED:
            self._dynamic.add(queue.name)

    def drop(self, name: str) -> None:
        """The queue of that name was deleted."""
        self.queues.pop(name, None)
        self.changes += 1

    def forget(self) -> None:
        """Read each again when it is next asked for."""
        self.changes += 1
        self.qmgr = None
        self.queues.clear()


def look_up(database: Database, name: str) -> Queue | None:
    """The definition of the local or alias queue *name*. Raises StoreDamagedError."""
    statement = "SELECT kind, state FROM definitions WHERE kind IN ('qlocal', 'qalias') AND name = ?"
    row = database.connection.execute(statement, (name,)).fetchone()
    with readable(database.path, f"definition of queue {name}"):
        found = None if row is None else definition_of(*row)
    return found if isinstance(found, LocalQueue | AliasQueue) else None


def look_up_namelist(database: Database, name: str) -> Namelist | None:
    """The namelist of that name; None where there is none. Raises StoreDamagedError."""
    statement = "SELECT kind, state FROM definitions WHERE kind = 'namelist' AND name = ?"
    row = database.connection.execute(statement, (name,)).fetchone()
    with readable(database.path, f"namelist {name}"):
        found = None if row is None else definition_of(*row)
    return found if isinstance(found, Namelist) else None


def resolved(found: Queue | None, look: Callable[[str], Queue | None]) -> LocalQueue | None:
    """The local queue that *found* is or stands for; *look* gives the target of an alias."""
    if isinstance(found, AliasQueue):
        found = look(found.target) if found.target_type == "QUEUE" else None
    return found if isinstance(found, LocalQueue) else None


def queue_manager(connection: sqlite3.Connection, path: str) -> QueueManager:
    """The queue manager's own definition. Raises StoreDamagedError."""
    row = connection.execute("SELECT state FROM definitions WHERE kind = 'qmgr'").fetchone()
    with readable(path, "queue manager's own definition"):
        found = None if row is None else definition_of("qmgr", row[0])
    if not isinstance(found, QueueManager):
        raise StoreDamagedError(path, "does not say which queue manager it is; restore it from a backup")
    return found
