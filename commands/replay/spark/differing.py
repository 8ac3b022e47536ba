"""The comparison of versions 6 and 7 on Spark: both lanes of the second pass side by side, each put explained there.

The rows are those of the local comparison, and the report is the same.

The causes of differences, known before the second pass: which subscriptions are not the same in both versions, since
which command, and until when. One task for each queue manager puts its control messages to both versions, in order.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from commands.broker.context import V6_BROKER, Semantics
from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import Reading
from commands.explain.selection import EVERYTHING, MessageSelection
from commands.replay.differences.causes import Cause, Causes, signs_of
from commands.replay.differences.deliveries import (
    AlikePublications,
    Mark,
    delivered_by,
    lines_of,
    marks_of,
    marks_of_alike,
    not_processed,
)
from commands.replay.differences.explain import Explainer
from commands.replay.differences.observe import ComparedMessage, Key, Observed
from commands.replay.differences.report import DeliveryLine, DifferenceReport, DifferenceTally, PutDifference
from commands.replay.spark.control import FOREVER, control_messages
from commands.replay.spark.in_order import StagedCapture, staged
from commands.replay.spark.prepare import TICK, Prepared, once, prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, DIFFERENCES, arrow_schema, batch_of, batches_of, columns
from commands.replay.spark.second_pass import ComparingKeeper, Result, second_pass
from commands.replay.spark.twopass import first_pass
from streams.topic_space import TopicSpace

_CAUSES: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("since", LongType()),
        StructField("until", LongType()),
        StructField("rule", StringType()),
        StructField("why", StringType()),
        StructField("key", BinaryType()),
    ]
)
_ARROW_CAUSES: Final = arrow_schema(_CAUSES)


@dataclass(frozen=True, slots=True)
class Known:
    """A cause, and the last message for which it is valid."""

    key: Key
    cause: Cause
    until: int


def known_causes(prepared: Prepared, ticks: DataFrame | None) -> dict[str, list[Known]]:
    """By queue manager, in the order in which they became known. ticks: of version 6."""
    setting = prepared.setting

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        plane: _CausesPlane | None = None
        for seq, now, qmgr, queue, user, md, body in once(row for batch in batches for row in columns(batch, *COLUMNS)):
            if plane is None or qmgr != plane.qmgr:
                yield from plane.end() if plane is not None else ()
                plane = _CausesPlane(qmgr, setting)
            yield from plane.process(Arrival(seq, now, queue, md, body, user))
        yield from plane.end() if plane is not None else ()

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(rows(batches), _ARROW_CAUSES)

    notes = control_messages(prepared, ticks).mapInArrow(run, _CAUSES).toArrow()
    known: dict[str, list[Known]] = {}
    for batch in notes.to_batches():
        for qmgr, since, until, rule, why, key in columns(batch, *_CAUSES.names):
            known.setdefault(qmgr, []).append(Known(pickle.loads(key), Cause(rule, why, since), until))
    for each in known.values():
        each.sort(key=lambda one: one.cause.since)
    return known


class _CausesPlane:
    """The control plane of one queue manager in both versions."""

    def __init__(self, qmgr: str, setting: ReplaySetup) -> None:
        self.qmgr, self._by_character = qmgr, setting.semantics == V6_BROKER
        sides = ((Semantics.V6, setting.semantics), (Semantics.V7, Semantics.V7.value))
        self._brokers = [(version, setting.under(name).broker(qmgr)) for version, name in sides]
        self._causes = Causes()
        self._causes.begin(*(broker.space.subscriptions() for _, broker in self._brokers))
        self._open: dict[Key, Cause] = {}

    def process(self, arrival: Arrival) -> Iterator[tuple[Any, ...]]:
        """The notes on one message, or tick."""
        sides = []
        reading = Reading.of_captured(arrival.md, arrival.body)
        for semantics, broker in self._brokers:
            if arrival.queue == TICK:
                outcome = Outcome(effects=tuple(broker.space.expire(arrival.now)))
            else:
                outcome = broker.trace(arrival, reading)
            sides.append(Observed.of(arrival, self.qmgr, outcome, broker.space, semantics))
        old, new = sides
        for key, cause in self._causes.learn(ComparedMessage(arrival, self.qmgr, old, new, self._by_character)):
            if cause is not None:
                self._open[key] = cause
            elif key in self._open:
                yield self._note(key, self._open.pop(key), arrival.seq)

    def end(self) -> Iterator[tuple[Any, ...]]:
        """The notes on what stays known."""
        for key, cause in self._open.items():
            yield self._note(key, cause, FOREVER)

    def _note(self, key: Key, cause: Cause, until: int) -> tuple[Any, ...]:
        return (self.qmgr, cause.since, until, cause.rule, cause.why, pickle.dumps(key))


class CausesInOrder:
    """The causes of one queue manager, as they are at one message after the other."""

    def __init__(self, known: list[Known]) -> None:
        self.causes = Causes()
        self._known = known
        self._next = 0
        self._ends: list[tuple[int, int]] = []

    def go_to(self, seq: int) -> Causes:
        """The causes at message *seq*. Ask in the order of seq."""
        end = bisect_right(self._known, seq, lo=self._next, key=lambda one: one.cause.since)
        for at in range(self._next, end):
            heappush(self._ends, (self._known[at].until, at))
        opened, self._next = range(self._next, end), end
        while self._ends and self._ends[0][0] < seq:
            _, at = heappop(self._ends)
            if self.causes.known.get(self._known[at].key) is self._known[at].cause:
                del self.causes.known[self._known[at].key]
        for at in opened:
            if self._known[at].until >= seq:
                self.causes.known[self._known[at].key] = self._known[at].cause
        return self.causes


_KEPT: Final = StructType(
    [
        *DIFFERENCES.fields,
        StructField("tally", BinaryType()),
        StructField("digest", BinaryType()),
        StructField("whose", IntegerType()),
    ]
)
_ARROW_KEPT: Final = arrow_schema(_KEPT)
_BATCH_ROWS: Final = 2000
_NOTHING: Final = (None,) * len(DIFFERENCES.names)
_QMGR: Final = DIFFERENCES.names.index("qmgr")
_QUEUE: Final = DIFFERENCES.names.index("queue")


@dataclass(frozen=True)
class Compared:
    """A comparison that has not run yet. One run gives all results, so cache it.

    kept: differences, and what the report is made of. watched: queues on which something was captured.
    """

    kept: DataFrame

    def differences(self) -> DataFrame:
        """One row of DIFFERENCES for each difference, in order of seq."""
        return self.kept.where("rule is not null").select(*DIFFERENCES.names)

    def report(self) -> DifferenceReport:
        """The sum of all."""
        tally = DifferenceTally()
        for row in self.kept.where("tally is not null").select("tally").toLocalIterator():
            tally.add(pickle.loads(row["tally"]))
        return tally.report(self._deliveries())

    def _deliveries(self) -> list[DeliveryLine]:
        counts = [F.count_if(F.col("whose") == whose) for whose in range(3)]
        marks = self.kept.where("whose is not null").groupBy("qmgr", "queue", "digest").agg(*counts)
        by_queue: dict[tuple[str, str], list[list[int]]] = {}
        for qmgr, queue, _, *found in marks.toLocalIterator():
            by_queue.setdefault((qmgr, queue), []).append(found)
        return lines_of(by_queue)


def differing(
    captured: DataFrame,
    setup: str = "",
    *,
    old: str = Semantics.V6.value,
    ranges: int | None = None,
    selection: MessageSelection | str = EVERYTHING,
    tasks: int | None = None,
    monotonic_clock: bool = False,
) -> Compared:
    """Compare what versions 6 and 7 put. old: which broker of version 6, ``v6`` or ``v6-broker``.

    The other arguments are those of ``replayed``, and so is what is raised.
    """
    # Version 6 has the streams of version 7, and more: its first pass has what both need.
    setting = ReplaySetup(setup, old, monotonic_clock=monotonic_clock)
    ready = prepared(captured, setting, ranges, selection, tasks)
    # Each use would look for them among all messages again.
    ready.control.persist(StorageLevel.DISK_ONLY)
    lanes = [first_pass(ready, semantics) for semantics in (old, Semantics.V7.value)]
    causes = known_causes(ready, lanes[0].ticks)
    ready.control.unpersist()
    watched = frozenset(_watched(ready))
    return Compared(second_pass(ready, lanes, lambda: _DifferenceKeeper(causes, watched, old == V6_BROKER), _KEPT))


def _watched(ready: Prepared) -> list[str]:
    """The queues with captured messages that no broker has to take: deliveries are compared on no others."""
    read = [CONTROL_QUEUE, *ready.setting.listed_queues]
    others = ready.messages.where(~F.col("queue").isin(read)).select("queue").distinct()
    return [row["queue"] for row in others.collect()]


class _DifferenceKeeper(ComparingKeeper):
    """Keeps differences, a tally for each task, and deliveries on watched queues."""

    def __init__(self, causes: dict[str, list[Known]], watched: frozenset[str], by_character: bool) -> None:
        self._by_character = by_character
        self._causes, self._watched = causes, watched
        self._in_order: dict[str, CausesInOrder] = {}
        self._alike: dict[str, AlikePublications] = {}
        self._tally = DifferenceTally()
        self._rows: list[tuple[Any, ...]] = []

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the batch."""
        return len(self._rows) >= _BATCH_ROWS

    def begin(self, qmgr: str) -> None:
        """Nothing: differences come from messages alone."""

    def keep(self, arrival: Arrival, qmgr: str, results: Sequence[Result]) -> None:
        """Take the result of one message in both versions."""
        old, new = (
            Observed.of(arrival, qmgr, outcome, space, semantics)
            for (outcome, space), semantics in zip(results, (Semantics.V6, Semantics.V7), strict=True)
        )
        step = ComparedMessage(arrival, qmgr, old, new, self._by_character)
        known = self._in_order.get(qmgr)
        if known is None:
            known = self._in_order[qmgr] = CausesInOrder(self._causes.get(qmgr, []))
        differences, signs = Explainer(known.go_to(arrival.seq)).differences(step), signs_of(step)
        self._take(arrival, differences, not_processed(step), signs)
        if self._watched:
            self._mark(marks_of(step))
        if not differences:
            (_, old_space), (_, new_space) = results
            self._alike_at(qmgr, old_space, new_space).learn(step, delivered_by(step), signs)

    def is_known(self, arrival: Arrival, qmgr: str, spaces: Sequence[TopicSpace], *, chosen: bool) -> bool:
        """Whether both versions put a publication like it alike."""
        alike = self._alike_at(qmgr, *spaces).find(arrival)
        if alike is not None and chosen:
            self._take(arrival, (), None, alike.signs)
            if self._watched:
                self._mark(marks_of_alike(alike))
        return alike is not None

    def _alike_at(self, qmgr: str, old: TopicSpace, new: TopicSpace) -> AlikePublications:
        known = self._alike.get(qmgr)
        if known is None:
            known = self._alike[qmgr] = AlikePublications(old, new)
        return known

    def _take(
        self, arrival: Arrival, differences: Sequence[PutDifference], stream: str | None, signs: Sequence[str]
    ) -> None:
        self._tally.message(differences, stream)
        self._rows += map(_row, differences)
        for rule in signs:
            self._tally.sign(rule, arrival.seq)

    def _mark(self, marks: Iterable[Mark]) -> None:
        self._rows += (_mark(*mark) for mark in marks if mark[1] in self._watched)

    def take(self) -> Iterator[pa.RecordBatch]:
        """Give what was kept since the last time."""
        if self._rows:
            rows, self._rows = self._rows, []
            yield batch_of(rows, _ARROW_KEPT)

    def end(self) -> Iterator[pa.RecordBatch]:
        """Give what is left, and the tally."""
        self._rows.append((*_NOTHING, pickle.dumps(self._tally), None, None))
        return self.take()


def _row(difference: PutDifference) -> tuple[Any, ...]:
    values = [getattr(difference, name) for name in DIFFERENCES.names]
    return (*values, None, None, None)


def _mark(qmgr: str, queue: str, digest: bytes, whose: int) -> tuple[Any, ...]:
    row: list[Any] = [*_NOTHING, None, digest, whose]
    row[_QMGR], row[_QUEUE] = qmgr, queue
    return tuple(row)


# File to file


def compare(
    spark: SparkSession,
    source: Path,
    form: str,
    setup: str,
    old: str,
    output: Path | None,
    selection: MessageSelection = EVERYTHING,
    *,
    monotonic_clock: bool = False,
) -> tuple[DifferenceReport, StagedCapture]:
    """The report on the capture at *source*, and what could not be read of it.

    output: where every difference goes, a directory named .jsonl or .parquet that takes the place of what is there; or
    None. What is in between is in a directory beside it, or in the temporary one, that goes in the end. selection: the
    messages that are reported.
    """
    work = Path(tempfile.mkdtemp(prefix=".qpubsub-", dir=None if output is None else output.parent))
    try:
        capture = staged(spark, source, form, work)
        kept = work / "kept"
        differing(
            capture.messages, setup, old=old, selection=selection, monotonic_clock=monotonic_clock
        ).kept.write.parquet(str(kept))
        compared = Compared(spark.read.parquet(str(kept)))
        report = compared.report()
        if output is not None:
            whole = work / "whole"
            rows = compared.differences().orderBy("seq", "qmgr")
            if output.suffix == ".jsonl":
                rows.write.option("ignoreNullFields", "false").json(str(whole))
            else:
                rows.write.parquet(str(whole))
            if output.is_dir():
                shutil.rmtree(output)
            else:
                output.unlink(missing_ok=True)
            whole.rename(output)
        return report, capture
    finally:
        shutil.rmtree(work)
