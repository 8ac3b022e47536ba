"""The first pass: the control plane, in order.

Few messages are run in one task for each queue manager. Many are dealt out to several tasks (``deal_out``), so
that no two tasks have commands that can meet; the notes on what expires then say more, and mean the same.

It leaves notes, rows of NOTES: the subscriptions that there are at the beginning of each range, and the DeletePubs,
which ``twopass`` needs. The notes stay where they were made, on the disks of the executors. Tasks get those that they
need; neither a task nor the driver has all of them.

What changes subscriptions is on the control queue; what changes or asks for retained publications is there too, save
DeletePub and Publish with RetainPub. Those are on stream queues, and are found without decoding all the rest, most of
which is ``plain``. What is not is parsed.

The messages go through an ordinary broker, which traces what it does. What it would put is dropped: the second pass
makes every put. A subscription does not depend on anything that is published; what is retained matters for what is put
alone. So publications are left out. What expires is left out of the ranges that begin when every message comes later;
where a clock goes back, *ticks* go through too, at which it expires (``twopass.ticks_of``), in each task.
"""

from __future__ import annotations

import hashlib
import pickle
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import heapreplace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival
from commands.broker.reading import NOTHING, Reach, reach_of, reach_of_subscription
from commands.broker.state import subscription_state
from commands.broker.times import to_microseconds
from commands.replay.spark.prepare import TICK, Expiry, Prepared, Work, once
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, arrow_schema, batches_of, columns
from streams import operations as op
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription

# The control plane in several tasks: which task gets which control messages.
#
# Commands that can meet, directly or through others, are a group (``commands.broker.reading``). Groups are dealt out to
# tasks, the largest first, each to the task that has least. A task has all messages of its groups in the order of
# ``seq``, and gives the notes on their subscriptions that one task for all messages would give.
#
# A group is a subscriber, as a rule, or the subscribers that share a queue without a CorrelId. Only numbers and names
# of queue managers pass through the driver: one row for each subscriber, however many messages it has put.

_SPREAD: Final = 256
"""Into so many groups go the messages of a queue manager that meet no others."""

KEY_FIELDS: Final = (
    StructField("key", LongType()),
    StructField("names", ArrayType(LongType())),
    StructField("own_queue", LongType()),
    StructField("mixes", BooleanType()),
)
"""What ``keyed`` adds to a message: the columns of ``Keys``."""

_ARROW_KEYS: Final = arrow_schema(StructType(list(KEY_FIELDS)))


class Keys(NamedTuple):
    """A reach in numbers of 64 bits. Two texts with one number make a group larger, and never too small.

    key: of the identity; without a queue, of a name; without either, of messages that meet no others. names: of the
    subscription names. own_queue: of the subscriber queue; None where the command names none.
    """

    key: int
    names: tuple[int, ...]
    own_queue: int | None
    mixes: bool


def keys_of(qmgr: str, reach: Reach, spread: int = 0) -> Keys:
    """The keys of a reach in one queue manager. spread: distinguishes messages that meet no others."""
    names = tuple(_number("name", qmgr, name.encode()) for name in reach.names)
    if reach.queue:
        queue = reach.queue.encode()
        key = _number("identity", qmgr, reach.correl_id + queue)
        return Keys(key, names, _number("queue", qmgr, queue), reach.mixes)
    key = names[0] if names else _number("none", qmgr, b"%d" % (spread % _SPREAD))
    return Keys(key, names, None, reach.mixes)


def _number(kind: str, qmgr: str, text: bytes) -> int:
    digest = hashlib.blake2b(b"%b\0%b\0%b" % (kind.encode(), qmgr.encode(), text), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def keyed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Control messages with their keys: the columns KEY_FIELDS beside their own."""
    for batch in batches:
        found: list[Keys] = []
        for seq, qmgr, queue, md, body in columns(batch, "seq", "qmgr", "queue", "md", "body"):
            reach = reach_of(md, body) if queue == CONTROL_QUEUE else NOTHING
            found.append(keys_of(qmgr, reach, seq))
        whole = batch
        for field, *values in zip(_ARROW_KEYS, *found, strict=True):
            whole = whole.append_column(field, pa.array(values, field.type))
        yield whole


@dataclass(frozen=True)
class ControlTasks:
    """Which task has which messages and subscriptions. keys: ascending; tasks: of each."""

    keys: npt.NDArray[np.int64]
    tasks: npt.NDArray[np.int32]

    def of(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The tasks of messages with these keys."""
        return self.tasks[np.searchsorted(self.keys, keys)]

    def of_subscription(self, qmgr: str, subscription: Subscription) -> int:
        """The task of a subscription that the setup defines: any one where its queue manager has no messages."""
        key = keys_of(qmgr, reach_of_subscription(subscription)).key
        at = int(np.searchsorted(self.keys, key))
        return int(self.tasks[min(at, len(self.tasks) - 1)])


def with_task(dealt: ControlTasks) -> Work:
    """Control messages with their task, for messages with their keys."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            tasks = dealt.of(batch.column("key").to_numpy())
            yield batch.select(COLUMNS).append_column("task", pa.array(tasks, pa.int32()))

    return run


Defined = Callable[[str], Iterable[Subscription]]
"""The subscriptions that the setup defines in a queue manager."""


def deal_out(messages: Mapping[tuple[str, Keys], int], defined: Defined, count: int) -> ControlTasks:
    """Deal groups out to tasks. messages: how many, by queue manager and keys. count: of tasks."""
    qmgrs = {qmgr for qmgr, _ in messages}
    of_setup = [(qmgr, keys_of(qmgr, reach_of_subscription(each))) for qmgr in qmgrs for each in defined(qmgr)]
    every = [*messages, *of_setup]
    groups = _Groups()
    for _, keys in every:
        groups.join(keys.names)
    mixing = {groups.of(keys.names[0]) for _, keys in every if keys.mixes}
    # The halves of identities at these queues may be mixed: all that name one of them are a group.
    mixed = {keys.own_queue for _, keys in every if keys.names and groups.of(keys.names[0]) in mixing} - {None}
    for _, keys in every:
        through = (keys.own_queue,) if keys.own_queue is not None and keys.own_queue in mixed else ()
        groups.join((keys.key, *keys.names, *through))
    sizes: Counter[int] = Counter()
    for (_, keys), number in messages.items():
        sizes[groups.of(keys.key)] += number
    task_of = _packed(sizes, count)
    # What no message can reach is in any task that has messages of its queue manager.
    rest = {qmgr: task_of[groups.of(keys.key)] for qmgr, keys in messages}
    placed = {keys.key: task_of.get(groups.of(keys.key), rest[qmgr]) for qmgr, keys in every}
    in_order = sorted(placed)
    return ControlTasks(np.array(in_order, np.int64), np.array([placed[key] for key in in_order], np.int32))


def _packed(sizes: Mapping[int, int], count: int) -> dict[int, int]:
    """The task of each group. sizes: messages of each."""
    loads = [(0, task) for task in range(count)]
    task_of: dict[int, int] = {}
    for group, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        load, task = loads[0]
        heapreplace(loads, (load + size, task))
        task_of[group] = task
    return task_of


class _Groups:
    """Sets of numbers that grow together (union-find)."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def of(self, number: int) -> int:
        """The number that stands for the set."""
        above, top = self._above, number
        while (up := above.setdefault(top, top)) != top:
            top = up
        while (up := above[number]) != top:
            above[number], number = top, up
        return top

    def join(self, numbers: Iterable[int]) -> None:
        """Make one set of those of all *numbers*."""
        tops = [self.of(number) for number in numbers]
        for top in tops[1:]:
            self._above[top] = tops[0]


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
            if isinstance(clears := traced.operation, op.ClearRetained):
                pattern = parse_pattern(clears.topic_string, clears.wildcard)
                only = None if pattern.is_wild else pattern.literal
                yield (self._qmgr, DELETED, None, None, None, only, seq, now, pickle.dumps(clears))

    def end(self) -> Iterator[tuple[Any, ...]]:
        """The notes on what is left."""
        for after, subscription in self._since.values():
            yield from self._subscribed(after, FOREVER, subscription)

    def _changed(self, seq: int, effects: Iterable[op.Effect]) -> Iterator[tuple[Any, ...]]:
        for effect in effects:
            match effect:
                case op.SubscriptionAdded(subscription):
                    self._since[subscription.sub_id] = (seq, subscription)
                case op.SubscriptionAltered(before, subscription):
                    yield from self._closed(seq, before)
                    self._since[subscription.sub_id] = (seq, subscription)
                case op.SubscriptionRemoved(subscription):
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
