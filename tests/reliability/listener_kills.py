"""``run --listen`` is killed while programs work in syncpoint, and started again: is a message lost, or there twice?

    python -m tests.reliability.listener_kills --kills 50 --clients 20

Half of the programs put numbered messages on a queue, a unit of work each; the other half get them and put them on a
second queue, in one unit of work. All processes of ``run`` are killed at a random moment (SIGKILL), and the programs
connect again. At the end each message whose commit was answered is on one of the two queues, and no message is there
twice. Prints what was seen; the exit code is 1 where that was not so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import count, cycle
from pathlib import Path

from commands.broker.objects import QueueManager
from commands.config.home import Home
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import (
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQPMO_SYNCPOINT,
    MQRC_NO_MSG_AVAILABLE,
)
from tests.commands.links.mosquitto import listens
from tests.commands.listener.mqi_client import MqiClient, StatusError
from tests.waiting import until

_PAUSE_S = 0.05
_COMMITS_BETWEEN = 10
"""So many units of work are answered before the next kill: it falls into work."""
_BROKEN = (OSError, AssertionError, ValueError, StatusError)
"""What a call of the test's client raises when its connection has gone."""


@dataclass(frozen=True)
class Figures:
    """What was seen. lost: messages whose commit was answered. twice: messages that are there twice.

    unanswered: commits that a kill left without an answer, of which *kept* were done. moved: on the second queue.
    """

    kills: int
    clients: int
    committed: int
    moved: int
    unanswered: int
    kept: int
    connections: int
    lost: int
    twice: int
    strange: int
    seconds: float


@dataclass(frozen=True)
class Left:
    """What is on the two queues at the end. strange: messages that nobody has put."""

    moved: int
    kept: int
    lost: int
    twice: int
    strange: int


class Programs:
    """MQ clients at work through the listeners at *ports*, of which one works at a time. pause_s: between two calls.

    committed: messages whose commit was answered. doubtful: those whose commit was not.
    """

    def __init__(self, ports: Sequence[int], clients: int, pause_s: float = 0.0) -> None:
        self._ports, self._pause_s, self._stop = cycle(ports), pause_s, threading.Event()
        self.committed, self.doubtful = set[bytes](), set[bytes]()
        self.connections = Counter[str]()
        self._threads = [
            threading.Thread(
                daemon=True, target=self._again, args=(f"p{number}", self._move if number % 2 else self._produce)
            )
            for number in range(clients)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let them end what they are at."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_commits(self, more: int) -> None:
        """Until so many more are answered. Raises AssertionError where the programs get nothing done."""
        enough = len(self.committed) + more
        until(lambda: len(self.committed) >= enough, "the programs to get something done")

    def _again(self, name: str, work: Callable[[MqiClient, str], None]) -> None:
        while not self._stop.is_set():
            try:
                with MqiClient(next(self._ports)) as client:
                    assert client.connect(name) == 0
                    self.connections[name] += 1
                    work(client, name)
            except _BROKEN:
                time.sleep(_PAUSE_S)

    def _produce(self, client: MqiClient, name: str) -> None:
        handle = client.opened("IN", MQOO_OUTPUT)
        for number in count():
            if self._stop.wait(self._pause_s):
                return
            body = f"{name} {self.connections[name]} {number}".encode()
            if client.put(handle, body, MQPMO_SYNCPOINT, persistence=1)[0]:
                client.backout()
                continue
            self.doubtful.add(body)
            if client.commit() == 0:
                self.doubtful.discard(body)
                self.committed.add(body)

    def _move(self, client: MqiClient, _name: str) -> None:
        source, target = client.opened("IN", MQOO_INPUT_SHARED | MQOO_OUTPUT), client.opened("OUT", MQOO_OUTPUT)
        while not self._stop.wait(self._pause_s):
            got = client.get(source, MQGMO_SYNCPOINT, wait_ms=200)
            if got.reason == MQRC_NO_MSG_AVAILABLE:
                continue
            is_done = not got.reason and client.put(target, got.body, MQPMO_SYNCPOINT, persistence=1)[0] == 0
            client.commit() if is_done else client.backout()

    def left(self, home: Home) -> Left:
        """What is on the queues, when all have ended: what nobody has committed is undone first."""
        with QueueManagerStore.open(home, "QM1") as store:
            store.end_lost_connections()
            found = {queue: [message.body for message in store.browse(queue)] for queue in ("IN", "OUT")}
        left = Counter(found["IN"] + found["OUT"])
        return Left(
            moved=len(found["OUT"]),
            kept=len(self.doubtful & left.keys()),
            lost=len(self.committed - left.keys()),
            twice=sum(each > 1 for each in left.values()),
            strange=len(left.keys() - self.committed - self.doubtful),
        )


class Service:
    """``qpubsub run --listen``, which is killed with all its processes, and started again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._run: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it listens."""
        command = [sys.executable, "-m", "commands.cli", "-q", "run", "-m", "QM1", "--listen", str(self.port)]
        environment = {**os.environ, "QPUBSUB_HOME": str(self._home)}
        self._run = subprocess.Popen(command, env=environment, start_new_session=True)
        until(lambda: listens(self.port), "the listener to begin")

    def kill(self) -> None:
        """At once, and all of it."""
        assert self._run is not None
        os.killpg(self._run.pid, signal.SIGKILL)
        self._run.wait()


def trial(home: Path, kills: int, clients: int, seed: int = 1) -> Figures:
    """Kill *kills* times under *clients* programs. Raises AssertionError where the programs get nothing done."""
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    service, chance, began = Service(home), random.Random(seed), time.monotonic()
    programs = Programs((service.port,), clients)
    service.start()
    programs.start()
    try:
        for _ in range(kills):
            programs.wait_for_commits(_COMMITS_BETWEEN)
            time.sleep(chance.uniform(0, 0.2))
            service.kill()
            service.start()
        programs.wait_for_commits(_COMMITS_BETWEEN)
    finally:
        programs.end()
        service.kill()
    left = programs.left(home)
    return Figures(
        kills=kills,
        clients=clients,
        committed=len(programs.committed),
        moved=left.moved,
        unanswered=len(programs.doubtful),
        kept=left.kept,
        connections=programs.connections.total(),
        lost=left.lost,
        twice=left.twice,
        strange=left.strange,
        seconds=round(time.monotonic() - began, 1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where a message was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        seen = trial(Path(home), asked.kills, asked.clients, asked.seed)
    print(json.dumps(asdict(seen)))
    return int(bool(seen.lost or seen.twice or seen.strange))


if __name__ == "__main__":
    sys.exit(main())
