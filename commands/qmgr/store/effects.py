"""Writes the changes of the topic space to the tables that a restart reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, assert_never

from commands.broker.objects import LocalQueue
from commands.broker.state import publication_row, subscription_state
from commands.qmgr.store import reading
from commands.qmgr.store.database import Database
from commands.qmgr.store.reading import KeptMessages, StoredPublication
from commands.qmgr.store.write_buffer import WriteBuffer
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

_GOES_WITH_QUEUE: Final = "INSERT OR REPLACE INTO temporary_subscriptions (sub_id, queue) VALUES (?, ?)"
_GOES_WITH_NONE: Final = "DELETE FROM temporary_subscriptions WHERE sub_id = ?"
_SAVE_SUBSCRIPTION: Final = "INSERT OR REPLACE INTO subscriptions (sub_id, state) VALUES (?, ?)"
_FORGET_SUBSCRIPTION: Final = "DELETE FROM subscriptions WHERE sub_id = ?"
_FORGET_RETAINED: Final = "DELETE FROM retained WHERE topic = ?"
_FORGET_NONPERSISTENT: Final = """DELETE FROM retained
    WHERE publication IN (SELECT number FROM publications WHERE NOT persistent)"""


class EffectKeeper:
    """Has effects kept with what is *pending* in one unit of work.

    messages: those of the database. settle: called when enough is pending. find_queue: the local queue behind a name.
    removed: told each sub_id that is gone. unmanaged: told each queue of a durable managed subscription that is gone.
    """

    __slots__ = ("_database", "_find_queue", "_number", "_pending", "_removed", "_settle", "_unmanaged", "messages")

    def __init__(
        self,
        database: Database,
        pending: WriteBuffer,
        messages: KeptMessages,
        settle: Callable[[], None],
        find_queue: Callable[[str], LocalQueue | None],
        removed: Callable[[bytes], None],
        unmanaged: Callable[[str], None],
    ) -> None:
        self._find_queue, self._removed, self._unmanaged = find_queue, removed, unmanaged
        self._database, self._pending, self.messages, self._settle = database, pending, messages, settle
        self._number: int | None = None  # the last one given; what a part gave that was backed out is not given again

    def keep(self, effects: Iterable[Effect]) -> list[RetainedPublication]:
        """Keep *effects*; the retained publications that now exist because of them, as the database has them.

        Effects that follow one another and store one publication share its row. Deliveries are passed over. Raises
        EncodeError for a message that has no bytes.
        """
        retained: dict[str, RetainedPublication] = {}
        last: tuple[Published, StoredPublication] | None = None
        pending = self._pending
        for effect in effects:
            match effect:
                case Delivery():
                    continue
                case SubscriptionAdded(subscription):
                    self._save(subscription)
                case SubscriptionAltered(before, after):
                    if before.sub_id != after.sub_id:
                        pending.execute(_FORGET_SUBSCRIPTION, (before.sub_id,))
                        self._removed(before.sub_id)
                    if before.temporary:
                        pending.execute(_GOES_WITH_NONE, (before.sub_id,))
                    self._save(after)
                case SubscriptionRemoved(subscription):
                    pending.execute(_FORGET_SUBSCRIPTION, (subscription.sub_id,))
                    self._removed(subscription.sub_id)
                    if subscription.temporary:
                        pending.execute(_GOES_WITH_NONE, (subscription.sub_id,))
                    elif subscription.managed:
                        self._unmanaged(subscription.dest_queue)
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
        if pending.is_much:
            self._settle()
        return list(retained.values())

    def discard_nonpersistent(self) -> int:
        """Delete the retained publications that do not survive a restart; how many topics had one."""
        self._settle()
        return self._database.connection.execute(_FORGET_NONPERSISTENT).rowcount

    def _save(self, subscription: Subscription) -> None:
        self._pending.execute(_SAVE_SUBSCRIPTION, (subscription.sub_id, subscription_state(subscription)))
        if subscription.temporary:
            queue = self._find_queue(subscription.dest_queue)
            # Where the queues are IBM MQ's this store has none of that name, and no program closes it here.
            if queue is not None:
                self._pending.execute(_GOES_WITH_QUEUE, (subscription.sub_id, queue.name))

    def _publish(self, publication: Published) -> StoredPublication:
        row = publication_row(publication)
        if self._number is None:
            self._number = reading.highest(self._database, "publications")
        self._number += 1
        self._pending.publish(self._number, row)
        self.messages.keep(self._number, row.md, row.body)
        return StoredPublication(
            self._number, publication.published_at, publication.expires_at, publication.local, self.messages
        )
