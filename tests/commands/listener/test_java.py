"""IBM's own clients against the listener: MQ classes for Java and for JMS, as they come from Maven Central.

CI fetches the classes; they are no part of the project. Where they or Java cannot be had, these tests are skipped.

Rows of docs/conformance.md: LSN-6, LSN-8, LSN-9, LSN-14, LSN-15.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.links.engine.config import ChannelRule
from commands.listener.security import Security, password_hash
from commands.qmgr.store import QueueManagerStore
from tests.commands.listener.conftest import listener_at

HERE = Path(__file__).parent / "java"
JARS = sorted((Path(__file__).parents[3] / ".venv" / "peers" / "java").glob("*.jar"))
IBM = any(jar.name.startswith("com.ibm.mq.allclient") for jar in JARS)
missing = next(
    (what for what, there in (("javac", shutil.which("javac")), ("IBM's client", IBM)) if not there),
    None,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.servers,
    pytest.mark.skipif(missing is not None, reason=f"{missing} is not here: .ci/run fetches it"),
]


@pytest.fixture(scope="session")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the compiled programs and IBM's classes are."""
    made = tmp_path_factory.mktemp("classes")
    path = ":".join(map(str, (made, *JARS)))
    subprocess.run(["javac", "-cp", path, "-d", str(made), *map(str, HERE.glob("*.java"))], check=True, timeout=300)
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of QM1, which all programs share: each has queues and topics of its own."""
    made = tmp_path_factory.mktemp("home")
    QueueManagerStore.create(made, QueueManager("QM1")).close()
    return made


@pytest.fixture(scope="module")
def port(home: Path) -> Iterator[int]:
    """``qpubsub run --listen`` for QM1."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--listen", str(number)]
    with subprocess.Popen(command, env={**os.environ, "QPUBSUB_HOME": str(home)}) as run:
        try:
            _wait_for(number)
            yield number
        finally:
            run.send_signal(signal.SIGTERM)
            run.wait(30)


def _wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the listener did not begin")


def java(classpath: str, program: str, *arguments: object) -> list[str]:
    """The lines that a program prints."""
    command = ["java", "-cp", classpath, program, *map(str, arguments)]
    made = classpath.partition(":")[0]  # IBM's client leaves logs where it runs
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=made)
    assert done.returncode == 0, done.stdout + done.stderr[:3000]
    return done.stdout.splitlines()


def test_base_classes(port: int, classpath: str) -> None:
    assert java(classpath, "BaseClasses", port) == [
        "connected",
        "depth 5",
        "large 200000",
        "matched hello 2",
        "got hello 0",
        "again hello 0, backout count 1",
        "browsed hello 1",
        "got hello 1",
        "got hello 3",
        "end 2033",
        "unknown 2085",
        "dynamic true",
        "done",
    ]


def test_jms_point_to_point(port: int, classpath: str) -> None:
    assert java(classpath, "PointToPoint", port) == [
        "browsed 3",
        "selected text 1",
        "got text 0",
        "got text 2",
        "wait nothing, no wait nothing",
        "uncommitted nothing",
        "committed in a transaction",
        "again in a transaction, redelivered true",
        "listener true heard0 heard1 heard2",
        "temporary true",
        "closed",
    ]


@pytest.mark.parametrize("mode", ["V1", "V2", "normal"])
def test_jms_publish_subscribe(port: int, classpath: str, mode: str, home: Path) -> None:
    assert java(classpath, "PublishSubscribe", port, mode) == [
        *(f"got goal {n}" for n in range(3)),
        "selected goal 2, nothing",
        "no local nothing",
        *(f"durable goal {n}" for n in range(3)),
        "later while away",
        "closed",
    ]
    assert subscriptions(home) == []


def test_jms_in_normal_mode(port: int, classpath: str, home: Path) -> None:
    assert java(classpath, "NormalMode", port) == [
        *(*("shared one, two, nothing", "still three"),) * 2,
        "in use 2429",
        "late retained",
        "heard committed",
        "closed",
    ]
    assert subscriptions(home) == []


def test_programs_in_all_modes_reach_each_other(port: int, classpath: str) -> None:
    modes = ("V1", "V2", "normal")
    assert java(classpath, "Reach", port) == [*(f"{got} got from {put}" for put in modes for got in modes), "closed"]


def test_topics_of_base_classes(port: int, classpath: str, home: Path) -> None:
    assert java(classpath, "Topics", port) == [
        "managed one",
        "durable while away",
        "removed 2428",
        "unmanaged kept, 1",
        "done",
    ]
    assert subscriptions(home) == []


def test_attributes_and_puts_without_an_answer(port: int, classpath: str) -> None:
    assert java(classpath, "AsyncPuts", port) == [
        "inhibited 0 0",
        "0, 3 done, 0 failed",
        "inhibited 1 1",
        "2051, 0 done, 3 failed",
        "0, 0 done, 0 failed",
        "trigger 2067",
        "depth 3",
    ]


def test_a_password_is_read_and_compared(classpath: str, tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    users = tmp_path / "users"
    users.write_text(f"alice:{password_hash('right')}\n", encoding="utf-8")
    with listener_at(tmp_path, Security({"*": ChannelRule(password=True)}, users)) as port:
        assert java(classpath, "Password", port, "alice", "wrong", "right") == ["wrong 2035", "right 0"]
        assert java(classpath, "Password", port, "bob", "right") == ["right 2035"]


def subscriptions(home: Path) -> list[str]:
    """The topic strings that are subscribed to, once the commands that wait are done."""
    with QueueManagerStore.open(home, "QM1") as store:
        end = time.monotonic() + 20
        while store.depth("SYSTEM.BROKER.CONTROL.QUEUE") and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(0.3)
        return [each.topic_string for each in store.load_state()[1]]


@pytest.mark.parametrize("mode", ["V1", "V2", "normal"])
def test_the_subscription_of_a_program_that_dies_goes(
    port: int, classpath: str, mode: str, home: Path, tmp_path: Path
) -> None:
    """In queued mode the client has left its DeregSub with the queue manager; in normal mode the managed queue goes."""
    command = ["java", "-cp", classpath, "PublishSubscribe", str(port), mode, "die"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "subscribed\n"
        assert subscriptions(home) == ["Sport/Soccer"]
        program.kill()
    end = time.monotonic() + 20
    while subscriptions(home) and time.monotonic() < end:
        time.sleep(0.2)
    assert subscriptions(home) == []
