"""The lock of the one command processor: what of it may be removed, and who heeds whom."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerInUseError
from tests.commands.qmgr.test_store_faults import create, start, until_ready


def test_removing_the_lock_file_lets_no_second_processor_in(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        process = start(tmp_path, 'with store.processor_lock(): print("ready", flush=True); signal.pause()')
        until_ready(process)
        for _ in range(2):
            (tmp_path / "QM1" / "run.lock").unlink(missing_ok=True)
            with pytest.raises(QueueManagerInUseError, match="QM1 is already being run"):
                store.processor_lock().__enter__()
        process.kill()
        process.wait()
        with store.processor_lock():
            pass


def test_a_processor_that_has_the_lock_file_alone_is_heeded(tmp_path: Path) -> None:
    """As those of versions before 0.2 have it."""
    with create(tmp_path) as store, (tmp_path / "QM1" / "run.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(QueueManagerInUseError):
            store.processor_lock().__enter__()
