"""The observer of a processor: metrics, traces, or both."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import Reading
from commands.monitoring.trace_context import DECODE, DELIVER, MATCH, Step, seems_sampled
from commands.qmgr.observer import Committed, ProcessorTally, Sample
from commands.qmgr.store.messages import StoredMessage

if TYPE_CHECKING:
    # Either library may be missing where its part is not used.
    from commands.monitoring.metrics import ProcessorMetrics
    from commands.monitoring.tracing import TracedCommand, Tracing

# So many commands pass without a look at the clock, where neither metrics nor traces are due.
_SKIPPED: Final = 15


class Observing:
    """``commands.qmgr.observer.Observer``. Either part may be None."""

    def __init__(self, metrics: ProcessorMetrics | None, tracing: Tracing | None) -> None:
        self._metrics, self._tracing = metrics, tracing
        self._committing: float | None = None
        self._skipped = 0

    def begun(self, tally: ProcessorTally) -> None:
        self._skipped = 0
        if self._metrics is not None:
            self._metrics.unit = tally

    def sample(self, message: StoredMessage) -> Sample | None:
        if self._skipped:
            self._skipped -= 1
            return None
        now, metrics, tracing = time.perf_counter(), self._metrics, self._tracing
        is_due = metrics is not None and now >= metrics.due_s
        is_traced, is_sampled = False, None
        if tracing is not None and now >= tracing.due_s:
            is_sampled = seems_sampled(message.body)
            is_traced = tracing.wants(is_sampled)
        elif not is_due:
            self._skipped = _SKIPPED
        if not is_due and not is_traced:
            return None
        return _Sample(message, now, metrics if is_due else None, tracing if is_traced else None, is_sampled)

    def committing(self) -> None:
        self._committing = time.perf_counter()

    def committed(self, unit: Committed) -> None:
        began, self._committing = self._committing, None
        commit_s = None if began is None else time.perf_counter() - began
        if self._metrics is not None:
            self._metrics.committed(unit, commit_s)
        if self._tracing is not None:
            self._tracing.committed(commit_s)

    def backed_out(self) -> None:
        self._committing = None
        if self._metrics is not None:
            self._metrics.backed_out()
        if self._tracing is not None:
            self._tracing.backed_out()


class _Sample:
    """One command that is measured (``commands.qmgr.observer.Sample``)."""

    def __init__(
        self,
        message: StoredMessage,
        got: float,
        metrics: ProcessorMetrics | None,
        tracing: Tracing | None,
        is_sampled: bool | None,
    ) -> None:
        self._message, self._got, self._metrics, self._tracing = message, got, metrics, tracing
        self._is_sampled = is_sampled
        self._read = self._matching = self._matched = got
        self._traced: TracedCommand | None = None
        self._outcome = Outcome()

    @property
    def explains(self) -> bool:
        return self._metrics is not None

    def read(self, arrival: Arrival, reading: Reading) -> tuple[Arrival, Reading]:
        self._read = time.perf_counter()
        if self._tracing is not None:
            self._traced = self._tracing.begin(self._message, reading, self._is_sampled, self._got)
            if self._traced is not None and self._traced.context is not None:
                body = self._tracing.carried(self._traced, self._traced.context, arrival.body)
                arrival, reading = replace(arrival, body=body), Reading.of(arrival.md, body)
        self._matching = time.perf_counter()
        return arrival, reading

    def worked_out(self, outcome: Outcome) -> Outcome:
        self._matched = time.perf_counter()
        if self._traced is not None and self._tracing is not None:
            outcome = self._tracing.restored(self._traced, outcome)
        self._outcome = outcome
        return outcome

    def delivered(self) -> None:
        steps = (
            Step(DECODE, self._got, self._read),
            Step(MATCH, self._matching, self._matched),
            Step(DELIVER, self._matched, time.perf_counter()),
        )
        if self._metrics is not None:
            wait_s = (datetime.now(UTC) - self._message.time).total_seconds()
            self._metrics.sampled(wait_s, steps, self._outcome)
        if self._traced is not None and self._tracing is not None:
            self._tracing.delivered(self._traced, steps, self._outcome)
