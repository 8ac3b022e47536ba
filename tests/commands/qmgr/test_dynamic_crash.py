"""kill -9 while dynamic queues come and go: of the processor, and of the programs that made them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import Durability, QueueManagerStore
from tests.commands.qmgr.test_dynamic_queues import DEAD, STREAM, TEMPORARY, register, rows, subscribers
from tests.reliability.kills import killed_after, time_of
from tests.reliability.workload import SEED, put

pytestmark = [pytest.mark.nightly, pytest.mark.faults]
SUBSCRIBERS, PUBLICATIONS = 8, 400


def _open(home: Path) -> QueueManagerStore:
    return QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL)


def _publish(store: QueueManagerStore, numbers: range) -> None:
    with store.unit_of_work() as unit:
        for number in numbers:
            put(unit, STREAM, "<Command>Publish</Command><Topic>a</Topic>", b"%06d" % number, persistence=1, priority=0)


def _numbers(store: QueueManagerStore, queue: str) -> list[int]:
    return [int(message.body[-6:]) for message in store.browse(queue)]


def _processing(home: Path) -> Callable[[], None]:
    def work() -> None:
        with _open(home) as store:
            processor = Processor(store, lambda: datetime.now(UTC), settings=ProcessorSettings(batch=7))
            processor.start()
            processor.drain()

    return work


def test_the_processor_is_killed_while_queues_go(tmp_path: Path) -> None:
    """Who stays gets each publication once and in order; of who goes, nothing is left."""
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    chance = random.Random(SEED)
    with _open(tmp_path) as store, store.connect() as staying:
        stays = staying.open(TEMPORARY, "STAYS.*").name
        register(store, stays)
        register(store, "PREDEFINED", option="PersAsPub")
        time_of(_processing(tmp_path))
        done = killed = 0
        while killed < 40:
            going = store.connect()
            queues = [going.open(TEMPORARY, "GOES.*").name for _ in range(SUBSCRIBERS)]
            for queue in queues:
                register(store, queue)
            _publish(store, range(done, done + PUBLICATIONS // 10))
            done += PUBLICATIONS // 10
            killed += killed_after(chance.uniform(0.005, 0.05), _processing(tmp_path))
            going.disconnect()
        time_of(_processing(tmp_path))
        assert _numbers(store, "PREDEFINED") == _numbers(store, stays) == list(range(done))
        assert sorted(subscribers(store)) == ["PREDEFINED", stays]
        # What they registered in vain was answered, as they were no longer there: 3076, a dead letter.
        assert all(b"RegSub" in message.body for message in store.browse(DEAD))
        assert rows(store) == {"dynamic_queues": 1, "connections": 1, "temporary_subscriptions": 1, "subscriptions": 2}
    with _open(tmp_path) as store:
        time_of(_processing(tmp_path))
        assert subscribers(store) == ["PREDEFINED"]
        assert rows(store) == {"subscriptions": 1}


def test_programs_are_killed_while_they_open_and_register(tmp_path: Path) -> None:
    """A restart takes off what they left: queues, subscriptions, messages; the others' stays."""
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    chance = random.Random(SEED)

    def program() -> None:
        with _open(tmp_path) as store:
            connection = store.connect()
            for _ in range(50):
                register(store, connection.open(TEMPORARY, "DIES.*").name)
            time.sleep(600)

    with _open(tmp_path) as store:
        register(store, "PREDEFINED", option="PersAsPub")
        for number in range(10):
            assert killed_after(chance.uniform(0.0, 0.3), program)
            _publish(store, range(number, number + 1))
            if number % 3 == 0:
                time_of(_processing(tmp_path))
        time_of(_processing(tmp_path))
        assert _numbers(store, "PREDEFINED") == list(range(10))
        assert subscribers(store) == ["PREDEFINED"]
        assert rows(store) == {"subscriptions": 1}
        assert [name for name in store.load_state()[0].queues if name.startswith("DIES.")] == []
        # One that was made for a number that was never committed may stay: the next connection takes it.
        assert len(list(store.directory.glob("connection-*"))) <= 1
        kept = store.database.connection.execute("SELECT DISTINCT queue FROM messages").fetchall()
        assert {queue for (queue,) in kept} <= {"PREDEFINED", DEAD}
