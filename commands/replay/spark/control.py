"""The first pass: the control plane, in order.

Few messages are run in one task for each queue manager. Many are dealt out to several tasks (``control_tasks``), so
that no two tasks have commands that can meet; the notes on what expires then say more, and mean the same.

It leaves notes, rows of NOTES: the intervals in which subscriptions had one value (``journal``), and the lookups of
what is retained (``retained``). The notes stay where they were made, on the disks of the executors. Tasks get those
that they need; neither a task nor the driver has all of them.

What changes subscriptions is on the control queue; what changes or asks for retained publications is there too, save
DeletePub and Publish with RetainPub. Those are on stream queues, and are found without decoding all the rest, most of
which is ``plain``. What is not is parsed.

The messages go through an ordinary broker, which traces what it does. What it would put is dropped: the second pass
makes every put. A subscription does not depend on anything that is published; what is retained matters for what is put
alone. So publications are left out, with one exception: on queue managers that ``Prepared.exact`` names, what is
retained goes through too, and between two messages that go through the *tick*: the latest moment among the commands
between them, at which things expired. Such a queue manager has one task, because what expires depends on every message.

On all others the clock never goes back where something expires. There it does not matter which message notices that a
subscription has expired: no later one finds it. So its interval ends, at the latest, with the last range that begins
before it expires.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival
from commands.broker.state import subscription_state
from commands.broker.times import to_microseconds
from commands.model import DeletePublication, Publish, PubOpt
from commands.mqsc.broker import Broker
from commands.replay.spark.control_tasks import (
    KEY_FIELDS,
    ControlTasks,
    Keys,
    deal_out,
    keyed,
    with_task,
)
from commands.replay.spark.journal import BEFORE_ALL, FOREVER
from commands.replay.spark.prepare import Prepared, Work, once
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, arrow_schema, batch_of, columns
from streams.operations import (
    ClearRetained,
    Effect,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription

NOTES: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("kind", StringType()),
        StructField("after", LongType()),
        StructField("until", LongType()),
        StructField("first", IntegerType()),
        StructField("last", IntegerType()),
        StructField("text", StringType()),
        StructField("scheme", StringType()),
        StructField("topic", StringType()),
        StructField("now", TimestampType()),
        StructField("operation", BinaryType()),
    ]
)
"""What the control plane leaves. kind: INTERVAL, LOOKUP or WINNER.

INTERVAL: after, until; first and last range that needs it; text, the state of the subscription. LOOKUP: after, the
message that looks; until, the place of the lookup among those of the message; text and scheme, the pattern; topic, the
only topic that it can be, null for a wildcard; operation, what a DeletePub does. WINNER: after, the message that looks;
topic; until, the message whose publication is retained there: on the queue managers that ``exact`` names.
"""

_ARROW_NOTES: Final = arrow_schema(NOTES)
INTERVAL, LOOKUP, WINNER = "interval", "lookup", "winner"
TICK: Final = "(tick)"
"""The queue of a row that is no message but the latest moment of those between two that go through."""
FEWEST_IN_A_TASK: Final = 20_000
"""Control messages for which a task of their own is worth the dealing out."""
_BATCH_ROWS: Final = 4096
_NO_RANGE: Final = (None, None)
_NO_LOOKUP: Final = (None, None, None, None)


def control_plane(prepared: Prepared, *, clears: bool = False) -> DataFrame:
    """The notes of all queue managers, kept on disk when they are first made. clears: whether what DeletePub finds is
    wanted, too."""
    tasks = min(prepared.cores, prepared.control_count // FEWEST_IN_A_TASK)
    plane = ControlPlaneSetup(prepared.setting, prepared.starts, frozenset(prepared.exact), clears, prepared.begins)
    if tasks < 2:
        return control_messages(prepared).mapInArrow(notes_of(plane), NOTES).persist(StorageLevel.DISK_ONLY)
    return _in_tasks(prepared, plane, tasks)


def _in_tasks(prepared: Prepared, plane: ControlPlaneSetup, count: int) -> DataFrame:
    """The same, in so many tasks; the notes are made now."""
    messages = control_columns(prepared)
    schema = StructType([*messages.schema.fields, *KEY_FIELDS])
    with_keys = messages.mapInArrow(keyed, schema).persist(StorageLevel.DISK_ONLY)
    names = [field.name for field in KEY_FIELDS]
    counted = with_keys.groupBy("qmgr", *names).count().toArrow()
    rows = zip(*(counted.column(name).to_pylist() for name in ("qmgr", *names, "count")), strict=True)
    found = {
        (qmgr, Keys(key, tuple(of_names), own_queue, mixes)): number
        for qmgr, key, of_names, own_queue, mixes, number in rows
    }
    dealt = deal_out(found, lambda qmgr: plane.setting.broker(qmgr).space.subscriptions(), count)
    placed = StructType([*messages.schema.fields, StructField("task", IntegerType())])
    in_tasks = with_keys.mapInArrow(with_task(dealt), placed)
    if prepared.exact:
        in_tasks = in_tasks.union(_exact(prepared).withColumn("task", F.pmod(F.hash("qmgr"), F.lit(count))))
    in_order = in_tasks.repartitionById(count, "task").sortWithinPartitions("qmgr", "seq")
    notes = in_order.mapInArrow(notes_of(plane, dealt), NOTES).persist(StorageLevel.DISK_ONLY)
    notes.count()
    with_keys.unpersist()
    return notes


def control_messages(prepared: Prepared) -> DataFrame:
    """What goes through the first pass, in order, each queue manager in one partition; a tick is on queue ``TICK``."""
    kept = control_columns(prepared)
    if prepared.exact:
        kept = kept.union(_exact(prepared))
    return kept.repartition("qmgr").sortWithinPartitions("qmgr", "seq")


def control_columns(prepared: Prepared) -> DataFrame:
    """What goes through the first pass on queue managers that are not exact: the columns COLUMNS, in no order."""
    exact = F.col("qmgr").isin(list(prepared.exact)) if prepared.exact else F.lit(False)
    return prepared.control.where(~exact).select(*COLUMNS)


def _exact(prepared: Prepared) -> DataFrame:
    """The same of those that are, with ticks."""
    messages = prepared.messages.where(F.col("qmgr").isin(list(prepared.exact)))
    return _with_ticks(messages, prepared.ranges, prepared.setting)


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


@dataclass(frozen=True)
class ControlPlaneSetup:
    """What a task of the control plane knows beside its messages: as in ``Prepared``. clears: whether what DeletePub
    finds is wanted, too."""

    setting: ReplaySetup
    starts: tuple[int, ...]
    exact: frozenset[str] = frozenset()
    clears: bool = False
    begins: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


class _ControlPlane:
    """The control plane of one queue manager, or what one task has of it, while it is run.

    task: its number, where there are several.
    """

    def __init__(self, qmgr: str, setup: ControlPlaneSetup, tasks: ControlTasks | None, task: int = 0) -> None:
        self._qmgr, self._exact, self._clears, self._starts = qmgr, qmgr in setup.exact, setup.clears, setup.starts
        self._broker = setup.setting.broker(qmgr)
        defined = self._broker.space.subscriptions()
        if tasks is not None and not self._exact:
            defined = tuple(each for each in defined if tasks.of_subscription(qmgr, each) == task)
            self._broker.space.restore(defined, (), setup.setting.broker(qmgr).space)
        self._since = {s.sub_id: (BEFORE_ALL, s) for s in defined}
        self._stored: dict[str, int] = {}
        begins = setup.begins.get(qmgr, {})
        self._began, self._ranges = [begins[number] for number in sorted(begins)], sorted(begins)

    def process(self, arrival: Arrival) -> Iterator[tuple[Any, ...]]:
        """The notes that one message, or tick, leads to."""
        seq, now = arrival.seq, arrival.now
        if arrival.queue == TICK:
            yield from self._changed(seq, self._broker.space.expire(now))
            return
        outcome = self._broker.trace(arrival)
        yield from self._changed(seq, outcome.effects)
        assert outcome.trace is not None
        for n, traced in enumerate(outcome.trace.operations):
            look = traced.look
            if look is None:
                continue
            clears = traced.operation if isinstance(traced.operation, ClearRetained) else None
            if self._exact:
                wanted = look.found if self._clears or clears is None else ()
                for topic in wanted:
                    yield (self._qmgr, WINNER, seq, self._stored[topic], *_NO_RANGE, None, None, topic, None, None)
            else:
                operation = None if clears is None else pickle.dumps(clears)
                pattern = parse_pattern(look.pattern, look.scheme)
                only = None if pattern.is_wild else pattern.literal
                what = (look.pattern, look.scheme.value, only, now, operation)
                yield (self._qmgr, LOOKUP, seq, n, *_NO_RANGE, *what)

    def end(self) -> Iterator[tuple[Any, ...]]:
        """The notes on what is left."""
        for after, subscription in self._since.values():
            yield self._interval(after, FOREVER, subscription)

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
            yield self._interval(after, seq, value)

    def _interval(self, after: int, until: int, subscription: Subscription) -> tuple[Any, ...]:
        until = min(until, self._last_before_expiry(subscription))
        ranges = _range_of(self._starts, after + 1), _range_of(self._starts, until)
        return (self._qmgr, INTERVAL, after, until, *ranges, subscription_state(subscription), *_NO_LOOKUP)

    def _last_before_expiry(self, subscription: Subscription) -> int:
        """A message after which no other finds *subscription*: the last one of a range."""
        if subscription.expires_at is None:
            return FOREVER
        at = bisect_left(self._began, to_microseconds(subscription.expires_at))
        return self._starts[self._ranges[at]] - 1 if at < len(self._ranges) else FOREVER


def _range_of(starts: tuple[int, ...], seq: int) -> int:
    """The range of message *seq*, or the nearest one."""
    return min(max(bisect_right(starts, seq) - 1, 0), len(starts) - 2)


def notes_of(setup: ControlPlaneSetup, tasks: ControlTasks | None = None) -> Work:
    """What a task of the control plane does: messages, with the columns COLUMNS, in; NOTES out.

    tasks: where there are several, which of them has what; each message then has its task, too.
    """
    names = COLUMNS if tasks is None else (*COLUMNS, "task")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plane: _ControlPlane | None = None
        current = ""
        rows: list[tuple[Any, ...]] = []
        for seq, now, qmgr, queue, user, md, body, *task in once(
            row for batch in batches for row in columns(batch, *names)
        ):
            if plane is None or qmgr != current:
                if plane is not None:
                    rows += plane.end()
                plane, current = _ControlPlane(qmgr, setup, tasks, *task), qmgr
            rows += plane.process(Arrival(seq, now, queue, md, body, user))
            if len(rows) >= _BATCH_ROWS:
                yield from _batches(rows, _ARROW_NOTES)
                rows = []
        if plane is not None:
            rows += plane.end()
        yield from _batches(rows, _ARROW_NOTES)

    return run
