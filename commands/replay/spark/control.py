"""The first pass: the control plane, in order.

Few messages are run in one task for each queue manager. Many are dealt out to several tasks (``control_tasks``), so
that no two tasks have commands that can meet; the notes on what expires then say more, and mean the same.

It leaves notes, rows of NOTES: the subscriptions that there are at the beginning of each range, and the DeletePubs,
which ``retained`` needs. The notes stay where they were made, on the disks of the executors. Tasks get those that they
need; neither a task nor the driver has all of them.

What changes subscriptions is on the control queue; what changes or asks for retained publications is there too, save
DeletePub and Publish with RetainPub. Those are on stream queues, and are found without decoding all the rest, most of
which is ``plain``. What is not is parsed.

The messages go through an ordinary broker, which traces what it does. What it would put is dropped: the second pass
makes every put. A subscription does not depend on anything that is published; what is retained matters for what is put
alone. So publications are left out. What expires is left out of the ranges that begin when every message comes later;
where a clock goes back, *ticks* go through too, at which it expires (``ticks``), in each task.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from commands.broker.outcome import Arrival
from commands.broker.state import subscription_state, to_microseconds
from commands.replay.spark.control_tasks import (
    KEY_FIELDS,
    ControlTasks,
    Keys,
    deal_out,
    keyed,
    with_task,
)
from commands.replay.spark.prepare import TICK, Expiry, Prepared, Work, once
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, arrow_schema, batches_of, columns
from streams.operations import (
    ClearRetained,
    Effect,
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
        StructField("first", IntegerType()),
        StructField("last", IntegerType()),
        StructField("text", StringType()),
        StructField("topic", StringType()),
        StructField("seq", LongType()),
        StructField("now", TimestampType()),
        StructField("operation", BinaryType()),
    ]
)
"""What the control plane leaves. kind: SUBSCRIBED or DELETED.

SUBSCRIBED: the first and the last range at whose beginning there is a subscription, and text, its state. DELETED: seq
and now of a DeletePub; operation, what it does; topic, the only one that it can be about, null for a wildcard.
"""

_ARROW_NOTES: Final = arrow_schema(NOTES)
SUBSCRIBED, DELETED = "subscribed", "deleted"
FEWEST_IN_A_TASK: Final = 20_000
"""Control messages for which a task of their own is worth the dealing out."""
_ORDER: Final = ("qmgr", "seq", "queue")
"""A tick comes before the message on the control queue that has its seq."""
BEFORE_ALL: Final = -1
"""The seq of what the setup defined."""
FOREVER: Final = 2**63 - 1
"""The seq at which something ends that nothing ended."""


def control_plane(prepared: Prepared, ticks: DataFrame | None) -> DataFrame:
    """The notes of all queue managers, kept on disk when they are first made. ticks: TICKS."""
    tasks = min(prepared.cores, prepared.control_count // FEWEST_IN_A_TASK)
    plane = ControlPlaneSetup(prepared.setting, prepared.starts, prepared.expiry)
    if tasks < 2:
        return control_messages(prepared, ticks).mapInArrow(notes_of(plane), NOTES).persist(StorageLevel.DISK_ONLY)
    return _in_tasks(prepared, plane, tasks, ticks)


def _in_tasks(prepared: Prepared, plane: ControlPlaneSetup, count: int, ticks: DataFrame | None) -> DataFrame:
    """The same, in so many tasks; the notes are made now."""
    messages = prepared.control.select(*COLUMNS)
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
    if ticks is not None:
        every = F.explode(F.sequence(F.lit(0), F.lit(count - 1)))
        in_tasks = in_tasks.union(_as_messages(ticks).withColumn("task", every))
    in_order = in_tasks.repartitionById(count, "task").sortWithinPartitions(*_ORDER)
    notes = in_order.mapInArrow(notes_of(plane, dealt), NOTES).persist(StorageLevel.DISK_ONLY)
    notes.count()
    with_keys.unpersist()
    return notes


def control_messages(prepared: Prepared, ticks: DataFrame | None) -> DataFrame:
    """What goes through the first pass, in order, each queue manager in one partition; a tick is on queue ``TICK``."""
    through = prepared.control.select(*COLUMNS)
    if ticks is not None:
        through = through.union(_as_messages(ticks))
    return through.repartition("qmgr").sortWithinPartitions(*_ORDER)


def _as_messages(ticks: DataFrame) -> DataFrame:
    """The ticks for the control plane, as messages on queue ``TICK``."""
    nothing = {"queue": F.lit(TICK), "user": F.lit(None), "md": F.lit(None), "body": F.lit(b"")}
    return ticks.where(~F.col("for_retained")).withColumns(nothing).select(*COLUMNS)


@dataclass(frozen=True)
class ControlPlaneSetup:
    """What a task of the first pass knows beside its messages: as in ``Prepared``."""

    setting: ReplaySetup
    starts: tuple[int, ...]
    expiry: Expiry

    def spans(self, qmgr: str) -> RangeSpans:
        """The ranges of one queue manager."""
        return RangeSpans(self.starts, self.expiry.begins.get(qmgr, {}))


class RangeSpans:
    """At the beginning of which ranges something is there.

    starts: where ranges begin, and where the last one ends. begins: as in ``Expiry``, of one queue manager.
    """

    def __init__(self, starts: tuple[int, ...], begins: Mapping[int, int]) -> None:
        self._starts = starts
        self._began, self._ranges = [begins[number] for number in sorted(begins)], sorted(begins)

    def of(self, after: int, until: int, expires_at: datetime | None) -> tuple[int, int] | None:
        """The first and the last; None for no range. after: the message that made it. until: the one that ended it."""
        first = 0 if after == BEFORE_ALL else self.range_of(after) + 1
        last = self.range_of(until)
        if expires_at is not None:
            at = bisect_left(self._began, to_microseconds(expires_at))
            last = min(last, self._ranges[at] - 1) if at < len(self._ranges) else last
        return (first, last) if first <= last else None

    def range_of(self, seq: int) -> int:
        """The range of message *seq*, or the nearest one."""
        return min(max(bisect_right(self._starts, seq) - 1, 0), len(self._starts) - 2)


class _ControlPlane:
    """The control plane of one queue manager, or what one task has of it, while it is run.

    task: its number, where there are several.
    """

    def __init__(self, qmgr: str, setup: ControlPlaneSetup, tasks: ControlTasks | None, task: int = 0) -> None:
        self._qmgr, self._spans = qmgr, setup.spans(qmgr)
        self._broker = setup.setting.broker(qmgr)
        defined = self._broker.space.subscriptions()
        if tasks is not None:
            defined = tuple(each for each in defined if tasks.of_subscription(qmgr, each) == task)
            self._broker.space.restore(defined, (), setup.setting.broker(qmgr).space)
        self._since = {s.sub_id: (BEFORE_ALL, s) for s in defined}

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
            if isinstance(clears := traced.operation, ClearRetained):
                pattern = parse_pattern(clears.topic_string, clears.wildcard)
                only = None if pattern.is_wild else pattern.literal
                yield (self._qmgr, DELETED, None, None, None, only, seq, now, pickle.dumps(clears))

    def end(self) -> Iterator[tuple[Any, ...]]:
        """The notes on what is left."""
        for after, subscription in self._since.values():
            yield from self._subscribed(after, FOREVER, subscription)

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

    def _closed(self, seq: int, subscription: Subscription) -> Iterator[tuple[Any, ...]]:
        after, value = self._since.pop(subscription.sub_id)
        yield from self._subscribed(after, seq, value)

    def _subscribed(self, after: int, until: int, subscription: Subscription) -> Iterator[tuple[Any, ...]]:
        span = self._spans.of(after, until, subscription.expires_at)
        if span is not None:
            yield (self._qmgr, SUBSCRIBED, *span, subscription_state(subscription), None, None, None, None)


def notes_of(setup: ControlPlaneSetup, tasks: ControlTasks | None = None) -> Work:
    """What a task of the control plane does: messages, with the columns COLUMNS, in; NOTES out.

    tasks: where there are several, which of them has what; each message then has its task, too.
    """
    names = COLUMNS if tasks is None else (*COLUMNS, "task")

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        plane: _ControlPlane | None = None
        current = ""
        for seq, now, qmgr, queue, user, md, body, *task in once(
            row for batch in batches for row in columns(batch, *names)
        ):
            if plane is None or qmgr != current:
                if plane is not None:
                    yield from plane.end()
                plane, current = _ControlPlane(qmgr, setup, tasks, *task), qmgr
            yield from plane.process(Arrival(seq, now, queue, md, body, user))
        if plane is not None:
            yield from plane.end()

    return lambda batches: batches_of(rows(batches), _ARROW_NOTES)
