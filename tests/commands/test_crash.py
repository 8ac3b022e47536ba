"""Pulling the plug: kill -9 at random moments, a full disk, a locked database. Nothing is lost, nothing is done twice.

Each processor that is killed is a forked child, so that a kill costs milliseconds and there can be hundreds of them; it
commits small batches and checkpoints often, so that the kills fall between get and commit and into checkpoints too.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.objects import LocalQueue, QueueManager
from commands.processor import Processor
from commands.queues import QueueManagerStore, StoreBusyError, StoreFullError, UnitOfWork
from rfh2 import Folder, Mqmd, Rfh2

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
KILLS = 200
SEED = 20261121


def _put(unit: UnitOfWork, queue: str, psc: str, **mqmd: object) -> None:
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + b"data")


def _mixed_load(store: QueueManagerStore, commands: int, seed: int = SEED) -> None:
    """Registrations that come and go, retained publications and their deletion, requests, priorities, bad messages."""
    chance = random.Random(seed)
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("FULL", max_depth=20))
        for _ in range(commands):
            topic, queue = f"t/{chance.randrange(40)}", chance.choice(["S1", "S2", "S3", "S4", "FULL"])
            to = f"<Topic>{topic}</Topic><QName>{queue}</QName>"
            asked = {"msg_type": 1, "reply_to_q": "REPLIES"} if chance.random() < 0.3 else {"report": 2}
            kind = chance.random()
            if kind < 0.10:
                _put(unit, CONTROL, f"<Command>RegSub</Command>{to}", **asked)
            elif kind < 0.14:
                _put(unit, CONTROL, f"<Command>DeregSub</Command>{to}", **asked)
            elif kind < 0.17:
                _put(unit, CONTROL, f"<Command>ReqUpdate</Command>{to}", **asked)
            elif kind < 0.20:
                _put(unit, STREAM, f"<Command>DeletePub</Command><Topic>{topic}</Topic>")
            elif kind < 0.23:
                unit.put(STREAM, None, b"RFH \2\0\0\0 this is no header", time=NOW)
            else:
                retain = "<PubOpt>RetainPub</PubOpt>" if chance.random() < 0.3 else ""
                psc = f"<Command>Publish</Command>{retain}<Topic>{topic}</Topic>"
                _put(unit, STREAM, psc, priority=chance.randrange(3))


def _everything(home: Path) -> Counter[tuple[object, ...]]:
    """Every message on every queue, save when it was put, and all subscriptions and retained publications."""
    out: Counter[tuple[object, ...]] = Counter()
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        objects, subscriptions, retained = unit.load_state()
        for queue in objects.queues:
            for message in unit.browse(queue):
                md = Mqmd.decode(message.md)
                body = message.body if message.body[:4] != b"DLH " else message.body[:124] + message.body[172:]
                out[(queue, md.msg_id, md.correl_id, md.msg_type, md.persistence, body)] += 1
        out.update(("subscription", s.sub_id, s.topic_string, s.dest_queue) for s in subscriptions)
        out.update(("retained", r.topic_string, r.publication.message.body) for r in retained)
    return out


def _waiting(home: Path) -> int:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        return unit.depth(CONTROL) + unit.depth(STREAM)


def _drain(home: Path, batch: int = 200) -> None:
    with QueueManagerStore.open(home, "QM1") as store:
        store.database.connection.execute("PRAGMA wal_autocheckpoint = 20")
        Processor(store, lambda: NOW, batch=batch).drain()


def _killed_after(home: Path, delay_s: float) -> bool:
    """Run a processor in a child, kill it *delay_s* after it began; whether it was still at work."""
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(begun, b"!")
            _drain(home, batch=7)
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.read(ready, 1)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(ready)
    os.close(begun)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, "the processor failed"
    return os.WIFSIGNALED(status)


@pytest.mark.slow
def test_killed_hundreds_of_times_the_state_equals_the_uninterrupted_run(tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        with QueueManagerStore.create(tmp_path / name, QueueManager("QM1")) as store:
            _mixed_load(store, 20_000)
    _drain(tmp_path / "whole")
    chance = random.Random(SEED)
    kills = 0
    while kills < KILLS:
        kills += _killed_after(tmp_path / "killed", chance.uniform(0.0, 0.045))
        assert _waiting(tmp_path / "killed") > 0, f"only {kills} kills fell into the work"
    print(f"\n{kills} kills, {_waiting(tmp_path / 'killed')} of 20,000 commands left for the last run")
    _drain(tmp_path / "killed")
    assert _everything(tmp_path / "killed") == _everything(tmp_path / "whole")


def _work_until_full(store: QueueManagerStore, processor: Processor) -> None:
    for _ in range(50):
        processor.drain()
        with store.unit_of_work() as unit:  # programs keep coming while the disk fills
            unit.put("OTHER", None, bytes(20_000))


def test_a_full_disk_stops_the_processor_and_loses_nothing(tmp_path: Path) -> None:
    for name in ("whole", "full"):
        with QueueManagerStore.create(tmp_path / name, QueueManager("QM1")) as store:
            _mixed_load(store, 1_500)
    _drain(tmp_path / "whole")
    with QueueManagerStore.open(tmp_path / "full", "QM1") as store:
        connection = store.database.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        processor = Processor(store, lambda: NOW)
        with pytest.raises(StoreFullError):
            _work_until_full(store, processor)
        connection.execute("PRAGMA max_page_count = 1073741823")
        processor.drain()
        with store.unit_of_work() as unit:
            if unit.find_queue("OTHER") is not None:
                unit.clear_queue("OTHER")
                unit.delete_definition("qlocal", "OTHER")
    assert _everything(tmp_path / "full") == _everything(tmp_path / "whole")


def test_a_database_that_another_process_keeps_locked_is_waited_for(tmp_path: Path) -> None:
    for name in ("whole", "locked"):
        with QueueManagerStore.create(tmp_path / name, QueueManager("QM1")) as store:
            _mixed_load(store, 300)
    _drain(tmp_path / "whole")
    with QueueManagerStore.open(tmp_path / "locked", "QM1", patience_s=0.2) as store:
        other = sqlite3.connect(store.database.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        processor = Processor(store, lambda: NOW)
        with pytest.raises(StoreBusyError):
            processor.drain()
        other.execute("ROLLBACK")
        other.close()
        processor.drain()
    assert _everything(tmp_path / "locked") == _everything(tmp_path / "whole")
