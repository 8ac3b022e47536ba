"""The port of ``--metrics``: /metrics for Prometheus, /healthz and /readyz for probes. It changes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from commands.monitoring.health import Answer, Health
from rfh2.errors import QPubSubError, system_words

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
