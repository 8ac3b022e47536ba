"""``run`` with a publish exit: units of work, failures, and what is lost when a process is killed: nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2 import Folder, Mqmd, Rfh2
from tests.commands.cli_runs import Ran, run
from tests.commands.running.test_publish_exit import EXITS
from tests.waiting import PATIENCE_S

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"


def _put(unit: UnitOfWork, queue: str, psc: str, data: str = "") -> None:
    body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data.encode()
    unit.put(queue, Mqmd(format="MQHRF2", persistence=1, user_identifier="app").encode(), body)


def _publish(store: QueueManagerStore, *data: str, topic: str = "a") -> None:
    with store.unit_of_work() as unit:
        for each in data:
            _put(unit, STREAM, f"<Command>Publish</Command><Topic>{topic}</Topic>", each)


def _depths(store: QueueManagerStore, *queues: str) -> list[int]:
    with store.unit_of_work() as unit:
        return [unit.depth(queue) if unit.find_queue(queue) else 0 for queue in queues]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    """Queue manager QM1 where S subscribes to topic a."""
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            _put(unit, CONTROL, "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>")
        yield store


def _config(home: Path, function: str, seconds: float = 30, exit_: Path = EXITS) -> str:
    file = home / "bridge.toml"
    file.write_text(f'[publish_exit]\npath = "{exit_}"\nfunction = "{function}"\nseconds = {seconds}\n')
    return str(file)


def _once(store: QueueManagerStore, config: str) -> Ran:
    home = str(store.directory.parent)
    return run("run", "-m", "QM1", "--home", home, "--once", "--config", config)


def test_each_publication_passes_the_exit_and_none_comes_from_a_cache(store: QueueManagerStore, tmp_path: Path) -> None:
    _publish(store, *["same"] * 8)
    ran = _once(store, _config(tmp_path, "counting"))
    assert ran.code == 0, ran.talk
    assert _depths(store, *(f"S.{number}" for number in range(2, 10))) == [1] * 8


def test_what_becomes_of_each_answer(store: QueueManagerStore, tmp_path: Path) -> None:
    _publish(store, "plain", "please move", "make it dead", "please discard", "please raise", "please die always")
    ran = _once(store, _config(tmp_path, "by_data"))
    assert _depths(store, "S", "MOVED", DEAD, STREAM) == [1, 1, 3, 0]
    assert "ValueError: no such table (exits.py, line" in ran.talk
    assert "its process ended twice in the same call" in ran.talk
    assert "7 commands (2 in error): 2 publications delivered, 0 responses, 3 dead letters" in ran.talk
    assert ran.code == 1


def test_the_counters_of_a_subscription(store: QueueManagerStore, tmp_path: Path) -> None:
    _publish(store, "plain", "make it dead", "please discard")
    _once(store, _config(tmp_path, "by_data"))
    shown = run("status", "-m", "QM1", "--home", str(tmp_path), "--json").out
    assert '"delivered": 1' in shown or '"delivered":1' in shown, shown


def test_one_that_hangs_is_killed_and_the_publication_is_a_dead_letter(
    store: QueueManagerStore, tmp_path: Path
) -> None:
    _publish(store, "please hang", "plain")
    ran = _once(store, _config(tmp_path, "by_data", seconds=2))
    assert "no answer in 2 s; its process was killed" in ran.talk
    assert _depths(store, "S", DEAD, STREAM) == [1, 1, 0]


@pytest.mark.rule("APP-5f")
def test_4_6_2_without_its_exit_run_processes_nothing(store: QueueManagerStore, tmp_path: Path) -> None:
    _publish(store, "plain")
    ran = _once(store, _config(tmp_path, "absent"))
    assert ran.code == 2
    assert f"{EXITS} has no function absent. No command is processed." in ran.talk
    assert _depths(store, CONTROL, STREAM) == [1, 1]
    assert _once(store, _config(tmp_path, "by_data")).code == 0
    assert _depths(store, "S", CONTROL, STREAM) == [1, 0, 0]


@contextmanager
def _running(store: QueueManagerStore, config: str) -> Iterator[subprocess.Popen[bytes]]:
    home = str(store.directory.parent)
    arguments = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", home, "--config", config]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def _exits_of(parent: int) -> list[int]:
    """The processes of exits whose bridge is *parent* or a child of it."""
    bridges = {str(parent), *_children(parent)}
    return [int(pid) for bridge in bridges for pid in _children(int(bridge)) if _is_exit(pid)]


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def _is_exit(pid: str) -> bool:
    try:
        return b"commands.running.exit_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.nightly
@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="the processes are found in /proc")
@pytest.mark.parametrize("victim", ["exit", "bridge"])
def test_nothing_is_lost_or_doubled_when_a_process_is_killed(
    store: QueueManagerStore, tmp_path: Path, victim: str
) -> None:
    config, count, kills = _config(tmp_path, "by_data"), 400, 0
    _publish(store, *(f"number {number}" for number in range(count)))
    chance = random.Random(4_6_2)
    end = time.monotonic() + 120
    while time.monotonic() < end and _depths(store, STREAM)[0]:
        with _running(store, config) as process:
            while process.poll() is None and _depths(store, STREAM)[0] and time.monotonic() < end:
                time.sleep(chance.uniform(0.3, 0.8))
                if (exits := _exits_of(process.pid)) and kills < 3:
                    os.kill(exits[0] if victim == "exit" else process.pid, signal.SIGKILL)
                    kills += 1
    print(f"killed {kills} times")
    assert kills > 0
    assert _depths(store, "S", DEAD, STREAM) == [count, 0, 0]
