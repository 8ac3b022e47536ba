"""The verb ``estate`` on a queue manager that is reached as a client: commands as PCF, and messages on its queues.

The threads of the test stand for the queue manager; therefore the verb acts on one broker after the other in this
process, as it does on a system that cannot fork.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from migrate.extract import REPLY_QUEUE
from tests.commands.cli_runs import run
from tests.commands.links.mqi.harness import needs_mqi, stand_in
from tests.migrate.live.rigs import URL, create, moving, rig, write_legacy
from tests.migrate.live.test_extract import Version6

pytestmark = [needs_mqi, pytest.mark.servers, pytest.mark.slow]


def write_estate(directory: Path, *lines: str) -> Path:
    text = ["[migration]", "sources_within_hours = 0", "[[queue_manager]]", 'name = "QM1"', f'queues = "{URL}"', *lines]
    (directory / "estate.toml").write_text("\n".join(text) + "\n")
    return directory


@pytest.fixture(autouse=True)
def _no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")


def state_of(directory: Path) -> str:
    shown = json.loads(run("estate", "status", str(directory), "--json").out)["queue_managers"]
    return str(shown[0]["state"])


def test_7_4_1_messages_are_loaded_too(tmp_path: Path) -> None:
    source = write_legacy(tmp_path)
    write_estate(tmp_path, f'source = "{source.name}"')
    assert run("estate", "plan", str(tmp_path)).code in (0, 1), "it connects to nothing"
    with rig("pcf", tmp_path):
        ran = run("estate", "apply", str(tmp_path), "--all", "--confirm", "stopped", "--wait", "60")
        assert state_of(tmp_path) == "applied", ran.talk
        ran = run("estate", "verify", str(tmp_path))
        assert (ran.code, state_of(tmp_path)) == (0, "verified"), ran.talk


def test_7_5_a_version_6_broker_is_asked_for_its_sources(tmp_path: Path) -> None:
    write_estate(tmp_path, 'extract = "metatopics"')
    home = tmp_path / "live"
    create(home)
    assert run("mqsc", "-m", "QM1", "--home", str(home), stdin=f"DEFINE QLOCAL({REPLY_QUEUE})\n").code == 0
    assert state_of(tmp_path) == "missing"
    broker = Version6(home)
    with (
        stand_in(tmp_path / "mq", {"Sport": {}, REPLY_QUEUE: {}}, command_server=False),
        moving(home),
        broker.running(),
    ):
        ran = run("estate", "extract", str(tmp_path))
        assert (ran.code, state_of(tmp_path)) == (0, "extracted"), ran.talk
    assert run("estate", "plan", str(tmp_path)).code in (0, 1)
    (shown,) = json.loads(run("estate", "status", str(tmp_path), "--json").out)["queue_managers"]
    assert shown["sums"]["items"] >= 3
