"""Single definitions: looked up in the database, kept while they are good, changed by a unit of work."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from commands.broker.objects import (
    PREDEFINED,
    AliasQueue,
    Definition,
    LocalQueue,
    QueueManager,
    definition_of,
    is_object_name,
    kind_of,
    new_queue,
    state_of,
)
from commands.disk.errors import StoreDamagedError, UnknownQueueError, readable
from commands.qmgr.store.database import Connection, Database
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2.errors import QueueError
from rfh2.mqi_constants import (
    MQRC_ALIAS_BASE_Q_TYPE_ERROR,
    MQRC_OBJECT_TYPE_ERROR,
    MQRC_Q_TYPE_ERROR,
    MQRC_UNKNOWN_ALIAS_BASE_Q,
)
from streams.topic_objects import Namelist, TopicObject

Queue = LocalQueue | AliasQueue

_MADE_HERE: Final = re.compile(r".*[0-9A-F]{8}([0-9A-F]{8})", re.DOTALL)


def look_up(database: Database, name: str) -> Queue | None:
    """The definition of the local or alias queue *name*. Raises StoreDamagedError."""
    return look_up_each(database, (name,))[0]


def look_up_each(database: Database, names: Sequence[str]) -> list[Queue | None]:
    """The same of each of *names*."""
    statement = "SELECT kind, state FROM definitions WHERE kind IN ('qlocal', 'qalias') AND name = ?"
    queues: list[Queue | None] = []
    for name, rows in zip(names, database.read_each(statement, [(name,) for name in names]), strict=True):
        with readable(database.path, f"definition of queue {name}"):
            found = definition_of(*rows[0]) if rows else None
        queues.append(found if isinstance(found, LocalQueue | AliasQueue) else None)
    return queues


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


def queue_manager(connection: Connection, path: str) -> QueueManager:
    """The queue manager's own definition. Raises StoreDamagedError."""
    row = connection.execute("SELECT state FROM definitions WHERE kind = 'qmgr'").fetchone()
    with readable(path, "queue manager's own definition"):
        found = None if row is None else definition_of("qmgr", row[0])
    if not isinstance(found, QueueManager):
        raise StoreDamagedError(path, "does not say which queue manager it is; restore it from a backup")
    return found


def was_made(database: Database, name: str) -> bool:
    """Whether *name* was made in this queue manager from a ``*``, however long ago."""
    made = _MADE_HERE.fullmatch(name)
    return made is not None and 0 < int(made[1], 16) <= database.highest("dynamic_queues")


_SAVE: Final = """INSERT INTO definitions (kind, name, state) VALUES (?, ?, ?)
    ON CONFLICT (kind, name) DO UPDATE SET state = excluded.state"""
_MODEL: Final = "SELECT 1 FROM definitions WHERE kind = 'qmodel' AND name = ?"
_TOPIC: Final = "SELECT state FROM definitions WHERE kind = 'topic' AND name = ?"
_FORGET: Final = "DELETE FROM definitions WHERE kind = ? AND name = ?"


class QueueDefinitions:
    """The definitions in units of work: read when they are met, and kept for one definitions version.

    queues: those that were met. changes: grows whenever *queues* changes.
    """

    __slots__ = ("_connection", "_database", "_dynamic", "_pending", "_qmgr", "changes", "queues", "version")

    def __init__(self, pending: WriteBuffer) -> None:
        self._database, self._connection, self._pending = pending.database, pending.database.connection, pending
        self._qmgr: QueueManager | None = None
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

    def forget(self) -> None:
        """Read each again when it is next asked for."""
        self.changes += 1
        self._qmgr = None
        self.queues.clear()

    def qmgr(self) -> QueueManager:
        """The queue manager's own definition. Raises StoreDamagedError."""
        if self._qmgr is None:
            self._qmgr = queue_manager(self._connection, self._database.path)
        return self._qmgr

    def look_up(self, name: str) -> Queue | None:
        """The local or alias queue of that name. Raises StoreDamagedError."""
        found = self.queues.get(name)
        if found is None:
            found = look_up(self._database, name)
            if found is not None:
                self._keep(found)
        return found

    def _keep(self, queue: Queue) -> None:
        self.queues[queue.name] = queue
        self.changes += 1
        if isinstance(queue, LocalQueue) and queue.definition_type != PREDEFINED:
            self._dynamic.add(queue.name)

    def find(self, name: str) -> LocalQueue | None:
        """The local queue of that name or behind that alias."""
        return resolved(self.look_up(name), self.look_up)

    def find_each(self, names: Sequence[str]) -> list[LocalQueue]:
        """Those of *names* that there are."""
        unknown = [name for name in names if name not in self.queues]
        looked_up = dict(zip(unknown, look_up_each(self._database, unknown), strict=True))
        for queue in looked_up.values():
            if queue is not None:
                self._keep(queue)
        found = [resolved(self.queues.get(name), self.look_up) for name in names]
        return [queue for queue in found if queue is not None]

    def known(self, name: str) -> LocalQueue:
        """The same. Raises UnknownQueueError where there is none."""
        found = self.find(name)
        if found is None:
            raise UnknownQueueError(name)
        return found

    def ensure(self, name: str) -> LocalQueue:
        """The same, made where there is none (``Queues.ensure_queue``). Raises QueueError."""
        found = self.look_up(name)
        if isinstance(found, LocalQueue):
            return found
        if found is None:
            return self._made(name, UnknownQueueError(name))
        if found.target_type != "QUEUE":
            why = f"it is an alias of topic object {found.target}, and holds no messages"
            raise QueueError(MQRC_OBJECT_TYPE_ERROR, name, why)
        target = self.look_up(found.target)
        if isinstance(target, AliasQueue):
            raise QueueError(MQRC_ALIAS_BASE_Q_TYPE_ERROR, name, f"it is an alias of {target.name}, which is an alias")
        if target is not None:
            return target
        why = f"it is an alias of {found.target}, which does not exist"
        return self._made(found.target, QueueError(MQRC_UNKNOWN_ALIAS_BASE_Q, name, why))

    def topic_behind(self, name: str) -> str | None:
        """The topic string of the topic object that *name* is an alias of; None for other names.

        Raises QueueError 2082 where there is no such topic object.
        """
        alias = self.look_up(name)
        if not isinstance(alias, AliasQueue) or alias.target_type != "TOPIC":
            return None
        try:
            return self.topic_string_of(alias.target)
        except UnknownQueueError as error:
            why = f"it is an alias of topic object {alias.target}, which does not exist"
            raise QueueError(MQRC_UNKNOWN_ALIAS_BASE_Q, name, why) from error

    def topic_string_of(self, topic_object: str) -> str:
        """The topic string of the topic object of that name. Raises UnknownQueueError (2085)."""
        row = self._connection.execute(_TOPIC, (topic_object,)).fetchone()
        if row is None:
            raise UnknownQueueError(topic_object, "there is no such topic object")
        with readable(self._database.path, f"definition of topic object {topic_object}"):
            found = definition_of("topic", row[0])
            assert isinstance(found, TopicObject)
        return found.topic_string

    def is_gone(self, name: str) -> bool:
        """Whether *name* was made here from a ``*``, and its queue was deleted."""
        return self.look_up(name) is None and was_made(self._database, name)

    def save(self, definition: Definition) -> None:
        """Define or replace."""
        self._pending.flush()
        self._connection.execute(_SAVE, (kind_of(definition), definition.name, state_of(definition)))
        if isinstance(definition, LocalQueue | AliasQueue):
            self._keep(definition)
        elif isinstance(definition, QueueManager):
            self._qmgr = definition

    def delete(self, kind: str, name: str) -> None:
        """Delete a definition; it is not an error if there is none."""
        self._pending.flush()
        self._connection.execute(_FORGET, (kind, name))
        self.queues.pop(name, None)
        self.changes += 1

    def _made(self, name: str, refusal: QueueError) -> LocalQueue:
        if self.qmgr().strict:
            raise refusal
        if not is_object_name(name):
            raise UnknownQueueError(name, "this cannot name a queue: 1 to 48 of A-Z a-z 0-9 . _ / %")
        if was_made(self._database, name):
            raise UnknownQueueError(name, "it was a dynamic queue, and was deleted")
        if self._connection.execute(_MODEL, (name,)).fetchone() is not None:
            why = "it is a model queue, which holds no messages: open it, and put to the queue that this makes"
            raise QueueError(MQRC_Q_TYPE_ERROR, name, why)
        self.save(queue := new_queue(name))
        return queue
