"""Traces of publications by OpenTelemetry: one span a traced command, with a child for each step.

    PRODUCER (the publisher's) ── process QUEUE ─┬─ get       from its arrival on the queue
                                                 ├─ decode
                                                 ├─ match
                                                 ├─ deliver   with an event for each put
                                                 └─ commit

A command is traced if its publisher traces it (flag sampled of traceparent), and a share of the others. The message
that subscribers get names the span ``process QUEUE`` as its parent. No span has data of a message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from commands.broker.outcome import Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.broker.reading import Reading
from commands.monitoring.trace_context import TRACEPARENT, TRACESTATE, Steps, TraceContext, context_of
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import REASON_NAMES
from rfh2.distribution import VERSION
from rfh2.layouts import MQMD1

CONSOLE: Final = "console"
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_MSG_ID: Final = MQMD1.slices()["MsgId"]
_MOST_EVENTS: Final = 20
# The thread that sends spans takes about half as long again.
_EXPORTED: Final = 1.5
_FLUSH_S: Final = 2.0
_NS: Final = 1_000_000_000


@dataclass(slots=True)
class TracedCommand:
    """One command that is traced: its span, and when it was got, in nanoseconds since 1970."""

    span: Span
    got_ns: int
    context: TraceContext | None = None
    own: str = ""


class Tracing:
    """Makes spans for one queue manager. exporter: where they go.

    load: the part of the time that may be spent on them, from 0 to 1; commands beyond it are not traced. share: of the
    commands without a trace of their publisher, from 0 to 1. due_s: from when on a command may be traced, of
    ``time.perf_counter``.
    """

    def __init__(self, exporter: SpanExporter, qmgr: str, load: float, share: float) -> None:
        resource = Resource.create({"service.name": "qpubsub", "service.version": VERSION, "service.instance.id": qmgr})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("qpubsub", VERSION)
        self._qmgr, self._share = qmgr, share
        self._pause = 1.0 / load - 1.0
        self._owned = self.due_s = 0.0
        self._open: list[tuple[TracedCommand, int]] = []

    # Which commands

    def wants(self, is_sampled: bool | None) -> bool:
        """Whether to trace a command, now that one is due. is_sampled: what its publisher does; None: no context."""
        if is_sampled is not None:
            return is_sampled
        self._owned += self._share
        if self._owned < 1.0:
            return False
        self._owned -= 1.0
        return True

    def begin(
        self, message: StoredMessage, reading: Reading, is_sampled: bool | None, got_s: float
    ) -> TracedCommand | None:
        """Begin the span of a command; None if what seemed to be its trace context is none.

        got_s: when it was got, of ``time.perf_counter``.
        """
        context = context_of(reading)
        if context is None and is_sampled is not None:
            return None
        carrier = {} if context is None else {TRACEPARENT: context.traceparent, TRACESTATE: context.tracestate}
        got_ns = time.time_ns() - int((time.perf_counter() - got_s) * _NS)
        arrived_ns = min(int(message.time.timestamp() * _NS), got_ns)
        span = self._tracer.start_span(
            f"process {message.queue}",
            _PROPAGATOR.extract(carrier, context=trace.set_span_in_context(trace.INVALID_SPAN)),
            SpanKind.CONSUMER,
            {
                "messaging.system": "ibmmq",
                "messaging.operation.type": "process",
                "messaging.operation.name": "process",
                "messaging.destination.name": message.queue,
                "messaging.message.id": message.md[_MSG_ID].hex(),
                "messaging.message.body.size": len(message.body),
                "qpubsub.qmgr": self._qmgr,
                "qpubsub.seq": message.seq,
            },
            start_time=arrived_ns,
        )
        traced = TracedCommand(span, got_ns, context)
        self._child(traced, "get", arrived_ns).end(got_ns)
        return traced

    # The message

    def carried(self, traced: TracedCommand, context: TraceContext, body: bytes) -> bytes:
        """*body*, which has *context*, with the span of this processor as the parent of what subscribers do."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, context=trace.set_span_in_context(traced.span))
        traced.own = carrier[TRACEPARENT]
        return context.replaced(body, traced.own)

    def restored(self, traced: TracedCommand, outcome: Outcome) -> Outcome:
        """*outcome* with dead letters as their messages came."""
        if traced.context is None or all(put.kind is not PutKind.DEADLETTER for put in outcome.puts):
            return outcome
        old, new = traced.context.traceparent.encode(), traced.own.encode()

        def restored(put: Outgoing) -> Outgoing:
            return put if put.kind is not PutKind.DEADLETTER else put._replace(body=put.body.replace(new, old))

        return replace(outcome, puts=tuple(map(restored, outcome.puts)))

    # Its way

    def delivered(self, traced: TracedCommand, steps: Steps, outcome: Outcome) -> None:
        """Make the spans of the steps, the last of which is to deliver."""
        begins = steps[0].begin_s
        for step in steps:
            begin_ns, end_ns = (traced.got_ns + int((at - begins) * _NS) for at in (step.begin_s, step.end_s))
            span = self._child(traced, step.stage, begin_ns)
            if step is steps[-1]:
                for put in outcome.puts[:_MOST_EVENTS]:
                    about = {"messaging.destination.name": put.queue, "qpubsub.kind": put.kind.value}
                    span.add_event("put", {**about, "qpubsub.qmgr": put.qmgr}, timestamp=end_ns)
                span.set_attribute("qpubsub.puts", len(outcome.puts))
            span.end(end_ns)
        if outcome.command is not None:
            traced.span.set_attribute("qpubsub.command", type(outcome.command).__name__)
            traced.span.set_attribute("qpubsub.topics", outcome.command.topics[:_MOST_EVENTS])
        if outcome.reason is not None:
            traced.span.set_attribute("error.type", REASON_NAMES.get(outcome.reason, str(outcome.reason)))
            traced.span.set_attribute("qpubsub.reason", outcome.reason)
        self._open.append((traced, end_ns))
        now_s = time.perf_counter()
        self.due_s = now_s + (now_s - begins) * _EXPORTED * self._pause

    def committed(self, commit_s: float | None) -> None:
        """End the spans of the unit of work. commit_s: how long its commit took, if that was measured."""
        if not self._open:
            return
        now_ns = max(time.time_ns(), *(delivered_ns for _, delivered_ns in self._open))
        for traced, delivered_ns in self._open:
            if commit_s is not None:
                self._child(traced, "commit", max(delivered_ns, now_ns - int(commit_s * _NS))).end(now_ns)
            traced.span.end(now_ns)
        self._open.clear()

    def backed_out(self) -> None:
        """End the spans of the unit of work; its commands are tried again, with spans of their own."""
        for traced, _ in self._open:
            traced.span.set_status(Status(StatusCode.ERROR, "backed out"))
            traced.span.end()
        self._open.clear()

    def close(self) -> None:
        """Send what is left, for a moment at most."""
        # The exporter tries again for longer than a processor may take to end.
        ending = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(_FLUSH_S)

    def _child(self, traced: TracedCommand, name: str, begin_ns: int) -> Span:
        parent = trace.set_span_in_context(traced.span)
        return self._tracer.start_span(name, parent, SpanKind.INTERNAL, start_time=begin_ns)


class _Lines:
    """A stream for the exporter that shows spans as lines of JSON."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def write(self, text: str) -> int:
        self._show(text.rstrip("\n"))
        return len(text)

    def flush(self) -> None: ...


def exporter_to(endpoint: str, show: Callable[[str], None]) -> SpanExporter:
    """Sends spans to *endpoint*, the URL of an OTLP collector, or shows each as a line of JSON (``console``)."""
    if endpoint == CONSOLE:
        stream: Any = _Lines(show)
        return ConsoleSpanExporter(out=stream, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    path = "v1/traces"
    url = endpoint if endpoint.rstrip("/").endswith(path) else f"{endpoint.rstrip('/')}/{path}"
    return OTLPSpanExporter(endpoint=url, timeout=_FLUSH_S)
