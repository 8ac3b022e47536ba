"""IBM's own clients against the listener: MQ classes for Java and for JMS.

Rows of docs/conformance.md: LSN-6, LSN-8, LSN-9, LSN-14, LSN-15, LSN-23, LSN-24, LSN-25, LSN-26, LSN-30, LSN-34,
LSN-39, LSN-40, LSN-41, LSN-42.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from commands.broker.objects import QueueManager
from commands.config.access import in_users_file, password_hash
from commands.config.settings import ChannelRule, ConnAuth
from commands.listener.security import Security
from commands.qmgr.store import QueueManagerStore
from tests.commands.links.mosquitto import listens
from tests.commands.links.mqi.listening import listening
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient
from tests.ibm_java import Client, class_path, compiled, every_client, needs_ibm_java
from tests.quick_java import JAVA
from tests.waiting import PATIENCE_S, until

HERE = Path(__file__).parent / "java"

pytestmark = [pytest.mark.slow, pytest.mark.servers, needs_ibm_java]


@pytest.fixture(scope="session")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the compiled programs and IBM's newest classes are."""
    return compiled(HERE, tmp_path_factory.mktemp("classes"))


@contextmanager
def running(home: Path, sharing: int = 10) -> Iterator[int]:
    """The port of ``qpubsub run --listen`` for a new queue manager QM1 in *home*."""
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    settings = home / "settings.toml"
    settings.write_text(f'[listener]\nlisten = "{number}"\nsharing = {sharing}\n', encoding="utf-8")
    command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--config", str(settings)]
    with subprocess.Popen(command, env={**os.environ, "QPUBSUB_HOME": str(home)}) as run:
        try:
            until(lambda: listens(number), "the listener to begin")
            yield number
        finally:
            run.send_signal(signal.SIGTERM)
            run.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of QM1, which programs share that are killed or told what to do: each has queues and topics of its own."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def port(home: Path) -> Iterator[int]:
    """Where QM1 listens."""
    with running(home) as number:
        yield number


def java(classpath: str, program: str, *arguments: object, within_s: float = 300) -> list[str]:
    """The lines that a program prints."""
    command = [*JAVA, "-cp", classpath, program, *map(str, arguments)]
    made = classpath.partition(":")[0]  # IBM's client leaves logs where it runs
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", timeout=within_s, cwd=made)
    assert done.returncode == 0, done.stdout + done.stderr[:3000]
    return done.stdout.splitlines()


_MODES: Final = ("V1", "V2", "normal")
_PUBLISH_SUBSCRIBE: Final = (
    *(f"got goal {n}" for n in range(3)),
    "selected goal 2, nothing",
    "no local nothing",
    *(f"durable goal {n}" for n in range(3)),
    "later while away",
    "closed",
)
PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "BaseClasses PORT": (
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
    ),
    "PcfAgent PORT": (
        "connected to QM1",
        "pinged",
        "name QM1",
        "queue RAIN, type 1, depth 2 of 7",
        "name RAIN",
        "status: depth 2",
        "connected by APP.SVRCONN",
        "topic Weather",
        "subscription to Weather/Rain/#, to RAIN",
        "unknown 2085",
        "no such command 3007",
        "no performance events 3224",
        "running true, connected true",
        "channel SYSTEM.DEF.SVRCONN",
        "authentication SYSTEM.DEFAULT.AUTHINFO.IDPWOS",
        "rule for 10.*",
        "listener at 1499",
        "AMQ8409: Display Queue details. QUEUE(RAIN) TYPE(QLOCAL) MAXDEPTH(7)",
        "deleted",
        "closed",
    ),
    "Convert PORT": (
        "500 5 Grüße",
        "819 546 <psc><Topic>ä</Topic></psc> 819 für",
        "warning 1 2119",
        "closed",
    ),
    "PublishSubscribe PORT V1": _PUBLISH_SUBSCRIBE,
    "PublishSubscribe PORT V2": _PUBLISH_SUBSCRIBE,
}
"""Programs, and what they print. LSN-8, LSN-9, LSN-34, LSN-41."""
SHARING_PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "PointToPoint PORT": (
        "browsed 3",
        "selected text 1",
        "got text 0",
        "got text 2",
        "wait nothing, no wait nothing",
        "uncommitted nothing",
        "committed in a transaction",
        "again in a transaction, redelivered true",
        "listener true heard0 heard1 heard2",
        "delayed, due true, true",
        "temporary true",
        "closed",
    ),
    "PublishSubscribe PORT normal": _PUBLISH_SUBSCRIBE,
    "NormalMode PORT": (
        *(*("shared one, two, nothing", "still three"),) * 2,
        "in use 2429",
        "late retained",
        "heard committed",
        "closed",
    ),
    "Topics PORT": (
        "managed one",
        "durable while away",
        "removed 2428",
        "unmanaged kept, 1",
        "done",
    ),
    "AsyncPuts PORT": (
        "inhibited 0 0",
        "0, 3 done, 0 failed",
        "inhibited 1 1",
        "2051, 0 done, 3 failed",
        "0, 0 done, 0 failed",
        "get 2 2016",
        "get 2 2016",
        "trigger 2075",
        "depth 3",
    ),
    "Reach PORT": (*(f"{got} got from {put}" for put in _MODES for got in _MODES), "closed"),
}
"""Those that need a shared connection: normal mode of JMS, and what is like it. LSN-14, LSN-15, LSN-39."""
# Clients before 9.3 look for the MQSRO in the reply to MQSUBRQ 4 bytes further on than later ones.
_MISREAD: Final = "unmanaged kept, 2438"
SEVERAL_PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "Sharing PORT": (
        "small 1 2080",
        "large 0123456789",
        "come and go null, heard true",
        "put and got 500",
        *(f"pool of a {of} true" for of in ("queue", "topic", "durable")),
        *("received null", "closed true") * 2,
        "acknowledged true",
    ),
}
"""Of several conversations on a connection. LSN-40, LSN-42."""
ALL_PROGRAMS: Final = PROGRAMS | SHARING_PROGRAMS | SEVERAL_PROGRAMS


@pytest.mark.rule("LSN-8", "LSN-9", "LSN-14", "LSN-15", "LSN-34", "LSN-39", "LSN-40", "LSN-41", "LSN-42", "APP-1")
@pytest.mark.parametrize(
    ("client", "sharing", "programs"),
    [
        param
        for sharing, programs in ((0, PROGRAMS), (1, PROGRAMS | SHARING_PROGRAMS), (10, ALL_PROGRAMS))
        for param in every_client(sharing, programs)
    ],
)
def test_what_programs_print(
    client: Client,
    sharing: int,
    programs: dict[str, tuple[str, ...]],
    classpath: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """All of a client in one virtual machine, with so many conversations on a connection; no subscription is left."""
    if client.is_jakarta:
        classpath = compiled(HERE, tmp_path_factory.mktemp("jakarta"), client)
    else:
        classpath = class_path(Path(classpath.partition(":")[0]), client)
    with running(tmp_path, sharing) as port:
        words = " -- ".join(programs).replace("PORT", str(port)).split(" ")
        printed: dict[str, list[str]] = {}
        for line in java(classpath, "Suite", *words):
            if line.startswith("== "):
                lines = printed[line[3:].replace(str(port), "PORT")] = []
            else:
                lines.append(line)
        expected = {program: list(lines) for program, lines in programs.items()}
        if client.version[:3] in ("9.0", "9.1", "9.2") and "Topics PORT" in expected:
            expected["Topics PORT"][3] = _MISREAD
        assert printed == expected
        assert subscriptions(tmp_path) == []


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


@pytest.mark.rule("LSN-25")
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


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("sharing", [10, 0])
def test_a_program_that_is_quiet_answers_heartbeats(classpath: str, tmp_path: Path, sharing: int) -> None:
    """In both directions, where the connection is shared. Quiet for more than twice the interval would be its end."""
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    with listener_at(tmp_path, heartbeat_s=1) as port:
        url = ccdt(tmp_path / "ccdt.json", port, sharing, 1)
        steps = {"wait": "wait 2033", "idle": "depth 0"} if sharing else {"wait": "wait 2033"}
        printed = java(classpath, "Quiet", url, *chain(*((step, 2_600) for step in steps)))
        assert printed == ["connected", *steps.values(), "done"]


@pytest.mark.parametrize("sharing", [10, 0])
def test_a_program_that_waits_is_told_that_the_queue_manager_ends(classpath: str, tmp_path: Path, sharing: int) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    listener = listener_at(tmp_path, quiesce_s=60)
    url = ccdt(tmp_path / "ccdt.json", listener.__enter__(), sharing, 300)
    command = [*JAVA, "-cp", classpath, "Quiet", url, "wait", "600000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "connected\n"
        listener.__exit__(None, None, None)
        assert program.stdout.read().splitlines() == ["wait 2161", "done"]


def subscriptions(home: Path) -> list[str]:
    """The topic strings that are subscribed to, once the commands that wait are done."""
    with QueueManagerStore.open(home, "QM1") as store:
        until(lambda: not store.depth("SYSTEM.BROKER.CONTROL.QUEUE"))
        return [each.topic_string for each in store.load_state()[1]]


@pytest.mark.rule("LSN-9")
@pytest.mark.parametrize("mode", [pytest.param("V1", marks=pytest.mark.nightly), "V2", "normal"])
def test_the_subscription_of_a_program_that_dies_goes(
    port: int, classpath: str, mode: str, home: Path, tmp_path: Path
) -> None:
    """In queued mode the client has left its DeregSub with the queue manager; in normal mode the managed queue goes."""
    command = [*JAVA, "-cp", classpath, "PublishSubscribe", str(port), mode, "die"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "subscribed\n"
        until(lambda: subscriptions(home) == ["Sport/Soccer"])
        program.kill()
    until(lambda: not subscriptions(home))


class Talking:
    """A program that says lines and is told when to go on."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def says(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()

    def told(self) -> None:
        assert self.process.stdin is not None
        print("", file=self.process.stdin, flush=True)


@contextmanager
def talking(*command: str) -> Iterator[Talking]:
    """A program, which is killed at the end, or when that does not come."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        patience = threading.Timer(100, process.kill)
        patience.start()
        try:
            yield Talking(process)
        finally:
            patience.cancel()
            process.kill()


@pytest.mark.rule("LSN-26")
@pytest.mark.parametrize("version", [pytest.param("V1", marks=pytest.mark.nightly), "V2"])
def test_clones_share_a_subscription_and_what_one_that_dies_had_taken(
    port: int, classpath: str, version: str, home: Path
) -> None:
    """Durable, with a selector and noLocal. Each publication goes to one of the two; none is lost with the first."""
    command = [*JAVA, "-cp", classpath, "Clones", str(port), version]
    with talking(*command, "rest") as rest:
        # One after the other: IBM's classes give all clones one identity, and two that join at a time would get 3157.
        assert rest.says() == "subscribed"
        with talking(*command, "take") as take:
            assert take.says() == "subscribed"
            rest.told()
            assert rest.says() == "published"
            taken = [take.says() for _ in range(2)]
            assert all(re.fullmatch("took goal [1-5]", line) for line in taken), taken
        rest.told()
        assert rest.says() == "got goal 1, goal 2, goal 3, goal 4, goal 5, nothing"
        assert rest.says() == "closed"
    assert subscriptions(home) == []


# What each crash leaves is tried in the gate without Java, by test_xa.
@pytest.mark.nightly
@pytest.mark.rule("LSN-48")
@pytest.mark.parametrize(("outcome", "left"), [("commit", "nothing, one"), ("rollback", "one, nothing")])
def test_a_transaction_manager_finds_everything_once_after_kill_9(
    classpath: str, tmp_path: Path, outcome: str, left: str
) -> None:
    """The queue manager is killed after each step that IBM's XAResource takes."""
    with (
        listening(tmp_path, {"XA.IN": {}, "XA.OUT": {}}) as qmgr,
        talking(*JAVA, "-cp", classpath, "Xa", str(qmgr.port), outcome) as program,
    ):
        for step in range(1, 6):
            assert program.says() == f"step {step}"
            qmgr.kill()
            qmgr.start()
            program.told()
            if step == 4:
                assert program.says() == "again -4"
            assert program.says() == f"{int(step == 4)} in doubt, {left if step >= 4 else 'one, nothing'}"


@pytest.mark.nightly
@pytest.mark.measured
@pytest.mark.rule("LSN-39")
@pytest.mark.parametrize("sharing", [1, 10, 100])
def test_sessions_come_and_go_for_minutes_while_others_receive(classpath: str, tmp_path: Path, sharing: int) -> None:
    seconds = int(os.environ.get("QPUBSUB_TEST_SECONDS", "200"))
    with running(tmp_path, sharing) as number:
        (printed,) = java(classpath, "Sharing", number, seconds, sharing, within_s=2 * seconds + 60)
        found = re.fullmatch(r"(\d+) sessions came and went, (\d+) messages of (\d+) were heard, null", printed)
        assert found is not None, printed
        print(f"{sharing} conversations: {printed}")
        assert found[2] == found[3]
