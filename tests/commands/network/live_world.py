"""Several embedded queue managers of one home, connected by PARENT and clusters: no processes, no threads.

with LiveWorld(tmp_path, at("QM1"), at("QM2", parent="QM1")) as world:
    world.put(message)           # of its qmgr, at its time
    world.settle()               # every queue manager processes and carries, until nothing is left to do
    world.received("BOARD", "QM2")
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Self, cast

from commands.broker.exit_values import PublishExit
from commands.broker.objects import QueueManager
from commands.config.home import Home
from commands.links.channels import Channels
from commands.mqsc.script import parse
from commands.qmgr.admin import StatementRunner
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.opening import DATABASE, directory_of
from commands.qmgr.store.port import StoredMessage
from commands.replay.network.local import QueueManagerSetup
from rfh2.captured import CapturedMessage
from tests.commands.scenario import KICK_OFF

MOST_ROUNDS = 100


def joining(cluster: str, qmgr: str) -> str:
    """The command by which a queue manager becomes a member."""
    return f"DEFINE CHANNEL('{cluster}.{qmgr}') CHLTYPE(CLUSRCVR) CLUSTER('{cluster}')"


class LiveQueueManager:
    """One of them: its processor and its channels, until it is stopped."""

    def __init__(self, world: LiveWorld, name: str) -> None:
        stack = self._stack = ExitStack()
        exit_ = world.exits.get(name)
        self.name = name
        self._open = partial(
            QueueManagerStore.open, world.home, name, durability=Durability.NORMAL, clock=lambda: world.now
        )
        self.store = stack.enter_context(self._open())
        stack.enter_context(self.store.processor_lock())
        self.processor = Processor(self.store, lambda: world.now, publish_exit=exit_)
        epoch = self.store.database.epoch
        self.channels = Channels(world.home, partial(self._open, epoch=epoch), Durability.NORMAL)
        stack.callback(self.channels.close)

    def stop(self) -> None:
        """As when ``run`` ends."""
        self._stack.close()

    def work(self) -> int:
        """Process and carry once; how much there was to do."""
        return self.processor.drain() + self.channels.carry()


class LiveWorld:
    """Queue managers, created in *home* by their setups. exits: the publish exits of some of them."""

    def __init__(
        self, home: Home, *setups: QueueManagerSetup, exits: Mapping[str, PublishExit] = MappingProxyType({})
    ) -> None:
        self.home, self.now = home, KICK_OFF
        self._setups, self.exits = setups, exits
        self.queue_managers: dict[str, LiveQueueManager] = {}

    def __enter__(self) -> Self:
        for each in self._setups:
            self.add(each)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.queue_managers.values():
            each.stop()

    def add(self, setup: QueueManagerSetup) -> None:
        """Create a queue manager, and have its processor begin.

        A member of a cluster knows the topics of those before it when its setup runs.
        """
        name = setup.position.qmgr
        QueueManagerStore.create(self.home, QueueManager(name), clock=lambda: self.now).close()
        parent = f"ALTER QMGR PARENT('{setup.position.parent}')\n" if setup.position.parent else ""
        self.mqsc(name, parent + "\n".join(joining(cluster, name) for cluster in setup.position.clusters))
        if setup.position.clusters:
            self.queue_managers[name] = LiveQueueManager(self, name)
            self.settle()
        self.mqsc(name, setup.setup)
        if name not in self.queue_managers:
            self.queue_managers[name] = LiveQueueManager(self, name)

    def backup(self, qmgr: str) -> Path:
        """A copy of the database as it is now."""
        assert isinstance(self.home, Path)
        copy = self.home / f"{qmgr}-{len(list(self.home.glob('*.backup')))}.backup"
        with closing(sqlite3.connect(copy)) as connection:
            cast(sqlite3.Connection, self.queue_managers[qmgr].store.database.connection).backup(connection)
        return copy

    def restore(self, qmgr: str, copy: Path, *, in_place: bool = False) -> None:
        """Stop the queue manager, have *copy* as its database, and start it again. in_place: as SQLite's .restore."""
        self.queue_managers[qmgr].stop()
        path = directory_of(self.home, qmgr) / DATABASE
        if in_place:
            with closing(sqlite3.connect(copy)) as connection, closing(sqlite3.connect(path)) as there:
                connection.backup(there)
        else:
            for each in path.parent.glob(f"{DATABASE}*"):
                each.unlink()
            shutil.copy(copy, path)
        self.queue_managers[qmgr] = LiveQueueManager(self, qmgr)

    def make_anew(self, setup: QueueManagerSetup) -> None:
        """Delete the queue manager, and create it again."""
        name = setup.position.qmgr
        self.queue_managers.pop(name).stop()
        shutil.rmtree(directory_of(self.home, name))
        self.add(setup)

    def mqsc(self, qmgr: str, script: str) -> list[str]:
        """Run MQSC; the answers. Fails if a command does."""
        with QueueManagerStore.open(self.home, qmgr, clock=lambda: self.now) as store:
            done = StatementRunner(store, "admin", lambda _: (), lambda: self.now).run(list(parse(script)))
        for statement, answer in done:
            assert answer.ok, (statement.text, answer.lines)
        return [line for _, answer in done for line in answer.lines]

    def put(self, message: CapturedMessage) -> None:
        """Put *message* at the queue manager and the time that it names."""
        assert message.qmgr is not None
        assert message.time is not None
        self.now = message.time
        with self.queue_managers[message.qmgr].store.unit_of_work() as unit:
            md = None if message.md_hex is None else bytes.fromhex(message.md_hex)
            unit.put(message.queue, md, bytes.fromhex(message.body_hex), user=message.user)

    def settle(self, names: Iterable[str] = ()) -> int:
        """Work until nothing is left to do; returns the rounds. names: who works, all by default.

        A round in which channels only look at each other may leave work for the next one.
        """
        chosen = [self.queue_managers[name] for name in names] or list(self.queue_managers.values())
        quiet = 0
        for rounds in range(MOST_ROUNDS):
            quiet = 0 if sum(each.work() for each in chosen) else quiet + 1
            if quiet == 2:
                return rounds - 1
        raise AssertionError("the network does not come to rest")

    def on(self, qmgr: str, queue: str) -> list[StoredMessage]:
        """The messages on a queue; none where there is no such queue."""
        store = self.queue_managers[qmgr].store
        return list(store.browse(queue)) if store.find_queue(queue) is not None else []

    def take(self, qmgr: str) -> list[tuple[str, bytes]]:
        """Queue and body of all messages on queues of programs, which are taken off them."""
        store, taken = self.queue_managers[qmgr].store, []
        with store.unit_of_work() as unit:
            for queue in sorted(each.name for each in unit.local_queues() if not each.transmission):
                if not queue.startswith("SYSTEM.") or queue == "SYSTEM.DEAD.LETTER.QUEUE":
                    while (message := unit.get(queue)) is not None:
                        taken.append((queue, message.body))
        return taken

    def retained(self, qmgr: str) -> dict[str, datetime]:
        """The topics with a retained publication, and when that was published."""
        found = self.queue_managers[qmgr].store.load_state()[2]
        return {each.topic_string: each.publication.published_at for each in found}

    def proxies(self, qmgr: str) -> set[tuple[str, str]]:
        """The proxy subscriptions at a queue manager: whose, and to what."""
        found = self.queue_managers[qmgr].store.load_state()[1]
        return {(each.dest_qmgr, each.topic_string) for each in found if each.is_proxy}
