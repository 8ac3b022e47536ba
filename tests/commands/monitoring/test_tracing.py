"""Traces: the spans of a publication, and the context that its subscribers get."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from commands.monitoring.opening import Observing
from commands.monitoring.tracing import Tracing, exporter_to
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2 import decode
from rfh2.errors import StoreError
from tests.commands.monitoring.traffic import (
    CONTROL,
    DEAD,
    SAMPLED,
    SPAN_ID,
    TRACE_ID,
    UNSAMPLED,
    publish,
    put,
    queue_manager,
    register,
    traced,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Kept(SpanExporter):
    """Keeps spans in memory."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


class Traced:
    """A processor of QM1 with traces."""

    def __init__(self, store: QueueManagerStore, load: float = 1.0, share: float = 0.0) -> None:
        self.kept = Kept()
        self.tracing = Tracing(self.kept, "QM1", load, share)
        self.processor = Processor(store, lambda: NOW, observer=Observing(None, self.tracing))

    def spans(self) -> list[ReadableSpan]:
        self.tracing.close()
        return self.kept.spans

    def roots(self) -> list[ReadableSpan]:
        return [span for span in self.spans() if span.name.startswith("process ")]


def _bodies(unit: UnitOfWork, queue: str) -> list[bytes]:
    return [message.body for message in unit.browse(queue)]


def test_a_publication_has_a_span_for_each_step_below_that_of_its_publisher(tmp_path: Path) -> None:
    with queue_manager(tmp_path) as store:
        traced_ = Traced(store)
        with store.unit_of_work() as unit:
            register(unit, "S", "a")
            publish(unit, "a", traced(SAMPLED) + "<tracestate>congo=t61</tracestate>", b"secret")
        traced_.processor.drain()
        spans = {span.name: span for span in traced_.spans()}
        with store.unit_of_work() as unit:
            (body,) = _bodies(unit, "S")
    root = spans.pop("process SYSTEM.BROKER.DEFAULT.STREAM")
    assert list(spans) == ["get", "decode", "match", "deliver", "commit"]
    assert f"{root.context.trace_id:032x}" == TRACE_ID
    assert root.parent is not None
    assert f"{root.parent.span_id:016x}" == SPAN_ID
    for span in spans.values():
        assert span.parent is not None
        assert span.parent.span_id == root.context.span_id
        assert root.start_time <= span.start_time <= span.end_time <= root.end_time  # type: ignore[operator]
    assert dict(root.attributes or {})["qpubsub.command"] == "Publish"
    assert [event.attributes["messaging.destination.name"] for event in spans["deliver"].events] == ["S"]  # type: ignore[index]
    # What subscribers get names the span of this processor; what else the publisher wrote is as it was.
    own = f"00-{TRACE_ID}-{root.context.span_id:016x}-01"
    folder = decode(body).rfh2.folder("usr")  # type: ignore[union-attr]
    assert folder is not None
    assert folder.values() == {"traceparent": own, "tracestate": "congo=t61"}
    assert body.endswith(b"secret")
    everything = "".join(span.to_json() for span in traced_.kept.spans)
    assert "secret" not in everything


PASSED = [
    ("no trace context", traced("x")),
    ("not sampled by its publisher", traced(UNSAMPLED)),
    ("no context", ""),
    ("in another version", traced("cc" + SAMPLED[2:])),
]


@pytest.mark.parametrize("usr", [usr for _, usr in PASSED], ids=[name for name, _ in PASSED])
def test_what_is_not_traced_passes_as_it_came(tmp_path: Path, usr: str) -> None:
    bodies = []
    for is_traced in (True, False):
        with queue_manager(tmp_path / str(is_traced)) as store:
            traced_ = Traced(store)
            with store.unit_of_work() as unit:
                register(unit, "S", "a")
                publish(unit, "a", usr)
            (traced_.processor if is_traced else Processor(store, lambda: NOW)).drain()
            assert traced_.spans() == []
            with store.unit_of_work() as unit:
                bodies.append(_bodies(unit, "S"))
    assert bodies[0] == bodies[1]


def test_a_dead_letter_has_the_message_as_it_came(tmp_path: Path) -> None:
    with queue_manager(tmp_path) as store:
        traced_ = Traced(store)
        with store.unit_of_work() as unit:
            put(unit, CONTROL, "<Command>Publish</Command><Topic>a</Topic>", traced(SAMPLED))
            (put_there,) = _bodies(unit, CONTROL)
        traced_.processor.drain()
        with store.unit_of_work() as unit:
            (letter,) = _bodies(unit, DEAD)
    assert letter.endswith(put_there)
    (root,) = traced_.roots()
    assert dict(root.attributes or {})["error.type"] == "MQRCCF_INCORRECT_Q"


def test_a_share_of_the_commands_without_a_context_is_traced(tmp_path: Path) -> None:
    with queue_manager(tmp_path) as store:
        traced_ = Traced(store, share=0.25)
        with store.unit_of_work() as unit:
            register(unit, "S", "a")
            for _ in range(19):
                publish(unit, "a")
        traced_.processor.drain()
        with store.unit_of_work() as unit:
            assert all(b"traceparent" not in body for body in _bodies(unit, "S"))
    roots = traced_.roots()
    assert len(roots) == 5
    assert all(root.parent is None for root in roots)


@pytest.mark.parametrize(("load", "traced_ones"), [(1.0, 40), (0.0001, 1)])
def test_traces_take_no_more_of_the_time_than_they_may(tmp_path: Path, load: float, traced_ones: int) -> None:
    with queue_manager(tmp_path) as store:
        traced_ = Traced(store, load)
        with store.unit_of_work() as unit:
            register(unit, "S", "a")
            for _ in range(40):
                publish(unit, "a", traced(SAMPLED))
        traced_.processor.drain()
    assert len(traced_.roots()) == traced_ones


def test_a_command_that_was_backed_out_has_a_span_for_each_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with queue_manager(tmp_path) as store:
        traced_ = Traced(store)
        with store.unit_of_work() as unit:
            register(unit, "S", "a")
            publish(unit, "a", traced(SAMPLED))
        with monkeypatch.context() as patch:

            def full(unit: EmbeddedUnitOfWork) -> None:
                unit.backout()
                raise StoreError("disk full")

            patch.setattr(EmbeddedUnitOfWork, "commit", full)
            with pytest.raises(StoreError):
                traced_.processor.drain()
        traced_.processor.drain()
    first, second = traced_.roots()
    assert (first.status.description, second.status.description) == ("backed out", None)


def test_the_console_shows_a_span_a_line() -> None:
    lines: list[str] = []
    tracing = Tracing(exporter_to("console", lines.append), "QM1", 1.0, 1.0)
    tracing._tracer.start_span("x").end()
    tracing.close()
    assert [json.loads(line)["name"] for line in lines] == ["x"]
