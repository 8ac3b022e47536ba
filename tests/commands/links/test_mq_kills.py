"""kill -9 at both ends of ``mq://``, at a call that each case names: nothing is lost, nothing comes twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.config.settings import QueuesConfig
from commands.config.urls import parse_address
from commands.links.ibmmq.channel import ChannelConnection
from commands.links.ibmmq.manager import MqQueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.errors import StoreError
from tests.commands.links.mqi.harness import CONTROL, DEAD, STREAM
from tests.commands.links.mqi.listening import listening
from tests.commands.links.test_mq_queues import World
from tests.waiting import until

COUNT = 6
# The call at which an end is killed, before or after it is carried out, and how many such calls go well before.
MOMENTS = [("commit", "before", 0), ("commit", "after", 0), ("put1", "after", 3), ("get", "after", 4)]
OPS = {"commit": "M", "put1": "1", "get": "G"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with listening(tmp_path / "mq", {"S": {}, "T": {}}) as mq:
        made = World(tmp_path / "qmgrs", mq)
        for queue in ("S", "T"):
            made.register(queue)
        made.processor().drain()
        for n in range(COUNT):
            made.publish("a", str(n).encode())
        yield made
        made.close()
        made.programs.close()


def worked_off(world: World) -> None:
    """Try until nothing waits, as run does; a queue manager that is gone is started again."""
    world.close()
    world.programs.close()
    for _ in range(20):
        if world.mq.is_dead:
            world.mq.start()
        try:
            world.processor().drain()
        except StoreError:
            world.close()
        else:
            break
    assert Counter(world.data("S")) == Counter(world.data("T")) == Counter(str(n).encode() for n in range(COUNT))
    assert (world.mq.depth(CONTROL), world.mq.depth(STREAM), world.mq.depth(DEAD)) == (0, 0, 0)


@pytest.mark.rule("MQC-8")
@pytest.mark.parametrize(("call", "when", "skip"), MOMENTS, ids=str)
def test_the_queue_manager_is_killed(world: World, call: str, when: str, skip: int) -> None:
    world.close()
    with world.open().unit_of_work():
        pass  # what a first connection asks for has happened
    world.programs.close()
    world.mq.fault(OPS[call], when=when, skip=skip, end=True)
    with pytest.raises(StoreError):
        world.processor().drain()

    until(lambda: world.mq.is_dead, "its end")
    worked_off(world)


@pytest.mark.rule("MQC-8")
@pytest.mark.parametrize(("call", "when", "skip"), MOMENTS, ids=str)
def test_the_bridge_is_killed(world: World, call: str, when: str, skip: int) -> None:
    world.close()
    world.programs.close()
    command = [sys.executable, "-m", "tests.commands.links.test_mq_kills", str(world.home), world.mq.url]
    done = subprocess.run([*command, call, when, str(skip)], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    worked_off(world)


def bridge(home: Path, url: str, call: str, when: str, skip: int) -> None:
    """Process what waits, and be killed at a call."""
    plain, left = getattr(ChannelConnection, call), [skip]

    def killed(*arguments: Any, **keywords: Any) -> Any:
        is_due = left[0] == 0
        left[0] -= 1
        if is_due and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = plain(*arguments, **keywords)
        if is_due:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    with MqQueueManager(QueueManagerStore.open(home, "QM1"), parse_address(url, ""), QueuesConfig()) as manager:
        with manager.unit_of_work():
            pass
        setattr(ChannelConnection, call, killed)
        Processor(manager, lambda: datetime.now(UTC)).drain()


if __name__ == "__main__":
    bridge(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
