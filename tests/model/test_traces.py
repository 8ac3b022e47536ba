"""Each trace of the bridge's kills and takeovers is a behaviour of the model (docs/model.md)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import DEAD_LETTER_QUEUE, QueueManager
from commands.broker.puts import Outgoing, PutKind
from commands.config.settings import Config, TopicsConfig
from commands.disk.errors import SupersededError
from commands.links.channels import Channel
from commands.links.engine.adapter import Sent, TreeUnreachableError, Waiting
from commands.links.engine.link import Link
from commands.links.engine.properties import ForTree, for_tree
from commands.links.engine.spool import Spool
from commands.links.opening import Places
from commands.qmgr.processor import Processor
from commands.qmgr.sending import transmitted
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.opening import take_over
from rfh2 import Mqmd, decode
from rfh2.errors import StoreError
from tests.commands.links.engine.memory_tree import (
    ANSWERS_FOR_EACH,
    MemoryAdapter,
    MemoryReceiver,
    MemorySender,
    MemoryTree,
)
from tests.model.stage import KilledError, Seen, Stage, behaviours, commits_seen
from tests.reliability.model import INSTANCES, Configuration, needs_tlc
from tests.reliability.workload import CONTROL, STREAM, put

pytestmark = [pytest.mark.slow, needs_tlc]
OUTGOING, BOARD = TopicsConfig().outgoing_queue, "BOARD"


# A link: programs publish 1, 2 and 3, a native one 101


class SeenTree(MemoryTree):
    """stage: sees what the tree takes, and what is accepted. connected_life: the one that has the connection."""

    stage: Stage | None = None
    connected_life: object = None

    def take(self, wanted: ForTree) -> None:
        super().take(wanted)
        if self.stage is not None:
            self.stage.see()


class SeenReceiver(MemoryReceiver):
    """As with MQTT, what came by one connection is not accepted by another."""

    def __init__(self, tree: SeenTree, life: object) -> None:
        super().__init__(tree)
        self._seen, self._life = tree, life

    def accept(self) -> None:
        if self._seen.connected_life is self._life:
            super().accept()
            if self._seen.stage is not None:
                self._seen.stage.see()


class SeenSender(MemorySender):
    """It sends by the connection that it was made for."""

    def send(self, batch: Iterable[Waiting[ForTree]]) -> Iterator[Sent]:
        def connected() -> Iterator[Waiting[ForTree]]:
            for each in batch:
                if getattr(self._tree, "connected_life", None) is not self._adapter:
                    raise TreeUnreachableError("another one has the connection")
                yield each

        return super().send(connected())


class SeenAdapter(MemoryAdapter):
    def sender(self, spool: Spool, stop: threading.Event) -> MemorySender:
        return SeenSender(self._tree, self, in_unit_of_work=False)

    def receiver(self) -> MemoryReceiver:
        assert isinstance(self._tree, SeenTree)
        self._tree.connected_life = self
        return SeenReceiver(self._tree, self)


class LinkWorld:
    """QM1 in *home* with its tree; ``live`` is a life of the bridge, from its epoch on until there is nothing to do."""

    def __init__(self, home: Path) -> None:
        self._home, self.tree = home, SeenTree()
        QueueManagerStore.create(home, QueueManager("QM1")).close()
        self._programs = QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL)
        with self._programs.unit_of_work() as unit:
            put(unit, CONTROL, f"<Command>RegSub</Command><Topic>#</Topic><QName>{BOARD}</QName>")
        self.live()
        self._published, self._before = 0, self._programs.database.read_epoch()
        self.stage = self.tree.stage = Stage(self._look)

    def close(self) -> None:
        self.tree.stage = None
        self._programs.close()

    def publish(self, count: int) -> None:
        """So many of programs; one of a native program behind the first of these."""
        for n in range(self._published + 1, self._published + count + 1):
            with self._programs.unit_of_work() as unit:
                put(unit, STREAM, "<Command>Publish</Command><Topic>a</Topic>", b"%d" % n)
        self._published += count
        if self._published == count:
            self.tree.publish("a", b"101")
            self.stage.see()

    def live(self) -> None:
        epoch = take_over(self._home, "QM1", Durability.NORMAL, 1.0)
        settings = Config(topics=TopicsConfig(batch=10))
        places = Places.of(self._home, "QM1", settings, None, "mqtt://nowhere", Durability.NORMAL)
        places = replace(places, epoch=epoch)
        link: Link[Any, Any] = Link(
            SeenAdapter(self.tree, ANSWERS_FOR_EACH), settings.topics, "QM1", places.stores(DEAD_LETTER_QUEUE)
        )
        with ExitStack() as stack:
            store = stack.enter_context(places.store())
            processor = Processor(store, lambda: datetime.now(UTC), link=link)
            spool = places.stores(DEAD_LETTER_QUEUE).spool()
            stack.callback(spool.close)
            sender = link.adapter.sender(spool, threading.Event())
            while processor.drain() + link._inbound._one_batch() + link._outbound.one_batch(spool, sender):
                pass

    def _look(self) -> Seen:
        def data(queue: str, of: Callable[[Any], bytes]) -> list[int]:
            there = self._programs.find_queue(queue) is not None
            return [int(of(message)) for message in self._programs.browse(queue)] if there else []

        return {
            "input": data(STREAM, lambda message: decode(message.body, message.md).body),
            "out": data(OUTGOING, lambda message: for_tree(message.md, message.body).payload),
            "sub": data(BOARD, lambda message: decode(message.body, message.md).body),
            "epoch": self._programs.database.read_epoch() - self._before,
            "tree": [int(published) for _, published in self.tree.published],
            "session": sum(int(each.payload) > 100 for each in self.tree.inbox),
        }


LINKS = Configuration(
    "Links", {"Kind": "session", "Instances": INSTANCES, "Legacy": 3, "Native": 1, "Window": 10, "MaxFaults": 1}
)
OF_LINKS = {name: name for name in ("input", "out", "sub", "epoch", "tree", "faults")} | {
    "session": "native - accepted"
}


# A channel: messages 1, 2 and 3 for a queue of QM2


class ChannelWorld:
    """QM1 and QM2 in *home*; ``live`` is a life of QM1's channel."""

    def __init__(self, home: Path) -> None:
        self._home, self._published, self._numbers = home, 0, dict[int, int]()
        for name in ("QM1", "QM2"):
            QueueManagerStore.create(home, QueueManager(name)).close()
        self._here, self._there = (QueueManagerStore.open(home, name) for name in ("QM1", "QM2"))
        self.stage = Stage(self._look)

    def close(self) -> None:
        self._here.close()
        self._there.close()

    def publish(self, count: int) -> None:
        for n in range(self._published + 1, self._published + count + 1):
            sent = transmitted(Outgoing(PutKind.PUBLICATION, "QM2", BOARD, Mqmd(persistence=1).encode(), b"%d" % n))
            with self._here.unit_of_work() as unit:
                seq = unit.put("QM2", sent.md, sent.body)
                self._numbers[seq] = n
        self._published += count

    def live(self) -> None:
        epoch = take_over(self._home, "QM1", Durability.NORMAL, 1.0)
        with QueueManagerStore.open(self._home, "QM1", epoch=epoch) as store:
            channel = Channel(store, "QM2", lambda: QueueManagerStore.open(self._home, "QM2"))
            try:
                while channel.carry():
                    pass
            finally:
                channel.close()

    def _look(self) -> Seen:
        here, there = self._here, self._there
        with there.unit_of_work() as unit:
            arrived = unit.neighbours.arrived("QM1")
            unit.backout()
        waiting = list(here.browse("QM2")) if here.find_queue("QM2") is not None else []
        board = list(there.browse(BOARD)) if there.find_queue(BOARD) is not None else []
        return {
            "xmit": [self._numbers[message.seq] for message in waiting],
            "sent": here.sequence("QM2").sent,
            "received": there.sequence("QM1").received,
            "arrived": {self._numbers[seq] for seq, _ in arrived},
            "log": [int(message.body) for message in board],
        }


CHANNEL = Configuration(
    "Channel", {"Channels": {"c"}, "Changes": 3, "Window": 10, "MaxFaults": 1, "MaxRestores": 0, "Highest": 6}
)
OF_CHANNEL = {
    "xmit": "[k \\in DOMAIN here.xmit |-> here.xmit[k].id]",
    "sent": "here.sent",
    **{name: f"there.{name}" for name in ("received", "arrived", "log")},
    "faults": "faults",
}

World = LinkWorld | ChannelWorld
MODELS: list[tuple[str, type[LinkWorld] | type[ChannelWorld], Configuration, dict[str, str]]] = [
    ("a link", LinkWorld, LINKS, OF_LINKS),
    ("a channel", ChannelWorld, CHANNEL, OF_CHANNEL),
]


def traces(made: type[LinkWorld] | type[ChannelWorld], home: Path) -> Iterator[list[Seen]]:
    """The trace of a life that is killed after each step, or held up there; the last of each has no such step."""
    for happens in (killed, held_up):
        step, is_over = 1, False
        while not is_over:
            world = made(home / f"{happens.__name__} {step}")
            with commits_seen(world.stage):
                world.publish(2)
                is_over = not happens(world, step)
            yield world.stage.trace
            world.close()
            step += 1


def killed(world: World, step: int) -> bool:
    """Whether the life came so far as to be killed; then another one follows."""
    world.stage.kill_after(step)
    try:
        world.live()
    except KilledError:
        world.stage.fault()
        world.publish(1)
        world.live()
        return True
    return False


def held_up(world: World, step: int) -> bool:
    """Whether the life came so far as to be held up; then another one takes over, and it goes on after that."""

    def live() -> None:
        with suppress(SupersededError, StoreError):
            world.live()

    with world.stage.held_up(live, step) as is_held:
        if is_held:
            world.stage.fault()
            world.publish(1)
            world.live()
    return is_held


@pytest.mark.parametrize(("made", "model", "seen"), [row[1:] for row in MODELS], ids=[row[0] for row in MODELS])
def test_what_a_crash_or_a_takeover_after_any_step_leaves_is_a_behaviour_of_the_model(
    tmp_path: Path, made: type[LinkWorld] | type[ChannelWorld], model: Configuration, seen: dict[str, str]
) -> None:
    found = list(traces(made, tmp_path))
    forged = [*found[0][:-2], found[0][-1]]
    accepted = behaviours(model, seen, [*found, forged])
    amiss = [each for n, each in enumerate(found) if n not in accepted]
    assert amiss == []
    assert len(found) not in accepted, "a step is missing, and the model does not mind"
