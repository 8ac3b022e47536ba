"""The second pass: every message, in parallel, each at its place in the order of ``seq``.

Messages are dealt out in ranges of ``seq``. A task brings a broker to the state at the beginning of its range, and
processes its messages in order, those of the control plane included: it is the local replay of a part of the capture.

What is kept of an outcome is up to a ``Keeper``: puts for ``replayed``, operations for ``translated``. One that wants
nothing but puts is a ``PutsKeeper``, for which templates make most outcomes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import StructType

from commands.broker.forward import MadePuts
from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import Reading
from commands.broker.state import subscription_of
from commands.mqsc.broker import Broker
from commands.replay.arrivals import RepeatedSeqError
from commands.replay.spark.control import BEFORE_ALL, SUBSCRIBED
from commands.replay.spark.prepare import CHOSEN, Prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, columns
from commands.templates.templates import PublicationTemplates
from streams.operations import RetainedPublication, RetainedStored
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

STATE: Final = ("lane", *COLUMNS, "topic", "first", "last")
"""The columns of the state at the beginning of ranges, from the first to the last: of a subscription, which has no
topic, its text as body; of what is retained on a topic, the message that left it."""

_WORK: Final = (*COLUMNS, "topic", "lane")
"""The columns of what a task gets: with a lane, a part of its state, which comes first; without one, a message."""

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
    defines is valid throughout. kept: what is retained at the beginning of ranges (``twopass.KEPT``). ticks:
    ``twopass.TICKS``.
    """

    setting: ReplaySetup
    notes: DataFrame
    controlled: frozenset[str]
    kept: DataFrame
    ticks: DataFrame | None

    def give_up(self) -> None:
        """What is kept on disks for it is not needed any more."""
        for frame in (self.notes, self.kept, self.ticks):
            if frame is not None:
                frame.unpersist()


def second_pass(ready: Prepared, lanes: Sequence[Lane], keeper: Callable[[], Keeper], schema: StructType) -> DataFrame:
    """What keepers keep, in the order of seq.

    lanes: each replays every message, side by side. keeper: makes one for each task; it takes those that are chosen.
    """
    choice = (CHOSEN,) if CHOSEN in ready.messages.columns else ()
    names = (*_WORK, *choice)
    state = state_of(ready, lanes)
    together = _together(ready, lanes)
    nothing = {"topic": F.lit(None).cast("string"), "lane": F.lit(None).cast("int")}
    messages = ready.messages.withColumns(nothing).withColumn("task", (F.col("range") / together).cast("int"))
    # The task of which a range is the first one begins with its state.
    tasks = F.sequence(F.ceil(F.col("first") / together).cast("int"), (F.col("last") / together).cast("int"))
    begins = F.ceil(F.col("first") / together) <= F.floor(F.col("last") / together)
    placed = state.where(begins).withColumn("task", F.explode(tasks))
    if choice:
        placed = placed.withColumn(CHOSEN, F.lit(False))
    work = messages.select(*names, "task").union(placed.select(*names, "task"))
    order = (F.col("lane").asc_nulls_last(), "seq", "qmgr")
    in_order = work.repartitionById(-(-ready.ranges // together), "task").sortWithinPartitions(*order)
    settings = [(lane.setting, lane.controlled) for lane in lanes]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = RangeTask(settings, keeper())
        yield from task.run(row for batch in batches for row in columns(batch, *names))

    return in_order.select(*names).mapInArrow(run, schema)


def _together(ready: Prepared, lanes: Sequence[Lane]) -> int:
    """How many ranges, side by side, share a task: more than one where the state would be more rows than messages.

    A subscription goes to each task at whose beginning it is there, and a million of them to thousands.
    """
    most = ready.ranges // ready.fewest
    if most < 2:
        return 1
    frames = [lane.notes.where(F.col("kind") == SUBSCRIBED) for lane in lanes] + [lane.kept for lane in lanes]
    copies = F.sum(F.col("last") - F.col("first") + 1)
    rows = sum(frame.agg(copies).collect()[0][0] or 0 for frame in frames)
    return min(most, max(1, -(-rows // ready.count)))


def state_of(ready: Prepared, lanes: Sequence[Lane]) -> DataFrame:
    """The state at the beginning of ranges, in each lane: the columns STATE."""
    frames = list[DataFrame]()
    for number, lane in enumerate(lanes):
        subscribed = lane.notes.where(F.col("kind") == SUBSCRIBED).withColumns(
            {
                "seq": F.lit(BEFORE_ALL).cast("long"),
                "body": F.encode("text", "UTF-8"),
                "md": F.lit(None).cast("binary"),
                **{name: F.lit(None).cast("string") for name in ("queue", "user", "topic")},
            }
        )
        frames += (
            frame.withColumn("lane", F.lit(number)).select(*STATE) for frame in (subscribed, ready.fetched(lane.kept))
        )
    return reduce(DataFrame.union, frames)


class RangeTask:
    """What one task has: brokers of each queue manager, one in each lane.

    lanes: setting and controlled queue managers of each.
    """

    def __init__(self, lanes: Sequence[tuple[ReplaySetup, frozenset[str]]], keeper: Keeper) -> None:
        self.keeper = keeper
        self._comparing: ComparingKeeper | None = keeper if isinstance(keeper, ComparingKeeper) else None
        self._lanes = lanes
        self._states: dict[tuple[int, str], _State] = {}
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

    def learn(self, lane: int, qmgr: str, arrival: Arrival, topic: str | None) -> None:
        """A part of the state, before all messages: on *topic* what *arrival* left retained, or a subscription."""
        state = self._states.get((lane, qmgr))
        if state is None:
            state = self._states[lane, qmgr] = _State(self._lanes[lane][0].broker(qmgr))
        if topic is None:
            state.subscriptions.append(subscription_of(arrival.body.decode()))
        else:
            state.retain(arrival, topic)

    def process(
        self,
        seq: int,
        now: Any,
        qmgr: str,
        queue: str,
        user: str | None,
        md: bytes | None,
        body: bytes,
        topic: str | None = None,
        lane: int | None = None,
        chosen: bool = True,
    ) -> None:
        """One message; or, with a lane, a part of the state. chosen: whether the keeper takes its result."""
        arrival = Arrival(seq, now, queue, md, body, user)
        if lane is not None:
            self.learn(lane, qmgr, arrival, topic)
            return
        known = self._qmgrs.get(qmgr)
        if known is None:
            known = self._qmgrs[qmgr] = [self._begun(at, qmgr) for at in range(len(self._lanes))]
            self.keeper.begin(qmgr)
        last = self._last.get(qmgr)
        if last is not None and last.seq == seq:
            if last == arrival:
                return
            raise RepeatedSeqError.of(seq, qmgr)
        self._last[qmgr] = arrival
        if self._comparing is not None:
            spaces = [local.space for local in known]
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

    def _begun(self, lane: int, qmgr: str) -> _Local:
        """The broker of a queue manager in one lane, in the state at the beginning."""
        setting, controlled = self._lanes[lane]
        broker = setting.broker(qmgr)
        state = self._states.pop((lane, qmgr), None)
        if qmgr in controlled:
            subscriptions = () if state is None else sorted(state.subscriptions, key=lambda each: each.sub_id)
            broker.space.restore(subscriptions, (), setting.broker(qmgr).space)
        for each in () if state is None else state.retained:
            broker.space.retain(each)
        return _Local(broker, traced=not isinstance(self.keeper, PutsKeeper))


class _State:
    """What one queue manager has in one lane. scratch: a broker to publish again what is retained."""

    def __init__(self, scratch: Broker) -> None:
        self.subscriptions: list[Subscription] = []
        self.retained: list[RetainedPublication] = []
        self._scratch = scratch
        scratch.space.restore((), ())
        self._templates = PublicationTemplates(scratch, effects=True)
        # Of messages on several topics, by seq: these keep one publication.
        self._published: dict[int, dict[str, RetainedPublication]] = {}

    def retain(self, arrival: Arrival, topic: str) -> None:
        """On *topic* there is what *arrival* left: it is published again, without subscribers."""
        published = self._published.get(arrival.seq)
        if published is None:
            effects = self._templates.process(arrival).effects
            self._scratch.space.forget_retained()
            stored = (effect.retained for effect in effects if isinstance(effect, RetainedStored))
            published = {retained.topic_string: retained for retained in stored}
            if len(published) > 1:
                self._published[arrival.seq] = published
        self.retained.append(published[topic])


class _Local:
    """One queue manager in one lane.

    traced: whether outcomes have their trace; where they do not, publications like one before are not worked out again.
    """

    def __init__(self, broker: Broker, *, traced: bool) -> None:
        self._broker, self.space = broker, broker.space
        self._templates = None if traced else PublicationTemplates(broker, effects=True)

    def process(self, arrival: Arrival, reading: Reading | None, made: MadePuts | None) -> Outcome:
        """One message. reading, made: as for ``trace``."""
        if self._templates is not None:
            return self._templates.process(arrival)
        return self._broker.trace(arrival, reading, made=made)
