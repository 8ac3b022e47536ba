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
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import MQGMO_SYNCPOINT, MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_SYNCPOINT
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


@dataclass
class _Work:
    """What the programs know together. doubtful: messages whose commit was not answered."""

    port: int
    stop: threading.Event = field(default_factory=threading.Event)
    committed: set[bytes] = field(default_factory=set)
    doubtful: set[bytes] = field(default_factory=set)
    connections: Counter[str] = field(default_factory=Counter)


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


def _produce(name: str, work: _Work) -> None:
    number = 0
    while not work.stop.is_set():
        try:
            with MqiClient(work.port) as client:
                assert client.connect(name) == 0
                work.connections[name] += 1
                handle = client.opened("IN", MQOO_OUTPUT)
                while not work.stop.is_set():
                    number += 1
                    body = f"{name} {number}".encode()
                    if client.put(handle, body, MQPMO_SYNCPOINT, persistence=1)[0]:
                        continue
                    work.doubtful.add(body)
                    if client.commit() == 0:
                        work.doubtful.discard(body)
                        work.committed.add(body)
        except _BROKEN:
            time.sleep(_PAUSE_S)


def _move(name: str, work: _Work) -> None:
    while not work.stop.is_set():
        try:
            with MqiClient(work.port) as client:
                assert client.connect(name) == 0
                work.connections[name] += 1
                source, target = client.opened("IN", MQOO_INPUT_SHARED | MQOO_OUTPUT), client.opened("OUT", MQOO_OUTPUT)
                while not work.stop.is_set():
                    got = client.get(source, MQGMO_SYNCPOINT, wait_ms=200)
                    if got.reason == 0:
                        client.put(target, got.body, MQPMO_SYNCPOINT, persistence=1)
                        client.commit()
        except _BROKEN:
            time.sleep(_PAUSE_S)


def trial(home: Path, kills: int, clients: int, seed: int = 1) -> Figures:
    """Kill *kills* times under *clients* programs. Raises AssertionError where the programs get nothing done."""
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    service, chance, began = Service(home), random.Random(seed), time.monotonic()
    work = _Work(service.port)
    service.start()
    threads = [
        threading.Thread(target=_move if number % 2 else _produce, args=(f"p{number}", work))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(kills):
            _wait_for_commits(work)
            time.sleep(chance.uniform(0, 0.2))
            service.kill()
            service.start()
        _wait_for_commits(work)
    finally:
        work.stop.set()
        for thread in threads:
            thread.join()
        service.kill()
    with QueueManagerStore.open(home, "QM1") as store:
        store.end_lost_connections()
        found = {queue: [message.body for message in store.browse(queue)] for queue in ("IN", "OUT")}
    left = Counter(found["IN"] + found["OUT"])
    return Figures(
        kills=kills,
        clients=clients,
        committed=len(work.committed),
        moved=len(found["OUT"]),
        unanswered=len(work.doubtful),
        kept=len(work.doubtful & left.keys()),
        connections=work.connections.total(),
        lost=len(work.committed - left.keys()),
        twice=sum(count > 1 for count in left.values()),
        strange=len(left.keys() - work.committed - work.doubtful),
        seconds=round(time.monotonic() - began, 1),
    )


def _wait_for_commits(work: _Work) -> None:
    enough = len(work.committed) + _COMMITS_BETWEEN
    until(lambda: len(work.committed) >= enough, "the programs to get something done")


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
