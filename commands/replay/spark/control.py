"""The first pass: the control plane, in order, one task for each queue manager.

What changes subscriptions is on the control queue; what changes or asks for retained publications is there too, save
DeletePub and Publish with RetainPub. Those are on stream queues, and are found without decoding all the rest, most of
which is ``plain``. What is not is parsed.

The messages go through an ordinary broker, which traces what it does. What it would put is dropped: the second pass
makes every put. A subscription does not depend on anything that is published; what is retained matters for what is put
alone. So publications are left out, with one exception: on queue managers that ``Prepared.exact`` names, what is
retained goes through too, and between two messages that go through the *tick*: the latest moment among the commands
between them, at which things expired.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

from commands.broker.core import Arrival
from commands.broker.objects import CONTROL_QUEUE
from commands.model import DeletePublication, Publish, PubOpt
from commands.mqsc.broker import Broker
from commands.qmgr.store.state import subscription_state
from commands.replay.spark.journal import BEFORE_ALL, FOREVER, Lookup, SubscriptionJournal, SubscriptionJournals
from commands.replay.spark.prepare import Prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.rows import EPOCH, batch_of, columns
from commands.replay.spark.schemas import COLUMNS, arrow_schema
from streams.operations import (
    ClearRetained,
    Effect,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.subscriptions import Subscription, WildcardScheme

_JOURNAL_ROWS: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("kind", StringType()),
        StructField("after", LongType()),
        StructField("until", LongType()),
        StructField("text", StringType()),
        StructField("scheme", StringType()),
        StructField("now", TimestampType()),
        StructField("operation", BinaryType()),
    ]
)
_ARROW_JOURNAL_ROWS: Final = arrow_schema(_JOURNAL_ROWS)
_INTERVAL, _LOOKUP, _WINNER = "interval", "lookup", "winner"
TICK: Final = "(tick)"
"""The queue of a row that is no message but the latest moment of those between two that go through."""
_BATCH_ROWS: Final = 4096

Winner = tuple[str, int, str, int]
"""Queue manager, the message that looks, the topic string, and the message whose publication is retained there."""


def control_plane(prepared: Prepared, *, clears: bool = False) -> tuple[SubscriptionJournals, list[Winner]]:
    """The journals by queue manager; and what lookups find, on the queue managers that ``exact`` names.

    clears: whether what DeletePub finds is wanted, too.
    """
    in_order = control_messages(prepared)
    notes = in_order.mapInArrow(_noted(prepared.setting, frozenset(prepared.exact), clears), _JOURNAL_ROWS).toArrow()
    return _read_notes(notes)


def control_messages(prepared: Prepared) -> DataFrame:
    """What goes through the first pass, in order, each queue manager in one partition; a tick is on queue ``TICK``."""
    setting = prepared.setting
    exact = F.col("qmgr").isin(list(prepared.exact)) if prepared.exact else F.lit(False)
    kept = prepared.control.where(~exact).select(*COLUMNS)
    if prepared.exact:
        kept = kept.union(_with_ticks(prepared.messages.where(exact), prepared.ranges, setting))
    return kept.repartition("qmgr").sortWithinPartitions("qmgr", "seq")


def _is_deletion(command: object) -> bool:
    return isinstance(command, DeletePublication)


def is_retained(command: object) -> bool:
    """Whether a command leaves something retained, if it succeeds."""
    return isinstance(command, Publish) and command.has(PubOpt.RETAIN_PUB)


def _with_ticks(messages: DataFrame, ranges: int, setting: ReplaySetup) -> DataFrame:
    """The messages that go through on exact queue managers, and a tick at the end of each gap between them."""
    in_order = messages.repartitionById(ranges, "range").sortWithinPartitions("qmgr", "seq").select(*COLUMNS)

    def chosen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ticks: dict[str, tuple[int, datetime]] = {}
        brokers: dict[str, Broker] = {}
        for batch in batches:
            rows: list[tuple[Any, ...]] = []
            for row in columns(batch, *COLUMNS):
                seq, now, qmgr, queue, user, md, body = row
                broker = brokers.get(qmgr)
                if broker is None:
                    broker = brokers[qmgr] = setting.broker(qmgr)
                outcome = broker.trace(Arrival(seq, now, queue, md, body, user))
                if queue == CONTROL_QUEUE or _is_deletion(outcome.command) or is_retained(outcome.command):
                    if qmgr in ticks:
                        rows.append(_tick(qmgr, *ticks.pop(qmgr)))
                    rows.append(row)
                elif outcome.trace is not None and outcome.trace.reached:
                    latest = max(now, ticks[qmgr][1]) if qmgr in ticks else now
                    ticks[qmgr] = (seq, latest)
            yield from _batches(rows, schema)
        yield from _batches([_tick(qmgr, *tick) for qmgr, tick in ticks.items()], schema)

    schema = arrow_schema(in_order.schema)
    return in_order.mapInArrow(chosen, in_order.schema)


def _tick(qmgr: str, seq: int, now: datetime) -> tuple[Any, ...]:
    return (seq, now, qmgr, TICK, None, None, b"")


def _batches(rows: list[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if rows:
        yield batch_of(rows, schema)


class _ControlPlane:
    """The control plane of one queue manager while it is run."""

    def __init__(self, qmgr: str, setting: ReplaySetup, exact: bool, clears: bool) -> None:
        self._qmgr, self._exact, self._clears = qmgr, exact, clears
        self._broker = setting.broker(qmgr)
        self._since = {s.sub_id: (BEFORE_ALL, s) for s in self._broker.space.subscriptions()}
        self._stored: dict[str, int] = {}

    def process(self, arrival: Arrival) -> Iterator[tuple[Any, ...]]:
        """The notes that one message, or tick, leads to."""
        seq, now = arrival.seq, arrival.now
        if arrival.queue == TICK:
            yield from self._changed(seq, self._broker.space.expire(now))
            return
        outcome = self._broker.trace(arrival)
        yield from self._changed(seq, outcome.effects)
        assert outcome.trace is not None
        for traced in outcome.trace.operations:
            look = traced.look
            if look is None:
                continue
            clears = traced.operation if isinstance(traced.operation, ClearRetained) else None
            if self._exact:
                wanted = look.found if self._clears or clears is None else ()
                yield from (self._note(_WINNER, seq, self._stored[topic], topic) for topic in wanted)
            else:
                operation = None if clears is None else pickle.dumps(clears)
                yield self._note(_LOOKUP, seq, None, look.pattern, look.scheme.value, now, operation)

    def end(self) -> Iterator[tuple[Any, ...]]:
        """The notes on what is left."""
        for after, subscription in self._since.values():
            yield self._note(_INTERVAL, after, FOREVER, subscription_state(subscription))

    def _changed(self, seq: int, effects: Iterable[Effect]) -> Iterator[tuple[Any, ...]]:
        for effect in effects:
            match effect:
                case SubscriptionAdded(subscription):
                    self._since[subscription.sub_id] = (seq, subscription)
                case SubscriptionAltered(before, subscription):
                    yield from self._closed(seq, before)
                    self._since[subscription.sub_id] = (seq, subscription)
                case SubscriptionRemoved(subscription):
                    yield from self._closed(seq, subscription)
                case RetainedStored(retained):
                    self._stored[retained.topic_string] = seq

    def _closed(self, seq: int, subscription: Subscription) -> Iterator[tuple[Any, ...]]:
        after, value = self._since.pop(subscription.sub_id)
        if after < seq:
            yield self._note(_INTERVAL, after, seq, subscription_state(value))

    def _note(
        self,
        kind: str,
        after: int,
        until: int | None,
        text: str,
        scheme: str | None = None,
        now: datetime | None = None,
        operation: bytes | None = None,
    ) -> tuple[Any, ...]:
        return (self._qmgr, kind, after, until, text, scheme, now, operation)


def _noted(
    setting: ReplaySetup, exact: frozenset[str], clears: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plane: _ControlPlane | None = None
        current = ""
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for seq, now, qmgr, queue, user, md, body in columns(batch, *COLUMNS):
                if plane is None or qmgr != current:
                    if plane is not None:
                        rows += plane.end()
                    plane, current = _ControlPlane(qmgr, setting, qmgr in exact, clears), qmgr
                rows += plane.process(Arrival(seq, now, queue, md, body, user))
                if len(rows) >= _BATCH_ROWS:
                    yield from _batches(rows, _ARROW_JOURNAL_ROWS)
                    rows = []
        if plane is not None:
            rows += plane.end()
        yield from _batches(rows, _ARROW_JOURNAL_ROWS)

    return run


def _read_notes(notes: pa.Table) -> tuple[SubscriptionJournals, list[Winner]]:
    winners: list[Winner] = []
    intervals: dict[str, list[tuple[int, int, str]]] = {}
    lookups: dict[str, list[Lookup]] = {}
    for batch in notes.to_batches():
        for qmgr, kind, after, until, text, scheme, now, operation in columns(batch, *_JOURNAL_ROWS.names):
            lookups.setdefault(qmgr, [])
            if kind == _INTERVAL:
                intervals.setdefault(qmgr, []).append((after, until, text))
            elif kind == _WINNER:
                winners.append((qmgr, after, text, until))
            else:
                clears = None if operation is None else pickle.loads(operation)
                lookups[qmgr].append(Lookup(after, now or EPOCH, text, WildcardScheme(scheme), clears))
    journals = {}
    for qmgr, looks in lookups.items():
        found = intervals.get(qmgr, [])
        after_all = np.array([after for after, _, _ in found], np.int64)
        until_all = np.array([until for _, until, _ in found], np.int64)
        in_order = sorted(looks, key=lambda look: look.seq)
        journals[qmgr] = SubscriptionJournal(after_all, until_all, [state for _, _, state in found], in_order)
    return journals, winners
