"""The replay in two passes: subscriptions first, in order; then every message, in parallel.

1. The control plane of each queue manager is run in order (``control``). It leaves the intervals in which subscriptions
   were live, and the places where somebody looks at what is retained.
2. What they find there is looked up (``retained``).
3. Messages are dealt out in ranges of ``seq``. Each task brings a broker to the place where its range begins, from the
   intervals, and processes its messages in order, those of the control plane included: with the same code and the same
   state as the local replay, hence with the same puts.

A range is a stretch of ``seq``, never a topic or a stream: none can be hot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from commands.broker import Arrival, Broker
from commands.objects import CONTROL_QUEUE
from commands.replay.spark.control import COLUMNS, control_plane
from commands.replay.spark.journal import NO_JOURNAL, Journals, Replica
from commands.replay.spark.prepare import Prepared, prepared
from commands.replay.spark.retained import found_retained
from commands.replay.spark.rows import PutBatch, columns
from commands.replay.spark.schemas import PUTS
from commands.replay.spark.setting import Setting
from rfh2.errors import QPubSubError
from streams.operations import RetainedPublication, RetainedStored

_WORK: Final = ("at", *COLUMNS, "topic", "range")


class RepeatedSeqError(QPubSubError):
    """Two messages of a queue manager have the same ``seq``: their order is not known."""


def replayed(captured: DataFrame, setup: str = "", semantics: str = "v7", *, ranges: int | None = None) -> DataFrame:
    """The puts that *captured* leads to, in order of seq and n: equal to those of the local replay.

    captured: the columns of CAPTURED, in any order and partitioning; ``seq`` is unique in each queue manager. It is
    read several times: cache it, or have it in Parquet. setup: MQSC for every queue manager. semantics: ``v7`` or
    ``v6``. ranges: number of tasks of the second pass; None for one for each 100,000 messages. The first pass is run
    here, the second one when the result is used. Raises SchemaError; QPubSubError where the setup fails.
    """
    setting = Setting(setup, semantics)
    ready = prepared(captured, setting, ranges)
    journals, winners = control_plane(ready, setting)
    shared = captured.sparkSession.sparkContext.broadcast(journals)
    return data_plane(ready, setting, shared, found_retained(ready, setting, shared, winners))


def data_plane(ready: Prepared, setting: Setting, journals: Broadcast[Journals], found: DataFrame | None) -> DataFrame:
    """The second pass. found: what lookups find."""
    messages = ready.messages.withColumn("at", F.col("seq")).withColumn("topic", F.lit(None).cast("string"))
    work = messages.select(*_WORK)
    if found is not None:
        # What a message finds travels to wherever that message goes.
        places = ready.messages.where(F.col("queue") == CONTROL_QUEUE)
        places = places.select("qmgr", F.col("seq").alias("at"), "range")
        work = work.union(found.join(places, ["qmgr", "at"]).select(*_WORK))
    in_order = work.repartitionById(ready.ranges, "range").sortWithinPartitions(
        "at", "qmgr", F.col("topic").desc_nulls_last()
    )

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(setting, journals.value)
        for batch in batches:
            for row in columns(batch, "at", *COLUMNS, "topic"):
                task.process(*row)
                if task.puts.is_full:
                    yield from task.puts.take()
        yield from task.puts.take()

    return in_order.drop("range").mapInArrow(run, PUTS)


class _Task:
    """What one task of the second pass keeps."""

    def __init__(self, setting: Setting, journals: Journals) -> None:
        self._setting, self._journals = setting, journals
        self._replicas: dict[str, Replica] = {}
        self._scratch: dict[str, Broker] = {}
        # Of the message that comes next, by queue manager and publishing message: publications to several topics stay
        # one publication.
        self._found: dict[str, dict[int, dict[str, RetainedPublication]]] = {}
        self._wanted: dict[str, list[RetainedPublication]] = {}
        self._last: dict[str, int] = {}
        self.puts = PutBatch()

    def process(
        self,
        at: int,
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
            published = self._found.setdefault(qmgr, {})
            if seq not in published:
                published[seq] = self._retained(qmgr, arrival)
            self._wanted.setdefault(qmgr, []).append(published[seq][topic])
            return
        if self._last.get(qmgr) == seq:
            raise RepeatedSeqError(f"seq {seq} occurs twice in queue manager {qmgr}")
        self._last[qmgr] = seq
        replica = self._replicas.get(qmgr)
        if replica is None:
            replica = Replica(qmgr, self._setting, self._journals.get(qmgr, NO_JOURNAL))
            self._replicas[qmgr] = replica
        found = self._wanted.pop(qmgr, ()) if queue == CONTROL_QUEUE else None
        self._found.pop(qmgr, None)
        for n, put in enumerate(replica.process(arrival, found).puts):
            self.puts.add(seq, n, put)

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
