"""IBM's own clients against the listener: MQ classes for Java and for JMS.

Rows of docs/conformance.md: LSN-6, LSN-8, LSN-9, LSN-30, LSN-34.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.listener.security import ChannelRule, Security, password_hash
from commands.qmgr.store import QueueManagerStore
from tests.commands.listener.conftest import listener_at
from tests.ibm_java import compiled, needs_ibm_java

HERE = Path(__file__).parent / "java"

pytestmark = [pytest.mark.slow, pytest.mark.servers, needs_ibm_java]


@pytest.fixture(scope="session")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the compiled programs and IBM's classes are."""
    return compiled(HERE, tmp_path_factory.mktemp("classes"))


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """``qpubsub run --listen`` for QM1."""
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--listen", str(number)]
    with subprocess.Popen(command, env={**os.environ, "QPUBSUB_HOME": str(tmp_path)}) as run:
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
    command = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", classpath, program]
    command += map(str, arguments)
    # IBM's client writes its logs where it is started.
    where = Path(classpath.split(":", maxsplit=1)[0])
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", timeout=300, cwd=where)
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


def test_pcf_agent(port: int, classpath: str) -> None:
    """The model queue of the responses, the command server, and the conversion of the responses."""
    assert java(classpath, "PcfAgent", port) == [
        "connected to QM1",
        "pinged",
        "name QM1",
        "queue GOALS, type 1, depth 2 of 7",
        "name GOALS",
        "status: depth 2",
        "topic Sport",
        "subscription to Sport/Soccer/#, to GOALS",
        "unknown 2085",
        "no such command 3007",
        "closed",
    ]


def test_messages_are_converted(port: int, classpath: str) -> None:
    assert java(classpath, "Convert", port) == [
        "500 5 Grüße",
        "819 546 <psc><Topic>ä</Topic></psc> 819 für",
        "warning 1 2119",
        "closed",
    ]


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_jms_queued_publish_subscribe(port: int, classpath: str, version: str, tmp_path: Path) -> None:
    assert java(classpath, "PublishSubscribe", port, version) == [
        *(f"got goal {n}" for n in range(3)),
        "selected goal 2, nothing",
        "no local nothing",
        *(f"durable goal {n}" for n in range(3)),
        "later while away",
        "closed",
    ]
    assert subscriptions(tmp_path) == []


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


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_the_subscription_of_a_program_that_dies_goes(port: int, classpath: str, version: str, tmp_path: Path) -> None:
    """The client has left its DeregSub with the queue manager, which puts it when the connection breaks."""
    command = ["java", "-cp", classpath, "PublishSubscribe", str(port), version, "die"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "subscribed\n"
        assert subscriptions(tmp_path) == ["Sport/Soccer"]
        program.kill()
    end = time.monotonic() + 20
    while subscriptions(tmp_path) and time.monotonic() < end:
        time.sleep(0.2)
    assert subscriptions(tmp_path) == []
