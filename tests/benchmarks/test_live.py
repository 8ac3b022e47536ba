"""Publications a second between legacy programs and an MQTT broker, each way, beside the broker alone in the same run.

The bridge is a process as people run it; the native programs are paho-mqtt in this one, QoS 1, a publisher and a
subscriber. The floor is the same publisher and subscriber with nothing between them but mosquitto. Rounds are taken in
turns and the best of them is told. Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2
from tests.commands.links.mosquitto import Mosquitto, Native, mosquitto, needs_mosquitto, until

pytestmark = [needs_mosquitto, pytest.mark.slow]

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
PAYLOAD = b"x" * 200
ROUNDS = 3


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

    def __init__(self, home: Path, broker: Mosquitto, durability: Durability) -> None:
        QueueManagerStore.create(home, QueueManager("QM1")).close()
        self.store = QueueManagerStore.open(home, "QM1", durability=durability)
        words = [
            "run",
            "-m",
            "QM1",
            "--home",
            str(home),
            "--topics",
            broker.url,
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
def _bridge(home: Path, broker: Mosquitto, durability: Durability) -> Iterator[Bridge]:
    made = Bridge(home, broker, durability)
    try:
        made.put(CONTROL, "<Command>RegSub</Command><Topic>in/#</Topic><QName>S</QName>")
        until(lambda: made.depth(CONTROL) == 0, what="the bridge")
        speaker = Native(broker, "warm up", "out/#")
        made.put(STREAM, "<Command>Publish</Command><Topic>out/x</Topic>")
        until(lambda: speaker.messages, what="the link")
        speaker.close()
        yield made
    finally:
        made.end()


def _spoken(speaker: Native, topic: str, count: int) -> None:
    for _ in range(count):
        speaker.client.publish(topic, PAYLOAD, 1)


def _alone(broker: Mosquitto, count: int) -> Took:
    """Publisher and subscriber, and mosquitto between them."""
    listener, speaker = Native(broker, "listener", "alone/#"), Native(broker, "speaker")
    begun = time.perf_counter()
    _spoken(speaker, "alone/x", count)
    until(lambda: len(listener.messages) >= count, 300)
    took = Took(count, time.perf_counter() - begun)
    listener.close()
    speaker.close()
    return took


def _out(broker: Mosquitto, bridge: Bridge, count: int) -> Took:
    """From the stream queue, where all of it is put at once, to a native subscriber."""
    listener = Native(broker, "listener", "out/#")
    begun, cpu = time.perf_counter(), bridge.cpu_s
    bridge.put(STREAM, "<Command>Publish</Command><Topic>out/x</Topic>", count)
    until(lambda: len(listener.messages) >= count, 300)
    took = Took(count, time.perf_counter() - begun, bridge.cpu_s - cpu)
    listener.close()
    return took


def _in(broker: Mosquitto, bridge: Bridge, count: int) -> Took:
    """From a native publisher to a subscriber's queue."""
    speaker = Native(broker, "speaker")
    wanted = bridge.depth("S") + count
    begun, cpu = time.perf_counter(), bridge.cpu_s
    _spoken(speaker, "in/x", count)
    until(lambda: bridge.depth("S") >= wanted, 300)
    took = Took(count, time.perf_counter() - begun, bridge.cpu_s - cpu)
    speaker.close()
    return took


@pytest.mark.parametrize("durability", [Durability.FULL, Durability.NORMAL], ids=["full", "normal"])
def test_publications_a_second_each_way(benchmark: BenchmarkFixture, tmp_path: Path, durability: Durability) -> None:
    count = 5_000 if benchmark.enabled else 20
    runs: dict[str, list[Took]] = {"alone": [], "out": [], "in": []}
    with mosquitto(tmp_path / "mosquitto") as broker, _bridge(tmp_path / "qmgrs", broker, durability) as bridge:

        def one_round() -> None:
            runs["alone"].append(_alone(broker, count))
            runs["out"].append(_out(broker, bridge, count))
            runs["in"].append(_in(broker, bridge, count))

        benchmark.pedantic(one_round, rounds=ROUNDS)
    best = {name: min(taken, key=lambda took: took.wall_s) for name, taken in runs.items()}
    cpu = {name: min(took.bridge_us for took in taken) for name, taken in runs.items()}
    print(f"\n{durability.name.lower()}: mosquitto alone {best['alone'].rate:,.0f}/s")
    for name, way in (("out", "legacy to native"), ("in", "native to legacy")):
        ratio = best[name].rate / best["alone"].rate
        print(
            f"  {way}: {best[name].rate:,.0f}/s, {ratio:.2f} of that; bridge {cpu[name]:.0f} us of processor time each"
        )


def test_how_long_one_publication_takes(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    count = 100 if benchmark.enabled else 3
    durability = Durability.FULL
    with mosquitto(tmp_path / "mosquitto") as broker, _bridge(tmp_path / "qmgrs", broker, durability) as bridge:
        listener, speaker = Native(broker, "listener", "out/#", "alone/#"), Native(broker, "speaker")

        def alone() -> None:
            _spoken(speaker, "alone/x", 1)

        def out() -> None:
            bridge.put(STREAM, "<Command>Publish</Command><Topic>out/x</Topic>")

        taken: dict[str, list[float]] = {"alone": [], "out": [], "in": []}

        def one() -> None:
            for name, act in (("alone", alone), ("out", out)):
                heard = len(listener.messages)
                begun = time.perf_counter()
                act()
                while len(listener.messages) == heard:
                    time.sleep(0.000_2)
                taken[name].append(time.perf_counter() - begun)
            depth = bridge.depth("S")
            begun = time.perf_counter()
            _spoken(speaker, "in/x", 1)
            while bridge.depth("S") == depth:
                time.sleep(0.000_2)
            taken["in"].append(time.perf_counter() - begun)

        benchmark.pedantic(one, rounds=count)
        listener.close()
        speaker.close()
    told = ", ".join(f"{name} {statistics.median(times) * 1000:.1f} ms" for name, times in taken.items())
    print(f"\nmedian of {count}, one at a time: {told}")
