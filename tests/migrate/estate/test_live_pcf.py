"""The verb ``estate`` on a queue manager that is reached as a client: commands as PCF, and messages on its queues.

The threads of the test stand for the queue manager; therefore the verb, which forks, is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.extract import REPLY_QUEUE
from tests.commands.cli_runs import run
from tests.commands.links.mqi.harness import library, needs_mqi, stand_in
from tests.migrate.live.rigs import URL, create, moving, rig, write_legacy
from tests.migrate.live.test_extract import Version6

pytestmark = [needs_mqi, pytest.mark.servers, pytest.mark.slow]

ROOT = Path(__file__).parents[3]


def write_estate(directory: Path, *lines: str) -> Path:
    text = ["[[queue_manager]]", 'name = "QM1"', f'queues = "{URL}"', *lines]
    (directory / "estate.toml").write_text("\n".join(text) + "\n")
    return directory


def estate(directory: Path, action: str, *more: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from commands.cli import main; main()", "estate", action, str(directory)]
    environment = os.environ | {"LD_LIBRARY_PATH": str(library().parent), "PYTHONPATH": str(ROOT)}
    return subprocess.run([*program, *more], env=environment, capture_output=True, text=True, check=False)


def state_of(directory: Path) -> str:
    shown = json.loads(run("estate", "status", str(directory), "--json").out)["queue_managers"]
    return str(shown[0]["state"])


def test_7_4_1_messages_are_loaded_too(tmp_path: Path) -> None:
    source = write_legacy(tmp_path)
    write_estate(tmp_path, f'source = "{source.name}"')
    assert run("estate", "plan", str(tmp_path)).code in (0, 1), "it connects to nothing"
    with rig("pcf", tmp_path):
        ran = estate(tmp_path, "apply", "--all", "--confirm", "stopped", "--wait", "60")
        assert state_of(tmp_path) == "applied", ran.stderr
        ran = estate(tmp_path, "verify")
        assert (ran.returncode, state_of(tmp_path)) == (0, "verified"), ran.stderr


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
        ran = estate(tmp_path, "extract")
        assert (ran.returncode, state_of(tmp_path)) == (0, "extracted"), ran.stderr
    assert run("estate", "plan", str(tmp_path)).code in (0, 1)
    (shown,) = json.loads(run("estate", "status", str(tmp_path), "--json").out)["queue_managers"]
    assert shown["sums"]["items"] >= 3
