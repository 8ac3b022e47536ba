"""Producers, consumers and the processor at once, each a process of its own: nothing lost, nothing doubled, in order.

The processor is told to stop in the middle of its work (SIGTERM), and started again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2 import Folder, Mqmd, Rfh2, decode
from streams.topic_objects import QUEUE_NAMELIST, Namelist, TopicObject, Wildcard
from tests.waiting import until

CONTROL, STREAM, SPORT = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM", "Sport"
PRODUCERS, EACH = 3, 150
FORK = multiprocessing.get_context("fork")

# Who subscribes to what: each queue has one consumer, but for SHARED, which has two.
SUBSCRIBERS = {"ALL": "#", "P1": "p/1", "SHARED": "#", "S": "Sport/#"}
CONSUMERS = ["ALL", "P1", "SHARED", "SHARED", "S"]


def _put(unit: UnitOfWork, queue: str, psc: str, body: bytes = b"") -> None:
    md = Mqmd(format="MQHRF2", persistence=1, user_identifier="app")
    unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + body)


def _prepared(home: Path) -> None:
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(SPORT))
            unit.save_definition(TopicObject(SPORT, SPORT, wildcard=Wildcard.BLOCK))
            unit.save_definition(Namelist(QUEUE_NAMELIST, (SPORT, STREAM)))
            for queue, topic in SUBSCRIBERS.items():
                _put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")
        assert Processor(store, lambda: datetime.now(UTC)).drain() == len(SUBSCRIBERS)


def _produce(home: Path, producer: int) -> None:
    with QueueManagerStore.open(home, "QM1") as store:
        for n in range(EACH):
            with store.unit_of_work() as unit:
                stream = SPORT if n % 5 == 0 else STREAM
                psc = f"<Command>Publish</Command><Topic>p/{producer}</Topic>"
                _put(unit, stream, psc, json.dumps([producer, n]).encode())


def _consume(home: Path, queue: str, into: Path, over: Path) -> None:
    """Get until *over* is there and the queue is empty; each message is written down before its get is committed."""
    with QueueManagerStore.open(home, "QM1") as store, into.open("w", buffering=1) as file:
        while True:
            last = over.exists()
            with store.unit_of_work() as unit:
                message = unit.get(queue) if unit.find_queue(queue) is not None else None
                if message is not None:
                    file.write(decode(message.body, message.md).body.decode() + "\n")
            if message is None:
                if last:
                    return
                store.wait_for_change(0.05)


def _running(home: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(home)]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _is_idle(home: Path) -> bool:
    with QueueManagerStore.open(home, "QM1") as store:
        return store.depth(STREAM) == store.depth(SPORT) == 0


# docs/conformance.md: APP-3, QM-13
@pytest.mark.rule("APP-3", "QM-13")
@pytest.mark.nightly
def test_nothing_is_lost_or_doubled_and_each_queue_keeps_the_order(tmp_path: Path) -> None:
    _prepared(tmp_path)
    over = tmp_path / "over"
    kept = [tmp_path / f"got{number}" for number in range(len(CONSUMERS))]
    processor = _running(tmp_path)
    producers = [FORK.Process(target=_produce, args=(tmp_path, p), daemon=True) for p in range(PRODUCERS)]
    consumers = [
        FORK.Process(target=_consume, args=(tmp_path, queue, into, over), daemon=True)
        for queue, into in zip(CONSUMERS, kept, strict=True)
    ]
    for process in (*producers, *consumers):
        process.start()
    until(lambda: kept[0].exists() and kept[0].stat().st_size > 0)
    os.kill(processor.pid, signal.SIGTERM)
    talk = processor.communicate(timeout=30)[1]
    assert processor.returncode in (0, 130), talk  # 130: on a busy machine it does not begin to end in time
    processor = _running(tmp_path)
    try:
        for process in producers:
            process.join(60)
        until(lambda: _is_idle(tmp_path))
        over.touch()
        for process in consumers:
            process.join(60)
    finally:
        processor.send_signal(signal.SIGTERM)
        processor.communicate(timeout=30)
    assert [process.exitcode for process in (*producers, *consumers)] == [0] * (PRODUCERS + len(CONSUMERS))

    got = [[tuple(json.loads(line)) for line in path.read_text().splitlines()] for path in kept]
    plain = [(p, n) for p in range(PRODUCERS) for n in range(EACH) if n % 5]
    sport = [(p, n) for p in range(PRODUCERS) for n in range(EACH) if not n % 5]
    assert sorted(got[0]) == plain
    assert got[1] == [each for each in plain if each[0] == 1]
    assert sorted(got[2] + got[3]) == plain
    assert sorted(got[4]) == sport
    for received in got:
        for producer in range(PRODUCERS):
            of_one = [n for p, n in received if p == producer]
            assert of_one == sorted(of_one)
