"""IBM MQ's queues through the official package, on the stand-in (tests/commands/mqi): order, context, backout, crashes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.live.config import QueuesConfig
from commands.live.ibmmq.manager import MqMessages, MqQueueManager
from commands.live.urls import parse_address
from commands.objects import QueueManager
from commands.processor import Processor
from commands.queues import QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.message import Message
from tests.commands.mqi.harness import CONTROL, STREAM, StandIn, needs_mqi, stand_in

pytestmark = needs_mqi

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ADDRESS = parse_address("ibmmq://127.0.0.1:1414/QM1?channel=C", "--queues")


class World:
    """A queue manager, the bridge's state beside it, and programs on its queues."""

    def __init__(self, home: Path, mq: StandIn, **config: Any) -> None:
        self.home, self.mq, self.config = home, mq, QueuesConfig(**config)
        if not (home / "QM1").exists():
            QueueManagerStore.create(home, QueueManager("QM1")).close()
        self.programs = MqMessages(ADDRESS, self.config)
        self.manager: MqQueueManager | None = None

    def open(self) -> MqQueueManager:
        self.close()
        self.manager = MqQueueManager(QueueManagerStore.open(self.home, "QM1"), ADDRESS, self.config)
        return self.manager

    def processor(self, **how: Any) -> Processor:
        return Processor(self.manager or self.open(), lambda: datetime.now(UTC), **how)

    def close(self) -> None:
        if self.manager is not None:
            self.manager.close()
            self.manager = None

    def put(self, queue: str, psc: str, data: bytes = b"data", **mqmd: Any) -> None:
        md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})
        body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data
        with self.programs.unit_of_work() as unit:
            unit.put(queue, md.encode(), body, user="app", application="program")

    def register(self, queue: str, topic: str = "a", **mqmd: Any) -> None:
        self.put(CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>", **mqmd)

    def publish(self, topic: str = "a", data: bytes = b"data", options: str = "", **mqmd: Any) -> None:
        self.put(STREAM, f"<Command>Publish</Command>{options}<Topic>{topic}</Topic>", data, **mqmd)

    def browse(self, queue: str) -> list[Message]:
        with self.programs.unit_of_work() as unit:
            return [decode(m.body, m.md) for m in unit.browse(queue)]

    def data(self, queue: str) -> list[bytes]:
        return [message.body for message in self.browse(queue)]


@pytest.fixture
def mq(tmp_path: Path) -> Iterator[StandIn]:
    queues: dict[str, dict[str, Any]] = {name: {} for name in ("S", "T", "REPLY", "BACK")}
    with stand_in(tmp_path / "mq", queues) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, mq: StandIn) -> Iterator[World]:
    made = World(tmp_path / "qmgrs", mq)
    yield made
    made.close()
    made.programs.close()


def test_commands_come_from_mq_and_publications_go_there(world: World) -> None:
    world.register("S", msg_type=1, reply_to_q="REPLY", msg_id=b"1" * 24)
    world.publish("a", b"one")
    assert world.processor().drain() == 2
    (reply,) = world.browse("REPLY")
    assert reply.mqmd.correl_id == b"1" * 24
    assert b"<Completion>ok" in reply.rfh2.folders[0].data  # type: ignore[union-attr]
    (publication,) = world.browse("S")
    assert publication.body == b"one"
    assert publication.mqmd.user_identifier == "app"
    assert publication.mqmd.put_appl_type == 26, "6.7.9: the broker's origin context, set with MQPMO_SET_ALL_CONTEXT"
    assert world.mq.depth(CONTROL) == world.mq.depth(STREAM) == 0
