"""Metrics of the processor: counted with each unit of work, and step by step for sampled commands.

A sampled command costs some 100 us more than one that a template answers. So after each the sampler waits
for many times as long as it took (``_SHARE``): the cost has a bound, whatever the rate of commands and however large
they are, and at low rates every command is measured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from commands.broker.outcome import Outcome
from commands.monitoring.catalogue import METRICS, PLATFORM, RULE_FILTER, RULE_REFUSED, Kind, Source
from commands.monitoring.health import Health, Signs
from commands.monitoring.steps import STAGES, Steps
from commands.qmgr.observer import Committed, Ending
from commands.qmgr.tally import ProcessorTally
from rfh2.constants import REASON_NAMES

_CLASSES: Final = {Kind.COUNTER: Counter, Kind.GAUGE: Gauge, Kind.HISTOGRAM: Histogram}
_OK: Final = Ending("Publish", "ok")
_SHARE: Final = 1000
_LEVELS: Final = ("info", "warning", "error")


class ProcessorMetrics:
    """The metrics whose source is the processor, for one queue manager.

    unit: counts the commands of the unit of work that is open. due_s: from when on a command is measured step by step,
    of ``time.perf_counter``.
    """

    def __init__(self, registry: CollectorRegistry, qmgr: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each; qpubsub_start_time_seconds says the same
        self._qmgr = qmgr
        self._of: dict[str, Any] = {}
        for metric in METRICS:
            if metric.source is Source.PROCESSOR:
                options = {"buckets": metric.buckets} if metric.buckets else {}
                made = _CLASSES[metric.kind](
                    metric.name, metric.text, metric.all_labels, registry=registry, **cast(Any, options)
                )
                self._of[metric.name] = made
        plain = {metric.name for metric in METRICS if metric.all_labels == ("qmgr",)}
        self._plain = {name: made.labels(qmgr) for name, made in self._of.items() if name in plain}
        self._stages = {stage: self.labelled("qpubsub_stage_seconds", stage) for stage in STAGES}
        self._kept_back = {rule: self.labelled("qpubsub_kept_back", rule) for rule in (RULE_FILTER, RULE_REFUSED)}
        self.events = {level: self.labelled("qpubsub_log_events", level) for level in _LEVELS}
        self._endings: dict[Ending, tuple[Any, ...]] = {}
        self.due_s = 0.0
        self.unit: ProcessorTally | None = None
        self._plain["qpubsub_in_flight"].set_function(self._in_flight)
        self._plain["qpubsub_start_time_seconds"].set_to_current_time()

    def show(self, health: Health, signs: Signs, clock_s: Callable[[], float]) -> None:
        """Show the state of the process too. clock_s: a clock for how long it runs."""
        began = clock_s()
        self._plain["qpubsub_ready"].set_function(lambda: health.ready().ok)
        self._plain["qpubsub_retrying"].set_function(lambda: signs.waiting is not None)
        self.labelled("ibmmq_qmgr_status", PLATFORM).set_function(lambda: health.phase)
        self.labelled("ibmmq_qmgr_uptime", PLATFORM).set_function(lambda: clock_s() - began)

    def labelled(self, name: str, *values: str) -> Any:
        """One series of a metric with more labels than ``qmgr``."""
        return self._of[name].labels(self._qmgr, *values)

    # Sampling

    def sampled(self, wait_s: float, steps: Steps, outcome: Outcome) -> None:
        """Take the measures of one command. wait_s: from its arrival to its get."""
        ended = steps[-1].end_s
        self.due_s = ended + (ended - steps[0].begin_s) * _SHARE
        self._plain["qpubsub_sampled"].inc()
        self._plain["qpubsub_wait_seconds"].observe(max(wait_s, 0.0))
        for step in steps:
            self._stages[step.stage].observe(step.end_s - step.begin_s)
        if outcome.trace is not None:
            for operation in outcome.trace.operations:
                for passed in operation.passed_over:
                    self.labelled("qpubsub_sampled_kept_back", passed.rule.value).inc()

    # Units of work

    def committed(self, unit: Committed, commit_s: float | None) -> None:
        """Count a unit of work. commit_s: how long its commit took, if that was measured."""
        tally, counts, plain = unit.tally, unit.counts, self._plain
        self.unit = None
        if not tally.commands:
            return
        others = 0
        for ending, times in unit.endings.items():
            others += times
            self._ended(ending, times)
        if tally.commands > others:
            self._ended(_OK, tally.commands - others)
        for name, count in (
            ("qpubsub_bytes", unit.size_bytes),
            ("qpubsub_published", sum(counts.published.values())),
            ("qpubsub_delivered", tally.publications),
            ("qpubsub_responses", tally.responses),
            ("qpubsub_dead_letters", tally.dead_letters),
            ("qpubsub_discarded", tally.discarded),
            ("qpubsub_linked", tally.linked),
            ("qpubsub_units_of_work", 1),
        ):
            if count:
                plain[name].inc(count)
        if counts.filtered:
            self._kept_back[RULE_FILTER].inc(sum(counts.filtered.values()))
        if counts.dead_letters:
            self._kept_back[RULE_REFUSED].inc(sum(counts.dead_letters.values()))
        plain["qpubsub_unit_of_work_commands"].observe(tally.commands)
        if commit_s is not None:
            plain["qpubsub_commit_seconds"].observe(commit_s)

    def backed_out(self) -> None:
        """Count a unit of work that was backed out."""
        self.unit = None
        self._plain["qpubsub_backouts"].inc()

    def _in_flight(self) -> int:
        unit = self.unit  # another thread asks
        return 0 if unit is None else unit.commands

    def _ended(self, ending: Ending, times: int) -> None:
        found = self._endings.get(ending)
        if found is None:
            command = self.labelled("qpubsub_commands", ending.command or "none", ending.completion or "none")
            found = (command,)
            if ending.reason is not None:
                name = REASON_NAMES.get(ending.reason, "")
                found = (command, self.labelled("qpubsub_reasons", str(ending.reason), name))
            self._endings[ending] = found
        for counter in found:
            counter.inc(times)


class EventCounter(logging.Handler):
    """Counts the events of the log by level."""

    def __init__(self, metrics: ProcessorMetrics) -> None:
        super().__init__()
        self._events = metrics.events

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else record.levelname.lower()
        counter = self._events.get(level)
        if counter is not None:
            counter.inc()
