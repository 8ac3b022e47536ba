"""The second pass: every message, in parallel, each at its place in the order of ``seq``.

Messages are dealt out in ranges of ``seq``. A task brings a broker to the place where its range begins, from the
intervals, and processes its messages in order, those of the control plane included: with the same code and the same
state as the local replay. What a message finds retained travels to it from wherever it was published.

What is kept of an outcome is up to a ``Keeper``: puts for ``replayed``, operations for ``translated``. One that wants
nothing but puts is a ``PutsKeeper``, for which templates make most outcomes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import StructType

from commands.broker.forward import MadePuts
from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import Reading
from commands.mqsc.broker import Broker
from commands.replay.arrivals import RepeatedSeqError
from commands.replay.spark.control import INTERVAL
from commands.replay.spark.journal import BEFORE_ALL, Replica, SubscriptionJournal
from commands.replay.spark.prepare import CHOSEN, Prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, columns
from streams.operations import RetainedPublication, RetainedStored
from streams.topic_space import TopicSpace

WORK: Final = ("at", *COLUMNS, "topic", "lane", "until", "range")
"""The columns of what a task gets: messages; with topic and lane, what the next message finds retained; with until and
lane, an interval, which has its ``after`` as seq and its state as body."""

_NOTHING: Final = {"now": "timestamp", "queue": "string", "user": "string", "md": "binary", "topic": "string"}
"""What an interval does not have."""


Result = tuple[Outcome, TopicSpace]
"""The result of a message in one lane, and the topic space just after it."""


class Keeper(Protocol):
    """What one task keeps of the outcomes."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to take."""

    def begin(self, qmgr: str) -> None:
        """The first message of a queue manager comes; it may be none whose result is kept."""

    def keep(self, arrival: Arrival, qmgr: str, results: Sequence[Result]) -> None:
        """Take the result of one message in each lane; outcomes have their trace, except for a ``PutsKeeper``."""

    def take(self) -> Iterator[pa.RecordBatch]:
        """Give what was kept since the last time."""

    def end(self) -> Iterator[pa.RecordBatch]:
        """Give what is left, when there are no more messages."""


class PutsKeeper(Keeper):
    """A Keeper for one lane that needs only puts, so that templates may make outcomes."""

    def begin(self, qmgr: str) -> None:
        """Do nothing."""


class ComparingKeeper(Keeper):
    """A Keeper for several lanes, which knows of some messages that no lane has to process them."""

    @abstractmethod
    def is_known(self, arrival: Arrival, qmgr: str, spaces: Sequence[TopicSpace], *, chosen: bool) -> bool:
        """Whether that is so; the result is then kept, if *chosen*. spaces: of each lane, just before the message."""


@dataclass(frozen=True)
class Lane:
    """One setting under which messages are replayed, and what its first pass left.

    notes: of the control plane. controlled: the queue managers that it has notes on; on all others, what the setup
    defines is valid throughout. found: what messages find retained; None where nobody looks.
    """

    setting: ReplaySetup
    notes: DataFrame
    controlled: frozenset[str]
    found: DataFrame | None


def second_pass(ready: Prepared, lanes: Sequence[Lane], keeper: Callable[[], Keeper], schema: StructType) -> DataFrame:
    """What keepers keep, in the order of seq.

    lanes: each replays every message, side by side. keeper: makes one for each task; it takes those that are chosen.
    """
    messages = ready.messages.withColumn("at", F.col("seq")).withColumn("topic", F.lit(None).cast("string"))
    choice = (CHOSEN,) if CHOSEN in messages.columns else ()
    names = (*COLUMNS, "topic", "lane", "until", *choice)
    together = _together(ready, lanes)
    task = (F.col("range") / together).cast("int")
    work = (
        messages.withColumn("lane", F.lit(None).cast("int"))
        .withColumn("until", F.lit(None).cast("long"))
        .select(*WORK, *choice)
    )
    work = work.withColumn("range", task)
    places = F.sequence((F.col("first") / together).cast("int"), (F.col("last") / together).cast("int"))
    found = (frame.withColumn("range", task) for frame in looked_up(ready, lanes))
    for other in (*intervals_of(lanes, places), *found):
        work = work.union(other.withColumn(CHOSEN, F.lit(False)) if choice else other)
    # Intervals come before all messages, and what a message finds just before it.
    order = ("at", "qmgr", F.col("topic").asc_nulls_last())
    in_order = work.repartitionById(-(-ready.ranges // together), "range").sortWithinPartitions(*order)
    settings = [(lane.setting, lane.controlled) for lane in lanes]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = RangeTask(settings, keeper())
        yield from task.run(row for batch in batches for row in columns(batch, *names))

    return in_order.select(*names).mapInArrow(run, schema)


def _together(ready: Prepared, lanes: Sequence[Lane]) -> int:
    """How many ranges, side by side, share a task: more than one where intervals would be more rows than messages.

    A subscription goes to each task in which it lives, and a million of them to thousands.
    """
    most = ready.ranges // ready.fewest
    if most < 2:
        return 1
    copies = F.sum(F.col("last") - F.col("first") + 1)
    rows = sum(lane.notes.where(F.col("kind") == INTERVAL).agg(copies).collect()[0][0] or 0 for lane in lanes)
    return min(most, max(1, -(-rows // ready.count)))


def intervals_of(lanes: Sequence[Lane], places: Column) -> Iterator[DataFrame]:
    """The intervals of each lane: the columns WORK.

    places: where each goes, a list of numbers made of the first and the last range that needs it.
    """
    nothing = {name: F.lit(None).cast(kind) for name, kind in _NOTHING.items()}
    for number, lane in enumerate(lanes):
        rows = lane.notes.where(F.col("kind") == INTERVAL).select(
            F.lit(BEFORE_ALL).cast("long").alias("at"),
            F.col("after").alias("seq"),
            "qmgr",
            "until",
            F.encode("text", "UTF-8").alias("body"),
            F.lit(number).alias("lane"),
            F.explode(places).alias("range"),
        )
        yield rows.withColumns(nothing).select(*WORK)


def looked_up(ready: Prepared, lanes: Sequence[Lane]) -> Iterator[DataFrame]:
    """What messages find retained in each lane: the columns WORK, ``at`` and ``range`` of the message that looks."""
    places = ready.control.select("qmgr", F.col("seq").alias("at"), "range")
    for number, lane in enumerate(lanes):
        if lane.found is not None:
            found = lane.found.withColumn("lane", F.lit(number)).withColumn("until", F.lit(None).cast("long"))
            yield found.join(places, ["qmgr", "at"]).select(*WORK)


class RangeTask:
    """What one task has: replicas of each queue manager, one in each lane.

    lanes: setting and controlled queue managers of each.
    """

    def __init__(self, lanes: Sequence[tuple[ReplaySetup, frozenset[str]]], keeper: Keeper) -> None:
        self.keeper = keeper
        self._comparing: ComparingKeeper | None = keeper if isinstance(keeper, ComparingKeeper) else None
        self._lanes = lanes
        self._intervals: dict[tuple[int, str], list[tuple[int, int, str]]] = {}
        self._qmgrs: dict[str, list[_Local]] = {}
        self._last: dict[str, Arrival] = {}

    def run(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
        """What the keeper gives. rows: the arguments of ``process``, in order."""
        keeper, process = self.keeper, self.process
        for row in rows:
            process(*row)
            if keeper.is_full:
                yield from keeper.take()
        yield from keeper.end()

    def learn(self, lane: int, qmgr: str, after: int, until: int, state: str) -> None:
        """An interval, before all messages."""
        self._intervals.setdefault((lane, qmgr), []).append((after, until, state))

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
        lane: int | None,
        until: int | None = None,
        chosen: bool = True,
    ) -> None:
        """One message, or what the next one of its queue manager finds retained on *topic* in one lane, or an interval.

        Intervals come before all messages. chosen: whether the keeper takes its result.
        """
        if until is not None and lane is not None:
            self.learn(lane, qmgr, seq, until, body.decode())
            return
        arrival = Arrival(seq, now, queue, md, body, user)
        known = self._qmgrs.get(qmgr)
        if known is None:
            traced = not isinstance(self.keeper, PutsKeeper)
            known = [
                _Local(qmgr, setting, self._journal(at, qmgr), traced) for at, (setting, _) in enumerate(self._lanes)
            ]
            self._qmgrs[qmgr] = known
            self.keeper.begin(qmgr)
        if topic is not None and lane is not None:
            known[lane].find(arrival, topic)
            return
        last = self._last.get(qmgr)
        if last is not None and last.seq == seq:
            if last == arrival:
                return
            raise RepeatedSeqError.of(seq, qmgr)
        self._last[qmgr] = arrival
        if self._comparing is not None and arrival.queue != CONTROL_QUEUE:
            spaces = [local.space_at(seq) for local in known]
            if self._comparing.is_known(arrival, qmgr, spaces, chosen=chosen):
                return
        results: list[Result] = []
        reading = Reading.of_captured(md, body) if len(known) > 1 else None
        made: MadePuts | None = None
        for local in known:
            outcome = local.process(arrival, reading, made)
            results.append((outcome, local.space))
            made = MadePuts(outcome.copies, outcome.puts) if reading is not None else None
        if chosen:
            self.keeper.keep(arrival, qmgr, results)

    def _journal(self, lane: int, qmgr: str) -> SubscriptionJournal | None:
        """What a queue manager has in one lane; None where nothing controls it."""
        if qmgr not in self._lanes[lane][1]:
            return None
        return SubscriptionJournal.of(self._intervals.pop((lane, qmgr), ()))


class _Local:
    """One queue manager in one lane: its replica, and what the message that comes next finds retained."""

    def __init__(self, qmgr: str, setting: ReplaySetup, journal: SubscriptionJournal | None, traced: bool) -> None:
        self._qmgr, self._setting = qmgr, setting
        self._replica = Replica(qmgr, setting, journal, traced=traced)
        self._scratch: Broker | None = None
        # By publishing message: publications to several topics stay one publication.
        self._published: dict[int, dict[str, RetainedPublication]] = {}
        self._found: list[RetainedPublication] | None = None

    def find(self, arrival: Arrival, topic: str) -> None:
        """The next message finds on *topic* what an earlier one, *arrival*, left there."""
        published = self._published.get(arrival.seq)
        if published is None:
            published = self._published[arrival.seq] = self._again(arrival)
        if self._found is None:
            self._found = []
        self._found.append(published[topic])

    @property
    def space(self) -> TopicSpace:
        """The topic space as it is."""
        return self._replica.space

    def space_at(self, seq: int) -> TopicSpace:
        """The topic space just before message *seq*, which comes next."""
        self._replica.go_to(seq)
        return self._replica.space

    def process(self, arrival: Arrival, reading: Reading | None, made: MadePuts | None) -> Outcome:
        """One message. reading, made: as for ``trace``."""
        found = self._found
        if found is not None:
            self._found = None
            self._published.clear()
        elif arrival.queue == CONTROL_QUEUE:
            found = []
        return self._replica.process(arrival, found, reading, made)

    def _again(self, arrival: Arrival) -> dict[str, RetainedPublication]:
        """The publications that a message left retained, by topic: it is published again, without subscribers."""
        if self._scratch is None:
            self._scratch = self._setting.broker(self._qmgr)
            self._scratch.space.restore((), ())
        effects = self._scratch.process(arrival).effects
        self._scratch.space.forget_retained()
        stored = (effect.retained for effect in effects if isinstance(effect, RetainedStored))
        return {retained.topic_string: retained for retained in stored}
