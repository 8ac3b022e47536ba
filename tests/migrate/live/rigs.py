"""One queue manager, reached in three ways: embedded, by REST of the console, and by PCF through a stand-in.

What administers and processes is always an embedded queue manager; in the last two a server stands before it. A fourth
way, "stub", is REST by a server that can be told to fail.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import ADMIN_COMMAND_QUEUE, CONTROL_QUEUE, DEFAULT_STREAM, QueueManager
from commands.config.settings import QueuesConfig
from commands.config.urls import parse_address
from commands.disk.errors import UnknownQueueError
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.unit import MqUnit
from commands.qmgr.admin import PcfCommandServer
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import StoredMessage
from migrate.live.loading import PROGRESS_QUEUE
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.mqmd import Mqmd
from tests.commands.cli_runs import Ran, run
from tests.commands.console.served import served
from tests.commands.links.mqi.harness import THERE, stand_in
from tests.migrate.legacy_messages import psc, publish, register
from tests.migrate.live.rest_stub import PASSWORD, USER, RestStub, rest_stub
from tests.waiting import PATIENCE_S

URL = "ibmmq://localhost:1414/QM1?channel=C"
WAYS = [
    "embedded",
    "rest",
    pytest.param(
        "pcf",
        marks=[
            pytest.mark.servers,
            pytest.mark.skipif(not THERE, reason="a C compiler and the package ibmmq are needed"),
        ],
    ),
]


def legacy_messages() -> list[CapturedMessage]:
    """Streams, names, identities, wildcards, retained publications: commands of version 6 programs."""
    return [
        register(1, "Soccer/*", "Sport", queue_name="A.Q", user="anne"),
        register(2, "Soccer/Results", "Sport", queue_name="B.Q", name="evening", user="fred", options=["Local"]),
        register(3, "Prices/?", queue_name="C.Q", user="desk", correl_id=b"C" * 24, options=["CorrelAsId"]),
        psc(4, "<Command>RegSub</Command><Topic>News</Topic><SubName>n</SubName>", reply_to="D.Q", user="anne"),
        psc(5, "<Command>RegSub</Command><Topic>Weather/*</Topic>", reply_to="E.Q", user="anne"),
        publish(6, "Soccer/Results", "Sport", b"2:1", user="feed"),
        publish(7, "News", data=b"today", user="feed"),
        publish(8, "Prices/A", data=b"100", user="feed"),
    ]


def write_legacy(directory: Path) -> Path:
    path = directory / "capture.jsonl"
    with path.open("wb") as stream:
        write_captures(legacy_messages(), stream, "jsonl")
    return path


def create(home: Path, psmode: str = "COMPAT") -> None:
    QueueManagerStore.create(home, QueueManager("QM1", psmode=psmode)).close()


@dataclass
class Rig:
    """A queue manager in *home*. options: how the verbs reach it. stub: of REST."""

    way: str
    home: Path
    options: list[str] = field(default_factory=list)
    stub: RestStub | None = None

    def __call__(self, verb: str, *words: str) -> Ran:
        return run(verb, "-m", "QM1", "--home", str(self.home), *self.options, *words)

    def mqsc(self, script: str) -> None:
        ran = run("mqsc", "-m", "QM1", "--home", str(self.home), stdin=script)
        assert ran.code == 0, ran.out


@contextmanager
def processing(home: Path) -> Iterator[None]:
    """A command processor at work in this process, with its command server."""
    stop = threading.Event()

    def work() -> None:
        with QueueManagerStore.open(home, "QM1") as store, store.processor_lock():
            processor = Processor(store, lambda: datetime.now(UTC), command_servers=[PcfCommandServer])
            processor.start()
            processor.run(stop, idle_s=0.02)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)


@contextmanager
def rig(
    way: str, directory: Path, *, processes: bool = True, prepare: Callable[[Path], None] = lambda _home: None
) -> Iterator[Rig]:
    """The queue manager, reached in this way. processes: a processor is at work. prepare: called before it starts."""
    home = directory / "live"
    create(home)
    prepare(home)
    made = Rig(way, home)
    if way in ("rest", "stub"):
        config = directory / "live.toml"
        config.write_text(f'[admin]\nuser = "{USER}"\npassword_file = "{directory}/secret"\n')
        (directory / "secret").write_text(PASSWORD)
        (directory / "secret").chmod(0o600)
        with _rest(made) as url, _maybe(processing(home), processes):
            made.options = ["--admin", url, "--config", str(config)]
            yield made
    elif way == "pcf":
        queues = {name: {} for name in ("Sport", PROGRESS_QUEUE)}
        with stand_in(directory / "mq", queues, command_server=False), moving(home), processing(home):
            made.options = ["--queues", URL]
            yield made
    else:
        with _maybe(processing(home), processes):
            yield made


@contextmanager
def _rest(made: Rig) -> Iterator[str]:
    if made.way == "stub":
        with rest_stub(made.home) as made.stub:
            yield made.stub.url
    else:
        with served(made.home, write=True, is_right=lambda user, word: (user, word) == (USER, PASSWORD)) as url:
            yield url


@contextmanager
def _maybe(context: object, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    with context:  # type: ignore[attr-defined]
        yield


@contextmanager
def moving(home: Path) -> Iterator[None]:
    """Moves commands and publications from the stand-in's queues to the embedded ones, and the answers back."""
    stop = threading.Event()
    thread = threading.Thread(target=lambda: _move(home, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)


_DATA = (CONTROL_QUEUE, "Sport", DEFAULT_STREAM)


def _all(unit: MqUnit, queue: str) -> Iterator[StoredMessage]:
    while (message := unit.get(queue)) is not None:
        yield message


def _move(home: Path, stop: threading.Event) -> None:
    messages = MqMessages(parse_address(URL, "--queues"), QueuesConfig(), "mover")
    awaited: set[str] = set()
    with QueueManagerStore.open(home, "QM1") as store:
        while not stop.is_set():
            with messages.unit_of_work() as theirs, store.unit_of_work() as ours:
                command = theirs.get(ADMIN_COMMAND_QUEUE)
                # What was put before the command arrives before it.
                moved = [message for name in _DATA for message in _all(theirs, name)]
                for message in (*moved, *([command] if command is not None else [])):
                    ours.put(message.queue, message.md, message.body, user=message.user)
                    awaited.add(Mqmd.decode(message.md).reply_to_q.strip())
            with messages.unit_of_work() as theirs, store.unit_of_work() as ours:
                for name in [name for name in awaited if name.startswith("QPUBSUB.")]:
                    with suppress(UnknownQueueError):
                        for answer in _all(ours, name):
                            theirs.put(name, answer.md, answer.body)
            stop.wait(0.002)
    messages.close()
