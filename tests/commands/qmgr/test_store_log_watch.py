"""Who waits for a commit looks often when somebody writes to the database, as the kernel tells it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore, queue_manager as waiting, sqlite_database as module
from commands.qmgr.store.sqlite_database import LogWatch
from tests.waiting import PATIENCE_S

needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="the system has no inotify")
PUT = """
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from commands.qmgr.store import QueueManagerStore
with QueueManagerStore.open(Path(sys.argv[1]), "QM1") as store, store.unit_of_work() as unit:
    unit.put("Q", None, b"")
"""
LONG_S = 600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        yield store


def put_elsewhere(store: QueueManagerStore) -> None:
    subprocess.run([sys.executable, "-c", PUT, str(store.directory.parent)], check=True)


def watch_of(store: QueueManagerStore) -> LogWatch:
    return LogWatch(Path(store.database.path))


@needs_inotify
def test_what_another_process_writes_is_heard(store: QueueManagerStore) -> None:
    watch, heard = watch_of(store), []
    assert not watch.heard(0.01), "nobody writes"
    thread = threading.Thread(target=lambda: heard.append(watch.heard(LONG_S)), daemon=True)
    thread.start()
    put_elsewhere(store)
    thread.join(PATIENCE_S)
    assert heard == [True]
    while watch.heard(0.01):
        pass
    assert not watch.heard(0.01), "it is heard once"
    watch.close()
    watch.close()


def test_who_hears_something_looks_often_again(store: QueueManagerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit comes a moment after what is heard: after a long nap it would be seen in ten minutes."""
    naps: list[float] = []

    def hears(_: LogWatch, timeout_s: float) -> bool:
        naps.append(timeout_s)
        if len(naps) == 3:
            put_elsewhere(store)
        return len(naps) == 2

    monkeypatch.setattr(LogWatch, "heard", hears)
    monkeypatch.setattr(waiting, "_FIRST_NAP_S", 0.01)
    monkeypatch.setattr(waiting, "_GROWTH", 1e6)
    monkeypatch.setattr(waiting, "_LONGEST_NAP_S", LONG_S)
    with QueueManagerStore.open(store.directory.parent, "QM1") as waits:
        assert waits.wait_for_change(2 * LONG_S)
    assert naps == [0.01, LONG_S, 0.01]


@pytest.mark.parametrize("why", ["no log", "no inotify", "no watch is left"])
def test_without_a_watch_the_time_is_waited(
    tmp_path: Path, store: QueueManagerStore, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def refused(**_: object) -> None:
        raise OSError(24, "Too many open files")

    slept: list[float] = []
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=slept.append, monotonic=time.monotonic))
    if why == "no inotify":
        monkeypatch.setitem(sys.modules, "inotify_simple", None)
    elif why == "no watch is left":
        monkeypatch.setitem(sys.modules, "inotify_simple", SimpleNamespace(INotify=refused, flags=None))
    watch = LogWatch(tmp_path / "none") if why == "no log" else watch_of(store)
    put_elsewhere(store)
    assert not watch.heard(5.0)
    assert slept == [5.0]
    watch.close()
