"""A listener for a new queue manager QM1, with its command processor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.client.queue_manager import QueueManager as Client, connect
from commands.qmgr.store import QueueManagerStore
from tests.commands.listener.conftest import listener_at, patient, processing

__all__ = ["patient"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        for name in ("Q", "R"):
            unit.save_definition(LocalQueue(name))
    return tmp_path


@pytest.fixture(params=[10, 0], ids=["shared", "not shared"])
def url(home: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    with listener_at(home, sharing=request.param) as port, processing(home):
        yield f"mq://127.0.0.1:{port}/QM1?channel=C"


@pytest.fixture
def qmgr(url: str) -> Iterator[Client]:
    with connect(url) as made:
        yield made
