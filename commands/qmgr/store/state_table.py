"""The tables that a restart reads, in a unit of work: definitions, subscriptions, what is retained; their versions.

Dynamic queues: made when a program opens a model queue, deleted when it closes them or is gone (guide 6.7.2).

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

from collections.abc import Callable, Iterable
from datetime import datetime
from enum import Enum
from typing import Final, assert_never

from commands.broker import objects
from commands.broker.state import publication_row, subscription_state
from commands.disk.errors import readable
from commands.qmgr.store import reading
from commands.qmgr.store.counters import Counters
from commands.qmgr.store.definitions import QueueDefinitions
from commands.qmgr.store.message_table import MessageTable
from commands.qmgr.store.port import LoadedState
from commands.qmgr.store.reading import KeptMessages, StoredPublication
from commands.qmgr.store.uncommitted import Uncommitted
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2.errors import QueueError, StoreError
from rfh2.mqi_constants import (
    MQRC_DYNAMIC_Q_NAME_ERROR,
    MQRC_OBJECT_ALREADY_EXISTS,
    MQRC_OBJECT_IN_USE,
    MQRC_OPTION_NOT_VALID_FOR_TYPE,
    MQRC_Q_NOT_EMPTY,
)
from streams import operations
from streams.subscriptions import Subscription

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

    def model(self, name: str) -> objects.ModelQueue | None:
        """The model queue of that name. Raises StoreDamagedError."""
        row = self._connection.execute(_MODEL, (name,)).fetchone()
        with readable(self._database.path, f"definition of queue {name}"):
            found = None if row is None else objects.definition_of("qmodel", row[0])
        return found if isinstance(found, objects.ModelQueue) else None

    def make(self, model: objects.ModelQueue, wanted: str, connection: int, owner: str = "") -> objects.LocalQueue:
        """Make a queue for *connection*. wanted: its name, or the beginning of one and ``*`` (DynamicQName of MQOPEN).

        owner: the user who then has every authority for it.

        Raises QueueError 2011 for a name that is none, 2100 for one that is taken.
        """
        self._pending.flush()
        number = self._database.highest(_TABLE) + 1
        name = self._name(wanted.rstrip(" "), number)
        if self._connection.execute(_IS_TAKEN, (name,)).fetchone() is not None:
            raise QueueError(MQRC_OBJECT_ALREADY_EXISTS, name, "there is a queue of that name already")
        made = objects.dynamic_queue(model, name, owner)
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
            if isinstance(queue, objects.LocalQueue):
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

    def _delete(self, queue: objects.LocalQueue) -> None:
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
            valid = len(prefix) <= _LONGEST_PREFIX and objects.is_object_name(name)
        else:
            name, valid = wanted, objects.is_object_name(wanted)
        if not valid:
            why = "a dynamic queue's name is 1 to 48 of A-Z a-z 0-9 . _ / %, or up to 32 of them and *"
            raise QueueError(MQRC_DYNAMIC_Q_NAME_ERROR, wanted, why)
        return name


_SAVE_VERSIONS: Final = "UPDATE state SET version = ?, definitions = ?"
_GOES_WITH_QUEUE: Final = """INSERT INTO temporary_subscriptions (sub_id, queue) VALUES (?, ?)
    ON CONFLICT (sub_id) DO UPDATE SET queue = excluded.queue"""
_GOES_WITH_NONE: Final = "DELETE FROM temporary_subscriptions WHERE sub_id = ?"
_SAVE_SUBSCRIPTION: Final = """INSERT INTO subscriptions (sub_id, state) VALUES (?, ?)
    ON CONFLICT (sub_id) DO UPDATE SET state = excluded.state"""
_FORGET_SUBSCRIPTION: Final = "DELETE FROM subscriptions WHERE sub_id = ?"
_FORGET_RETAINED: Final = "DELETE FROM retained WHERE topic = ?"
_FORGET_NONPERSISTENT: Final = """DELETE FROM retained
    WHERE publication IN (SELECT number FROM publications WHERE persistent = 0)"""


class StateTable:
    """The state of a queue manager. Its methods are for an open unit of work, and raise ``FAILURES``.

    versions: that of the state, and that of the definitions in it. retained: the messages of retained publications.
    """

    __slots__ = (
        "_before",
        "_connection",
        "_counters",
        "_database",
        "_definitions",
        "_dynamic",
        "_messages",
        "_number",
        "_pending",
        "_uncommitted",
        "retained",
        "versions",
    )

    def __init__(
        self,
        pending: WriteBuffer,
        definitions: QueueDefinitions,
        counters: Counters,
        dynamic: DynamicQueues,
        messages: MessageTable,
        uncommitted: Uncommitted,
    ) -> None:
        self._database, self._connection, self._pending = pending.database, pending.database.connection, pending
        self._definitions, self._counters, self._dynamic = definitions, counters, dynamic
        self._messages, self._uncommitted = messages, uncommitted
        self.retained = KeptMessages(pending.database, pending.flush)
        self._number: int | None = None  # the last one given; what a part gave that was backed out is not given again
        self.versions = self._before = (-1, -1)

    def begin(self) -> None:
        """A unit of work begins: anything may have changed. Raises StoreDamagedError."""
        self._number = None
        self.versions = self._before = self._database.versions()
        self._definitions.at(self.versions[1])

    def changed(self, definitions: bool = False) -> None:
        """The state changes, perhaps also the *definitions* in it."""
        # Once is enough: nobody else can look before the unit of work ends.
        state, known = self._before
        changed = (state + 1, known + 1 if definitions else self.versions[1])
        if changed != self.versions:
            self.versions = changed
            self._pending.execute(_SAVE_VERSIONS, changed)

    @property
    def definitions_version(self) -> int | None:
        """The version of the definitions; None where this unit of work has changed them."""
        return self.versions[1] if self.versions[1] == self._before[1] else None

    def load(self) -> LoadedState:
        """Everything (``Knowledge.load_state``)."""
        self._pending.flush()
        return reading.load_state(self._connection, self._database.path, self.retained)

    def load_objects(self) -> objects.Objects:
        """The definitions alone. Raises StoreDamagedError."""
        self._pending.flush()
        return reading.load_objects(self._connection, self._database.path)

    def local_queues(self) -> list[objects.LocalQueue]:
        """The definitions of local queues. Raises StoreDamagedError."""
        self._pending.flush()
        return reading.local_queues(self._database)

    def save(self, effects: Iterable[operations.Effect]) -> list[operations.RetainedPublication]:
        """As ``Knowledge.save_effects``. Raises EncodeError for a message that has no bytes."""
        changes = [effect for effect in effects if not isinstance(effect, operations.Delivery)]
        if not changes:
            return []
        self.changed()
        retained: dict[str, operations.RetainedPublication] = {}
        last: tuple[operations.Published, StoredPublication] | None = None
        pending = self._pending
        for effect in changes:
            match effect:
                case operations.SubscriptionAdded(subscription):
                    self._save(subscription)
                case operations.SubscriptionAltered(before, after):
                    if before.sub_id != after.sub_id:
                        pending.execute(_FORGET_SUBSCRIPTION, (before.sub_id,))
                        self._counters.removed(before.sub_id)
                    if before.temporary:
                        pending.execute(_GOES_WITH_NONE, (before.sub_id,))
                    self._save(after)
                case operations.SubscriptionRemoved(subscription):
                    pending.execute(_FORGET_SUBSCRIPTION, (subscription.sub_id,))
                    self._counters.removed(subscription.sub_id)
                    if subscription.temporary:
                        pending.execute(_GOES_WITH_NONE, (subscription.sub_id,))
                    elif subscription.managed:
                        self._delete_managed(subscription.dest_queue)
                case operations.RetainedStored(kept):
                    # One that is further back may have lost its last topic meanwhile, and with it its row.
                    if last is None or last[0] is not kept.publication:
                        last = kept.publication, self._publish(kept.publication)
                    pending.retain(kept.topic_string, last[1].number)
                    retained[kept.topic_string] = operations.RetainedPublication(kept.topic_string, last[1])
                case operations.RetainedCleared(topic_string):
                    last = None
                    pending.execute(_FORGET_RETAINED, (topic_string,))
                    retained.pop(topic_string, None)
                case _:
                    assert_never(effect)
        pending.flush_if_much()
        return list(retained.values())

    def save_definition(self, definition: objects.Definition) -> None:
        """As in ``Knowledge``."""
        if isinstance(definition, objects.QueueManager) and definition.name != self._definitions.qmgr().name:
            raise StoreError(f"queue manager {self._definitions.qmgr().name} cannot become {definition.name}")
        self._definitions.save(definition)
        self.changed(definitions=True)

    def delete_definition(self, kind: str, name: str) -> None:
        """As in ``Knowledge``."""
        if kind == "qmgr":
            raise StoreError(f"queue manager {name} cannot delete its own definition")
        if kind == "qlocal" and not self._messages.is_empty(name):
            raise QueueError(MQRC_Q_NOT_EMPTY, name, "it holds messages")
        if kind == "qlocal" and self._uncommitted.concerns(name):
            raise QueueError(MQRC_OBJECT_IN_USE, name, "a program has messages of it in a unit of work")
        self._definitions.delete(kind, name)
        if kind == "qlocal":
            self._dynamic.deleted(name)
            self._counters.deleted_queue(name)
        self.changed(definitions=True)

    def discard_nonpersistent(self) -> int:
        """Delete the retained publications that do not survive a restart; how many topics had one."""
        self._pending.flush()
        gone = self._connection.execute(_FORGET_NONPERSISTENT).rowcount
        if gone:
            self.changed()
        return gone

    def _save(self, subscription: Subscription) -> None:
        self._pending.execute(_SAVE_SUBSCRIPTION, (subscription.sub_id, subscription_state(subscription)))
        if subscription.temporary:
            queue = self._definitions.find(subscription.dest_queue)
            # Where the queues are IBM MQ's this store has none of that name, and no program closes it here.
            if queue is not None:
                self._pending.execute(_GOES_WITH_QUEUE, (subscription.sub_id, queue.name))

    def _delete_managed(self, queue: str) -> None:
        """The subscription for which a permanent dynamic queue was made is gone, and so is the queue (guide 2.4.1).

        Unless a program has it open (guide 4.3).
        """
        if self._definitions.find(queue) is not None and not self._dynamic.is_adopted(queue):
            self._dynamic.close(queue, maker=False, option=Close.PURGE)

    def _publish(self, publication: operations.Published) -> StoredPublication:
        row = publication_row(publication)
        if self._number is None:
            self._number = self._database.highest("publications")
        self._number += 1
        self._pending.publish(self._number, row)
        self.retained.keep(self._number, row.md, row.body)
        return StoredPublication(
            self._number, publication.published_at, publication.expires_at, publication.local, self.retained
        )
