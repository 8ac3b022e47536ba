"""Dynamic queues: made when a program opens a model queue, deleted when it closes them or is gone (guide 6.7.2).

A temporary one is deleted with the connection that made it. Its subscriptions end with it, even if there is a queue of
that name later: they are noted as ended, and the command processor removes them before its next command. To make or
delete a dynamic queue changes no state version, so that no process loads everything again because of it.

    name          AMQ.*  ->  AMQ.6921F3A500000007: seconds since 1970, then a number never given twice
    close         NONE          DELETE                      PURGE
    temporary     gone, with what it holds, where its maker closes it; for others 2045, or nothing (NONE)
    permanent     stays         gone; 2055 if not empty     gone, with what it holds
    predefined    stays         2045                        2045
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final

from commands.broker.objects import LocalQueue, ModelQueue, definition_of, dynamic_queue, is_object_name
from commands.disk.errors import QueueError, readable
from commands.qmgr.store import reading
from commands.qmgr.store.definitions import QueueDefinitions
from commands.qmgr.store.message_table import MessageTable
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2.mqi_constants import (
    MQRC_DYNAMIC_Q_NAME_ERROR,
    MQRC_OBJECT_ALREADY_EXISTS,
    MQRC_OPTION_NOT_VALID_FOR_TYPE,
    MQRC_Q_NOT_EMPTY,
)

_TABLE: Final = "dynamic_queues"
_LONGEST_PREFIX: Final = 32
_MODEL: Final = "SELECT state FROM definitions WHERE kind = 'qmodel' AND name = ?"
_IS_TAKEN: Final = "SELECT 1 FROM definitions WHERE kind IN ('qlocal', 'qalias', 'qmodel') AND name = ?"
_INSERT: Final = "INSERT INTO dynamic_queues (number, name, connection) VALUES (?, ?, ?)"
_OF_CONNECTION: Final = "SELECT name FROM dynamic_queues WHERE connection = ?"
_ADOPT: Final = """UPDATE dynamic_queues
    SET connection = (SELECT number FROM connections WHERE number = ?) WHERE name = ?"""
_IS_CONNECTED: Final = "SELECT 1 FROM connections WHERE number = ?"
_IS_ADOPTED: Final = "SELECT 1 FROM dynamic_queues WHERE name = ? AND connection IS NOT NULL"
_END_SUBSCRIPTIONS: Final = (
    """INSERT INTO ended_subscriptions SELECT sub_id FROM temporary_subscriptions WHERE queue = ?
    ON CONFLICT DO NOTHING""",
    "DELETE FROM temporary_subscriptions WHERE queue = ?",
)


class Close(Enum):
    """What MQCLOSE does to a dynamic queue: MQCO_NONE, MQCO_DELETE, MQCO_DELETE_PURGE."""

    NONE = 0
    DELETE = 1
    PURGE = 2


class DynamicQueues:
    """Those of a queue manager, in its units of work."""

    __slots__ = ("_clock", "_connection", "_database", "_definitions", "_drop_undelivered", "_messages", "_pending")

    def __init__(
        self,
        pending: WriteBuffer,
        definitions: QueueDefinitions,
        messages: MessageTable,
        drop_undelivered: Callable[[str], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._database, self._connection, self._pending = pending.database, pending.database.connection, pending
        self._definitions, self._messages, self._clock = definitions, messages, clock
        self._drop_undelivered = drop_undelivered

    def model(self, name: str) -> ModelQueue | None:
        """The model queue of that name. Raises StoreDamagedError."""
        row = self._connection.execute(_MODEL, (name,)).fetchone()
        with readable(self._database.path, f"definition of queue {name}"):
            found = None if row is None else definition_of("qmodel", row[0])
        return found if isinstance(found, ModelQueue) else None

    def make(self, model: ModelQueue, wanted: str, connection: int, owner: str = "") -> LocalQueue:
        """Make a queue for *connection*. wanted: its name, or the beginning of one and ``*`` (DynamicQName of MQOPEN).

        owner: the user who then has every authority for it.

        Raises QueueError 2011 for a name that is none, 2100 for one that is taken.
        """
        self._pending.flush()
        number = self._database.highest(_TABLE) + 1
        name = self._name(wanted.rstrip(" "), number)
        if self._connection.execute(_IS_TAKEN, (name,)).fetchone() is not None:
            raise QueueError(MQRC_OBJECT_ALREADY_EXISTS, name, "there is a queue of that name already")
        made = dynamic_queue(model, name, owner)
        self._connection.execute(_INSERT, (number, name, connection if made.is_temporary else None))
        self._database.reached(_TABLE, number)
        self._definitions.save(made)
        return made

    def close(self, name: str, maker: bool, option: Close) -> bool:
        """Close the queue *name*; whether it was deleted. maker: whether the connection that made it closes it.

        Raises UnknownQueueError (2085), QueueError 2045, 2055.
        """
        queue = self._definitions.known(name)
        if queue.is_temporary and maker:
            self._delete(queue)
            return True
        if option is Close.NONE:
            return False
        if queue.is_temporary:
            raise QueueError(MQRC_OPTION_NOT_VALID_FOR_TYPE, queue.name, "only the program that made it may delete it")
        row = self._connection.execute("SELECT 1 FROM dynamic_queues WHERE name = ?", (queue.name,)).fetchone()
        if row is None:
            raise QueueError(MQRC_OPTION_NOT_VALID_FOR_TYPE, queue.name, "it is not a dynamic queue; see DELETE QLOCAL")
        if option is Close.DELETE and not self._messages.is_empty(queue.name):
            raise QueueError(MQRC_Q_NOT_EMPTY, queue.name, "it holds messages")
        self._delete(queue)
        return True

    def adopt(self, name: str, connection: int) -> None:
        """Give the permanent dynamic queue *name* to a connection, if that is still there: it goes when that ends."""
        self._pending.flush()
        self._connection.execute(_ADOPT, (connection, name))

    def is_adopted(self, name: str) -> bool:
        """Whether *name* is given to a connection."""
        return self._connection.execute(_IS_ADOPTED, (name,)).fetchone() is not None

    def connect(self) -> int:
        """The number of a new connection, never given twice."""
        self._pending.flush()
        return reading.numbered(self._database, "connections", "INSERT INTO connections (number) VALUES (?)")

    def is_connected(self, number: int) -> bool:
        """Whether a connection of that number has begun and not ended."""
        self._pending.flush()
        return self._connection.execute(_IS_CONNECTED, (number,)).fetchone() is not None

    def disconnect(self, number: int) -> int:
        """End a connection: its temporary queues go; returns how many."""
        self._pending.flush()
        names = [name for (name,) in self._connection.execute(_OF_CONNECTION, (number,)).fetchall()]
        for name in names:
            queue = self._definitions.look_up(name)
            if isinstance(queue, LocalQueue):
                self._delete(queue)
        self._connection.execute("DELETE FROM connections WHERE number = ?", (number,))
        return len(names)

    def deleted(self, name: str) -> None:
        """The definition of local queue *name* is deleted by other means: delete also what depends on it."""
        self._pending.flush()
        self._connection.execute("DELETE FROM dynamic_queues WHERE name = ?", (name,))
        for statement in _END_SUBSCRIPTIONS:
            self._connection.execute(statement, (name,))

    def take_ended(self) -> list[bytes]:
        """The subscriptions that ended with their queues since the last call."""
        ended = [sub_id for (sub_id,) in self._connection.execute("SELECT sub_id FROM ended_subscriptions").fetchall()]
        if ended:
            self._pending.flush()
            self._connection.execute("DELETE FROM ended_subscriptions")
        return ended

    def _delete(self, queue: LocalQueue) -> None:
        self._pending.flush()
        self._connection.execute("DELETE FROM messages WHERE queue = ?", (queue.name,))
        self._messages.changed(queue.name)
        if queue.is_temporary:
            self._drop_undelivered(queue.name)
        self._definitions.delete("qlocal", queue.name)
        self.deleted(queue.name)

    def _name(self, wanted: str, number: int) -> str:
        if wanted.endswith("*"):
            prefix = wanted[:-1]
            name = f"{prefix}{int(self._clock().timestamp()) & 0xFFFF_FFFF:08X}{number & 0xFFFF_FFFF:08X}"
            valid = len(prefix) <= _LONGEST_PREFIX and is_object_name(name)
        else:
            name, valid = wanted, is_object_name(wanted)
        if not valid:
            why = "a dynamic queue's name is 1 to 48 of A-Z a-z 0-9 . _ / %, or up to 32 of them and *"
            raise QueueError(MQRC_DYNAMIC_Q_NAME_ERROR, wanted, why)
        return name
