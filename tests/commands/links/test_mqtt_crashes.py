"""The results service over an MQTT broker, with native programs on both sides; the broker restarted, the bridge killed.

At QoS 1 nothing may be lost, whoever ends when; something may come twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.broker.puts import Put
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import CapturedMessage, decode
from tests.commands.links.mosquitto import Mosquitto, Native, mosquitto, needs_mosquitto
from tests.commands.results_service import EVENT, FIXTURE, SCORES, capture
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.faults

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
OUTGOING = "SYSTEM.QPUBSUB.OUTGOING"
MATCHES = ("Newcastle Southampton", "Liverpool ManUtd")


class Program:
    """The bridge as a person runs it: a process, to be killed and started again."""

    def __init__(self, home: Path, broker: Mosquitto) -> None:
        self._home, self._broker = home, broker
        self._log = (home / "run.log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(self._home)]
        command += ["--topics", self._broker.url, "--durability", "normal"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self._log)

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        os.kill(self.process.pid, number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def program(home: Path, broker: Mosquitto) -> Iterator[Program]:
    running = Program(home, broker)
    running.start()
    try:
        yield running
    finally:
        if running.process is not None and running.process.poll() is None:
            running.end(signal.SIGKILL)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    home = tmp_path / "qmgrs"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    with QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL) as opened:
        yield opened


def _depth(store: QueueManagerStore, queue: str) -> int:
    return store.depth(queue) if store.find_queue(queue) else 0


def _data(store: QueueManagerStore, queue: str) -> list[str]:
    return [decode(m.body, m.md).body.decode() for m in store.browse(queue)]


@needs_mosquitto
def test_the_results_service_with_native_programs_on_both_sides(tmp_path: Path, store: QueueManagerStore) -> None:
    """Simulators, a results service and boards of both kinds, on the same topics."""
    with mosquitto(tmp_path / "mosquitto") as broker, program(tmp_path / "qmgrs", broker):
        board = Native(broker, "board", f"{SCORES}/#")
        events = Native(broker, "events", f"{EVENT}/#")
        messages = capture()
        with store.unit_of_work() as unit:
            for message in messages[:14]:
                unit.put(message.queue, message.md, message.body, user=message.user)
        until(lambda: _depth(store, CONTROL) == _depth(store, STREAM) == 0, "the first half")
        simulator = Native(broker, "simulator")
        simulator.publish(f"{EVENT}/ScoreUpdate", "Newcastle", ContentType="text/plain")
        simulator.publish(f"{SCORES}/Celtic Rangers", "2 2", retain=True)
        until(lambda: "2 2" in _data(store, "SCOREBOARD"), "the native score on the legacy board")
        with store.unit_of_work() as unit:
            for message in messages[14:]:
                unit.put(message.queue, message.md, message.body, user=message.user)
        until(lambda: _depth(store, CONTROL) == _depth(store, STREAM) == 0, "the second half")
        until(lambda: len(board.messages) >= 8, "the native board")
        until(lambda: len(events.messages) >= 8, "the native events")
        late = Native(broker, "late", f"{SCORES}/#")
        until(lambda: late.messages, "the retained score")
        for client in (board, events, simulator, late):
            client.close()
    assert board.payloads(f"{SCORES}/Newcastle Southampton") == ["0 0", "1 0", "1 1", ""]
    assert board.payloads(f"{SCORES}/Celtic Rangers") == ["2 2"]
    assert events.payloads(f"{EVENT}/ScoreUpdate").count("Newcastle") == 2
    assert [(m.topic, m.payload) for m in late.messages] == [(f"{SCORES}/Celtic Rangers", b"2 2")]
    results = [decode(m.body, m.md) for m in store.browse("RESULTS.SERVICE")]
    updates = [m.body for m in results if m.rfh2 is not None and b"ScoreUpdate" in m.rfh2.folders[0].data]
    assert updates.count(b"Newcastle") == 2, "one from a queue, one from MQTT"
    asked = [m.body for m in results if m.rfh2 is not None and b"LatestScore/Celtic" in m.rfh2.folders[0].data]
    assert asked == [b"2 2"], "what natives retain answers a ReqUpdate"


@needs_mosquitto
@pytest.mark.nightly
def test_the_results_service_with_the_broker_restarted_and_the_bridge_killed_in_the_middle(
    tmp_path: Path, store: QueueManagerStore
) -> None:
    """Legacy programs get each other's messages as ever; what goes from one side to the other comes, maybe twice."""
    messages, goals = capture(), [f"native {n}" for n in range(40)]
    with mosquitto(tmp_path / "mosquitto") as broker, program(tmp_path / "qmgrs", broker) as bridge:
        board = Native(broker, "board", f"{SCORES}/#", lasting=True)
        events = Native(broker, "events", f"{EVENT}/#", lasting=True)
        simulator = Native(broker, "simulator")
        for message in messages[:4]:
            _put_captured(store, message)
        until(lambda: _depth(store, CONTROL) == 0, "the results service and its board to be registered")

        def speak() -> None:
            for goal in goals:
                simulator.insist(f"{EVENT}/ScoreUpdate", goal)
                time.sleep(0.02)

        speaking = threading.Thread(target=speak)
        speaking.start()
        for n, message in enumerate(messages[4:-4]):
            if n == 3:
                bridge.end(signal.SIGKILL)
            elif n == 5:
                bridge.start()
            elif n == 8:
                broker.stop()
            elif n == 11:
                broker.start()
            elif n == 14:
                bridge.end(signal.SIGKILL)
                broker.stop()
                broker.start()
                bridge.start()
            _put_captured(store, message)
            time.sleep(0.1)
        speaking.join(PATIENCE_S)
        until(lambda: set(goals) <= set(_data(store, "RESULTS.SERVICE")), "the native goals")
        for message in messages[-4:]:
            _put_captured(store, message)
        until(lambda: sum(_depth(store, queue) for queue in (CONTROL, STREAM, OUTGOING)) == 0, "the rest")
        until(lambda: _heard(events) >= EVENTS, "the native events")
        assert bridge.end(signal.SIGTERM) == 0
        until(lambda: board.payloads(f"{SCORES}/Newcastle Southampton")[-1:] == [""], "the native board")
        for client in (board, events, simulator):
            client.close()
    golden = [Put.model_validate_json(line) for line in (FIXTURE / "puts.jsonl").read_text().splitlines()]
    for queue in ("RESULTS.SERVICE", "SCOREBOARD", "LATE.BOARD"):
        wanted = [bytes.fromhex(put.body_hex) for put in golden if put.queue == queue]
        bodies = [m.body for m in store.browse(queue) if m.body.rpartition(b">")[2].strip().decode() not in goals]
        assert bodies == wanted, queue
    assert list(dict.fromkeys(p for p in _data(store, "RESULTS.SERVICE") if p in goals)) == goals
    for match, scores in (
        ("Newcastle Southampton", ["0 0", "1 0", "1 1", ""]),
        ("Liverpool ManUtd", ["0 0", "0 1", ""]),
    ):
        assert list(dict.fromkeys(board.payloads(f"{SCORES}/{match}"))) == scores


EVENTS = {
    *((f"{EVENT}/{event}", match) for event in ("MatchStarted", "MatchEnded") for match in MATCHES),
    *((f"{EVENT}/ScoreUpdate", team) for team in ("Newcastle", "ManUtd", "Southampton")),
}


def _heard(client: Native) -> set[tuple[str, str]]:
    return {(m.topic, m.payload.decode()) for m in client.messages}


def _put_captured(store: QueueManagerStore, message: CapturedMessage) -> None:
    with store.unit_of_work() as unit:
        unit.put(message.queue, message.md, message.body, user=message.user)
