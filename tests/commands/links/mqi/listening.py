"""A queue manager for ``mq://``: a listener in a process, which may be killed, and told what to do wrong.

It reads no queued commands (PSMODE COMPAT), as the queue manager of a bridge; for its topics it has to (psmode 2).
``ListenerStandIn`` is what tests have of it, and does what ``StandIn`` does for ``ibmmq://``.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, Final
from unittest import mock

from commands.broker.authority import no_groups
from commands.broker.objects import QueueManager
from commands.client.pcf import MODEL_QUEUE
from commands.config.settings import ChannelRule
from commands.listener.conversation import Conversation
from commands.listener.security import Security
from commands.listener.server import Listener, ListenerOptions, serve
from commands.mqsc.script import statements
from commands.qmgr.admin import PcfCommandServer
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.mqi.subscription_server import SubscriptionServer
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.queue_manager import utc_now
from commands.running.mqsc_scripts import runner_of
from rfh2.pcf_admin_names import MQOT_TOPIC
from tests.commands.links.mqi.harness import SYSTEM_QUEUES, StandIn, stand_in
from tests.waiting import PATIENCE_S, until

# The calls as ``StandIn`` names them, and the method of a conversation that carries each out.
OPERATIONS: Final = {
    "C": "connect",
    "O": "open",
    "X": "close",
    "G": "get",
    "P": "put",
    "1": "put",
    "Q": "inquire",
    "U": "subscribe",
    "R": "request_retained",
    "M": "commit",
    "B": "backout",
}
_ATTRIBUTES: Final[dict[str, Callable[[Any], str]]] = {
    "put_inhibited": lambda on: f"PUT({'DISABLED' if on else 'ENABLED'})",
    "get_inhibited": lambda on: f"GET({'DISABLED' if on else 'ENABLED'})",
    "max_depth": lambda n: f"MAXDEPTH({n})",
    "max_length": lambda n: f"MAXMSGL({n})",
    "bothresh": lambda n: f"BOTHRESH({n})",
    "usage": lambda usage: f"USAGE({usage})",
    "boqname": lambda name: f"BOQNAME('{name}')",
    "def_persistence": lambda on: f"DEFPSIST({'YES' if on else 'NO'})",
}
_OF_QMGR: Final[dict[str, Callable[[Any], str]]] = {
    "psmode": lambda n: f"PSMODE({('DISABLED', 'COMPAT', 'ENABLED')[n]})",
    "max_umsgs": lambda n: f"MAXUMSGS({n})",
    "deadq": lambda name: f"DEADQ('{name}')" if name else "DEADQ(' ')",
}


class ListenerStandIn:
    """One queue manager QM1, with the queues that the bridge needs and *queues* more."""

    def __init__(self, directory: Path, queues: dict[str, dict[str, Any]] | None = None, **definitions: Any) -> None:
        self.home, self._control = directory / "home", directory / "control"
        directory.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._log = directory / "log"
        QueueManagerStore.create(self.home, QueueManager("QM1", strict=True)).close()
        self._mqsc(
            "ALTER QMGR PSMODE(COMPAT) DEADQ('SYSTEM.DEAD.LETTER.QUEUE')",
            *(f"DEFINE QLOCAL('{name}') REPLACE MAXMSGL(104857600)" for name in SYSTEM_QUEUES),
        )
        every = queues or {}
        self._dynamic = [name for name, attributes in every.items() if attributes.get("kind") == "dynamic"]
        plain = {name: attributes for name, attributes in every.items() if name not in self._dynamic}
        self._alter({"define": definitions, "alter": plain})
        self._process: ForkServerProcess | None = None

    @property
    def url(self) -> str:
        return f"mq://127.0.0.1:{self.port}/QM1?channel=C"

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def start(self) -> None:
        self._process = warm().Process(target=main, args=(self.home, self.port, self._control, self._log), daemon=True)
        self._process.start()
        until(self._answers, "the listener to answer")
        if self._dynamic:
            self.tell(make=self._dynamic)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.join()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self.kill()

    @property
    def is_dead(self) -> bool:
        return self._process is None or not self._process.is_alive()

    def tell(self, **wanted: Any) -> dict[str, Any]:
        """Tell it something; it shows its state."""
        self._alter(wanted)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(str(self._control))
            client.sendall(json.dumps(wanted).encode() + b"\n")
            shown: dict[str, Any] = json.loads(client.makefile().readline())
        with QueueManagerStore.open(self.home, "QM1") as store:
            _, subscriptions, retained = store.load_state()
        names = [{"name": each.name, "topic": each.topic_string} for each in subscriptions]
        return shown | {"subscriptions": names, "retained": sorted(each.topic_string for each in retained)}

    def fault(self, op: str, reason: int | None = None, **how: Any) -> None:
        """The next call *op* ends with *reason*; without one the connection breaks (when: before or after), or all
        ends (end)."""
        self.tell(fault={"op": op, **({} if reason is None else {"reason": reason}), **how})

    def depth(self, queue: str) -> int:
        with QueueManagerStore.open(self.home, "QM1") as store:
            return store.depth(queue) if store.find_queue(queue) is not None else 0

    def _alter(self, wanted: dict[str, Any]) -> None:
        for name, attributes in wanted.get("alter", {}).items():
            words = " ".join(_ATTRIBUTES[key](value) for key, value in attributes.items() if key != "kind")
            self._mqsc(f"DEFINE QLOCAL('{name}') NOREPLACE", may_fail=True)
            if words:
                self._mqsc(f"ALTER QLOCAL('{name}') {words}")
        for name in wanted.get("delete", ()):
            if name in self._dynamic:
                self._dynamic.remove(name)
                continue
            self._mqsc(f"DELETE QLOCAL('{name}') PURGE")
        for key, value in wanted.get("define", {}).items():
            self._mqsc(f"ALTER QMGR {_OF_QMGR[key](value)}")

    def _mqsc(self, *texts: str, may_fail: bool = False) -> None:
        with QueueManagerStore.open(self.home, "QM1") as store:
            for _, answer in runner_of(store, no_groups).run(list(statements(texts))):
                assert answer.ok or may_fail, (texts, list(answer.printed()))

    def _answers(self) -> bool:
        assert not self.is_dead, self._log.read_text()
        try:
            self.tell()
        except OSError:
            return False
        return True


@cache
def warm() -> ForkServerContext:
    """Processes that need not import this module: each is a copy of one that has."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    # It begins in this directory, which may be any, and has the variables of this moment.
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()
    return context


@contextmanager
def listening(
    directory: Path, queues: dict[str, dict[str, Any]] | None = None, **definitions: Any
) -> Iterator[ListenerStandIn]:
    """A running queue manager that is reached by ``mq://``."""
    running = ListenerStandIn(directory, queues, **definitions)
    running.start()
    try:
        yield running
    finally:
        running.stop()


Running = StandIn | ListenerStandIn


@contextmanager
def queue_manager(
    kind: str, directory: Path, queues: dict[str, dict[str, Any]] | None = None, **definitions: Any
) -> Iterator[Running]:
    """A running queue manager that is reached by *kind*: ``mq`` or ``ibmmq``."""
    with (listening if kind == "mq" else stand_in)(directory, queues, **definitions) as running:
        yield running


# In the process


class Faults:
    """What is to go wrong, in the order in which it was asked for."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.calls: Counter[str] = Counter()
        self._apps: dict[int, str] = {}

    def asked(self, ops: list[str], when: str, app: str = "") -> None:
        for row in self.rows:
            if row.get("app", app) != app:
                continue
            if row["op"] not in ops or row.get("when", "before") != when:
                continue
            if row.get("skip", 0) > 0:
                row["skip"] -= 1
                continue
            row["times"] = row.get("times", 1) - 1
            if row["times"] <= 0:
                self.rows.remove(row)
            if row.get("end"):
                os.kill(os.getpid(), signal.SIGKILL)
            if "reason" in row:
                raise MqiError(row["reason"], "as the test wants it")
            raise RuntimeError("the connection breaks, as the test wants it")

    def beset(self) -> None:
        """Have them happen."""
        for name in set(OPERATIONS.values()):
            setattr(Conversation, name, self._besetting(name, getattr(Conversation, name)))

    def _besetting(self, name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **keywords: Any) -> Any:
            ops = [op for op, of in OPERATIONS.items() if of == name]
            if name == "put":
                od = arguments[1]
                ops = ["P"] if od is None or od.object_type == MQOT_TOPIC else ["1"]
            if name == "connect":
                self._apps[id(arguments[0])] = arguments[2]
            app = self._apps.get(id(arguments[0]), "")
            self.calls.update(ops)
            self.asked(ops, "before", app)
            found = await method(*arguments, **keywords)
            self.asked(ops, "after", app)
            return found

        return call


def _process_commands(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store:
        processor = Processor(store, utc_now, command_servers=(PcfCommandServer, SubscriptionServer))
        processor.start()
        processor.run(threading.Event(), idle_s=0.05)


def _take_orders(home: Path, control: Path, faults: Faults) -> None:
    control.unlink(missing_ok=True)
    store = QueueManagerStore.open(home, "QM1")
    made: dict[str, Any] = {}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(control))
        server.listen()
        while True:
            client, _ = server.accept()
            with client:
                wanted = json.loads(client.makefile().readline())
                if "fault" in wanted:
                    faults.rows.append(wanted["fault"])
                if wanted.get("clear_faults"):
                    faults.rows.clear()
                for name in wanted.get("make", ()):
                    made[name] = connection = store.connect()
                    connection.open(MODEL_QUEUE, name)
                for name in {*wanted.get("delete", ())} & {*made}:
                    made.pop(name).disconnect()
                client.sendall(json.dumps({"faults": faults.rows, "calls": faults.calls}).encode() + b"\n")


def main(home: Path, port: int, control: Path, log: Path) -> None:
    with log.open("ab") as file:
        for standard in (1, 2):
            os.dup2(file.fileno(), standard)
    faults = Faults()
    faults.beset()
    threading.Thread(target=_process_commands, args=(home,), daemon=True).start()
    options = ListenerOptions(port=port, connections=200, connections_of_address=200, quiesce_s=0)
    listener = Listener(options, "QM1", lambda: QueueManagerStore.open(home, "QM1"), Security({"*": ChannelRule()}))

    def opened(_port: int) -> None:
        threading.Thread(target=_take_orders, args=(home, control, faults), daemon=True).start()

    asyncio.run(serve(listener, asyncio.Event(), opened))
