"""Several instances of ``run`` for one queue manager: in a directory one, in PostgreSQL the others wait."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import Home, PostgresqlHome, process_here
from commands.disk.lock import PROCESSOR_LOCK, exclusive
from commands.qmgr.store import QueueManagerStore
from tests.commands.cli_runs import run
from tests.postgresql import needs_postgresql
from tests.reliability.takeovers import Instance, Pair
from tests.reliability.workload import CONTROL, STREAM, put
from tests.waiting import PATIENCE_S, until

QUICK = ("--lease", "0.5")


@pytest.fixture
def base(postgresql_home: PostgresqlHome) -> PostgresqlHome:
    """A home in PostgreSQL with QM1."""
    QueueManagerStore.create(postgresql_home, QueueManager("QM1")).close()
    return postgresql_home


@pytest.fixture
def started() -> Iterator[list[Instance]]:
    """Instances that end with the test."""
    all_of_them: list[Instance] = []
    yield all_of_them
    for each in all_of_them:
        each.end()


def verb(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    where = home.url if isinstance(home, PostgresqlHome) else str(home)
    command = [sys.executable, "-m", "commands.cli", *words, "-m", "QM1", "--home", where]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def talk(place: Path, name: str) -> str:
    return (place / f"{name}.out").read_text()


def test_in_a_directory_a_second_one_is_refused(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    with exclusive(tmp_path / "QM1" / PROCESSOR_LOCK, "QM1"):
        refused = verb(tmp_path, "run")
        assert refused.returncode == 2
        assert f"queue manager QM1 is already being run by process {os.getpid()}; end that one first" in refused.stderr


@needs_postgresql
def test_one_that_is_to_end_when_the_queues_are_empty_does_not_wait(base: PostgresqlHome) -> None:
    with QueueManagerStore.open(base, "QM1") as store, store.processor_lock():
        refused = verb(base, "run", "--once")
    assert refused.returncode == 2
    assert f"queue manager QM1 is already being run by process {process_here(os.getpid())}" in refused.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--standby",), "--standby: is gone; in a home in PostgreSQL every run waits to take over; in a directory,"),
        (("--lease", "5"), "--lease: it needs a home in PostgreSQL; in a directory no other run takes over"),
    ],
)
def test_what_a_directory_has_not(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    refused = run("run", "-m", "QM1", "--home", str(tmp_path), *words)
    assert (refused.code, why in refused.talk) == (2, True), refused.talk


def test_the_key_of_what_is_gone_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[run]\nstandby = true\n")
    refused = run("run", "-m", "QM1", "--config", str(tmp_path / "run.toml"))
    assert (refused.code, "run.standby: is gone; in a home in PostgreSQL" in refused.talk) == (2, True), refused.talk


# docs/conformance.md: QM-15
@needs_postgresql
@pytest.mark.rule("QM-15")
@pytest.mark.faults
def test_one_works_and_the_others_wait(base: PostgresqlHome, tmp_path: Path, started: list[Instance]) -> None:
    pair = Pair(base, tmp_path, *QUICK)
    started += pair.all
    shown = json.loads(verb(base, "status", "--json").stdout)["processor"]["instances"]
    assert [(each["mode"], each["pid"]) for each in shown] == [
        ("active", pair.active.pid),
        ("standby", pair.standby.pid),
    ]
    assert f"Process {process_here(pair.standby.pid)}: running as standby" in verb(base, "status").stdout
    assert f"running as standby; process {process_here(pair.active.pid)} is active" in talk(tmp_path, "instance-2")
    os.kill(pair.standby.pid, signal.SIGTERM)
    assert pair.standby.process.wait(PATIENCE_S) == 0, "one that waits and is asked to end has nothing to do"
    assert not pair.active.has_ended


# docs/conformance.md: QM-16, QM-17
@needs_postgresql
@pytest.mark.rule("QM-16", "QM-17")
@pytest.mark.faults
@pytest.mark.parametrize("kind", ["stop", "stop supervisor", "stop worker"])
def test_an_instance_that_was_stopped_does_nothing_more_and_waits(
    base: PostgresqlHome, tmp_path: Path, started: list[Instance], kind: str
) -> None:
    pair = Pair(base, tmp_path, *QUICK)
    started += pair.all
    old_one = pair.active
    pair.take(kind)
    with QueueManagerStore.open(base, "QM1") as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("Q"))
            put(unit, CONTROL, "<Command>RegSub</Command><Topic>#</Topic><QName>Q</QName>")
            put(unit, STREAM, "<Command>Publish</Command><Topic>t</Topic>")
        until(lambda: store.depth("Q") == 1, "the new active instance to deliver")
        assert pair.bring_back(), "it goes on, and waits"
        assert store.depth("Q") == 1
    events = [json.loads(line) for line in old_one.log.read_text().splitlines()]
    (lost,) = [event for event in events if "AMQ7279E" in event.get("ids", ())]
    assert "another instance has taken over" in str(lost["text"])
    assert "another instance has taken over" in talk(tmp_path, "instance-1")


@needs_postgresql
@pytest.mark.nightly
@pytest.mark.faults
def test_one_that_waits_answers_probes_as_one(base: PostgresqlHome, tmp_path: Path, started: list[Instance]) -> None:
    pytest.importorskip("prometheus_client")
    started.append(Instance(base, tmp_path, "active", *QUICK))
    until(lambda: "waiting for commands" in talk(tmp_path, "active"), "the first instance")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    started.append(Instance(base, tmp_path, "standby", *QUICK, "--metrics", str(port)))
    until(lambda: "running as standby" in talk(tmp_path, "standby"), "the standby")

    def ask(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    status, body = ask("/readyz")
    expected = {
        "ready": False,
        "reasons": [f"standby: process {process_here(started[0].pid)} is active"],
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
