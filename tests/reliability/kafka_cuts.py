"""Publications both ways while the bridge, Kafka, or the network between them fails at random moments.

    python -m tests.reliability.kafka_cuts 200

A native program publishes and reads at the broker; a legacy program publishes and subscribes by queues; the bridge is a
process, and reaches the broker through a proxy. So many faults follow one another, chosen and timed at random: the
bridge is killed (SIGKILL) and started again; the proxy cuts all connections, swallows what passes before it cuts, or
delays it; the broker is killed and started again. Nothing may be lost, nothing may come twice to a reader with
read_committed or to the legacy subscriber, and nothing may overtake another publication on its topic
(docs/live-brokers.md, Kafka). Prints what it saw; the exit code is 1 where that is not so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.commands.links.kafka_server import KafkaNative, KafkaServer
from tests.commands.links.mosquitto import free_port, until
from tests.commands.links.proxy import Proxy
from tests.reliability.tree_faults import TOPICS, Figures, break_network, main

# A bridge that is killed is what transactions are for: half of all faults.
KINDS = ("bridge", "bridge", "bridge", "bridge", "cut", "drop", "delay", "kill")


class _Bridge:
    """The bridge as a person runs it."""

    def __init__(self, home: Path, port: int) -> None:
        self._home, self._log = home, (home / "run.log").open("ab")
        self._command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(home)]
        self._command += ["--topics", f"kafka://127.0.0.1:{port}", "--durability", "normal"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL, start_new_session=True
        )

    def kill(self) -> None:
        """The supervisor and its worker, at the same moment."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
            self._process = None


class _Programs:
    """A native and a legacy program, which publish until they are told to stop."""

    def __init__(self, home: Path, server: KafkaServer) -> None:
        self._home, self._speaker = home, KafkaNative(server.servers)
        self._stop = threading.Event()
        self.spoken: list[str] = []
        self.put: list[str] = []
        self._threads = [threading.Thread(target=self._speak), threading.Thread(target=self._put)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a program is stuck"

    def _speak(self) -> None:
        while not self._stop.wait(0.005):
            number = str(len(self.spoken))
            # Idempotent: librdkafka sends it again until the broker has answered, and the broker takes it once.
            self._speaker.publish(f"in/{int(number) % TOPICS}", number)
            self.spoken.append(number)

    def _put(self) -> None:
        with QueueManagerStore.open(self._home, "QM1", durability=Durability.NORMAL) as store:
            while not self._stop.wait(0.005):
                number = str(len(self.put))
                topic = f"<Topic>out/{int(number) % TOPICS}</Topic>"
                _put(store, "SYSTEM.BROKER.DEFAULT.STREAM", f"<Command>Publish</Command>{topic}", number.encode())
                self.put.append(number)


def _put(store: QueueManagerStore, queue: str, psc: str, data: bytes = b"") -> None:
    md = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app").encode()
    with store.unit_of_work() as unit:
        unit.put(queue, md, Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data)


def trial(directory: Path, faults: int, seed: int = 1) -> Figures:
    """Have so many faults, chosen by *seed*, and count."""
    begun, random = time.monotonic(), Random(seed)
    between = Proxy(free_port())
    server = KafkaServer(directory / "kafka", advertised=between.port)
    between.target = server.port
    server.start()
    between.start()
    home = directory / "qmgrs"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    kinds = [random.choice(KINDS) for _ in range(faults)]
    bridge = _Bridge(home, between.port)
    try:
        bridge.start()
        with QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL) as store:
            _put(store, "SYSTEM.BROKER.CONTROL.QUEUE", "<Command>RegSub</Command><Topic>in/#</Topic><QName>S</QName>")
            until(lambda: store.load_state()[1] and not store.depth("SYSTEM.BROKER.CONTROL.QUEUE"), 60, "the RegSub")
            listener = KafkaNative(server.servers, "qpubsub")
            programs = _Programs(home, server)
            programs.start()
            for kind in kinds:
                time.sleep(random.uniform(0.1, 1.5))
                _fail(kind, bridge, between, server, random)
            programs.stop()
            wanted_in, wanted_out = set(programs.spoken), set(programs.put)
            until(lambda: wanted_in <= set(_came(store)), 240, "all native publications")
            until(lambda: wanted_out <= set(_heard(listener)), 240, "all legacy publications")
            time.sleep(1.0)  # for what would come twice
            came, heard = _came(store), _heard(listener)
            listener.close()
    finally:
        bridge.kill()
        between.stop()
        server.stop()
    seconds = time.monotonic() - begun
    return Figures.of(kinds, (wanted_in, came), (wanted_out, heard), seconds)


def _fail(kind: str, bridge: _Bridge, between: Proxy, server: KafkaServer, random: Random) -> None:
    if kind == "bridge":
        bridge.kill()
        time.sleep(random.uniform(0.0, 0.2))
        bridge.start()
        # Also while it begins, but mostly while it works.
        time.sleep(random.choice((0.5, 2.5, 2.5)))
    elif kind == "kill":
        server.stop()
        time.sleep(random.uniform(0.0, 0.3))
        server.start()
    else:
        break_network(kind, between, random)


def _came(store: QueueManagerStore) -> list[str]:
    return [decode(each.body, each.md).body.decode() for each in store.browse("S")] if store.find_queue("S") else []


def _heard(listener: KafkaNative) -> list[str]:
    return [(each.payload or b"").decode() for each in tuple(listener.messages) if each.topic.startswith("out/")]


if __name__ == "__main__":
    main(trial, __doc__ or "")
