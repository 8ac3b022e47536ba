"""Pulling the plug: a crash at each commit, a full disk, a locked database. Nothing is lost, nothing is done twice.

Kills at random moments, of the verbs too: ``tests/reliability/kills.py``.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerStore, StoreBusyError, StoreFullError
from tests.commands.qmgr.disk_states import disk_states
from tests.reliability.workload import clock, create, drain, everything


@pytest.mark.rule("QM-4", "ST-7")
def test_after_a_crash_at_any_commit_the_state_becomes_that_of_an_uninterrupted_run(tmp_path: Path) -> None:
    for name in ("whole", "crashed"):
        create(tmp_path / name, 120)
    drain(tmp_path / "whole")
    whole = everything(tmp_path / "whole")
    states = []
    for name, home in disk_states(tmp_path / "crashed", _drained, tmp_path / "states"):
        states.append(name)
        _drained(home)
        assert everything(home) == whole, name
    assert len(states) > 3 * 120 / 7


def _drained(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store:
        Processor(store, clock, settings=ProcessorSettings(batch=7)).drain()


def _work_until_full(store: QueueManagerStore, processor: Processor) -> None:
    for _ in range(50):
        processor.drain()
        with store.unit_of_work() as unit:  # programs keep coming while the disk fills
            unit.put("OTHER", None, bytes(20_000))


def test_a_full_disk_stops_the_processor_and_loses_nothing(tmp_path: Path) -> None:
    for name in ("whole", "full"):
        create(tmp_path / name, 1_500)
    drain(tmp_path / "whole")
    with QueueManagerStore.open(tmp_path / "full", "QM1") as store:
        connection = store.database.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        processor = Processor(store, clock)
        with pytest.raises(StoreFullError):
            _work_until_full(store, processor)
        connection.execute("PRAGMA max_page_count = 1073741823")
        processor.drain()
        with store.unit_of_work() as unit:
            if unit.find_queue("OTHER") is not None:
                unit.clear_queue("OTHER")
                unit.delete_definition("qlocal", "OTHER")
    assert everything(tmp_path / "full") == everything(tmp_path / "whole")


def test_a_database_that_another_process_keeps_locked_is_waited_for(tmp_path: Path) -> None:
    for name in ("whole", "locked"):
        create(tmp_path / name, 300)
    drain(tmp_path / "whole")
    with QueueManagerStore.open(tmp_path / "locked", "QM1", patience_s=0.2) as store:
        other = sqlite3.connect(store.database.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        processor = Processor(store, clock)
        with pytest.raises(StoreBusyError):
            processor.drain()
        other.execute("ROLLBACK")
        other.close()
        processor.drain()
    assert everything(tmp_path / "locked") == everything(tmp_path / "whole")
