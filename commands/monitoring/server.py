"""The port of ``--metrics``: /metrics for Prometheus, /healthz and /readyz for probes. It changes nothing.

Whether the processor lives, and whether it is ready: what /healthz and /readyz answer.

/healthz is for whoever starts a dead process again. It is not healthy only when the processor has given no sign of life
for longer than any command may take; the supervisor of ``run`` ends a processor that hangs long before.
/readyz is for whoever sends work or waits for a start: it says why the processor does not go on now.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING, Any, Final, Protocol

from commands.qmgr.link_port import LinkState
from commands.qmgr.watchdog import WAITS
from rfh2.errors import QPubSubError, system_words

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_SILENCE_S: Final = 60.0


class Phase(IntEnum):
    """What the processor does, as numbers of MQQMSTA."""

    STARTING = 1
    RUNNING = 2
    ENDING = 3
    STANDBY = 4


class Signs(Protocol):
    """What the processor lets others know (``commands.running.journal.Journal``)."""

    @property
    def waiting(self) -> dict[str, Any] | None: ...
    @property
    def silence_s(self) -> float: ...


class Linked(Protocol):
    """What a link lets others know (``ManagedLink``)."""

    @property
    def state(self) -> LinkState: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe gets. reasons: why not, for people; none where all is well."""

    ok: bool
    reasons: tuple[str, ...]
    about: dict[str, Any]

    def as_dict(self, word: str) -> dict[str, Any]:
        """As JSON. word: ``ready`` or ``healthy``."""
        return {word: self.ok, "reasons": list(self.reasons), **self.about}


class Health:
    """Of one processor. command_s: the most seconds that a command may take; 0 for no limit. link: None for none.

    phase: set as it changes. active: says which instance is active while this one is a standby.
    """

    def __init__(self, qmgr: str, signs: Signs, command_s: float, link: Linked | None) -> None:
        self._qmgr, self._signs, self._link = qmgr, signs, link
        self._most_silence_s = _SILENCE_S + WAITS * command_s if command_s else None
        self.phase = Phase.STARTING
        self.active: Callable[[], str] = lambda: "another instance is active"

    def healthy(self) -> Answer:
        """Whether the processor lives."""
        silence_s = self._signs.silence_s
        reasons: tuple[str, ...] = ()
        if self._most_silence_s is not None and silence_s > self._most_silence_s:
            reasons = (f"the processor has given no sign of life for {silence_s:.0f} seconds",)
        return Answer(not reasons, reasons, self._about())

    def ready(self) -> Answer:
        """Whether the processor goes on with commands, to the topic tree too if there is one."""
        reasons = list(self.healthy().reasons)
        if self.phase is Phase.STANDBY:
            reasons.append(f"standby: {self.active()}")
        elif self.phase is not Phase.RUNNING:
            reasons.append(f"the processor is {self.phase.name.lower()}")
        waiting = self._signs.waiting
        if waiting is not None:
            reasons.append(f"waiting since {waiting['since']}: {waiting['text']}")
        state = None if self._link is None else self._link.state
        if state is not None and not state.connected:
            reasons.append(f"the topic tree is not connected: {state.trouble or 'no answer yet'}")
        return Answer(not reasons, tuple(reasons), self._about())

    def _about(self) -> dict[str, Any]:
        return {"qmgr": self._qmgr, "phase": self.phase.name.lower()}


_PATHS: Final = "/metrics, /healthz, /readyz"
_JSON: Final = "application/json; charset=utf-8"
# Whoever connects and says nothing must not keep a thread.
_PATIENCE_S: Final = 10.0


class MetricsPortError(QPubSubError):
    """Nothing can listen there."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"cannot serve metrics on {self.where}: {self.why}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        super().__init__((host, port), handler)

    def handle_error(self, *_: Any) -> None:
        # A probe that hangs up is no event.
        pass


@contextmanager
def serving(host: str, port: int, registry: CollectorRegistry, health: Health) -> Iterator[str]:
    """Serve while inside, on threads; where. port: 0 for any. Raises MetricsPortError."""
    try:
        server = _Server(host, port, _handler(registry, health))
    except OSError as error:
        raise MetricsPortError(_where(host, port), system_words(error)) from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield _where(host, server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _where(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _handler(registry: CollectorRegistry, health: Health) -> type[BaseHTTPRequestHandler]:
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - an extra, and Phase is asked without it

    probes: dict[str, tuple[str, Callable[[], Answer]]] = {
        "/healthz": ("healthy", health.healthy),
        "/readyz": ("ready", health.ready),
    }

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S
        server_version = "qpubsub"
        sys_version = ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._answer(HTTPStatus.OK, content_type, encode(registry))
            elif path in probes:
                word, ask = probes[path]
                answer = ask()
                status = HTTPStatus.OK if answer.ok else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, _JSON, json.dumps(answer.as_dict(word)).encode() + b"\n")
            else:
                self._answer(HTTPStatus.NOT_FOUND, _JSON, json.dumps({"paths": _PATHS}).encode() + b"\n")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            # Probes come every few seconds.
            pass

    return Handler
