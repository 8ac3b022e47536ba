"""A listener on a port of its own, for a new queue manager QM1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.links.engine.config import ChannelRule
from commands.listener.security import Security
from commands.listener.server import Listener, ListenerOptions
from commands.listener.serving import ListenerThread
from commands.qmgr.store import QueueManagerStore

ANYBODY = Security({"*": ChannelRule()})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    return tmp_path


def listener_at(home: Path, security: Security = ANYBODY, qmgr: str = "QM1", **options: object) -> ListenerThread:
    """A listener for *qmgr* in *home*; as a context manager it gives the port."""
    chosen = ListenerOptions(port=0, **options)  # type: ignore[arg-type]
    return ListenerThread(lambda: Listener(chosen, qmgr, lambda: QueueManagerStore.open(home, qmgr), security))


@pytest.fixture
def port(home: Path) -> Iterator[int]:
    with listener_at(home) as port:
        yield port
