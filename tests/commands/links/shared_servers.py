"""One server of a kind for a whole run: all modules share it, and so do the processes of pytest-xdist.

Whoever needs it first starts it; the last one that ends stops it. Tests keep apart by names of their own (``name``):
prefixes of topics, sessions, streams. None of them stops, breaks or hangs such a server: tests that do start their own.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from tests.commands.links.kafka_server import KafkaServer
from tests.commands.links.mosquitto import Mosquitto
from tests.commands.links.nats_server import NatsServer

S = TypeVar("S", Mosquitto, NatsServer, KafkaServer)

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
_NUMBERS = count(1)


@contextmanager
def _shared(factory: pytest.TempPathFactory, make: Callable[[Path], S]) -> Iterator[S]:
    base = factory.getbasetemp().parent if _WORKER else factory.getbasetemp()
    place = base / f"shared-{make.__name__}"
    place.mkdir(exist_ok=True)
    state = place / "state"
    with _locked(place):
        if state.exists():
            server, process_id, users = pickle.loads(state.read_bytes())
        else:
            server, users = make(place), 0
            server.start()
            assert server._process is not None
            process_id = server._process.pid
        _write(state, server, process_id, users + 1)
    try:
        yield server
    finally:
        with _locked(place):
            _, _, users = pickle.loads(state.read_bytes())
            if users > 1:
                _write(state, server, process_id, users - 1)
            else:
                state.unlink()
                server.stop(signal.SIGKILL)
                with suppress(ProcessLookupError):  # another process of pytest may have started it
                    os.kill(process_id, signal.SIGKILL)


def _write(state: Path, server: Mosquitto | NatsServer | KafkaServer, process_id: int, users: int) -> None:
    process, server._process = server._process, None
    state.write_bytes(pickle.dumps((server, process_id, users)))
    server._process = process


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    with (place / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def shared_mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with _shared(tmp_path_factory, Mosquitto) as running:
        yield running


@pytest.fixture(scope="session")
def shared_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with _shared(tmp_path_factory, NatsServer) as running:
        yield running


@pytest.fixture(scope="session")
def shared_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with _shared(tmp_path_factory, KafkaServer) as running:
        yield running


@pytest.fixture
def name() -> str:
    """For topics and sessions of one test, and of one try of it, on a shared server."""
    return f"t{_WORKER}n{next(_NUMBERS)}"
