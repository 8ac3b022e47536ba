"""The listener is killed while programs work in syncpoint: what was committed is there, and nothing is there twice."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import (
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQPMO_SYNCPOINT,
    MQSO_CREATE,
    MQSO_DURABLE,
    MQSO_MANAGED,
)
from tests.commands.listener.mqi_client import MqiClient

KILLS = int(os.environ.get("QPUBSUB_LISTENER_KILLS", "8"))
PROGRAMS = 4

pytestmark = [pytest.mark.slow, pytest.mark.faults]


class Service:
    """``qpubsub run --listen``, which is killed with all its processes, and started again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._run: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "commands.cli", "-q", "run", "-m", "QM1", "--listen", str(self.port)]
        environment = {**os.environ, "QPUBSUB_HOME": str(self._home)}
        self._run = subprocess.Popen(command, env=environment, start_new_session=True)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the listener did not begin")

    def kill(self) -> None:
        assert self._run is not None
        os.killpg(self._run.pid, signal.SIGKILL)
        self._run.wait()


def test_only_durable_subscriptions_outlive_a_kill(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    service = Service(tmp_path)
    service.start()
    try:
        with MqiClient(service.port) as client:
            assert client.connect() == 0
            queue = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
            client.subscribed(MQSO_CREATE | MQSO_MANAGED, "Sport/Soccer")
            client.subscribed(MQSO_CREATE, "Sport/Soccer", queue=queue)
            client.subscribed(MQSO_CREATE | MQSO_MANAGED | MQSO_DURABLE, "Sport/Soccer", "kept")
            service.kill()
        service.start()
        end = time.monotonic() + 60
        while len(left := state(tmp_path)) > 1 and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        service.kill()
    assert left == [("kept", True)]


def state(home: Path) -> list[tuple[str | None, bool]]:
    """The names of subscriptions, and whether their queues are there."""
    with QueueManagerStore.open(home, "QM1") as store:
        objects, subscriptions, _ = store.load_state()
        return [(each.name, each.dest_queue in objects.queues) for each in subscriptions]


def produce(port: int, name: str, stop: threading.Event, committed: set[bytes], doubtful: set[bytes]) -> None:
    """Put numbered messages, a unit of work each; where the commit was not answered, nobody knows."""
    number = 0
    while not stop.is_set():
        try:
            with MqiClient(port) as client:
                assert client.connect(name) == 0
                handle = client.opened("IN", MQOO_OUTPUT)
                while not stop.is_set():
                    number += 1
                    body = f"{name} {number}".encode()
                    if client.put(handle, body, MQPMO_SYNCPOINT, persistence=1)[0]:
                        continue
                    doubtful.add(body)
                    if client.commit() == 0:
                        doubtful.discard(body)
                        committed.add(body)
        except (OSError, AssertionError, ValueError):
            time.sleep(0.05)


def move(port: int, stop: threading.Event) -> None:
    """Get from IN and put to OUT, in one unit of work."""
    while not stop.is_set():
        try:
            with MqiClient(port) as client:
                assert client.connect("mover") == 0
                source, target = client.opened("IN", MQOO_INPUT_SHARED | MQOO_OUTPUT), client.opened("OUT", MQOO_OUTPUT)
                while not stop.is_set():
                    got = client.get(source, MQGMO_SYNCPOINT, wait_ms=200)
                    if got.reason == 0:
                        client.put(target, got.body, MQPMO_SYNCPOINT, persistence=1)
                        client.commit()
        except (OSError, AssertionError, ValueError):
            time.sleep(0.05)


def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    service, stop, chance = Service(tmp_path), threading.Event(), random.Random(5)
    committed: set[bytes] = set()
    doubtful: set[bytes] = set()
    service.start()
    threads = [
        threading.Thread(target=produce, args=(service.port, f"p{n}", stop, committed, doubtful))
        for n in range(PROGRAMS)
    ]
    threads += [threading.Thread(target=move, args=(service.port, stop)) for _ in range(PROGRAMS)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.3, 1.2))
            service.kill()
            service.start()
        time.sleep(1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        service.kill()

    with QueueManagerStore.open(tmp_path, "QM1") as store:
        store.end_lost_connections()
        left = [message.body for queue in ("IN", "OUT") for message in store.browse(queue)]
    assert [body for body, count in Counter(left).items() if count > 1] == []
    assert committed - set(left) == set()
    assert set(left) - committed - doubtful == set()
    assert len(committed) > 10 * KILLS
