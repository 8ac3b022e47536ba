"""IBM's developer defaults, and where the queue manager is that has them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.config.settings import Config, ConfigError, ConnAuth, ListenerConfig
from commands.disk.lock import HolderLock
from commands.listener.server import Listener, ListenerThread, listener_of
from commands.qmgr.store import Durability, QueueManagerStore
from commands.running import developer
from commands.running.developer import Developer, passing_home
from rfh2.constants import MQRC_NOT_AUTHORIZED
from rfh2.mqi_constants import MQOO_OUTPUT
from tests.commands.listener.mqi_client import MqiClient

APP, ADMIN = "DEV.APP.SVRCONN", "DEV.ADMIN.SVRCONN"
OWN, OTHER = "DEV.QUEUE.1", "SYSTEM.ADMIN.COMMAND.QUEUE"
CASES: list[tuple[dict[str, str], str, str, str, str, int]] = [
    # passwords            channel  user     given   queue  reason
    ({}, APP, "anybody", "", OWN, 0),
    ({}, APP, "anybody", "any", OWN, 0),
    ({}, APP, "app", "", OTHER, MQRC_NOT_AUTHORIZED),
    ({}, APP, "admin", "", OTHER, MQRC_NOT_AUTHORIZED),
    ({}, ADMIN, "app", "", OWN, MQRC_NOT_AUTHORIZED),
    ({}, ADMIN, "admin", "any", OTHER, 0),
    ({"app": "secret"}, APP, "app", "secret", OWN, 0),
    ({"app": "secret"}, APP, "app", "wrong", OWN, MQRC_NOT_AUTHORIZED),
    ({"app": "secret"}, APP, "app", "", OWN, MQRC_NOT_AUTHORIZED),
    ({"app": "secret"}, ADMIN, "admin", "secret", OWN, MQRC_NOT_AUTHORIZED),
    ({"admin": "secret"}, ADMIN, "admin", "secret", OTHER, 0),
    ({"admin": "secret"}, APP, "app", "", OWN, 0),
]


@pytest.mark.parametrize(("passwords", "channel", "user", "given", "queue", "reason"), CASES)
def test_who_may_what(
    tmp_path: Path, passwords: dict[str, str], channel: str, user: str, given: str, queue: str, reason: int
) -> None:
    config = Config(listener=ListenerConfig(connauth=ConnAuth(faildlay=0)))
    settings = Developer(listen="0", passwords=passwords).settings(tmp_path, config)
    made = listener_of(settings.config.listener, None, tmp_path, "QM1", Durability.NORMAL, settings.groups_of)
    assert made is not None
    with ListenerThread(made) as port, MqiClient(port, channel=channel) as client:
        connected = client.connect(user, password=given)
        assert (connected or client.open(queue, MQOO_OUTPUT).reason) == reason


def test_without_defaults_the_scripts_say_who_may_connect(tmp_path: Path) -> None:
    scripts = tmp_path / "mqsc"
    scripts.mkdir()
    asked = Developer(listen="0.0.0.0:0", passwords={}, defaults=False, mqsc=scripts)

    def listener() -> Callable[[], Listener] | None:
        settings = asked.settings(tmp_path, Config())
        return listener_of(settings.config.listener, None, tmp_path, "QM1", Durability.NORMAL)

    with pytest.raises(ConfigError, match="can be reached from other machines"):
        listener()
    (scripts / "1.mqsc").write_text("DEFINE CHANNEL(OWN) CHLTYPE(SVRCONN) MCAUSER('somebody')\n")
    made = listener()
    assert made is not None
    with ListenerThread(made) as port, MqiClient(port, channel="OWN") as client:
        assert client.connect("anybody") == 0


def test_the_objects_are_defined_once_more_at_each_start(tmp_path: Path) -> None:
    for _ in range(2):
        Developer(passwords={}).settings(tmp_path, Config())
        with QueueManagerStore.open(tmp_path, "QM1") as store, store.unit_of_work() as unit:
            objects = store.load_state()[0]
            unit.put("DEV.QUEUE.1", None, b"")
    assert {name for name in objects.queues if name.startswith("DEV.")} == {
        *("DEV.QUEUE.1", "DEV.QUEUE.2", "DEV.QUEUE.3", "DEV.DEAD.LETTER.QUEUE")
    }
    assert objects.qmgr.deadq == "DEV.DEAD.LETTER.QUEUE"
    topic = objects.topics.get("DEV.BASE.TOPIC")
    assert topic is not None
    assert topic.topic_string == "dev/"
    with QueueManagerStore.open(tmp_path, "QM1") as store:
        assert store.depth("DEV.QUEUE.1") == 2
    assert (tmp_path / "QM1").stat().st_mode & 0o077 == 0


def test_a_home_passes_with_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(developer, "_MEMORY", tmp_path)
    held, left, starting = (tmp_path / f"qpubsub-dev-{name}" for name in ("held", "left", "starting"))
    for each in (held, left, starting):
        each.mkdir()
        (each / "dev.lock").touch()
        os.utime(each, (0, 0) if each != starting else None)
    lock = HolderLock(held / "dev.lock")
    assert lock.take()
    os.utime(held, (0, 0))
    with passing_home() as home:
        assert home.parent == tmp_path
        assert sorted(tmp_path.iterdir()) == sorted([held, starting, home])
        lock.release()
    assert sorted(tmp_path.iterdir()) == [held, starting]


def test_a_home_is_elsewhere_without_room_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(developer, "_MEMORY", tmp_path / "nosuch")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with passing_home() as home:
        assert home.parent == tmp_path
