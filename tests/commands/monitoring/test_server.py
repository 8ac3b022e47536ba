"""The port of --metrics: metrics, and the probes with their reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from commands.monitoring.server import Health, MetricsPortError, Phase, serving
from commands.qmgr.link_port import LinkState
from tests.waiting import PATIENCE_S


@dataclass
class Signs:
    """What a processor lets others know."""

    waiting: dict[str, Any] | None = None
    silence_s: float = 0.0


@dataclass
class Link:
    """What a link lets others know."""

    state: LinkState = field(default_factory=lambda: LinkState(True))


WAITING = {"since": "2026-01-02T09:11:20Z", "text": "queue BOARD is full", "next_try_s": 1.0}
# Phase, what it waits for, silence, limit of a command, the link; whether healthy, and why it is not ready.
STATES: list[tuple[Phase, dict[str, Any] | None, float, float, LinkState | None, bool, list[str]]] = [
    (Phase.RUNNING, None, 0, 10, None, True, []),
    (Phase.STARTING, None, 0, 10, None, True, ["the processor is starting"]),
    (Phase.ENDING, None, 0, 10, None, True, ["the processor is ending"]),
    (Phase.RUNNING, WAITING, 0, 10, None, True, ["waiting since 2026-01-02T09:11:20Z: queue BOARD is full"]),
    (Phase.RUNNING, None, 89, 10, None, True, []),
    (Phase.RUNNING, None, 91, 10, None, False, ["the processor has given no sign of life for 91 seconds"]),
    (Phase.RUNNING, None, 9_000, 0, None, True, []),
    (Phase.RUNNING, None, 0, 10, LinkState(True), True, []),
    (Phase.RUNNING, None, 0, 10, LinkState(False), True, ["the topic tree is not connected: no answer yet"]),
    (Phase.RUNNING, None, 0, 10, LinkState(False, "refused"), True, ["the topic tree is not connected: refused"]),
]


@pytest.mark.parametrize(("phase", "waiting", "silence_s", "limit_s", "link", "is_healthy", "reasons"), STATES)
def test_ready_and_healthy(
    phase: Phase,
    waiting: dict[str, Any] | None,
    silence_s: float,
    limit_s: float,
    link: LinkState | None,
    is_healthy: bool,
    reasons: list[str],
) -> None:
    health = Health("QM1", Signs(waiting, silence_s), limit_s, None if link is None else Link(link))
    health.phase = phase
    assert health.healthy().ok is is_healthy
    ready = health.ready().as_dict("ready")
    assert ready == {"ready": not reasons, "reasons": reasons, "qmgr": "QM1", "phase": phase.name.lower()}


@pytest.fixture
def health() -> Health:
    return Health("QM1", Signs(), 10.0, None)


@pytest.fixture
def port(health: Health) -> Iterator[int]:
    registry = CollectorRegistry()
    Counter("some", "Some.", registry=registry).inc(7)
    with serving("127.0.0.1", 0, registry, health) as where:
        yield int(where.rpartition(":")[2])


def _asked(port: int, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_metrics_are_in_the_format_that_is_asked_for(port: int) -> None:
    answer, body = _asked(port, "/metrics")
    assert (answer.status, answer.headers.get_content_type()) == (200, "text/plain")
    assert b"some_total 7.0" in body
    answer, body = _asked(port, "/metrics?x=1", Accept="application/openmetrics-text; version=1.0.0")
    assert (answer.status, answer.headers.get_content_type()) == (200, "application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_probes_follow_the_processor(port: int, health: Health) -> None:
    seen = []
    for health.phase in Phase:
        answers = [_asked(port, path) for path in ("/healthz", "/readyz")]
        seen.append([(answer.status, json.loads(body)["reasons"]) for answer, body in answers])
    assert seen == [
        [(200, []), (503, ["the processor is starting"])],
        [(200, []), (200, [])],
        [(200, []), (503, ["the processor is ending"])],
        [(200, []), (503, ["standby: another instance is active"])],
    ]


def test_head_has_no_body_and_other_paths_are_named(port: int) -> None:
    answer, body = _asked(port, "/healthz", "HEAD")
    assert (answer.status, body, int(answer.headers["Content-Length"]) > 0) == (200, b"", True)
    answer, body = _asked(port, "/")
    assert (answer.status, json.loads(body)) == (404, {"paths": "/metrics, /healthz, /readyz"})
    assert _asked(port, "/healthz", "POST")[0].status == 501


def test_a_port_in_use_is_an_error_that_names_it(port: int, health: Health) -> None:
    with (
        pytest.raises(MetricsPortError, match=rf"cannot serve metrics on 127\.0\.0\.1:{port}: address already in use"),
        serving("127.0.0.1", port, CollectorRegistry(), health),
    ):
        pass
