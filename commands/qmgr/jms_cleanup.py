"""What JMS subscribers left behind when they ended without closing, and what may be removed: IBM's Cleanup utility.

The decision uses the broker's own subscriptions, the queues SYSTEM.JMS.* and the records of SUBSTORE(QUEUE). Each level
includes the levels before it:

* SAFE: beside programs that run. Subscriptions whose own queue is gone. On queues for non-durable subscribers the
  publications that no subscription there can be for; their own dynamic queue with them.
* STRONG: also what is on those queues and is no publication, and what is on the report queue and is no response.
* FORCE: with no JMS publish/subscribe program active. Everything on the report queue; messages and dynamic queues of
  subscribers, durable ones too, for which there is neither a subscription nor a record.
* NONDUR: all non-durable subscriptions, their messages, and their dynamic queues.

A durable subscription, its messages and its queue are never touched; neither is one that an administrator defined.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final

from commands.broker import objects as queue_names
from commands.broker.objects import Objects
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import StoredMessage
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.errors import DecodeError
from rfh2.jms_entry import decode_entry
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd
from streams.operations import SubscriptionRemoved
from streams.subscriptions import Subscription

# As a queue manager makes the name of a dynamic queue: 16 hexadecimal digits in place of the asterisk.
_DYNAMIC: Final = re.compile(r"SYSTEM\.JMS\.N?D\.(?:\S*\.)?[0-9A-F]{16}")


class Level(IntEnum):
    """How much is removed. The names are those of IBM's utility."""

    SAFE = 1
    STRONG = 2
    FORCE = 3
    NONDUR = 4


class MessageKind(Enum):
    """What a message on a subscriber's or the report queue is."""

    PUBLICATION = "publication"
    ELSEWHERE = "publication of another queue manager's broker, whose subscriptions are not known here"
    RESPONSE = "response"
    OTHER = "message that is neither a publication nor a response"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something is removed, and why, in words."""

    goes: bool
    why: str


@dataclass(frozen=True, slots=True)
class Records:
    """What SYSTEM.JMS.ADMIN.QUEUE says. entries: queue and CorrelId of each subscription. unread: how many are not."""

    entries: frozenset[tuple[str, bytes]] = frozenset()
    unread: int = 0


@dataclass(frozen=True, slots=True)
class QueueOwners:
    """The owners of the messages of one queue. whole: one subscription takes all of them, whatever their CorrelId."""

    correl_ids: frozenset[bytes] = frozenset()
    whole: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no subscription names the queue."""
        return not self.correl_ids and not self.whole


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of one queue manager, and the requested cleanup.

    subscriptions: those for its own queues, without those that are removed. queues: the local queue behind each name
    that they have, None for none.
    """

    level: Level
    subscriptions: tuple[Subscription, ...]
    queues: Mapping[str, str | None]
    records: Records = field(default_factory=Records)

    def owners(self, queue: str) -> QueueOwners:
        """The owners of the messages on local queue *queue*."""
        mine = [each for each in self.subscriptions if self.queues.get(each.dest_queue) == queue]
        whole = any(each.correl_id == MQCI_NONE or each.keep_correl_id for each in mine)
        return QueueOwners(frozenset(each.correl_id for each in mine), whole)


def is_jms(queue: str) -> bool:
    """Whether the cleanup looks at *queue*: a subscriber's queue or the report queue."""
    return queue == queue_names.REPORT_QUEUE or queue.startswith(
        (queue_names.NONDURABLE_PREFIX, queue_names.DURABLE_PREFIX)
    )


def is_dynamic(queue: str) -> bool:
    """Whether *queue* has the name of one subscriber's dynamic queue, which is deleted with its messages."""
    return queue not in queue_names.SHARED_QUEUES and _DYNAMIC.fullmatch(queue) is not None


def is_durable(subscription: Subscription) -> bool:
    """Whether it outlives its program: it has a name or an identity set, or its queue is not one for others."""
    s = subscription
    return s.name is not None or bool(s.identities) or not queue_names.is_for_nondurable(s.dest_queue)


def subscription_verdict(subscription: Subscription, situation: Situation) -> Verdict | None:
    """The verdict on a subscription for a queue of non-durable subscribers; None if the cleanup leaves it out."""
    s = subscription
    if not queue_names.is_for_nondurable(s.dest_queue):
        return None
    is_gone = situation.queues.get(s.dest_queue) is None and is_dynamic(s.dest_queue)
    if s.admin:
        return Verdict(False, "an administrator defined it") if is_gone or situation.level >= Level.NONDUR else None
    if is_durable(s):
        return Verdict(False, "it is durable") if is_gone or situation.level >= Level.NONDUR else None
    if is_gone:
        return Verdict(True, "its queue does not exist")
    if situation.level >= Level.NONDUR:
        return Verdict(True, "it is non-durable")
    return None


def _message_verdict(
    queue: str, correl_id: bytes, kind: MessageKind, situation: Situation, owners: QueueOwners
) -> Verdict | None:
    level, records = situation.level, situation.records
    if queue == queue_names.REPORT_QUEUE:
        if level >= Level.FORCE:
            return Verdict(True, "level FORCE clears the report queue")
        if kind is MessageKind.RESPONSE:
            return None
        return Verdict(level >= Level.STRONG, f"it is a {kind.value}: level STRONG removes it")
    if owners.whole or correl_id in owners.correl_ids:
        return None
    no_subscription = "no subscription for this queue has its CorrelId"
    if (queue, correl_id) in records.entries:
        goes = level >= Level.FORCE and queue_names.is_for_nondurable(queue)
        return Verdict(goes, f"{no_subscription}, and a record of SUBSTORE(QUEUE) has it")
    if kind is MessageKind.ELSEWHERE:
        goes = level >= Level.FORCE and queue_names.is_for_nondurable(queue)
        return Verdict(goes, f"{no_subscription}; it is a {kind.value}")
    if queue_names.is_for_durable(queue):
        if records.unread:
            return Verdict(False, f"{no_subscription}, and {records.unread} records of SUBSTORE(QUEUE) cannot be read")
        return Verdict(level >= Level.FORCE, f"{no_subscription}: level FORCE removes it")
    if kind is MessageKind.PUBLICATION:
        return Verdict(True, no_subscription)
    return Verdict(level >= Level.STRONG, f"{no_subscription}; it is a {kind.value}: level STRONG removes it")


class QueueCleaning:
    """Decides about each message of one queue, and then about the queue."""

    def __init__(self, queue: str, situation: Situation) -> None:
        self._queue, self._situation = queue, situation
        self._owners = situation.owners(queue)
        self._answers: dict[tuple[bytes, MessageKind], Verdict | None] = {}

    def is_somebodys(self, correl_id: bytes) -> bool:
        """Whether a subscription takes messages with that CorrelId from the queue, whatever they are."""
        return self._owners.whole or correl_id in self._owners.correl_ids

    def message(self, correl_id: bytes, kind: MessageKind) -> Verdict | None:
        """The verdict on one message; None for one that belongs to a subscription."""
        key = (correl_id, kind)
        if key not in self._answers:
            self._answers[key] = _message_verdict(self._queue, correl_id, kind, self._situation, self._owners)
        return self._answers[key]

    def queue(self, had_messages: bool, is_owed_to: bool) -> Verdict | None:
        """The verdict on the queue itself, once it is empty. had_messages: whether some were just removed.

        The program of a dynamic queue that was empty before may be about to register, so only FORCE deletes it.
        """
        if not is_dynamic(self._queue) or not self._owners.is_empty:
            return None
        if is_owed_to:
            return Verdict(False, "messages wait to be put on it")
        if any(queue == self._queue for queue, _ in self._situation.records.entries):
            return Verdict(False, "a record of SUBSTORE(QUEUE) names it")
        if queue_names.is_for_durable(self._queue) and self._situation.records.unread:
            return Verdict(False, f"{self._situation.records.unread} records of SUBSTORE(QUEUE) cannot be read")
        if had_messages and queue_names.is_for_nondurable(self._queue):
            return Verdict(True, "no subscription names it, and its messages were removed")
        return Verdict(self._situation.level >= Level.FORCE, "no subscription names it: level FORCE deletes it")


@dataclass(frozen=True, slots=True)
class CleanupItem:
    """One line of the report. what: ``subscription``, ``messages`` or ``queue``. goes: removed, or left.

    count: of messages; 1 for others. correl_id: of messages.
    """

    what: str
    goes: bool
    queue: str
    why: str
    count: int = 1
    subscription: str | None = None
    correl_id: bytes | None = None


def merged(items: Iterable[CleanupItem]) -> list[CleanupItem]:
    """*items* in their order; those that differ only in their count are combined."""
    found: dict[tuple[object, ...], CleanupItem] = {}
    for item in items:
        key = (item.what, item.goes, item.queue, item.why, item.subscription, item.correl_id)
        before = found.get(key)
        count = item.count + (0 if before is None else before.count)
        found[key] = CleanupItem(item.what, item.goes, item.queue, item.why, count, item.subscription, item.correl_id)
    return list(found.values())


def jms_queues(names: Collection[str]) -> list[str]:
    """Those of *names* that the cleanup looks at, in alphabetical order."""
    return sorted(name for name in names if is_jms(name))


# Carries out a cleanup on the embedded queue manager: subscriptions first, then queue by queue.
#
# A unit of work removes at most ``_MOST_MESSAGES`` messages, so that other programs can work in between. Each unit of
# work begins by reading the subscriptions again, so that a subscription registered meanwhile keeps its messages. If the
# run is killed, committed removals stay and the rest is unchanged; the next run continues there.

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
        if unit.find_queue(queue_names.ADMIN_QUEUE) is None:
            return Records()
        entries: set[tuple[str, bytes]] = set()
        unread = 0
        for message in unit.browse(queue_names.ADMIN_QUEUE):
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
