"""A server with the shape of mqweb's REST interface, for tests: what it administers is an embedded queue manager.

``rest_servers`` has one for each of several queue managers, in a process of its own: a test whose process forks has no
threads then.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from commands.mqsc.answers import Answer
from commands.mqsc.pcf.json_commands import answered, is_structured, read_command
from commands.mqsc.script import Statement
from commands.qmgr.admin import StatementRunner
from commands.qmgr.store import QueueManagerStore
from tests.migrate.legacy_messages import NOW
from tests.waiting import PATIENCE_S

USER, PASSWORD = "mqadmin", "passw0rd"
# How soon a server that is to end notices.
_LOOK_S = 0.02


class RestStub(ThreadingHTTPServer):
    """One queue manager in *home*. seen: the bodies of the answered requests, in order.

    dies_after: how many requests are answered; dies_afterwards: those behind them are carried out all the same.
    answers_instead: HTTP status and body of every answer. half: the object of DISPLAY whose answers have the first half
    of the rows, and an error for the rest.
    """

    daemon_threads = True

    def __init__(self, home: Path, qmgr: str = "QM1") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.home, self.qmgr = home, qmgr
        self.seen: list[dict[str, Any]] = []
        self.dies_after: int | None = None
        self.dies_afterwards = False
        self.is_tls, self.needs_password = False, True
        self.answers_instead: tuple[int, bytes] | None = None
        self.half = ""

    @property
    def url(self) -> str:
        if self.is_tls:
            return f"https://localhost:{self.server_address[1]}"
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wants_tls(self, certificates: Path, *, of_clients: bool = False) -> None:
        """Speak TLS; of_clients: only with clients that have a certificate, who need no password."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "localhost.pem", certificates / "localhost.key")
        if of_clients:
            context.load_verify_locations(certificates / "ca.pem")
            context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.is_tls, self.needs_password = True, not of_clients

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that does not trust the certificate hangs up."""

    @property
    def commands(self) -> list[str]:
        """The MQSC of all commands but DISPLAY."""
        return [body["parameters"]["command"] for body in self.seen if body["type"] == "runCommand"]

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        statement, structured = read_command(body), is_structured(body)
        whole = answered(statement.command, self._run(statement), structured)
        return _half(whole) if structured and body["qualifier"] == self.half else whole

    def _run(self, statement: Statement) -> Answer:
        with QueueManagerStore.open(self.home, self.qmgr) as store:
            ((_, answer),) = StatementRunner(store, "mqadmin", lambda _user: (), lambda: NOW).run([statement])
        return answer


def _half(whole: dict[str, Any]) -> dict[str, Any]:
    rows = whole["commandResponse"]
    failed = {"completionCode": 2, "reasonCode": 2035, "message": ["AMQ8135E: Not authorized."]}
    return {
        "commandResponse": [*rows[: (len(rows) + 1) // 2], failed],
        "overallCompletionCode": 2,
        "overallReasonCode": 3008,
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Header and body leave together: two small segments would wait for an acknowledgement each time.
    wbufsize = -1
    server: RestStub

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.dies_after is not None:
            self.server.dies_after -= 1
            if self.server.dies_after < 0:
                if self.server.dies_afterwards:
                    self.server.answer(json.loads(data))
                self.close_connection = True
                return
        if self.server.answers_instead is not None:
            self._send(*self.server.answers_instead)
            return
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.server.needs_password and self.headers.get("Authorization") != expected:
            self._error(401, "MQWB0104E", "The REST API request was made without authenticating.")
        elif "ibm-mq-rest-csrf-token" not in self.headers:
            self._error(403, "MQWB0100E", "The CSRF header was omitted from the request.")
        elif self.path != f"/ibmmq/rest/v2/admin/action/qmgr/{self.server.qmgr}/mqsc":
            self._error(404, "MQWB0009E", "MQWB0009E: Could not query the queue manager.")
        else:
            body = json.loads(data)
            self.server.seen.append(body)
            self._send(200, json.dumps(self.server.answer(body)).encode())

    def _error(self, status: int, number: str, message: str) -> None:
        self._send(status, json.dumps({"error": [{"msgId": number, "message": message, "type": "rest"}]}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json;charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_given: object) -> None:
        return


@contextmanager
def rest_stub(home: Path, qmgr: str = "QM1") -> Iterator[RestStub]:
    """The server, running."""
    server = RestStub(home, qmgr)
    thread = threading.Thread(target=server.serve_forever, args=(_LOOK_S,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def rest_servers(home: Path, qmgrs: Sequence[str]) -> Iterator[dict[str, str]]:
    """The URL of the server of each queue manager; the servers are in another process, until the end of the block."""
    program = [sys.executable, "-m", "tests.migrate.live.rest_stub", str(home), *qmgrs]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(PATIENCE_S)
        process.stdout.close()


def _serve(home: Path, qmgrs: Sequence[str]) -> None:
    servers = [RestStub(home, qmgr) for qmgr in qmgrs]
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(_LOOK_S,), daemon=True).start()
    print(json.dumps({server.qmgr: server.url for server in servers}), flush=True)
    # Whoever started it closes this end when it ends, however that is.
    sys.stdin.read()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2:])
