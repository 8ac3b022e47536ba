"""Carries out a cleanup on the embedded queue manager: subscriptions first, then queue by queue.

A unit of work removes at most ``_MOST_MESSAGES`` messages, so that other programs can work in between. Each unit of
work begins by reading the subscriptions again, so that a subscription registered meanwhile keeps its messages. If the
run is killed, committed removals stay and the rest is unchanged; the next run continues there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from commands.broker.jms_queues import ADMIN_QUEUE
from commands.broker.objects import Objects
from commands.qmgr.jms_cleanup import (
    CleanupItem,
    Level,
    MessageKind,
    QueueCleaning,
    Records,
    Situation,
    Verdict,
    jms_queues,
    merged,
    subscription_verdict,
)
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import StoredMessage
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.errors import DecodeError
from rfh2.jms_entry import decode_entry
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd
from streams.operations import SubscriptionRemoved
from streams.subscriptions import Subscription

_MOST_MESSAGES: Final = 10_000

Identify = Callable[[StoredMessage], MessageKind]


class JmsCleaner:
    """One run. identify: tells what a message is. rehearse: change nothing, but give the same report."""

    def __init__(self, store: QueueManagerStore, level: Level, identify: Identify, rehearse: bool = False) -> None:
        self._store, self._level, self._identify, self._rehearse = store, level, identify, rehearse
        self._removed: set[bytes] = set()  # by this run: sub_ids that a rehearsal counts as gone
        self._known: tuple[int, Objects, list[Subscription]] | None = None

    def clean(self) -> tuple[list[CleanupItem], Records]:
        """Run: what was removed and what was left, and what the records of SUBSTORE(QUEUE) say. Raises StoreError."""
        found: list[CleanupItem] = []
        with self._store.unit_of_work() as unit:
            records = self._records(unit)
            found += self._subscriptions(unit, self._situation(unit, records))
            queues = jms_queues(self._objects(unit).queues.keys())
        for queue in queues:
            while True:
                with self._store.unit_of_work() as unit:
                    if unit.find_queue(queue) is None:
                        break
                    records = self._records(unit)
                    items, is_done = self._queue(unit, queue, self._situation(unit, records), found)
                found += items
                if is_done:
                    break
        return _final(found), records

    def _subscriptions(self, unit: EmbeddedUnitOfWork, situation: Situation) -> Iterator[CleanupItem]:
        for subscription in situation.subscriptions:
            verdict = subscription_verdict(subscription, situation)
            if verdict is None:
                continue
            if verdict.goes:
                self._removed.add(subscription.sub_id)
                if not self._rehearse:
                    unit.save_effects([SubscriptionRemoved(subscription)])
            name = (
                f"{subscription.name} to {subscription.topic_string}"
                if subscription.name
                else subscription.topic_string
            )
            correl_id = None if subscription.correl_id == MQCI_NONE else subscription.correl_id
            queue = subscription.dest_queue
            yield CleanupItem("subscription", verdict.goes, queue, verdict.why, 1, name, correl_id)

    def _queue(
        self, unit: EmbeddedUnitOfWork, queue: str, situation: Situation, before: list[CleanupItem]
    ) -> tuple[list[CleanupItem], bool]:
        """The removals of one unit of work on one queue, and whether the queue is then finished."""
        cleaning = QueueCleaning(queue, situation)
        going: list[int] = []
        counts: Counter[tuple[Verdict, bytes]] = Counter()
        left = 0
        for message in unit.browse(queue):
            correl_id = _correl_id(message)
            verdict = None
            if not cleaning.is_somebodys(correl_id):
                verdict = cleaning.message(correl_id, self._identify(message))
            if verdict is not None:
                counts[verdict, correl_id] += 1
            if verdict is None or not verdict.goes:
                left += 1
                continue
            going.append(message.seq)
            if len(going) == _MOST_MESSAGES and not self._rehearse:
                # The next unit of work finds what is left, and counts it then.
                unit.discard(queue, going)
                return [item for item in _items(queue, counts) if item.goes], False
        if going and not self._rehearse:
            unit.discard(queue, going)
        items = _items(queue, counts)
        if not left:
            had_messages = bool(going) or any(item.queue == queue and item.what == "messages" for item in before)
            verdict = cleaning.queue(had_messages, queue in unit.undelivered.queues())
            if verdict is not None:
                items.append(CleanupItem("queue", verdict.goes, queue, verdict.why))
                if verdict.goes and not self._rehearse:
                    unit.clear_queue(queue)  # of what has expired
                    unit.delete_definition("qlocal", queue)
        return items, True

    def _situation(self, unit: EmbeddedUnitOfWork, records: Records) -> Situation:
        objects = self._objects(unit)
        assert self._known is not None
        here = ("", self._store.name)
        mine = tuple(each for each in self._known[2] if each.dest_qmgr in here and each.sub_id not in self._removed)
        queues = {each.dest_queue: None if (of := objects.queue(each.dest_queue)) is None else of.name for each in mine}
        return Situation(self._level, mine, queues, records)

    def _objects(self, unit: EmbeddedUnitOfWork) -> Objects:
        if self._known is None or self._known[0] != unit.state_version:
            objects, subscriptions, _ = unit.load_state()
            self._known = (unit.state_version, objects, subscriptions)
        return self._known[1]

    def _records(self, unit: EmbeddedUnitOfWork) -> Records:
        if unit.find_queue(ADMIN_QUEUE) is None:
            return Records()
        entries: set[tuple[str, bytes]] = set()
        unread = 0
        for message in unit.browse(ADMIN_QUEUE):
            try:
                descriptor = Mqmd.decode(message.md)
                entries.add((decode_entry(message.body, descriptor.encoding).queue_name, descriptor.msg_id))
            except DecodeError:
                unread += 1
        return Records(frozenset(entries), unread)


def _correl_id(message: StoredMessage) -> bytes:
    try:
        return Mqmd.decode(message.md).correl_id
    except DecodeError:
        return MQCI_NONE


def _items(queue: str, counts: Counter[tuple[Verdict, bytes]]) -> list[CleanupItem]:
    return [
        CleanupItem(
            "messages", verdict.goes, queue, verdict.why, count, correl_id=correl_id if any(correl_id) else None
        )
        for (verdict, correl_id), count in counts.items()
    ]


def _final(items: list[CleanupItem]) -> list[CleanupItem]:
    """One line for each thing; what goes before what stays, otherwise in the order of the run."""
    return sorted(merged(items), key=lambda item: not item.goes)
