"""Pulling the plug: kill -9 at random moments, a full disk, a locked database. Nothing is lost, nothing is done twice.

More kills, of the verbs too, and what they promise: ``tests/reliability/kills.py``.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, StoreBusyError, StoreFullError
from tests.reliability.kills import Size, of_the_processor
from tests.reliability.workload import SEED, clock, create, drain, everything

# ``python -m tests.reliability`` has 200, and 20,000 messages.
KILLS = 30


# docs/conformance.md: QM-4
@pytest.mark.slow
def test_killed_many_times_the_state_equals_the_uninterrupted_run(tmp_path: Path) -> None:
    table = of_the_processor(tmp_path, Size(KILLS, 3_600), SEED)
    print(f"\n{table.markdown()}")
    assert not table.broken


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
