"""A listener on a port of its own, for a new queue manager QM1."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands.broker.authority import GroupsOf, no_groups
from commands.broker.exit_values import PublishExit
from commands.broker.objects import QueueManager
from commands.config.settings import ChannelRule
from commands.listener.security import Security
from commands.listener.server import Listener, ListenerOptions, ListenerThread
from commands.listener.session import Bounds
from commands.qmgr.admin import PcfCommandServer
from commands.qmgr.mqi.subscription_server import SubscriptionServer
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.queue_manager import utc_now
from rfh2.channel.segments import Pulse
from tests.waiting import PATIENCE_S

ANYBODY = Security({"*": ChannelRule()})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    return tmp_path


def listener_at(home: Path, security: Security = ANYBODY, qmgr: str = "QM1", **options: object) -> ListenerThread:
    """A listener for *qmgr* in *home*; as a context manager it gives the port."""
    bounds = {name: options.pop(name) for name in Bounds.__dataclass_fields__ if name in options}
    chosen = ListenerOptions(port=0, bounds=Bounds(**bounds), **{"quiesce_s": 0.2, **options})  # type: ignore[arg-type]
    return ListenerThread(lambda: Listener(chosen, qmgr, lambda: QueueManagerStore.open(home, qmgr), security))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is asked for a sign of life has as long as a test has, however short the interval is."""
    monkeypatch.setattr(Pulse, "patience_s", PATIENCE_S)


@contextmanager
def processing(home: Path, groups_of: GroupsOf = no_groups, publish_exit: PublishExit | None = None) -> Iterator[None]:
    """The command processor of QM1, beside the listener."""
    stop = threading.Event()

    def run() -> None:
        with QueueManagerStore.open(home, "QM1") as store:
            servers = (PcfCommandServer, SubscriptionServer)
            processor = Processor(
                store, utc_now, groups_of=groups_of, command_servers=servers, publish_exit=publish_exit
            )
            processor.start()
            processor.run(stop, idle_s=0.1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def port(home: Path) -> Iterator[int]:
    with listener_at(home) as port:
        yield port


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    folder = tmp_path_factory.mktemp("tls")
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
    paths = folder / "cert.pem", folder / "key.pem"
    subprocess.run([*made, "-out", str(paths[0]), "-keyout", str(paths[1])], check=True, capture_output=True)
    return paths
