"""Metrics and traces, where options or the configuration ask for them; their libraries are loaded only then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from commands.config.settings import Config, ConfigError, MetricsConfig, TracingConfig
from commands.config.urls import parse_listen
from commands.monitoring.observer import Observing
from commands.monitoring.server import Health, Phase, Signs
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.observer import Observer
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console
from rfh2.distribution import how_to_install

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
