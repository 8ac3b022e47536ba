"""The replay in two passes: subscriptions first, in order; then every message, in parallel.

1. The control plane of each queue manager is run in order (``control``). It leaves the subscriptions that there are at
   the beginning of each range.
2. What is retained there is found (``retained``).
3. Everything is replayed, in ranges of ``seq`` (``second_pass``), each by the local engine, from the state at its
   beginning. A range is never a topic or a stream: none can be hot.

``translated``: the operations of captured commands, in each dialect (guide 7.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from commands.broker.outcome import Arrival
from commands.explain.equivalents.mqi import to_mqi
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import in_context
from commands.explain.selection import EVERYTHING, MessageSelection
from commands.mqsc.equivalents import to_mqsc
from commands.replay.put_columns import PutColumns
from commands.replay.spark.control import control_plane
from commands.replay.spark.prepare import Prepared, prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.retained import kept_retained
from commands.replay.spark.schemas import PUTS, TRANSLATED, arrow_schema, batch_of
from commands.replay.spark.second_pass import Lane, PutsKeeper, Result, second_pass
from commands.replay.spark.ticks import ticks_of

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
