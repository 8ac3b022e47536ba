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

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.commands.links.kafka_server import KafkaNative, KafkaServer
from tests.commands.links.mosquitto import free_port, until
from tests.commands.links.proxy import Proxy

# A bridge that is killed is what transactions are for: half of all faults.
KINDS = ("bridge", "bridge", "bridge", "bridge", "cut", "drop", "delay", "kill")
_TOPICS = 5


@dataclass(frozen=True)
class Figures:
    """What was seen, inward (native to legacy) and outward. late: that came after a later one on the same topic.

    bridges, cuts, drops, delays, kills: how often each of ``KINDS`` was chosen.
    """

    bridges: int
    cuts: int
    drops: int
    delays: int
    kills: int
    published: int
    lost_in: int
    lost_out: int
    twice_in: int
    twice_out: int
    late_in: int
    late_out: int
    seconds: float

    @property
    def is_good(self) -> bool:
        return not any((self.lost_in, self.lost_out, self.twice_in, self.twice_out, self.late_in, self.late_out))


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
            self._speaker.publish(f"in/{int(number) % _TOPICS}", number)
            self.spoken.append(number)

    def _put(self) -> None:
        with QueueManagerStore.open(self._home, "QM1", durability=Durability.NORMAL) as store:
            while not self._stop.wait(0.005):
                number = str(len(self.put))
                topic = f"<Topic>out/{int(number) % _TOPICS}</Topic>"
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
    return Figures(
        **{f"{kind}s": kinds.count(kind) for kind in dict.fromkeys(KINDS)},
        published=len(wanted_in) + len(wanted_out),
        lost_in=len(wanted_in - set(came)),
        lost_out=len(wanted_out - set(heard)),
        twice_in=len(came) - len(set(came)),
        twice_out=len(heard) - len(set(heard)),
        late_in=_late(came),
        late_out=_late(heard),
        seconds=round(time.monotonic() - begun, 1),
    )


def _fail(kind: str, bridge: _Bridge, between: Proxy, server: KafkaServer, random: Random) -> None:
    if kind == "bridge":
        bridge.kill()
        time.sleep(random.uniform(0.0, 0.2))
        bridge.start()
        # Also while it begins, but mostly while it works.
        time.sleep(random.choice((0.5, 2.5, 2.5)))
    elif kind == "cut":
        between.cut()
    elif kind == "drop":
        between.drops = True
        time.sleep(random.uniform(0.01, 0.2))
        between.cut()
        between.drops = False
    elif kind == "delay":
        between.delay_s = random.uniform(0.02, 0.3)
        time.sleep(random.uniform(0.1, 0.5))
        between.delay_s = 0.0
    else:
        server.stop()
        time.sleep(random.uniform(0.0, 0.3))
        server.start()


def _came(store: QueueManagerStore) -> list[str]:
    return [decode(each.body, each.md).body.decode() for each in store.browse("S")] if store.find_queue("S") else []


def _heard(listener: KafkaNative) -> list[str]:
    return [(each.payload or b"").decode() for each in tuple(listener.messages) if each.topic.startswith("out/")]


def _late(payloads: list[str]) -> int:
    highest: dict[int, int] = {}
    late = 0
    for number in map(int, dict.fromkeys(payloads)):
        late += number < highest.get(number % _TOPICS, -1)
        highest[number % _TOPICS] = max(number, highest.get(number % _TOPICS, -1))
    return late


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("faults", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        figures = trial(Path(temporary), options.faults, options.seed)
    print(json.dumps(asdict(figures)))
    return int(not figures.is_good)


if __name__ == "__main__":
    sys.exit(main())
