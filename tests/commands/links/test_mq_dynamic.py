"""Subscribers on temporary dynamic queues of IBM MQ, which nobody says are gone, on the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.qmgr.store import QueueManagerStore
from tests.commands.links.mqi.harness import CONTROL, DEAD
from tests.commands.links.mqi.listening import Running, queue_manager
from tests.commands.links.test_mq_queues import World

TEMPORARY = "AMQ.6921F3A520000B02"


@pytest.fixture
def world(tmp_path: Path, kind: str) -> Iterator[World]:
    queues: dict[str, dict[str, Any]] = {"S": {}, "REPLY": {}, TEMPORARY: {"kind": "dynamic"}, DEAD: {"max_depth": 0}}
    with queue_manager(kind, tmp_path / "mq", queues) as running:
        made = World(tmp_path / "qmgrs", running)
        yield made
        made.close()
        made.programs.close()


def register(world: World, queue: str, option: str, **mqmd: Any) -> None:
    named = f"<QName>{queue}</QName>"
    world.put(CONTROL, f"<Command>RegSub</Command><RegOpt>{option}</RegOpt><Topic>a</Topic>{named}", **mqmd)


def subscribers(home: Path) -> list[str]:
    with QueueManagerStore.open(home, "QM1") as store:
        return [subscription.dest_queue for subscription in store.load_state()[1]]


def delete(mq: Running, queue: str) -> None:
    """As a queue manager does when the program ends that had made the queue."""
    mq.tell(delete=[queue])


@pytest.mark.rule("REG-3")
def test_6_7_4_nonpers_must_be_specified(world: World) -> None:
    register(world, TEMPORARY, "PersAsPub", msg_type=1, reply_to_q="REPLY")
    world.processor().drain()
    (reply,) = world.browse("REPLY")
    assert b"<Reason>3083</Reason>" in reply.rfh2.folders[0].data  # type: ignore[union-attr]
    world.close()
    assert subscribers(world.home) == []


@pytest.mark.rule("DEREG-6")
def test_6_7_2_the_subscription_goes_at_its_next_match(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a dead letter nor a stalled processor, though the dead-letter queue takes nothing."""
    caplog.set_level("INFO")
    register(world, "S", "PersAsPub")
    register(world, TEMPORARY, "NonPers")
    world.publish("a", b"both")
    processor = world.processor()
    processor.drain()
    assert (world.data("S"), world.data(TEMPORARY)) == ([b"both"], [b"both"])
    delete(world.mq, TEMPORARY)
    for data in (b"two", b"three"):
        world.publish("a", data)
    assert processor.drain() == 2
    assert world.data("S") == [b"both", b"two", b"three"]
    assert world.mq.depth(DEAD) == 0
    world.close()
    assert subscribers(world.home) == ["S"]
    (told,) = [record.getMessage() for record in caplog.records if "has ended" in record.getMessage()]
    assert told.endswith(f"its temporary dynamic queue {TEMPORARY} is gone")


@pytest.mark.rule("DEREG-6")
def test_6_7_2_it_goes_at_restart(world: World) -> None:
    register(world, "S", "PersAsPub")
    register(world, TEMPORARY, "NonPers")
    world.processor().drain()
    world.close()
    delete(world.mq, TEMPORARY)
    world.processor().start()
    world.close()
    assert subscribers(world.home) == ["S"]


def test_a_queue_that_is_not_temporary_is_waited_for(world: World) -> None:
    """A queue that an administrator deleted is no reason to forget who subscribed."""
    register(world, "S", "NonPers")
    processor = world.processor()
    processor.drain()
    delete(world.mq, "S")
    processor.start()
    world.close()
    assert subscribers(world.home) == ["S"]
