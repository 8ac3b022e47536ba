"""IBM's own clients against the listener: MQ classes for Java and for JMS, as they come from Maven Central.

CI fetches the classes; they are no part of the project. Where they or Java cannot be had, these tests are skipped.

Rows of docs/conformance.md: LSN-6, LSN-8, LSN-9, LSN-14, LSN-15, LSN-23, LSN-24, LSN-25.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.links.engine.config import ChannelRule, ConnAuth
from commands.listener.passwords import in_users_file, password_hash
from commands.listener.security import Security
from commands.qmgr.store import QueueManagerStore
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient

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


# Channel, queue manager, user, password -> reason, as from a queue manager
REASONS = [
    ("OPEN", "QM1", "", "", 0),
    ("SECRET", "QM1", "alice", "right", 0),
    ("SECRET", "QM1", "alice", "wrong", 2035),
    ("SECRET", "QM1", "carol", "right", 2035),
    ("SECRET", "QM1", "", "", 2035),
    ("NO.ALICE", "QM1", "alice", "right", 2035),
    ("FAR", "QM1", "alice", "right", 2035),
    ("UNKNOWN", "QM1", "", "", 2540),
    ("OPEN", "QM9", "", "", 2058),
]


def test_who_may_not_connect_and_why(classpath: str, tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    users = tmp_path / "users"
    users.write_text(f"alice:{password_hash('right')}\n", encoding="utf-8")
    rules = {
        "OPEN": ChannelRule(),
        "SECRET": ChannelRule(password=True),
        "NO.ALICE": ChannelRule(block_users=("alice",)),
        "FAR": ChannelRule(addresses=("10.0.0.0/8",)),
    }
    with listener_at(tmp_path, Security(rules, in_users_file(users), ConnAuth(faildlay=0))) as port:
        tries = [(port, *row[:-1]) for row in REASONS]
        assert java(classpath, "Connect", *chain(*tries)) == [str(row[-1]) for row in REASONS]
    with listener_at(tmp_path, connections=1) as port, MqiClient(port):
        full, nobody = (port, "OPEN", "QM1", "", ""), (port_of_nobody(), "OPEN", "QM1", "", "")
        assert java(classpath, "Connect", *full, *nobody) == ["2537", "2538"]


def port_of_nobody() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
        return number


def ccdt(path: Path, port: int, sharing: int, heartbeat_s: int) -> str:
    """The URL of a client channel definition table."""
    connection = {"connection": [{"host": "127.0.0.1", "port": port}], "queueManager": "QM1"}
    management = {"heartbeatInterval": heartbeat_s, "sharingConversations": sharing}
    channel = {"name": "A", "type": "clientConnection", "clientConnection": connection}
    path.write_text(json.dumps({"channel": [{**channel, "connectionManagement": management}]}))
    return path.as_uri()


@pytest.mark.parametrize("sharing", [10, 0])
def test_a_program_that_is_quiet_answers_heartbeats(classpath: str, tmp_path: Path, sharing: int) -> None:
    """In both directions, where the connection is shared. Quiet for more than twice the interval would be its end."""
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    with listener_at(tmp_path, heartbeat_s=1) as port:
        url = ccdt(tmp_path / "ccdt.json", port, sharing, 1)
        printed = java(classpath, "Quiet", url, "wait", 2_600, "idle", 2_600)
        assert printed == ["connected", "wait 2033", "depth 0", "done"]


@pytest.mark.parametrize("sharing", [10, 0])
def test_a_program_that_waits_is_told_that_the_queue_manager_ends(classpath: str, tmp_path: Path, sharing: int) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    listener = listener_at(tmp_path, quiesce_s=60)
    url = ccdt(tmp_path / "ccdt.json", listener.__enter__(), sharing, 300)
    command = ["java", "-cp", classpath, "Quiet", url, "wait", "600000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "connected\n"
        listener.__exit__(None, None, None)
        assert program.stdout.read().splitlines() == ["wait 2161", "done"]


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
