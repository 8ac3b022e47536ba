"""The second pass: every message, in parallel, each at its place in the order of ``seq``.

Messages are dealt out in ranges of ``seq``. A task brings a broker to the place where its range begins, from the
intervals, and processes its messages in order, those of the control plane included: with the same code and the same
state as the local replay. What a message finds retained travels to it from wherever it was published.

What is kept of an outcome is up to a ``Keeper``: puts for ``replayed``, operations for ``translated``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import StructType

from commands.broker import Arrival, Broker, Outcome
from commands.objects import CONTROL_QUEUE
from commands.replay.spark.control import COLUMNS, is_plain
from commands.replay.spark.journal import Journals, Replica
from commands.replay.spark.prepare import Prepared
from commands.replay.spark.rows import columns
from commands.replay.spark.setting import Setting
from rfh2.errors import QPubSubError
from streams.operations import RetainedPublication, RetainedStored
from streams.topic_space import TopicSpace

_WORK: Final = ("at", *COLUMNS, "topic", "range")


class RepeatedSeqError(QPubSubError):
    """Two messages of a queue manager have the same ``seq``: their order is not known."""


class Keeper(Protocol):
    """What one task keeps of the outcomes."""

    @property
    def space(self) -> type[TopicSpace]:
        """The kind of topic space that its brokers get."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to take."""

    def keep(self, arrival: Arrival, qmgr: str, outcome: Outcome, space: TopicSpace) -> None:
        """Take what one message came to."""

    def take(self) -> Iterator[pa.RecordBatch]:
        """Give what was kept since the last time."""


def second_pass(
    ready: Prepared,
    journals: Broadcast[Journals],
    found: DataFrame | None,
    keeper: Callable[[], Keeper],
    schema: StructType,
    span: tuple[int, int] | None = None,
) -> DataFrame:
    """What keepers keep, in the order of seq.

    found: what messages find retained. keeper: makes one for each task. span: the ranges from one to before another;
    None for all.
    """
    setting = ready.setting
    first, end = span or (0, ready.ranges)
    part = ready.span(first, end)
    messages = part.withColumn("at", F.col("seq")).withColumn("topic", F.lit(None).cast("string"))
    work = messages.select(*_WORK)
    if found is not None:
        looking = (F.col("queue") == CONTROL_QUEUE) | (F.col("queue").isin(list(setting.stream_queues)) & ~is_plain())
        places = part.where(looking).select("qmgr", F.col("seq").alias("at"), "range")
        work = work.union(found.join(places, ["qmgr", "at"]).select(*_WORK))
    # What a message finds comes just before it.
    order = ("at", "qmgr", F.col("topic").asc_nulls_last())
    in_order = work.repartitionById(end - first, "range").sortWithinPartitions(*order)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(setting, journals.value, keeper())
        for batch in batches:
            for row in columns(batch, *COLUMNS, "topic"):
                task.process(*row)
                if task.keeper.is_full:
                    yield from task.keeper.take()
        yield from task.keeper.take()

    return in_order.select(*COLUMNS, "topic").mapInArrow(run, schema)


class _Task:
    """What one task has: a replica of each queue manager, and what the message that comes next finds retained."""

    def __init__(self, setting: Setting, journals: Journals, keeper: Keeper) -> None:
        self.keeper = keeper
        self._setting, self._journals = setting, journals
        self._replicas: dict[str, Replica] = {}
        self._scratch: dict[str, Broker] = {}
        # By queue manager and publishing message: publications to several topics stay one publication.
        self._published: dict[str, dict[int, dict[str, RetainedPublication]]] = {}
        self._found: dict[str, list[RetainedPublication]] = {}
        self._last: dict[str, int] = {}

    def process(
        self,
        seq: int,
        now: Any,
        qmgr: str,
        queue: str,
        user: str | None,
        md: bytes | None,
        body: bytes,
        topic: str | None,
    ) -> None:
        """One message, or what the next one of its queue manager finds retained on *topic*."""
        arrival = Arrival(seq, now, queue, md, body, user)
        if topic is not None:
            published = self._published.setdefault(qmgr, {})
            if seq not in published:
                published[seq] = self._retained(qmgr, arrival)
            self._found.setdefault(qmgr, []).append(published[seq][topic])
            return
        if self._last.get(qmgr) == seq:
            raise RepeatedSeqError(f"seq {seq} occurs twice in queue manager {qmgr}")
        self._last[qmgr] = seq
        replica = self._replicas.get(qmgr)
        if replica is None:
            replica = Replica(qmgr, self._setting, self._journals.get(qmgr), self.keeper.space)
            self._replicas[qmgr] = replica
        found = self._found.pop(qmgr, None)
        if found is not None:
            del self._published[qmgr]
        elif queue == CONTROL_QUEUE:
            found = []
        self.keeper.keep(arrival, qmgr, replica.process(arrival, found), replica.space)

    def _retained(self, qmgr: str, arrival: Arrival) -> dict[str, RetainedPublication]:
        """What an earlier message left retained, by topic: it is published again, to nobody."""
        scratch = self._scratch.get(qmgr)
        if scratch is None:
            scratch = self._scratch[qmgr] = self._setting.broker(qmgr)
            scratch.space.restore((), ())
        effects = scratch.process(arrival).effects
        scratch.space.forget_retained()
        stored = (effect.retained for effect in effects if isinstance(effect, RetainedStored))
        return {retained.topic_string: retained for retained in stored}
