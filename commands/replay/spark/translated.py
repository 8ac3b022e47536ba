"""``translated``: the operations that captured commands come to, in each dialect (guide 7.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from commands.broker.broker import Arrival
from commands.explain.equivalents.mqi import to_mqi
from commands.explain.equivalents.mqsc import to_mqsc
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import Scene, Step
from commands.replay.spark.prepare import prepared
from commands.replay.spark.replay_setup import Setting
from commands.replay.spark.rows import batch_of
from commands.replay.spark.schemas import TRANSLATED, arrow_schema
from commands.replay.spark.second_pass import Result, second_pass
from commands.replay.spark.twopass import first_pass
from streams.operations import ClearRetained, Effect, Operation, PublishToTopic, RetainedCleared
from streams.topic_space import TopicSpace

_SCHEMA: Final = arrow_schema(TRANSLATED)
_BATCH_ROWS: Final = 2000


class SteppingSpace(TopicSpace):
    """A topic space that keeps the operations which it is told to carry out."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.steps: list[Step] = []

    def apply(self, operation: Operation, now: datetime) -> list[Effect]:
        """As it is, and kept."""
        before = None
        if not isinstance(operation, PublishToTopic | ClearRetained):
            before = self.subscription(operation.subscription.sub_id)
        effects = super().apply(operation, now)
        cleared = tuple(effect.topic_string for effect in effects if isinstance(effect, RetainedCleared))
        self.steps.append(Step(operation, Scene("", now, before, cleared)))
        return effects

    def restore(self, *given: Any, **more: Any) -> None:
        """As it is; what the setup did is no captured command's."""
        super().restore(*given, **more)
        self.steps.clear()


class _OperationKeeper:
    """Keeps operations, as rows of TRANSLATED."""

    space = SteppingSpace

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the batch."""
        return len(self._rows) >= _BATCH_ROWS

    def keep(self, arrival: Arrival, qmgr: str, results: Sequence[Result]) -> None:
        """Take what one message came to."""
        ((outcome, space),) = results
        assert isinstance(space, SteppingSpace)
        command = None if outcome.command is None else outcome.command.word
        message = (arrival.seq, arrival.now, qmgr, arrival.queue, arrival.user, command)
        steps, space.steps = space.steps, []
        for n, step in enumerate(steps):
            scene = replace(step.scene, qmgr=qmgr)
            texts = ("\n".join(to(step.operation, scene)) for to in (to_mqsc, to_pcf, to_mqi))
            self._rows.append((*message, n, type(step.operation).__name__, *texts, outcome.reason, outcome.why or None))
        if not steps and outcome.completion is not None:
            self._rows.append((*message, None, None, None, None, None, outcome.reason, outcome.why or None))

    def take(self) -> Iterator[pa.RecordBatch]:
        """Give what was kept since the last time."""
        if self._rows:
            rows, self._rows = self._rows, []
            yield batch_of(rows, _SCHEMA)

    def end(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""
        return self.take()


def translated(captured: DataFrame, setup: str = "", semantics: str = "v7", *, ranges: int | None = None) -> DataFrame:
    """The operations that *captured* leads to, in order of seq and n, with their text in MQSC, PCF and MQI calls.

    The arguments are those of ``replayed``. A RegSub that finds its subscription is an alteration, a DeregSub takes
    away what an earlier RegSub made: the commands are run. Raises what ``replayed`` does.
    """
    ready = prepared(captured, Setting(setup, semantics), ranges)
    return second_pass(ready, [first_pass(ready, semantics, clears=True)], _OperationKeeper, TRANSLATED)
