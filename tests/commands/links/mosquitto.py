"""A real MQTT broker for tests: mosquitto on a free loopback port, in a directory of its own, stopped at the end."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_S, until

EXECUTABLE = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
try:
    from paho.mqtt import client as paho
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
except ImportError:
    paho = None  # type: ignore[assignment]

needs_mosquitto = pytest.mark.skipif(
    EXECUTABLE is None or paho is None, reason="mosquitto or paho-mqtt is not installed; see .ci/run"
)


class Mosquitto:
    """One broker; it keeps its sessions and retained publications when it is stopped and started again."""

    def __init__(self, directory: Path, *settings: str) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "user root",
            "persistence true",
            f"persistence_location {directory}/",
            "max_queued_messages 0",
            "log_dest file " + str(directory / "log"),
            *settings,
        ]
        (directory / "mosquitto.conf").write_text("\n".join(lines) + "\n")

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        assert EXECUTABLE is not None
        command = [EXECUTABLE, "-c", str(self.directory / "mosquitto.conf")]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._listens, "mosquitto to listen")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def save(self) -> None:
        """Have it write what it keeps (SIGUSR1)."""
        assert self._process is not None
        database = self.directory / "mosquitto.db"
        before = database.stat().st_mtime_ns if database.exists() else 0
        self._process.send_signal(signal.SIGUSR1)
        until(lambda: database.exists() and database.stat().st_mtime_ns != before, "mosquitto to save")

    def hang(self) -> None:
        """Neither answer nor hang up (SIGSTOP), until ``go_on``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "log").read_text()
        return listens(self.port)


@contextmanager
def mosquitto(directory: Path, *settings: str) -> Iterator[Mosquitto]:
    broker = Mosquitto(directory, *settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


class Native:
    """A program that knows nothing of queues: it publishes and subscribes over MQTT 5.

    prefix: before its name and all its topics, on a broker that tests share.
    """

    def __init__(
        self, broker: Mosquitto, name: str, *filters: str, lasting: bool = False, qos: int = 1, prefix: str = ""
    ) -> None:
        self.messages: list[Any] = []
        self._filters, self._qos, self._prefix = filters, qos, prefix
        self._ready = threading.Event()
        client = paho.Client(CallbackAPIVersion.VERSION2, prefix + name, protocol=paho.MQTTv5)
        client.on_message = self._on_message
        client.on_connect, client.on_subscribe = self._on_connect, lambda *_: self._ready.set()
        client.reconnect_delay_set(1, 1)
        client.max_queued_messages_set(0)
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3600 if lasting else 0
        client.connect_async("127.0.0.1", broker.port, clean_start=not lasting, properties=properties)
        client.loop_start()
        self.client = client
        assert self._ready.wait(PATIENCE_S), "the native client is not connected"

    def _on_connect(self, client: Any, *_: Any) -> None:
        if not self._filters:
            self._ready.set()
        for topic_filter in self._filters:
            client.subscribe(self._prefix + topic_filter, self._qos)

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        message.topic = message.topic.removeprefix(self._prefix).encode()
        self.messages.append(message)

    def publish(self, topic: str, payload: bytes | str, qos: int = 1, retain: bool = False, **properties: Any) -> None:
        told = Properties(PacketTypes.PUBLISH)
        for name, value in properties.items():
            setattr(told, name, value)
        self.client.publish(self._prefix + topic, payload, qos, retain, told).wait_for_publish(PATIENCE_S)

    def flood(self, topic: str, payload: bytes, count: int) -> None:
        """Publish so often at QoS 1, without waiting for the answers."""
        for _ in range(count):
            self.client.publish(self._prefix + topic, payload, 1)

    def insist(self, topic: str, payload: str) -> None:
        """Publish at QoS 1, and again until the broker has answered, before anything else is published."""
        while True:
            told = self.client.publish(self._prefix + topic, payload, 1)
            try:
                told.wait_for_publish(5)
                if told.is_published():
                    return
            except (RuntimeError, ValueError):
                pass
            until(self.client.is_connected, "the broker")

    def payloads(self, topic: str | None = None) -> list[str]:
        return [m.payload.decode() for m in self.messages if topic is None or m.topic == topic]

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
