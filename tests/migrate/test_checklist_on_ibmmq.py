"""The checklist, followed with the queues on the stand-in for IBM MQ, gives what the direct migration gives.

Scripts are run where the bridge keeps its topics and subscriptions. The queues that they define are the queue
manager's; messages are loaded with their context through IBM's own package, and the bridge takes them from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.config.settings import QueuesConfig
from commands.config.urls import parse_address
from commands.links.ibmmq.manager import MqMessages, MqQueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.captures import read_captures
from tests.commands.links.mqi.harness import StandIn, needs_mqi, stand_in
from tests.migrate import test_checklist
from tests.migrate.test_checklist import Administrator, compare, made, migrate

pytestmark = needs_mqi

ADDRESS = parse_address("ibmmq://127.0.0.1:1414/QM1?channel=C", "--queues")
QUEUE = re.compile(r"DEFINE QLOCAL\('?([^')]+)'?\)")
estate = test_checklist.estate


class AdministratorOfIbmMq(Administrator):
    """Loads and waits on the queues of the stand-in."""

    mq: StandIn
    loaded = 0

    def load(self, queue: str, file: Path) -> None:
        programs = MqMessages(ADDRESS, QueuesConfig())
        try:
            with programs.unit_of_work() as unit:
                for record in read_captures(file):
                    message = record.message
                    assert message is not None
                    unit.put(queue, message.md, message.body, user=message.user, application="load")
                    self.loaded += 1
        finally:
            programs.close()

    def process(self, queues: list[str]) -> None:
        store = QueueManagerStore.open(self.home, self.qmgr)
        manager = MqQueueManager(store, ADDRESS, QueuesConfig())
        try:
            Processor(manager, lambda: datetime.now(UTC)).drain()
        finally:
            manager.close()
        for queue in queues:
            assert self.mq.depth(queue) == 0, queue


@pytest.fixture
def files(estate: Path, tmp_path: Path) -> Path:
    out = tmp_path / "files"
    migrate("strmqbrk", tmp_path, "QM1", "--target", "files", "--out", str(out), "--source", str(estate))
    return out


@pytest.fixture
def mq(files: Path, tmp_path: Path) -> Iterator[StandIn]:
    """With the queues of the first script: the stand-in has no commands that define queues."""
    names = QUEUE.findall((files / "1-queues.mqsc").read_text())
    assert "Sport" in names
    with stand_in(tmp_path / "mq", {name: {} for name in names}) as running:
        yield running


@pytest.mark.rule("MIG-17")
def test_the_checklist_on_ibm_mqs_queues(estate: Path, files: Path, mq: StandIn, tmp_path: Path) -> None:
    direct, followed = made(tmp_path / "direct", "QM1"), made(tmp_path / "followed", "QM1")
    migrate("strmqbrk", direct, "QM1", "--source", str(estate))
    administrator = AdministratorOfIbmMq(followed, files, "QM1")
    administrator.mq = mq
    administrator.follow((files / "checklist.md").read_text())
    assert administrator.loaded == 6, "three retained publications and three registrations"
    assert mq.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0
    compare(direct, followed, "QM1", {"E.Q"})
