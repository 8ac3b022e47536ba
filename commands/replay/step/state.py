"""The state of all brokers of a replay as items; changes of items, which can be undone; and snapshots.

A snapshot is the state between two messages as bytes, from which the replay can go on: JSON, sorted, compressed; equal
states give equal bytes. It holds nothing of the setup, which runs again. A publication that several topics retain is
written once, and is one again when it is read, because version 6 asks whether it is.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from commands.broker.puts import Put, PutKind
from commands.broker.state import subscription_of, subscription_state
from commands.broker.times import from_microseconds, to_microseconds
from commands.mqsc.broker import BrokerState
from commands.replay.local import LocalReplay
from rfh2.errors import QPubSubError
from rfh2.message import decode, encode
from streams import operations as op
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

Item = Subscription | op.RetainedPublication | QueueTally


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
    retained: dict[Key, op.RetainedPublication] = field(default_factory=dict)
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

    def changes(self, qmgr: str, effects: Iterable[op.Effect], puts: Iterable[Put]) -> Iterator[Change]:
        """What a message changes, one change an item, in the order of the effects; not applied yet."""
        items: dict[tuple[ItemKind, Key], Item | None] = {}
        for effect in effects:
            match effect:
                case op.SubscriptionAdded(subscription) | op.SubscriptionAltered(_, subscription):
                    items[ItemKind.SUBSCRIPTION, (qmgr, subscription.sub_id.hex())] = subscription
                case op.SubscriptionRemoved(subscription):
                    items[ItemKind.SUBSCRIPTION, (qmgr, subscription.sub_id.hex())] = None
                case op.RetainedStored(retained):
                    items[ItemKind.RETAINED, (qmgr, retained.topic_string)] = retained
                case op.RetainedCleared(topic_string):
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


VERSION: Final = 1
_QUICKLY: Final = 1


class SnapshotError(QPubSubError):
    """A snapshot that cannot be read: it is damaged, or another version wrote it."""


def snapshot_of(replay: LocalReplay, queues: Mapping[Key, QueueTally]) -> bytes:
    """The snapshot of *replay*. queues: what it has put. Raises EncodeError for a message that has no bytes."""
    form = {
        "version": VERSION,
        "last_seq": replay.last_seq,
        "brokers": {qmgr: _broker_form(broker.state()) for qmgr, broker in sorted(replay.brokers.items())},
        "queues": [[*key, t.publications, t.responses, t.dead_letters] for key, t in sorted(queues.items())],
    }
    return zlib.compress(json.dumps(form, separators=(",", ":")).encode(), _QUICKLY)


def resumed(data: bytes, setup: str, semantics: str) -> tuple[LocalReplay, StepState]:
    """The replay that a snapshot was taken of, and its state. setup, semantics: those of that replay.

    Raises SnapshotError.
    """
    try:
        form = json.loads(zlib.decompress(data))
        if form["version"] != VERSION:
            raise SnapshotError(f"version {form['version']} of snapshots cannot be read, only version {VERSION}")
        states = {qmgr: _broker_state(each) for qmgr, each in form["brokers"].items()}
        replay = LocalReplay.resumed(setup, semantics, form["last_seq"], states)
        queues = {(qmgr, queue): QueueTally(*counts) for qmgr, queue, *counts in form["queues"]}
    except SnapshotError:
        raise
    except (zlib.error, KeyError, TypeError, ValueError, QPubSubError) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error
    return replay, state_of(replay, queues)


def state_of(replay: LocalReplay, queues: Mapping[Key, QueueTally]) -> StepState:
    """The items of a replay."""
    state = StepState(queues=dict(queues))
    for qmgr, broker in replay.brokers.items():
        for subscription in broker.space.subscriptions():
            state.subscriptions[qmgr, subscription.sub_id.hex()] = subscription
        for retained in broker.space.retained_publications():
            state.retained[qmgr, retained.topic_string] = retained
    return state


def _broker_form(state: BrokerState) -> dict[str, Any]:
    numbers: dict[int, int] = {}
    publications: list[Any] = []
    retained: list[tuple[str, int]] = []
    for each in state.retained:
        publication = each.publication
        number = numbers.setdefault(id(publication), len(publications))
        if number == len(publications):
            publications.append(_publication_form(publication))
        retained.append((each.topic_string, number))
    return {
        "last_time": to_microseconds(state.last_time),
        "begun": state.begun,
        "subscriptions": [subscription_state(each) for each in state.subscriptions],
        "publications": publications,
        "retained": retained,
    }


def _publication_form(publication: op.Published) -> dict[str, Any]:
    message = publication.message
    return {
        "md": message.mqmd.encode().hex(),
        "body": encode(message).hex(),
        "published_at": to_microseconds(publication.published_at),
        "expires_at": _micros(publication.expires_at),
        "local": publication.local,
        "stream": publication.stream,
        "sub_point": publication.sub_point,
    }


def _micros(time: datetime | None) -> int | None:
    return None if time is None else to_microseconds(time)


def _broker_state(form: dict[str, Any]) -> BrokerState:
    publications = [_publication(each) for each in form["publications"]]
    return BrokerState(
        from_microseconds(form["last_time"]),
        bool(form["begun"]),
        tuple(subscription_of(each) for each in form["subscriptions"]),
        tuple(op.RetainedPublication(topic, publications[number]) for topic, number in form["retained"]),
    )


def _publication(form: dict[str, Any]) -> op.Publication:
    expires_at = form["expires_at"]
    return op.Publication(
        decode(bytes.fromhex(form["body"]), bytes.fromhex(form["md"])),
        from_microseconds(form["published_at"]),
        None if expires_at is None else from_microseconds(expires_at),
        form["local"],
        form["stream"],
        form["sub_point"],
    )
