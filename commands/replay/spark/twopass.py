"""The replay in two passes: subscriptions first, in order; then every message, in parallel.

1. The control plane of each queue manager is run in order (``control``). It leaves the subscriptions that there are at
   the beginning of each range.
2. What is retained there is found (``last_in_range``).
3. Everything is replayed, in ranges of ``seq`` (``second_pass``), each by the local engine, from the state at its
   beginning. A range is never a topic or a stream: none can be hot.

``translated``: the operations of captured commands, in each dialect (guide 7.2).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import (
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
from commands.broker.reading import decoded
from commands.explain.equivalents.mqi import to_mqi
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import in_context
from commands.explain.selection import EVERYTHING, MessageSelection
from commands.mqsc.broker import Broker
from commands.mqsc.equivalents import to_mqsc
from commands.replay.put_columns import PutColumns
from commands.replay.spark.control import DELETED, FOREVER, ControlPlaneSetup, RangeSpans, control_plane
from commands.replay.spark.prepare import Prepared, Work, prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, PUTS, TRANSLATED, arrow_schema, batch_of, batches_of, columns
from commands.replay.spark.second_pass import Lane, PutsKeeper, Result, second_pass
from commands.templates.templates import PublicationTemplates
from rfh2.errors import DecodeError
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams import operations as op

# What is retained at the beginning of each range.
#
# Three steps, none of which sees more of a hot topic than of any other:
#
# 1. Of the publications on one topic in a range only the last one counts (``last_in_range``). They are small: numbers
#    and topics, no messages.
# 2. Topics are dealt out to tasks, by a hash. Each task gets the publications on them in the order of ``seq``, and with
#    them the DeletePubs that may be about one of its topics: those without a wildcard go to one task, the others to
#    each, and where a clock goes back the ticks (``ticks_of``). They run through a topic space (``kept_of``), which
#    shows at the beginning of which ranges each one is there.
# 3. The messages of those that are there at the beginning of a range are fetched.

# The moments at which things expire although a later message is earlier: *ticks*, for clocks that go back.
#
#     seq   1      2      3      4      5      6
#     now   10:00  10:01  10:05  10:02  10:04  10:06
#                         tick
#
# What expires expires with the first message whose moment is not before it. As long as no message after that one is
# earlier, it does not matter which message that was: whichever looks for what expired comes later, and does not find
# it. It matters for a message that is later than one after it, and then only if it reached the topic space. Such
# messages are ticks. Of several, the control plane needs the latest one between two of its messages, and what is
# retained the last one in each range that no later one exceeds.
#
# They are looked for in the ranges in which there may be any, on queue managers where something expires.

TICKS: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("seq", LongType()),
        StructField("now", TimestampType()),
        StructField("for_retained", BooleanType()),
    ]
)
"""for_retained: whether the tick is for what is retained; the others are for the control plane."""

_ARROW_TICKS: Final = arrow_schema(TICKS)


def ticks_of(prepared: Prepared) -> DataFrame | None:
    """The ticks, kept on disk when they are first made; None where there are none."""
    if not prepared.expiry.behind:
        return None
    return prepared.out_of_time(ticking(prepared.setting), TICKS).persist(StorageLevel.DISK_ONLY)


def ticking(setting: ReplaySetup) -> Work:
    """What a task for it does.

    The messages later than one after them and all on the control queue, in order and whole ranges, with the columns
    COLUMNS and range, in; TICKS out.
    """

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        places: dict[tuple[str, int], _Place] = {}
        for batch in batches:
            for seq, now, qmgr, queue, user, md, body, number in columns(batch, *COLUMNS, "range"):
                place = places.get((qmgr, number))
                if place is None:
                    place = places[qmgr, number] = _Place(setting.broker(qmgr))
                if queue == CONTROL_QUEUE:
                    yield from ((qmgr, *tick, False) for tick in place.gap())
                place.look(Arrival(seq, now, queue, md, body, user))
        yield from ((qmgr, *tick) for (qmgr, _), place in places.items() for tick in place.end())

    return lambda batches: batches_of(rows(batches), _ARROW_TICKS)


_Tick = tuple[int, datetime]


class _Place:
    """The messages of one queue manager in one range. broker: what they find there makes no difference."""

    def __init__(self, broker: Broker) -> None:
        self._space = broker.space
        self._space.restore((), ())
        self._templates = PublicationTemplates(broker, effects=True, traced=True)
        self._latest: _Tick | None = None
        # Each later than all after it.
        self._unexceeded: list[_Tick] = []

    def look(self, arrival: Arrival) -> None:
        """Take one message."""
        if not self._reached(arrival):
            return
        tick = (arrival.seq, arrival.now)
        while self._unexceeded and self._unexceeded[-1][1] <= arrival.now:
            self._unexceeded.pop()
        self._unexceeded.append(tick)
        # With one of the control plane's own messages things expire there anyway.
        if arrival.queue != CONTROL_QUEUE and (self._latest is None or self._latest[1] < arrival.now):
            self._latest = tick

    def _reached(self, arrival: Arrival) -> bool:
        if arrival.queue == CONTROL_QUEUE:
            try:
                decoded(arrival.md, arrival.body)
            except DecodeError:
                return False
            return True
        outcome = self._templates.process(arrival)
        self._space.forget_retained()
        return outcome.trace is None or outcome.trace.reached

    def gap(self) -> Iterator[_Tick]:
        """The tick for the control plane since the last time, if there is one."""
        if self._latest is not None:
            yield self._latest
        self._latest = None

    def end(self) -> Iterator[tuple[int, datetime, bool]]:
        """What is left."""
        yield from ((*tick, False) for tick in self.gap())
        yield from ((*tick, True) for tick in self._unexceeded)


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
        self._last: dict[str, tuple[int, op.Published]] = {}

    def process(self, arrival: Arrival) -> None:
        """One message."""
        for effect in self._templates.process(arrival).effects:
            if isinstance(effect, op.RetainedStored):
                self._last[effect.retained.topic_string] = (arrival.seq, effect.retained.publication)
        self._broker.space.forget_retained()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The last one on each topic, without its message."""
        for topic, (seq, published) in self._last.items():
            yield topic, seq, pickle.dumps(_without_message(published))


def _without_message(published: op.Published) -> op.Publication:
    fields = (published.published_at, published.expires_at, published.local, published.stream, published.sub_point)
    return op.Publication(_NOTHING, *fields)


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

    def store(self, topic: str, seq: int, publication: op.Publication) -> Iterator[tuple[Any, ...]]:
        """A publication of message *seq* is retained."""
        yield from self._ended(topic, seq)
        self._space.retain(op.RetainedPublication(topic, publication))
        self._stored[topic] = (seq, publication.expires_at)

    def delete(self, seq: int, now: datetime, clears: op.ClearRetained) -> Iterator[tuple[Any, ...]]:
        """Message *seq* is a DeletePub."""
        yield from self._cleared(seq, self._space.apply(clears, now))

    def expire(self, seq: int, now: datetime) -> Iterator[tuple[Any, ...]]:
        """Things expire with message *seq*."""
        yield from self._cleared(seq, self._space.expire(now))

    def _cleared(self, seq: int, effects: Iterable[op.Effect]) -> Iterator[tuple[Any, ...]]:
        for effect in effects:
            if isinstance(effect, op.RetainedCleared):
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


_SCHEMA: Final = arrow_schema(TRANSLATED)
_BATCH_ROWS: Final = 2000


class _OperationKeeper:
    """Keeps operations, as rows of TRANSLATED."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the batch."""
        return len(self._rows) >= _BATCH_ROWS

    def begin(self, qmgr: str) -> None:
        """Nothing: operations alone are kept."""

    def keep(self, arrival: Arrival, qmgr: str, results: Sequence[Result]) -> None:
        """Take the result of one message."""
        ((outcome, _),) = results
        assert outcome.trace is not None
        command = None if outcome.command is None else outcome.command.word
        message = (arrival.seq, arrival.now, qmgr, arrival.queue, arrival.user, command)
        n = -1
        for n, one in enumerate(in_context(outcome.trace, outcome.command, qmgr, arrival.now)):
            texts = ("\n".join(to(one.operation, one.context)) for to in (to_mqsc, to_pcf, to_mqi))
            self._rows.append((*message, n, type(one.operation).__name__, *texts, outcome.reason, outcome.why or None))
        if n < 0 and outcome.completion is not None:
            self._rows.append((*message, None, None, None, None, None, outcome.reason, outcome.why or None))

    def take(self) -> Iterator[pa.RecordBatch]:
        """Give what was kept since the last time."""
        if self._rows:
            rows, self._rows = self._rows, []
            yield batch_of(rows, _SCHEMA)

    def end(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""
        return self.take()


def translated(
    captured: DataFrame,
    setup: str = "",
    semantics: str = "v7",
    *,
    ranges: int | None = None,
    selection: MessageSelection | str = EVERYTHING,
    tasks: int | None = None,
    monotonic_clock: bool = False,
) -> DataFrame:
    """The operations that *captured* leads to, in order of seq and n, with their text in MQSC, PCF and MQI calls.

    The arguments are those of ``replayed``. A RegSub that finds its subscription is an alteration, a DeregSub takes
    away what an earlier RegSub made: the commands are run. Raises what ``replayed`` does.
    """
    ready = prepared(captured, ReplaySetup(setup, semantics, monotonic_clock=monotonic_clock), ranges, selection, tasks)
    return second_pass(ready, [first_pass(ready, semantics)], _OperationKeeper, TRANSLATED)


class PutKeeper(PutsKeeper):
    """Keeps the puts, in batches."""

    def __init__(self) -> None:
        self._held = PutColumns()

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the batch."""
        return self._held.is_full

    def keep(self, arrival: Arrival, qmgr: str, results: Sequence[Result]) -> None:
        """Take the result of one message."""
        ((outcome, _),) = results
        self._held.add(arrival.seq, qmgr, outcome.puts)

    def take(self) -> Iterator[pa.RecordBatch]:
        """Give what was kept since the last time."""
        return self._held.take()

    def end(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""
        return self.take()


def first_pass(ready: Prepared, semantics: str) -> Lane:
    """Run the control plane."""
    setting = ready.setting.under(semantics)
    own = replace(ready, setting=setting)
    ticks = ticks_of(own)
    notes = control_plane(own, ticks)
    controlled = frozenset(row["qmgr"] for row in notes.select("qmgr").distinct().collect())
    return Lane(setting, notes, controlled, kept_retained(own, notes, ticks), ticks)


def replayed(
    captured: DataFrame,
    setup: str = "",
    semantics: str = "v7",
    *,
    ranges: int | None = None,
    selection: MessageSelection | str = EVERYTHING,
    tasks: int | None = None,
    monotonic_clock: bool = False,
) -> DataFrame:
    """The puts that *captured* leads to, in order of seq, at_qmgr and n: equal to those of the local replay.

    captured: the columns of CAPTURED, in any order and partitioning; a ``seq`` belongs to one message of each queue
    manager (``commands.replay.arrivals``). It is read several times: cache it, or have it in Parquet. setup: MQSC for
    every queue manager. semantics: ``v7`` or ``v6``. ranges: number of tasks of the second pass; None for one for each
    100,000 messages. selection: whose puts; all messages are replayed. tasks: how many run at a time, for a cluster
    that will be larger than it is now; None for what the session says (``prepare.cores_of``). monotonic_clock: no
    message comes earlier than the one before it at its queue manager. The first pass is run here, the second one when
    the result is used. Raises SchemaError; QPubSubError where the setup fails.
    """
    ready = prepared(captured, ReplaySetup(setup, semantics, monotonic_clock=monotonic_clock), ranges, selection, tasks)
    return second_pass(ready, [first_pass(ready, semantics)], PutKeeper, PUTS)
