"""The tables that a restart reads, in a unit of work: definitions, subscriptions, what is retained; their versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from commands.broker.objects import Definition, LocalQueue, Objects, QueueManager
from commands.broker.state import publication_row, subscription_state
from commands.disk.errors import QueueError
from commands.qmgr.store import reading
from commands.qmgr.store.counters import Counters
from commands.qmgr.store.definitions import QueueDefinitions
from commands.qmgr.store.dynamic_queues import Close, DynamicQueues
from commands.qmgr.store.message_table import MessageTable
from commands.qmgr.store.port import LoadedState
from commands.qmgr.store.reading import KeptMessages, StoredPublication
from commands.qmgr.store.uncommitted import Uncommitted
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2.errors import StoreError
from rfh2.mqi_constants import MQRC_OBJECT_IN_USE, MQRC_Q_NOT_EMPTY
from streams.operations import (
    Delivery,
    Effect,
    Published,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.subscriptions import Subscription

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

    def load_objects(self) -> Objects:
        """The definitions alone. Raises StoreDamagedError."""
        self._pending.flush()
        return reading.load_objects(self._connection, self._database.path)

    def local_queues(self) -> list[LocalQueue]:
        """The definitions of local queues. Raises StoreDamagedError."""
        self._pending.flush()
        return reading.local_queues(self._database)

    def save(self, effects: Iterable[Effect]) -> list[RetainedPublication]:
        """As ``Knowledge.save_effects``. Raises EncodeError for a message that has no bytes."""
        changes = [effect for effect in effects if not isinstance(effect, Delivery)]
        if not changes:
            return []
        self.changed()
        retained: dict[str, RetainedPublication] = {}
        last: tuple[Published, StoredPublication] | None = None
        pending = self._pending
        for effect in changes:
            match effect:
                case SubscriptionAdded(subscription):
                    self._save(subscription)
                case SubscriptionAltered(before, after):
                    if before.sub_id != after.sub_id:
                        pending.execute(_FORGET_SUBSCRIPTION, (before.sub_id,))
                        self._counters.removed(before.sub_id)
                    if before.temporary:
                        pending.execute(_GOES_WITH_NONE, (before.sub_id,))
                    self._save(after)
                case SubscriptionRemoved(subscription):
                    pending.execute(_FORGET_SUBSCRIPTION, (subscription.sub_id,))
                    self._counters.removed(subscription.sub_id)
                    if subscription.temporary:
                        pending.execute(_GOES_WITH_NONE, (subscription.sub_id,))
                    elif subscription.managed:
                        self._delete_managed(subscription.dest_queue)
                case RetainedStored(kept):
                    # One that is further back may have lost its last topic meanwhile, and with it its row.
                    if last is None or last[0] is not kept.publication:
                        last = kept.publication, self._publish(kept.publication)
                    pending.retain(kept.topic_string, last[1].number)
                    retained[kept.topic_string] = RetainedPublication(kept.topic_string, last[1])
                case RetainedCleared(topic_string):
                    last = None
                    pending.execute(_FORGET_RETAINED, (topic_string,))
                    retained.pop(topic_string, None)
                case _:
                    assert_never(effect)
        pending.flush_if_much()
        return list(retained.values())

    def save_definition(self, definition: Definition) -> None:
        """As in ``Knowledge``."""
        if isinstance(definition, QueueManager) and definition.name != self._definitions.qmgr().name:
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

    def _publish(self, publication: Published) -> StoredPublication:
        row = publication_row(publication)
        if self._number is None:
            self._number = self._database.highest("publications")
        self._number += 1
        self._pending.publish(self._number, row)
        self.retained.keep(self._number, row.md, row.body)
        return StoredPublication(
            self._number, publication.published_at, publication.expires_at, publication.local, self.retained
        )
