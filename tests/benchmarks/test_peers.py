"""Programs of others that do a part of the same: RabbitMQ beside the processor, tshark beside decode.

Neither does the same work. RabbitMQ confirms, routes by topic, stores and delivers, and reads no header. tshark reads
every layer of each packet, and no command. Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands.broker.objects import QueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from tests.benchmarks.rabbitmq import moved, needs_rabbitmq, rabbitmq
from tests.benchmarks.test_processor import CONTROL, NOW, Traffic, put, put_publication
from tests.rfh2.channel_wire import CONTROL as CONTROL_QUEUE, MQPUT1, WIRES, Session, mqmd, pcapng, rfh2

MESSAGES = 10_000
PACKETS = 5_000
A_COMMIT = 100
"""Publications that a program puts in one unit of work."""

only_measured = pytest.mark.skipif("not config.getoption('--benchmark-enable')", reason="a peer is only measured")


def _bridged(home: Path, count: int) -> float:
    """Seconds for as many publications from a program's puts through the processor to the subscriber's gets."""
    with QueueManagerStore.create(home, QueueManager("QM1"), durability=Durability.FULL) as store:
        with store.unit_of_work() as unit:
            put(unit, CONTROL, "<Command>RegSub</Command><Topic>#</Topic><QName>S</QName>")
        processor = Processor(store, lambda: NOW)
        processor.drain()
        begun = time.perf_counter()
        for start in range(0, count, A_COMMIT):
            with store.unit_of_work() as unit:
                for n in range(start, start + A_COMMIT):
                    put_publication(unit, n, Traffic.NUMBERED)
        processor.drain()
        for _ in range(0, count, A_COMMIT):
            with store.unit_of_work() as unit:
                for _ in range(A_COMMIT):
                    assert unit.get("S") is not None
        return time.perf_counter() - begun


@only_measured
@needs_rabbitmq
@pytest.mark.nightly
@pytest.mark.servers
def test_rabbitmq(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    theirs: list[float] = []
    ours: list[float] = []
    with rabbitmq(tmp_path / "rabbitmq") as port:

        def measured() -> None:
            theirs.append(moved(port, MESSAGES, 320))
            ours.append(_bridged(tmp_path / f"qmgr{len(ours)}", MESSAGES))

        benchmark.pedantic(measured, rounds=3)  # type: ignore[no-untyped-call]
    rate, floor = MESSAGES / min(ours), MESSAGES / min(theirs)
    print(
        f"\npersistent publications, put, routed, got: {rate:,.0f}/s; RabbitMQ with confirms {floor:,.0f}/s; "
        f"ratio {rate / floor:.2f}"
    )


@only_measured
@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    wire, session = WIRES[0], Session()
    for n in range(PACKETS):
        body = rfh2(f"Stock/{n % 500}", wire.order) + b"42.5" * 50
        session.client(wire.segment(MQPUT1, wire.mqput1(CONTROL_QUEUE, mqmd(n, 2, wire.order, user="app1"), body)))
    capture = tmp_path / "net.pcapng"
    capture.write_bytes(pcapng(session.frames))
    took: dict[str, list[float]] = {"ours": [], "theirs": []}
    commands = {
        "ours": [sys.executable, "-m", "commands.cli", "decode", "--json", "--jobs", "1", str(capture)],
        "theirs": ["tshark", "-r", str(capture), "-T", "json"],
    }

    def measured() -> None:
        for name, command in commands.items():
            begun = time.perf_counter()
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            took[name].append(time.perf_counter() - begun)
            assert done.stdout.count(b"MQRFH2" if name == "ours" else b"mq.rfh.string") >= PACKETS

    benchmark.pedantic(measured, rounds=3)  # type: ignore[no-untyped-call]
    ours, theirs = (PACKETS / min(took[name]) for name in ("ours", "theirs"))
    print(
        f"\nmessages of a packet capture as JSON: {ours:,.0f}/s; tshark -T json {theirs:,.0f}/s; "
        f"ratio {ours / theirs:.2f}"
    )
