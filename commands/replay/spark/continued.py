"""A broker that continues another one: its knowledge as rows of a state, and the next messages.

Between two batches of a continuous replay, a broker is stored as rows: its subscriptions, its retained publications,
and a position in the order of ``seq``. A broker made from the rows makes the same puts as the first one would.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from commands.broker.state import from_microseconds, subscription_of, subscription_state, to_microseconds
from commands.mqsc.broker import Broker
from commands.replay.spark.replay_setup import ReplaySetup
from rfh2.message import decode, encode
from streams.operations import (
    Effect,
    Publication,
    Published,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)

_ATTRIBUTES: Final = tuple(each.name for each in fields(Publication) if each.name != "message")


class RetainedRow(NamedTuple):
    """A retained publication as it is kept: the message that it came with, and everything else as JSON.

    seq: of the command that published it.
    """

    seq: int
    attributes: str
    md: bytes
    body: bytes


class Waiting(NamedTuple):
    """A captured message without its queue manager and seq. at: its time, in microseconds since 1970."""

    at: int | None
    queue: str
    user: str | None
    md: bytes | None
    body: bytes


def begun(setting: ReplaySetup, qmgr: str, first: datetime) -> Broker:
    """A broker just before its first message, which comes at *first*."""
    return replace(setting, begins={qmgr: first}).broker(qmgr)


def continued(
    setting: ReplaySetup, qmgr: str, subscriptions: Iterable[str], retained: Iterable[tuple[str, RetainedRow]]
) -> Broker:
    """A broker with these subscriptions and these retained publications, which are given by topic string."""
    broker = setting.broker(qmgr)
    known = [subscription_of(state) for state in subscriptions]
    published: dict[tuple[int, str], Publication] = {}
    restored = []
    for topic, row in retained:
        # What one message published on several topics stays one publication.
        key = (row.seq, row.attributes)
        if key not in published:
            published[key] = _publication(row)
        restored.append(RetainedPublication(topic, published[key]))
    broker.space.restore(known, restored, setting.broker(qmgr).space)
    return broker


@dataclass
class Changes:
    """The changes of a batch to the rows; None for a row that is deleted."""

    subscriptions: dict[bytes, str | None] = field(default_factory=dict)
    retained: dict[str, RetainedRow | None] = field(default_factory=dict)

    @classmethod
    def first(cls, broker: Broker) -> Changes:
        """The state of a broker before its first message."""
        return cls({each.sub_id: subscription_state(each) for each in broker.space.subscriptions()})

    def take(self, seq: int, effects: Iterable[Effect]) -> None:
        """Note the changes of one message."""
        last: tuple[Published, RetainedRow] | None = None
        for effect in effects:
            match effect:
                case SubscriptionAdded(subscription) | SubscriptionAltered(_, subscription):
                    self.subscriptions[subscription.sub_id] = subscription_state(subscription)
                case SubscriptionRemoved(subscription):
                    self.subscriptions[subscription.sub_id] = None
                case RetainedStored(retained):
                    # Topics that retain one publication share its bytes.
                    if last is None or last[0] is not retained.publication:
                        last = retained.publication, _row(seq, retained.publication)
                    self.retained[retained.topic_string] = last[1]
                case RetainedCleared(topic):
                    self.retained[topic] = None


def _row(seq: int, publication: Published) -> RetainedRow:
    attributes: dict[str, Any] = {}
    for name in _ATTRIBUTES:
        value = getattr(publication, name)
        attributes[name] = {"us": to_microseconds(value)} if isinstance(value, datetime) else value
    message = publication.message
    return RetainedRow(seq, json.dumps(attributes), message.mqmd.encode(), encode(message))


def _publication(row: RetainedRow) -> Publication:
    attributes: dict[str, Any] = {
        name: from_microseconds(value["us"]) if isinstance(value, dict) else value
        for name, value in json.loads(row.attributes).items()
    }
    return Publication(decode(row.body, row.md), **attributes)


# Which messages are next


@dataclass(frozen=True, slots=True)
class DueMessages:
    """What becomes of the messages that are there.

    due: to be processed, in order. waits: those that have come and wait. released: the seq of those that had waited and
    are due. late: those that came too late, or with the seq of another message; an exact copy of one that is there is
    passed over. highest: the highest seq so far.
    """

    due: tuple[tuple[int, Waiting], ...]
    waits: dict[int, Waiting]
    released: tuple[int, ...]
    late: tuple[tuple[int, Waiting], ...]
    highest: int


def turn(
    new: Sequence[tuple[int, Waiting]], waiting: Mapping[int, Waiting], last: int, highest: int, hold: int
) -> DueMessages:
    """Sort out what is due: up to *hold* below the highest seq.

    new: in any order. waiting: what waits since earlier batches. last: the seq of the last one processed. highest: of
    all that have come.
    """
    late = []
    taken: dict[int, Waiting] = {}
    # In an order of their own, so that a batch which is tried again chooses the same one of two with one seq.
    for seq, message in sorted(new, key=_order):
        known = waiting.get(seq) or taken.get(seq)
        if seq <= last or (known is not None and known != message):
            late.append((seq, message))
        elif known is not None:
            continue
        else:
            taken[seq] = message
    highest = max((highest, *taken))
    limit = highest - hold
    due = sorted((seq, message) for seq, message in (*waiting.items(), *taken.items()) if seq <= limit)
    return DueMessages(
        tuple(due),
        {seq: message for seq, message in taken.items() if seq > limit},
        tuple(seq for seq in waiting if seq <= limit),
        tuple(late),
        highest,
    )


def _order(numbered: tuple[int, Waiting]) -> tuple[Any, ...]:
    seq, (at, queue, user, md, body) = numbered
    return (seq, at or 0, queue, user or "", md or b"", body)
