"""The state of all brokers of a replay as items, and changes of items, which can be undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from commands.broker.puts import Put, PutKind
from streams.operations import (
    Effect,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.subscriptions import Subscription


class ItemKind(StrEnum):
    """What an item of the state is."""

    SUBSCRIPTION = "subscription"
    RETAINED = "retained"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class QueueTally:
    """How many messages the replay has put on a queue so far. Nobody gets them in a replay."""

    publications: int = 0
    responses: int = 0
    dead_letters: int = 0

    @property
    def messages(self) -> int:
        """All together."""
        return self.publications + self.responses + self.dead_letters

    def with_put(self, kind: PutKind) -> QueueTally:
        """The tally with one message more."""
        return QueueTally(
            self.publications + (kind is PutKind.PUBLICATION),
            self.responses + (kind is PutKind.RESPONSE),
            self.dead_letters + (kind is PutKind.DEADLETTER),
        )


Key = tuple[str, str]
"""The queue manager; and the sub_id in hexadecimal, the topic string, or the name of the queue."""

Item = Subscription | RetainedPublication | QueueTally


@dataclass(frozen=True, slots=True)
class Change:
    """One item before and after a message; None where it did not exist, or does not exist any more."""

    kind: ItemKind
    key: Key
    before: Item | None
    after: Item | None

    @property
    def verb(self) -> str:
        """``added``, ``changed`` or ``removed``."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"


@dataclass(slots=True)
class StepState:
    """All items. Mutable: ``apply`` and ``undo`` move it by one message."""

    subscriptions: dict[Key, Subscription] = field(default_factory=dict)
    retained: dict[Key, RetainedPublication] = field(default_factory=dict)
    queues: dict[Key, QueueTally] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.subscriptions) + len(self.retained) + len(self.queues)

    def copy(self) -> StepState:
        """Another state with the same items."""
        return StepState(dict(self.subscriptions), dict(self.retained), dict(self.queues))

    @property
    def qmgrs(self) -> list[str]:
        """The queue managers that have an item."""
        return sorted({qmgr for items in (self.subscriptions, self.retained, self.queues) for qmgr, _ in items})

    def apply(self, changes: Iterable[Change]) -> None:
        """Go one message forwards."""
        for change in changes:
            self._set(change.kind, change.key, change.after)

    def undo(self, changes: Iterable[Change]) -> None:
        """Go one message backwards. changes: those that led here."""
        for change in reversed(tuple(changes)):
            self._set(change.kind, change.key, change.before)

    def _set(self, kind: ItemKind, key: Key, item: Item | None) -> None:
        items: dict[Key, Any] = self._of(kind)
        if item is None:
            items.pop(key, None)
        else:
            items[key] = item

    def _of(self, kind: ItemKind) -> dict[Key, Any]:
        if kind is ItemKind.SUBSCRIPTION:
            return self.subscriptions
        return self.retained if kind is ItemKind.RETAINED else self.queues

    def changes(self, qmgr: str, effects: Iterable[Effect], puts: Iterable[Put]) -> Iterator[Change]:
        """What a message changes, one change an item, in the order of the effects; not applied yet."""
        items: dict[tuple[ItemKind, Key], Item | None] = {}
        for effect in effects:
            match effect:
                case SubscriptionAdded(subscription) | SubscriptionAltered(_, subscription):
                    items[ItemKind.SUBSCRIPTION, (qmgr, subscription.sub_id.hex())] = subscription
                case SubscriptionRemoved(subscription):
                    items[ItemKind.SUBSCRIPTION, (qmgr, subscription.sub_id.hex())] = None
                case RetainedStored(retained):
                    items[ItemKind.RETAINED, (qmgr, retained.topic_string)] = retained
                case RetainedCleared(topic_string):
                    items[ItemKind.RETAINED, (qmgr, topic_string)] = None
        for put in puts:
            at = ItemKind.QUEUE, (put.qmgr or qmgr, put.queue)
            tally = items.get(at) or self.queues.get(at[1]) or QueueTally()
            assert isinstance(tally, QueueTally)
            items[at] = tally.with_put(put.kind)
        for (kind, key), after in items.items():
            before = self._of(kind).get(key)
            # A command can alter a subscription to what it was. Publications are never compared: they can be long.
            if before is not after and not (kind is ItemKind.SUBSCRIPTION and before == after):
                yield Change(kind, key, before, after)


def difference(before: StepState, after: StepState) -> Iterator[Change]:
    """What has to change in *before* to make it *after*, sorted."""
    for kind in ItemKind:
        old, new = before._of(kind), after._of(kind)
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield Change(kind, key, old.get(key), new.get(key))
