"""Publications a second between legacy programs and a tree, each way, beside the tree's server alone in the same run.

The bridge is a process as people run it; the native programs are in this one, a publisher and a subscriber: paho-mqtt
with QoS 1, nats-py that publishes to JetStream, or confluent-kafka with an idempotent producer. The floor is the same
publisher and subscriber with nothing between them but the server. Rounds are taken in turns and the best of them is
told. Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands.broker.objects import QueueManager
from commands.config.settings import KafkaConfig, TopicsConfig
from commands.config.urls import parse_address
from commands.links.kafka.cluster import KafkaCluster, Routes
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2
from tests.commands.links.kafka_server import KafkaNative, KafkaServer, kafka_server, needs_kafka
from tests.commands.links.mosquitto import Mosquitto, Native, mosquitto, needs_mosquitto
from tests.commands.links.nats_server import NatsNative, NatsServer, nats_server, needs_nats
from tests.waiting import until

pytestmark = pytest.mark.nightly

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
PAYLOAD = b"x" * 200
ROUNDS = 3


class Program(Protocol):
    """A native program."""

    messages: list[Any]

    def flood(self, topic: str, payload: bytes, count: int) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Tree:
    """A server. native: makes a program that subscribes to all below a topic, or to nothing."""

    name: str
    url: str
    native: Callable[[str | None], Program]


@contextmanager
def _mqtt(directory: Path) -> Iterator[Tree]:
    with mosquitto(directory) as broker:
        yield Tree("mosquitto", broker.url, partial(_mqtt_native, broker))


def _mqtt_native(broker: Mosquitto, below: str | None) -> Native:
    return Native(broker, f"native {below}", *([] if below is None else [f"{below}/#"]))


@contextmanager
def _nats(directory: Path) -> Iterator[Tree]:
    with nats_server(directory) as server:
        yield Tree("nats-server", server.url, partial(_nats_native, server))


def _nats_native(server: NatsServer, below: str | None) -> NatsNative:
    return NatsNative(server.url, None if below is None else f"{below}.>")


@contextmanager
def _kafka(directory: Path) -> Iterator[Tree]:
    with kafka_server(directory) as server:
        # The bridge reads its topics whole: what goes without it has another one.
        config = TopicsConfig(kafka=KafkaConfig(topic="alone"))
        KafkaCluster(parse_address(server.url, ""), config, Routes(config.kafka), "alone").make_ready()
        yield Tree("Kafka", server.url, partial(_kafka_native, server))


def _kafka_native(server: KafkaServer, below: str | None) -> _KafkaProgram:
    return _KafkaProgram(server, below)


class _KafkaProgram(KafkaNative):
    """One whose publications on ``alone/...`` go to the topic of that name."""

    def __init__(self, server: KafkaServer, below: str | None) -> None:
        topics = () if below is None else ("alone" if below == "alone" else "qpubsub",)
        super().__init__(server.servers, *topics, below=f"{below}/", is_late=True)

    def flood(self, topic: str, payload: bytes, count: int) -> None:
        self._prefix = "alone" if topic.startswith("alone/") else "qpubsub"
        super().flood(topic, payload, count)


TREES = [
    pytest.param(_mqtt, id="mqtt", marks=needs_mosquitto),
    pytest.param(_nats, id="nats", marks=needs_nats),
    pytest.param(_kafka, id="kafka", marks=needs_kafka),
]
Server = Callable[[Path], AbstractContextManager[Tree]]


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds for a number of publications, and seconds of the bridge's processor time."""

    count: int
    wall_s: float
    bridge_s: float = 0.0

    @property
    def rate(self) -> float:
        return self.count / self.wall_s

    @property
    def bridge_us(self) -> float:
        return self.bridge_s / self.count * 1e6


class Bridge:
    """A queue manager with ``qpubsub run`` as a process, linked to a broker."""

    def __init__(self, home: Path, tree: Tree, durability: Durability) -> None:
        QueueManagerStore.create(home, QueueManager("QM1")).close()
        self.store = QueueManagerStore.open(home, "QM1", durability=durability)
        words = [
            "run",
            "-m",
            "QM1",
            "--home",
            str(home),
            "--topics",
            tree.url,
            "--durability",
            durability.name.lower(),
        ]
        self._process = subprocess.Popen([sys.executable, "-m", "commands.cli", *words], stderr=subprocess.DEVNULL)

    def put(self, queue: str, psc: str, count: int = 1) -> None:
        md = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app").encode()
        body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + PAYLOAD
        with self.store.unit_of_work() as unit:
            for _ in range(count):
                unit.put(queue, md, body)

    def depth(self, queue: str) -> int:
        return self.store.depth(queue) if self.store.find_queue(queue) else 0

    @property
    def cpu_s(self) -> float:
        """Processor time so far."""
        pid = self._process.pid
        (worker,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ticks = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self.store.close()


@contextmanager
def _bridge(home: Path, tree: Tree, durability: Durability) -> Iterator[Bridge]:
    made = Bridge(home, tree, durability)
    try:
        made.put(CONTROL, "<Command>RegSub</Command><Topic>in/#</Topic><QName>S</QName>")
        until(lambda: made.depth(CONTROL) == 0, "the bridge")
        speaker = tree.native("out")
        made.put(STREAM, "<Command>Publish</Command><Topic>out/x</Topic>")
        until(lambda: speaker.messages, "the link")
        speaker.close()
        yield made
    finally:
        made.end()


def _alone(tree: Tree, count: int) -> Took:
    """Publisher and subscriber, and the server between them."""
    listener, speaker = tree.native("alone"), tree.native(None)
    begun = time.perf_counter()
    speaker.flood("alone/x", PAYLOAD, count)
    until(lambda: len(listener.messages) >= count, timeout_s=300)
    took = Took(count, time.perf_counter() - begun)
    listener.close()
    speaker.close()
    return took


def _out(tree: Tree, bridge: Bridge, count: int) -> Took:
    """From the stream queue, where all of it is put at once, to a native subscriber."""
    listener = tree.native("out")
    begun, cpu = time.perf_counter(), bridge.cpu_s
    bridge.put(STREAM, "<Command>Publish</Command><Topic>out/x</Topic>", count)
    until(lambda: len(listener.messages) >= count, timeout_s=300)
    took = Took(count, time.perf_counter() - begun, bridge.cpu_s - cpu)
    listener.close()
    return took


def _in(tree: Tree, bridge: Bridge, count: int) -> Took:
    """From a native publisher to a subscriber's queue."""
    speaker = tree.native(None)
    wanted = bridge.depth("S") + count
    begun, cpu = time.perf_counter(), bridge.cpu_s
    speaker.flood("in/x", PAYLOAD, count)
    until(lambda: bridge.depth("S") >= wanted, timeout_s=300)
    took = Took(count, time.perf_counter() - begun, bridge.cpu_s - cpu)
    speaker.close()
    return took


@pytest.mark.parametrize("durability", [Durability.FULL, Durability.NORMAL], ids=["full", "normal"])
@pytest.mark.parametrize("server", TREES)
def test_publications_a_second_each_way(
    benchmark: BenchmarkFixture, tmp_path: Path, durability: Durability, server: Server
) -> None:
    count = 5_000 if benchmark.enabled else 20
    runs: dict[str, list[Took]] = {"alone": [], "out": [], "in": []}
    with server(tmp_path / "server") as tree, _bridge(tmp_path / "qmgrs", tree, durability) as bridge:

        def one_round() -> None:
            runs["alone"].append(_alone(tree, count))
            runs["out"].append(_out(tree, bridge, count))
            runs["in"].append(_in(tree, bridge, count))

        benchmark.pedantic(one_round, rounds=ROUNDS)
    best = {name: min(taken, key=lambda took: took.wall_s) for name, taken in runs.items()}
    cpu = {name: min(took.bridge_us for took in taken) for name, taken in runs.items()}
    print(f"\n{durability.name.lower()}: {tree.name} alone {best['alone'].rate:,.0f}/s")
    for name, way in (("out", "legacy to native"), ("in", "native to legacy")):
        ratio = best[name].rate / best["alone"].rate
        print(
            f"  {way}: {best[name].rate:,.0f}/s, {ratio:.2f} of that; bridge {cpu[name]:.0f} us of processor time each"
        )


@pytest.mark.parametrize("server", TREES)
def test_how_long_one_publication_takes(benchmark: BenchmarkFixture, tmp_path: Path, server: Server) -> None:
    count = 100 if benchmark.enabled else 3
    durability = Durability.FULL
    with server(tmp_path / "server") as tree, _bridge(tmp_path / "qmgrs", tree, durability) as bridge:
        heard = {each: tree.native(each) for each in ("out", "alone")}
        speaker = tree.native(None)

        def alone() -> None:
            speaker.flood("alone/x", PAYLOAD, 1)

        def out() -> None:
            bridge.put(STREAM, "<Command>Publish</Command><Topic>out/x</Topic>")

        taken: dict[str, list[float]] = {"alone": [], "out": [], "in": []}

        def one() -> None:
            for name, act in (("alone", alone), ("out", out)):
                listener = heard[name]
                before = len(listener.messages)
                begun = time.perf_counter()
                act()
                while len(listener.messages) == before:
                    time.sleep(0.000_2)
                taken[name].append(time.perf_counter() - begun)
            depth = bridge.depth("S")
            begun = time.perf_counter()
            speaker.flood("in/x", PAYLOAD, 1)
            while bridge.depth("S") == depth:
                time.sleep(0.000_2)
            taken["in"].append(time.perf_counter() - begun)

        benchmark.pedantic(one, rounds=count)
        for program in (*heard.values(), speaker):
            program.close()
    told = ", ".join(f"{name} {statistics.median(times) * 1000:.1f} ms" for name, times in taken.items())
    print(f"\n{tree.name}: median of {count}, one at a time: {told}")
