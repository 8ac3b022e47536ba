"""``run --standby`` as a person runs it: who waits, who is refused, what it says, and what it does to a stopped one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.disk.lock import PROCESSOR_LOCK, HolderLock, exclusive
from commands.qmgr.store import QueueManagerStore, StoreBusyError
from commands.running.lease import read_lease
from tests.commands.cli_runs import run
from tests.commands.listener.mqi_client import MqiClient
from tests.commands.qmgr.test_store_migration import old
from tests.reliability.takeovers import Instance, Pair
from tests.reliability.workload import CONTROL, STREAM, put
from tests.waiting import until

pytestmark = pytest.mark.faults

QUICK = ("--lease", "0.5")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    return tmp_path


@pytest.fixture
def started() -> Iterator[list[Instance]]:
    """Instances that end with the test."""
    all_of_them: list[Instance] = []
    yield all_of_them
    for each in all_of_them:
        each.end()


def verb(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "commands.cli", *words, "-m", "QM1", "--home", str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def status(home: Path, *words: str) -> str:
    return run("status", "-m", "QM1", "--home", str(home), *words).out


def talk(home: Path, name: str) -> str:
    return (home / f"{name}.out").read_text()


def events(instance: Instance) -> list[dict[str, object]]:
    return [json.loads(line) for line in instance.log.read_text().splitlines()]


# docs/conformance.md: QM-15
@pytest.mark.rule("QM-15")
def test_one_works_and_one_waits(home: Path, started: list[Instance]) -> None:
    pair = Pair(home, *QUICK)
    started += pair.all
    shown = json.loads(status(home, "--json"))["processor"]["instances"]
    assert [(each["mode"], each["pid"]) for each in shown] == [
        ("active", pair.active.pid),
        ("standby", pair.standby.pid),
    ]
    assert f"Process {pair.standby.pid}: running as standby" in status(home)
    assert f"running as standby; process {pair.active.pid} is active" in talk(home, "instance-2")
    for words in (("run",), ("run", "--standby")):
        refused = verb(home, *words)
        assert (refused.returncode, str(pair.active.pid) in refused.stderr) == (2, True), words
    assert f"process {pair.standby.pid} is standby" in refused.stderr
    os.kill(pair.standby.pid, signal.SIGTERM)
    assert pair.standby.process.wait(30) == 0, "a standby that is asked to end has nothing to do"
    assert not pair.active.has_ended


# docs/conformance.md: QM-16
@pytest.mark.rule("QM-16")
def test_an_instance_that_was_stopped_does_nothing_more(home: Path, started: list[Instance]) -> None:
    pair = Pair(home, *QUICK)
    started += pair.all
    old_one = pair.active
    pair.take("stop")
    with QueueManagerStore.open(home, "QM1") as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("Q"))
            put(unit, CONTROL, "<Command>RegSub</Command><Topic>#</Topic><QName>Q</QName>")
            put(unit, STREAM, "<Command>Publish</Command><Topic>t</Topic>")
        until(lambda: store.depth("Q") == 1, "the new active instance to deliver")
        assert pair.bring_back(), "it goes on, as the standby"
        assert store.depth("Q") == 1
    (lost,) = [event for event in events(old_one) if "AMQ7279E" in event.get("ids", ())]  # type: ignore[operator]
    assert "another instance has taken over" in str(lost["text"])
    assert "another instance has taken over" in talk(home, "instance-1")
    took_over = [event["text"] for event in events(pair.active) if event["level"] == "warning"]
    assert took_over == [f"took over from process {old_one.pid}, which did not renew its lease for 0.5 s"]


# docs/conformance.md: QM-15
@pytest.mark.rule("QM-15")
@pytest.mark.parametrize("kind", ["stop", "stop supervisor", "stop worker"])
def test_an_instance_that_is_stopped_is_not_waited_for_until_its_lease_runs_out(
    home: Path, started: list[Instance], kind: str
) -> None:
    pair = Pair(home, "--lease", "600")
    started += pair.all
    pair.take(kind)
    until(lambda: "waiting for commands" in talk(home, "instance-2"), "the standby to take over")
    (took_over,) = [event["text"] for event in events(pair.standby) if event["level"] == "warning"]
    why = "which did not renew its lease for 1 s" if kind == "stop worker" else "which is stopped"
    assert took_over == f"took over from process {pair.active.pid}, {why}"


STOPPED_INSIDE = """
import os, signal, sys, time
from pathlib import Path
from commands.qmgr.store import Durability, QueueManagerStore
from commands.disk.lock import HolderLock
from commands.disk.lock import PROCESSOR_LOCK
from commands.qmgr.store.opening import take_over
from commands.running.lease import Tenure

home = Path(sys.argv[1])
lock = HolderLock(home / "QM1" / PROCESSOR_LOCK, with_directory=True)
assert lock.take() or sys.argv[2] == "without the lock"
tenure = Tenure(home / "QM1", lock, take_over(home, "QM1", Durability.FULL, 1.0), 0.5)
store = QueueManagerStore.open(home, "QM1", epoch=tenure.epoch)
with store.unit_of_work() as unit:
    unit.put("SYSTEM.BROKER.CONTROL.QUEUE", None, b"never committed")
    print("inside", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.parametrize("how", ["with the lock", "without the lock"])
def test_an_instance_that_was_stopped_inside_a_unit_of_work_is_ended(
    home: Path, started: list[Instance], how: str
) -> None:
    """It has the database, which nothing but its end releases; its unit of work is backed out.

    Without the lock of the processor: it took over itself from one that was held up.
    """
    lock = HolderLock(home / "QM1" / PROCESSOR_LOCK, with_directory=True)
    if how == "without the lock":
        assert lock.take()
    with subprocess.Popen([sys.executable, "-c", STOPPED_INSIDE, str(home), how], stdout=subprocess.PIPE) as stopped:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == b"inside\n"
        started.append(Instance(home, "standby", *QUICK))
        lock.release()
        assert stopped.wait(30) == -signal.SIGKILL
    until(lambda: "waiting for commands" in talk(home, "standby"), "the standby to take over")
    with QueueManagerStore.open(home, "QM1") as store:
        assert store.depth(CONTROL) == 0


def test_beside_an_earlier_version_the_state_is_brought_up_to_date_only_at_the_takeover(
    tmp_path: Path, started: list[Instance]
) -> None:
    path = old(tmp_path, 4)
    before = path.read_bytes()
    with exclusive(path.with_name("run.lock"), "QM1"):
        started.append(Instance(tmp_path, "standby", *QUICK))
        until(lambda: "running as standby" in talk(tmp_path, "standby"), "the standby to wait")
        time.sleep(1.0)  # twice its lease: an earlier version renews none
        assert path.read_bytes() == before
        assert read_lease(path.parent) is None
    until(lambda: "waiting for commands" in talk(tmp_path, "standby"), "the standby to take over")
    with QueueManagerStore.open(tmp_path, "QM1") as store:
        until(lambda: store.depth(STREAM) == 0, "what waited to be processed")
        assert [message.body[-7:] for message in store.browse("BOARD")][-1] == b"waiting"


def test_an_earlier_version_is_told_why_it_cannot_start(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store:
        store.database.connection.execute("PRAGMA user_version = 77")
    refused = verb(home, "run", "--standby")
    assert refused.returncode == 2
    assert "was written by a newer qpubsub (schema 77" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.nightly
def test_a_standby_answers_probes_as_one(home: Path, started: list[Instance]) -> None:
    pytest.importorskip("prometheus_client")
    started.append(Instance(home, "active", *QUICK))
    until(lambda: "waiting for commands" in talk(home, "active"), "the first instance")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    started.append(Instance(home, "standby", *QUICK, "--metrics", str(port)))
    until(lambda: "running as standby" in talk(home, "standby"), "the standby")

    def ask(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    status, body = ask("/readyz")
    expected = {
        "ready": False,
        "reasons": [f"standby: process {started[0].pid} is active"],
        "qmgr": "QM1",
        "phase": "standby",
    }
    assert (status, json.loads(body)) == (503, expected)
    assert ask("/healthz")[0] == 200
    metrics = ask("/metrics")[1]
    assert 'qpubsub_ready{qmgr="QM1"} 0.0' in metrics
    assert "ibmmq_queue_depth" not in metrics, "those of the queue manager are the active instance's"
    os.killpg(started[0].pid, signal.SIGKILL)
    until(lambda: ask("/readyz")[0] == 200, "the standby to be ready as the active instance")


def test_once_and_standby_exclude_each_other(home: Path) -> None:
    refused = run("run", "-m", "QM1", "--home", str(home), "--standby", "--once")
    assert (refused.code, "--standby" in refused.talk) == (2, True)


@pytest.mark.nightly
def test_clients_connect_again_at_the_same_port(home: Path, started: list[Instance]) -> None:
    """Only one process can listen there: so the instance that is stopped is ended."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    pair = Pair(home, *QUICK, "--listen", str(port))
    started += pair.all
    until(lambda: connects(port), "the first instance to listen")
    pair.take("stop supervisor")
    until(lambda: connects(port), "the other one to listen")
    assert pair.active.has_ended
    assert f"listening on 127.0.0.1:{port}" in talk(home, "instance-2")


def connects(port: int) -> bool:
    """Whether a program can connect as to a queue manager."""
    try:
        with MqiClient(port) as client:
            return client.connect() == 0
    except OSError:
        return False


def stop_between_units_of_work(home: Path, group: int) -> None:
    """Stop the instance; one that has the database then would be ended by who takes over."""
    while True:
        os.killpg(group, signal.SIGSTOP)
        try:
            with QueueManagerStore.open(home, "QM1", patience_s=0) as store, store.unit_of_work():
                return
        except StoreBusyError:
            os.killpg(group, signal.SIGCONT)
            time.sleep(0.05)  # stopped again at once, it would not get on


def test_an_instance_that_is_not_to_wait_ends_when_another_one_has_taken_over(
    home: Path, started: list[Instance]
) -> None:
    command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(home), *QUICK]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as alone:
        assert alone.stderr is not None
        assert "waiting for commands" in alone.stderr.readline()
        stop_between_units_of_work(home, alone.pid)
        started.append(Instance(home, "standby", *QUICK))
        until(lambda: "waiting for commands" in talk(home, "standby"), "the standby to take over")
        os.killpg(alone.pid, signal.SIGCONT)
        (said,) = alone.stderr.read().splitlines()
        assert alone.wait(30) == 2
    assert "another instance has taken over" in said
