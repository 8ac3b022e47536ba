"""The bridge as an object: opened and closed in a program, without a supervisor."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.disk.errors import QueueManagerInUseError
from commands.qmgr.store import QueueManagerStore
from commands.running.bridge import Bridge
from commands.running.run_settings import RunSettings
from commands.terminal.console import Console, ExitCode
from tests.commands.results_service import capture
from tests.waiting import PATIENCE_S, until

CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A queue manager QM1 with the results service on its queues."""
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        for message in capture():
            unit.put(message.queue, message.md, message.body, user=message.user)
    return tmp_path


def test_drain_processes_what_is_on_the_queues(home: Path) -> None:
    bridge = Bridge(Console.standard(), RunSettings(qmgr="QM1", home=home, once=True))
    with bridge:
        bridge.drain()
    assert bridge.summary == "26 commands (2 in error): 16 publications delivered, 12 responses, 0 dead letters"
    assert bridge.exit_code() is ExitCode.DONE


def test_serve_goes_on_until_stop_is_set(home: Path) -> None:
    bridge = Bridge(Console.standard(), RunSettings(qmgr="QM1", home=home))

    def work() -> None:
        with bridge:
            bridge.serve()

    thread = threading.Thread(target=work)
    thread.start()
    with QueueManagerStore.open(home, "QM1") as store:
        until(lambda: store.depth(CONTROL) == 0)
        assert thread.is_alive()
    bridge.stop.set()
    thread.join(PATIENCE_S)
    assert (bridge.tally.commands, bridge.exit_code()) == (26, ExitCode.DONE)


def test_what_was_opened_is_closed_where_opening_fails(home: Path, tmp_path: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.processor_lock(), pytest.raises(QueueManagerInUseError):
        Bridge(Console.standard(), RunSettings(qmgr="QM1", home=home)).__enter__()
    with Bridge(Console.standard(), RunSettings(qmgr="QM1", home=home, once=True)) as bridge:
        bridge.drain()
    assert bridge.exit_code() is ExitCode.DONE
