"""The causes of differences, known before the second pass: which subscriptions are not the same in both versions, since
which command, and until when. One task for each queue manager puts its control messages to both versions, in order.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from commands.broker.context import Semantics
from commands.broker.outcome import Arrival, Outcome
from commands.replay.differences.causes import Cause, Causes
from commands.replay.differences.observe import ComparedMessage, Key, Observed
from commands.replay.spark.control import TICK, control_messages
from commands.replay.spark.journal import FOREVER
from commands.replay.spark.prepare import Prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.rows import batch_of, columns
from commands.replay.spark.schemas import COLUMNS, arrow_schema

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
_BATCH_ROWS: Final = 4096


@dataclass(frozen=True, slots=True)
class Known:
    """A cause, and the last message for which it is valid."""

    key: Key
    cause: Cause
    until: int


def known_causes(prepared: Prepared) -> dict[str, list[Known]]:
    """By queue manager, in the order in which they became known."""
    setting = prepared.setting

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plane: _CausesPlane | None = None
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for seq, now, qmgr, queue, user, md, body in columns(batch, *COLUMNS):
                if plane is None or qmgr != plane.qmgr:
                    rows += plane.end() if plane is not None else ()
                    plane = _CausesPlane(qmgr, setting)
                rows += plane.process(Arrival(seq, now, queue, md, body, user))
                if len(rows) >= _BATCH_ROWS:
                    yield batch_of(rows, _ARROW_CAUSES)
                    rows = []
        rows += plane.end() if plane is not None else ()
        if rows:
            yield batch_of(rows, _ARROW_CAUSES)

    notes = control_messages(prepared).mapInArrow(run, _CAUSES).toArrow()
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
        self.qmgr = qmgr
        self._brokers = [(s, setting.under(s).broker(qmgr)) for s in (Semantics.V6, Semantics.V7)]
        self._causes = Causes()
        self._causes.begin(*(broker.space.subscriptions() for _, broker in self._brokers))
        self._open: dict[Key, Cause] = {}

    def process(self, arrival: Arrival) -> Iterator[tuple[Any, ...]]:
        """The notes on one message, or tick."""
        sides = []
        for semantics, broker in self._brokers:
            if arrival.queue == TICK:
                outcome = Outcome(effects=tuple(broker.space.expire(arrival.now)))
            else:
                outcome = broker.trace(arrival)
            sides.append(Observed.of(arrival, self.qmgr, outcome, broker.space, semantics))
        for key, cause in self._causes.learn(ComparedMessage(arrival, self.qmgr, *sides)):
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
