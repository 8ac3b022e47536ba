"""What each RegSub and ReqUpdate finds retained: the last retained publication before it on each topic it looks at.

Three steps, none of which sees more of a hot topic than of any other:

1. In each range, of the publications on one topic only those are kept between which and the next one somebody looks at
   the topic, and the last one (``candidates_of``). They are small: numbers and topics, no messages.
2. Topics are dealt out to tasks, by a hash. Each task gets its candidates in the order of ``seq``, and with them the
   lookups and DeletePubs that may select one of its topics: those without a wildcard go to one task, the others to
   each. They run through a topic space (``winners_of``). No task holds them all.
3. The messages of those that were found are fetched, once for each message that looks.

Who looks at what is retained, and when, in little memory: a number of four bytes for each lookup.

It decides which retained publications are kept for the lookups (``retained``). One that nobody looks at may be kept, at
the cost of some time. One that somebody looks at is never left out.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

from commands.broker.outcome import Arrival
from commands.broker.times import EPOCH
from commands.mqsc.broker import Broker
from commands.replay.spark.control import LOOKUP, WINNER
from commands.replay.spark.prepare import Prepared, Work
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, arrow_schema, batch_of, columns
from commands.templates.templates import PublicationTemplates
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.index import SubscriptionIndex
from streams.operations import ClearRetained, Publication, Published, RetainedPublication, RetainedStored
from streams.subscriptions import Subscription, WildcardScheme

_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class PatternLookups:
    """The lookups with one pattern. places: of those who look, ascending."""

    pattern: str
    scheme: WildcardScheme
    places: npt.NDArray[np.uint32]


@dataclass(frozen=True)
class LookupTable:
    """The lookups of all queue managers, by queue manager. least, shift: a seq less *least*, shifted, is a place."""

    least: int
    shift: int
    lookups: dict[str, list[PatternLookups]]

    def place(self, seq: int) -> int:
        """The place of a message: the later message never has the lower place."""
        return (seq - self.least) >> self.shift


def lookup_table(notes: DataFrame, starts: Sequence[int], *, clears: bool) -> LookupTable:
    """The lookups in *notes*. starts: those of ``Prepared``. clears: those of DeletePub, too."""
    least, shift = starts[0], max(0, (starts[-1] - starts[0]).bit_length() - _BITS)
    looking = notes.where(F.col("kind") == LOOKUP)
    if not clears:
        looking = looking.where("operation is null")
    place = F.shiftright(F.col("after") - F.lit(least).cast("long"), shift)
    patterns = looking.groupBy("qmgr", "text", "scheme").agg(F.sort_array(F.collect_set(place)).alias("places"))
    lookups: dict[str, list[PatternLookups]] = {}
    for batch in patterns.toArrow().to_batches():
        rows = zip(*(batch.column(name) for name in ("qmgr", "text", "scheme", "places")), strict=True)
        for qmgr, text, scheme, places in rows:
            found = PatternLookups(
                text.as_py(), WildcardScheme(scheme.as_py()), places.values.to_numpy().astype(np.uint32)
            )
            lookups.setdefault(qmgr.as_py(), []).append(found)
    return LookupTable(least, shift, lookups)


class LooksByTopic:
    """Who looks at a topic of one queue manager, and when."""

    def __init__(self, table: LookupTable, qmgr: str) -> None:
        self._table, self._lookups = table, table.lookups.get(qmgr, [])
        self._index = SubscriptionIndex()
        for number, each in enumerate(self._lookups):
            sub_id = number.to_bytes(24, "big")
            self._index.add(Subscription(sub_id, each.pattern, "", "", EPOCH, wildcard=each.scheme))

    def any_between(self, topic: str, after: int, before: int | None) -> bool:
        """Whether anybody looks at *topic* between message *after* and message *before*, or ever; maybe if it says so.

        Neither of the two looks.
        """
        first = self._table.place(after)
        last = None if before is None else self._table.place(before)
        for pattern in self._index.match(topic):
            places = self._lookups[int.from_bytes(pattern.sub_id, "big")].places
            at = int(np.searchsorted(places, first))
            if at < len(places) and (last is None or places[at] <= last):
                return True
        return False


CANDIDATES: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("topic", StringType()),
        StructField("seq", LongType()),
        StructField("publication", BinaryType()),
    ]
)
TURNS: Final = StructType(
    [
        *CANDIDATES.fields,
        StructField("n", LongType()),
        StructField("scheme", StringType()),
        StructField("now", TimestampType()),
        StructField("operation", BinaryType()),
    ]
)
"""What a task of the second step gets: candidates, and lookups, whose topic is their pattern. n: of a lookup, its place
among those of the message."""

_WINNERS: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("at", LongType()),
        StructField("topic", StringType()),
        StructField("seq", LongType()),
    ]
)
_ARROW_CANDIDATES: Final = arrow_schema(CANDIDATES)
_ARROW_WINNERS: Final = arrow_schema(_WINNERS)
_BATCH_ROWS: Final = 4096
_NOTHING: Final = Message(Mqmd())

Batches = Iterable[pa.RecordBatch]


def found_retained(prepared: Prepared, notes: DataFrame, *, clears: bool = False) -> DataFrame | None:
    """The messages that lookups find: the columns of a prepared message, ``at`` for who looks, and ``topic``.

    notes: of the control plane. clears: whether DeletePub looks, too, at what it clears. None where nobody looks.
    """
    table = lookup_table(notes, prepared.starts, clears=clears)
    known = notes.where(F.col("kind") == WINNER)
    found = known.select("qmgr", F.col("after").alias("at"), "topic", F.col("until").alias("seq"))
    if table.lookups:
        candidates = prepared.in_ranges(candidates_of(prepared.setting, table), list(table.lookups), CANDIDATES)
        found = found.union(_winners(prepared, candidates, notes, list(table.lookups), clears))
    elif known.isEmpty():
        return None
    return prepared.fetched(found)


def candidates_of(setting: ReplaySetup, table: LookupTable) -> Work:
    """What a task of the first step does: retaining messages of one range, with the columns COLUMNS, in; CANDIDATES
    out."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        places: dict[str, _Candidates] = {}
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for seq, now, qmgr, queue, user, md, body in columns(batch, *COLUMNS):
                if qmgr not in table.lookups:
                    continue
                place = places.get(qmgr)
                if place is None:
                    place = places[qmgr] = _Candidates(qmgr, setting, LooksByTopic(table, qmgr))
                rows += place.process(Arrival(seq, now, queue, md, body, user))
            if len(rows) >= _BATCH_ROWS:
                yield batch_of(rows, _ARROW_CANDIDATES)
                rows = []
        for place in places.values():
            rows += place.end()
        if rows:
            yield batch_of(rows, _ARROW_CANDIDATES)

    return run


class _Candidates:
    """The retained publications of one queue manager in one range."""

    def __init__(self, qmgr: str, setting: ReplaySetup, looks: LooksByTopic) -> None:
        self._qmgr, self._looks = qmgr, looks
        self._broker: Broker = setting.broker(qmgr)
        self._broker.space.restore((), ())
        self._last: dict[str, tuple[int, Publication]] = {}
        self._templates = PublicationTemplates(self._broker, effects=True)

    def process(self, arrival: Arrival) -> Iterator[tuple[Any, ...]]:
        """One message; its result is a candidate once the next one on its topic is known."""
        for topic, publication in self._retained_by(arrival):
            if topic in self._last:
                yield from self._looked_at(topic, arrival.seq)
            self._last[topic] = (arrival.seq, publication)

    def _retained_by(self, arrival: Arrival) -> list[tuple[str, Publication]]:
        """What a message leaves retained, without the message itself."""
        effects = self._templates.process(arrival).effects
        self._broker.space.forget_retained()
        stored = [effect.retained for effect in effects if isinstance(effect, RetainedStored)]
        return [(each.topic_string, _without_message(each.publication)) for each in stored]

    def end(self) -> Iterator[tuple[Any, ...]]:
        """What is left at the end of the range."""
        for topic in self._last:
            yield from self._looked_at(topic, None)

    def _looked_at(self, topic: str, before: int | None) -> Iterator[tuple[Any, ...]]:
        seq, publication = self._last[topic]
        if self._looks.any_between(topic, seq, before):
            yield (self._qmgr, topic, seq, pickle.dumps(publication))


def _without_message(published: Published) -> Publication:
    fields = (published.published_at, published.expires_at, published.local, published.stream, published.sub_point)
    return Publication(_NOTHING, *fields)


def _winners(
    prepared: Prepared, candidates: DataFrame, notes: DataFrame, looking: list[str], clears: bool
) -> DataFrame:
    partitions = int(candidates.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    tasks = max(1, min(partitions, prepared.ranges))
    lookups = notes.where((F.col("kind") == LOOKUP) & F.col("qmgr").isin(looking))
    turns = lookups.select(
        "qmgr",
        F.col("text"),
        F.col("after"),
        F.lit(None).cast("binary"),
        "until",
        "scheme",
        "now",
        "operation",
        "topic",
    ).toDF(*TURNS.names, "only")
    only = F.when(F.col("only").isNull(), F.sequence(F.lit(0), F.lit(tasks - 1))).otherwise(
        F.array(_task_of("qmgr", "only", tasks))
    )
    turns = turns.withColumn("task", F.explode(only)).drop("only")
    nothing = {field.name: F.lit(None).cast(field.dataType) for field in TURNS.fields[len(CANDIDATES) :]}
    theirs = candidates.withColumns(nothing).withColumn("task", _task_of("qmgr", "topic", tasks))
    both = theirs.select(*TURNS.names, "task").union(turns.select(*TURNS.names, "task"))
    in_order = both.repartitionById(tasks, "task").sortWithinPartitions("qmgr", "seq", "n").select(*TURNS.names)
    return in_order.mapInArrow(winners_of(prepared.setting, clears), _WINNERS)


def winners_of(setting: ReplaySetup, clears: bool) -> Work:
    """What a task of the second step does: TURNS in order in; who looks, at what, and whose it is out."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        timeline: _Timeline | None = None
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for qmgr, topic, seq, publication, _, scheme, now, operation in columns(batch, *TURNS.names):
                if timeline is None or qmgr != timeline.qmgr:
                    timeline = _Timeline(qmgr, setting, clears)
                if publication is not None:
                    timeline.store(topic, seq, pickle.loads(publication))
                else:
                    clearing = None if operation is None else pickle.loads(operation)
                    rows += timeline.look(seq, now, topic, WildcardScheme(scheme), clearing)
            if len(rows) >= _BATCH_ROWS:
                yield batch_of(rows, _ARROW_WINNERS)
                rows = []
        if rows:
            yield batch_of(rows, _ARROW_WINNERS)

    return run


def _task_of(qmgr: str, topic: str, tasks: int) -> Column:
    return F.pmod(F.hash(qmgr, topic), F.lit(tasks))


class _Timeline:
    """Some topics of one queue manager: what is retained on them as its lookups come along."""

    def __init__(self, qmgr: str, setting: ReplaySetup, clears: bool) -> None:
        self.qmgr, self._clears = qmgr, clears
        self._space = setting.broker(qmgr).space
        self._stored: dict[str, int] = {}

    def store(self, topic: str, seq: int, publication: Publication) -> None:
        """A publication of message *seq* is retained."""
        self._space.retain(RetainedPublication(topic, publication))
        self._stored[topic] = seq

    def look(
        self, at: int, now: datetime, pattern: str, scheme: WildcardScheme, clears: ClearRetained | None
    ) -> Iterator[tuple[Any, ...]]:
        """What message *at* finds. clears: the result of a DeletePub."""
        if self._clears or clears is None:
            for each in self._space.retained(pattern, scheme, now, heed_blocks=False):
                topic = each.topic_string
                yield (self.qmgr, at, topic, self._stored[topic])
        if clears is not None:
            self._space.apply(clears, now)
