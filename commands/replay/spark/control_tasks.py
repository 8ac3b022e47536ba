"""The control plane in several tasks: which task gets which control messages.

Commands that can meet, directly or through others, are a group (``commands.broker.reading``). Groups are dealt out to
tasks, the largest first, each to the task that has least. A task has all messages of its groups in the order of
``seq``, and gives the notes on their subscriptions that one task for all messages would give.

A group is a subscriber, as a rule, or the subscribers that share a queue without a CorrelId. Only numbers and names of
queue managers pass through the driver: one row for each subscriber, however many messages it has put.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapreplace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import ArrayType, BooleanType, LongType, StructField, StructType

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.reading import NOTHING, Reach, reach_of, reach_of_subscription
from commands.replay.spark.prepare import Work
from commands.replay.spark.schemas import COLUMNS, arrow_schema, columns
from streams.subscriptions import Subscription

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
