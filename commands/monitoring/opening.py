"""Metrics and traces, where options or the configuration ask for them; their libraries are loaded only then.

The observer of a processor: metrics, traces, or both.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import Reading
from commands.config.settings import Config, ConfigError, MetricsConfig, TracingConfig
from commands.config.urls import parse_listen
from commands.monitoring.server import Health, Phase, Signs
from commands.monitoring.trace_context import DECODE, DELIVER, MATCH, Step, seems_sampled
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.observer import Committed, Observer, ProcessorTally, Sample
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import StoredMessage
from commands.terminal.console import Console
from rfh2.distribution import how_to_install

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


_CONSOLE: Final = "console"


@dataclass(frozen=True, slots=True)
class Monitoring:
    """What is asked for. where: the address for metrics; endpoint: where spans go; None for none."""

    metrics: MetricsConfig
    tracing: TracingConfig
    where: tuple[str, int] | None = None
    endpoint: str | None = None

    @classmethod
    def of(cls, config: Config, metrics: str | None, tracing: str | None) -> Monitoring:
        """What the options ask for, else the configuration. Raises ConfigError."""
        listen, endpoint = metrics or config.metrics.listen, tracing or config.tracing.endpoint
        where = None if listen is None else parse_listen(listen, "--metrics" if metrics else "[metrics] listen")
        if where is not None:
            _require("prometheus_client", "--metrics", "metrics")
        if endpoint is not None:
            option = "--tracing" if tracing else "[tracing] endpoint"
            if endpoint != _CONSOLE and urlsplit(endpoint).scheme not in ("http", "https"):
                raise ConfigError(option, f"{endpoint} is neither console nor a URL, as in http://127.0.0.1:4318")
            _require("opentelemetry.sdk", "--tracing", "tracing")
        return cls(config.metrics, config.tracing, where, endpoint)

    @contextmanager
    def observing(
        self,
        qmgr: str,
        open_store: Callable[[], QueueManagerStore],
        signs: Signs,
        handlers: list[logging.Handler],
        health: Health,
        link: ManagedLink | None,
        console: Console,
    ) -> Iterator[Observer | None]:
        """Measure while inside: the observer for the processor, None where nobody measures. Raises QPubSubError.

        handlers: of the processor's log; one that counts events is added.
        """
        with ExitStack() as stack:
            metrics = traces = None
            if self.where is not None:
                from prometheus_client import CollectorRegistry  # noqa: PLC0415

                from commands.monitoring.metrics import Chosen, EventCounter, ProcessorMetrics, StateCollector  # noqa: PLC0415  # noqa: PLC0415
                from commands.monitoring.server import serving  # noqa: PLC0415

                registry = CollectorRegistry()
                metrics = ProcessorMetrics(registry, qmgr)
                metrics.show(health, signs, time.monotonic)
                chosen = Chosen(self.metrics.queues, self.metrics.topics, self.metrics.subscriptions)
                registry.register(StateCollector(open_store, qmgr, chosen, link))
                handlers.append(EventCounter(metrics))
                where = stack.enter_context(serving(*self.where, registry, health))
                console.say(f"queue manager {qmgr}: metrics on {where}")
            if self.endpoint is not None:
                from commands.monitoring.tracing import Tracing, exporter_to  # noqa: PLC0415

                exporter = exporter_to(self.endpoint, console.lines)
                traces = Tracing(exporter, qmgr, self.tracing.load, self.tracing.share)
                stack.callback(traces.close)
            yield None if metrics is None and traces is None else Observing(metrics, traces)

    @contextmanager
    def standing_by(self, qmgr: str, console: Console, active: Callable[[], str]) -> Iterator[None]:
        """Answer as a standby while inside, without metrics of queues and topics, which the active instance has.

        active: says which instance is active.
        """
        if self.where is None:
            yield
            return
        from prometheus_client import CollectorRegistry  # noqa: PLC0415

        from commands.monitoring.metrics import ProcessorMetrics  # noqa: PLC0415
        from commands.monitoring.server import MetricsPortError, serving  # noqa: PLC0415

        registry, signs = CollectorRegistry(), _Waiting()
        health = Health(qmgr, signs, 0.0, None)
        health.phase, health.active = Phase.STANDBY, active
        ProcessorMetrics(registry, qmgr).show(health, signs, time.monotonic)
        with ExitStack() as stack:
            try:
                where = stack.enter_context(serving(*self.where, registry, health))
                console.say(f"queue manager {qmgr}: metrics of the standby on {where}")
            except MetricsPortError as error:
                console.warn(f"{error}; the standby answers no probe until it takes over: give it a port of its own")
            yield


class _Waiting:
    """The signs of a standby: it has nothing to do, and waits for nothing that fails."""

    waiting = None
    silence_s = 0.0


def _require(module: str, option: str, extra: str) -> None:
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ConfigError(option, f"it needs the package {module}: {how_to_install(extra)}")
