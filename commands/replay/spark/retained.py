"""What is retained at the beginning of each range.

Three steps, none of which sees more of a hot topic than of any other:

1. Of the publications on one topic in a range only the last one counts (``last_in_range``). They are small: numbers
   and topics, no messages.
2. Topics are dealt out to tasks, by a hash. Each task gets the publications on them in the order of ``seq``, and with
   them the DeletePubs that may be about one of its topics: those without a wildcard go to one task, the others to
   each, and where a clock goes back the ticks (``ticks``). They run through a topic space (``kept_of``), which shows
   at the beginning of which ranges each one is there.
3. The messages of those that are there at the beginning of a range are fetched.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from commands.broker.outcome import Arrival
from commands.mqsc.broker import Broker
from commands.replay.spark.control import DELETED, FOREVER, ControlPlaneSetup, RangeSpans
from commands.replay.spark.prepare import Prepared, Work
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, arrow_schema, batches_of, columns
from commands.templates.templates import PublicationTemplates
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.operations import (
    ClearRetained,
    Effect,
    Publication,
    Published,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
)

LAST: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("topic", StringType()),
        StructField("seq", LongType()),
        StructField("publication", BinaryType()),
    ]
)
TURNS: Final = StructType([*LAST.fields, StructField("now", TimestampType()), StructField("operation", BinaryType())])
"""What a task of the second step gets: publications, and DeletePubs, which have now and operation, and ticks: now."""

KEPT: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("topic", StringType()),
        StructField("seq", LongType()),
        StructField("first", IntegerType()),
        StructField("last", IntegerType()),
    ]
)
"""What message *seq* left retained on *topic*, and the first and the last range at whose beginning it is there."""

_ARROW_LAST: Final = arrow_schema(LAST)
_ARROW_KEPT: Final = arrow_schema(KEPT)
_NOTHING: Final = Message(Mqmd())

Batches = Iterable[pa.RecordBatch]


def kept_retained(prepared: Prepared, notes: DataFrame, ticks: DataFrame | None) -> DataFrame:
    """What is retained at the beginning of ranges: KEPT, kept on disk when it is first made. notes: of the control
    plane. ticks: TICKS."""
    last = prepared.in_ranges(last_in_range(prepared.setting), LAST)
    partitions = int(last.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    tasks = max(1, min(partitions, prepared.ranges))
    turns = last.withColumns({"now": F.lit(None).cast("timestamp"), "operation": F.lit(None).cast("binary")})
    turns = turns.withColumn("task", _task_of("qmgr", "topic", tasks))
    every = F.sequence(F.lit(0), F.lit(tasks - 1))
    only = F.when(F.col("topic").isNull(), every).otherwise(F.array(_task_of("qmgr", "topic", tasks)))
    others = notes.where(F.col("kind") == DELETED).select("qmgr", "topic", "seq", "now", "operation")
    if ticks is not None:
        nothing = {"topic": F.lit(None).cast("string"), "operation": F.lit(None).cast("binary")}
        others = others.union(ticks.where("for_retained").withColumns(nothing).select(*others.columns))
    others = others.withColumn("publication", F.lit(None).cast("binary"))
    turns = turns.union(others.select(*TURNS.names, F.explode(only).alias("task")))
    # A tick comes before what its own message left.
    in_order = turns.repartitionById(tasks, "task").sortWithinPartitions("qmgr", "seq", "publication")
    setup = ControlPlaneSetup(prepared.setting, prepared.starts, prepared.expiry)
    kept = in_order.select(*TURNS.names).mapInArrow(kept_of(setup), KEPT)
    return kept.persist(StorageLevel.DISK_ONLY)


def last_in_range(setting: ReplaySetup) -> Work:
    """What a task of the first step does: retaining messages of one range, with the columns COLUMNS, in; LAST out."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        places: dict[str, _Range] = {}
        for batch in batches:
            for seq, now, qmgr, queue, user, md, body in columns(batch, *COLUMNS):
                place = places.get(qmgr)
                if place is None:
                    place = places[qmgr] = _Range(setting.broker(qmgr))
                place.process(Arrival(seq, now, queue, md, body, user))
        yield from batches_of(((qmgr, *row) for qmgr, place in places.items() for row in place.rows()), _ARROW_LAST)

    return run


class _Range:
    """The retained publications of one queue manager in one range."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        broker.space.restore((), ())
        self._templates = PublicationTemplates(broker, effects=True)
        self._last: dict[str, tuple[int, Published]] = {}

    def process(self, arrival: Arrival) -> None:
        """One message."""
        for effect in self._templates.process(arrival).effects:
            if isinstance(effect, RetainedStored):
                self._last[effect.retained.topic_string] = (arrival.seq, effect.retained.publication)
        self._broker.space.forget_retained()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The last one on each topic, without its message."""
        for topic, (seq, published) in self._last.items():
            yield topic, seq, pickle.dumps(_without_message(published))


def _without_message(published: Published) -> Publication:
    fields = (published.published_at, published.expires_at, published.local, published.stream, published.sub_point)
    return Publication(_NOTHING, *fields)


def kept_of(setup: ControlPlaneSetup) -> Work:
    """What a task of the second step does: TURNS in order in; KEPT out."""

    def rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
        timeline: _Timeline | None = None
        for batch in batches:
            for qmgr, topic, seq, publication, now, operation in columns(batch, *TURNS.names):
                if timeline is None or qmgr != timeline.qmgr:
                    yield from timeline.end() if timeline is not None else ()
                    timeline = _Timeline(qmgr, setup.setting, setup.spans(qmgr))
                if publication is not None:
                    yield from timeline.store(topic, seq, pickle.loads(publication))
                elif operation is not None:
                    yield from timeline.delete(seq, now, pickle.loads(operation))
                else:
                    yield from timeline.expire(seq, now)
        yield from timeline.end() if timeline is not None else ()

    return lambda batches: batches_of(rows(batches), _ARROW_KEPT)


def _task_of(qmgr: str, topic: str, tasks: int) -> Column:
    return F.pmod(F.hash(qmgr, topic), F.lit(tasks))


class _Timeline:
    """Some topics of one queue manager: what is retained on them as time goes on."""

    def __init__(self, qmgr: str, setting: ReplaySetup, spans: RangeSpans) -> None:
        self.qmgr, self._spans = qmgr, spans
        self._space = setting.broker(qmgr).space
        self._stored: dict[str, tuple[int, datetime | None]] = {}

    def store(self, topic: str, seq: int, publication: Publication) -> Iterator[tuple[Any, ...]]:
        """A publication of message *seq* is retained."""
        yield from self._ended(topic, seq)
        self._space.retain(RetainedPublication(topic, publication))
        self._stored[topic] = (seq, publication.expires_at)

    def delete(self, seq: int, now: datetime, clears: ClearRetained) -> Iterator[tuple[Any, ...]]:
        """Message *seq* is a DeletePub."""
        yield from self._cleared(seq, self._space.apply(clears, now))

    def expire(self, seq: int, now: datetime) -> Iterator[tuple[Any, ...]]:
        """Things expire with message *seq*."""
        yield from self._cleared(seq, self._space.expire(now))

    def _cleared(self, seq: int, effects: Iterable[Effect]) -> Iterator[tuple[Any, ...]]:
        for effect in effects:
            if isinstance(effect, RetainedCleared):
                yield from self._ended(effect.topic_string, seq)

    def end(self) -> Iterator[tuple[Any, ...]]:
        """What is left."""
        for topic in list(self._stored):
            yield from self._ended(topic, FOREVER)

    def _ended(self, topic: str, until: int) -> Iterator[tuple[Any, ...]]:
        stored = self._stored.pop(topic, None)
        if stored is not None:
            seq, expires_at = stored
            span = self._spans.of(seq, until, expires_at)
            if span is not None:
                yield (self.qmgr, topic, seq, *span)
