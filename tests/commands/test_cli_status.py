"""``qpubsub status``: what an operator is shown, while the processor works, waits, or is not there."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands.cli import main
from commands.cli.console import Console, ExitCode
from commands.cli.journal import Journal, last_status
from commands.cli.status import _link_line
from commands.live.threads import LinkState
from commands.objects import LocalQueue
from commands.queues import QueueManagerStore
from commands.tally import Tally
from tests.commands.results_service import FIXTURE, capture


def _run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments], env={"QPUBSUB_HOME": str(home)})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A queue manager QM1 with the results service on its queues."""
    assert _run(tmp_path, "create", "QM1").exit_code == ExitCode.DONE
    _fill(tmp_path)
    return tmp_path


def _fill(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        for message in capture():
            unit.put(message.queue, message.md, message.body, user=message.user)


def _status(home: Path) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(_run(home, "status", "-m", "QM1", "--json").stdout)
    return shown


def test_status_shows_depths_and_the_last_processor(home: Path) -> None:
    before = _status(home)
    control = before["queues"]["SYSTEM.BROKER.CONTROL.QUEUE"]
    assert (control["depth"], control["role"], before["input"]["waiting"]) == (12, "control", 26)
    assert 0 <= control["oldest_s"] <= before["input"]["oldest_s"] < 60
    assert before["processor"] == {"running": False}
    _run(home, "run", "-m", "QM1", "--once")
    after = _status(home)
    assert after["queues"]["SYSTEM.BROKER.CONTROL.QUEUE"]["depth"] == 0
    assert after["input"] == {"waiting": 0, "oldest_s": None}
    assert (after["subscriptions"], after["retained"]) == (1, 0)
    assert after["processor"]["done"]["publications"] == 16
    assert [error["reason"] for error in after["processor"]["last_errors"]] == [3073]
    shown = _run(home, "status", "-m", "QM1").stdout
    there = sum('"queue":"RESULTS.SERVICE"' in line for line in (FIXTURE / "puts.jsonl").read_text().splitlines())
    assert re.search(rf"^ +{there} +\d+ s  RESULTS.SERVICE$", shown, re.MULTILINE)
    assert "No processor is running; the last one did 26 commands, 16 publications" in shown


def test_status_says_what_an_operator_has_to_look_at(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("SHORT", max_depth=2, get_enabled=False))
        unit.save_definition(LocalQueue("SHUT", put_enabled=False))
        for queue, body in (("SHORT", b"1"), ("SHORT", b"2"), ("SYSTEM.DEAD.LETTER.QUEUE", b"no header")):
            unit.put(queue, None, body)
        for _ in range(3):
            unit.put("SYSTEM.BROKER.DEFAULT.STREAM", None, b"RFH \2\0\0\0" + bytes(1_000_000))
    _run(home, "run", "-m", "QM1", "--once")
    dead = _status(home)["dead_letters"]
    assert dead == {
        "queue": "SYSTEM.DEAD.LETTER.QUEUE",
        "looked_into": 4,
        "reasons": [
            {"reason": 2334, "for": "SYSTEM.BROKER.DEFAULT.STREAM", "count": 3},
            {"reason": None, "for": None, "count": 1},
        ],
    }
    shown = _run(home, "status", "-m", "QM1").stdout
    assert "SHORT  (full: MAXDEPTH 2; getting is inhibited)" in shown
    assert "SHUT  (putting is inhibited)" in shown
    assert "SYSTEM.DEAD.LETTER.QUEUE  (dead letters)" in shown
    assert "      3  2334 MQRC_RFH_ERROR: the MQRFH or MQRFH2 is not valid, for SYSTEM.BROKER.DEFAULT.STREAM" in shown
    assert "      1  without a dead-letter header" in shown


def test_status_of_a_processor_at_work_and_of_one_that_waits(home: Path) -> None:
    arguments = [sys.executable, "-m", "commands.cli", "--quiet", "run", "-m", "QM1", "--home", str(home)]
    with QueueManagerStore.open(home, "QM1") as store:
        process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        try:
            _until(lambda: _status(home)["processor"].get("done", {}).get("commands") == 26)
            at_work = _status(home)["processor"]
            with store.unit_of_work() as unit:
                unit.save_definition(LocalQueue("RESULTS.SERVICE", put_enabled=False))
                unit.save_definition(LocalQueue("SYSTEM.DEAD.LETTER.QUEUE", put_enabled=False))
            _fill(home)
            _until(lambda: _status(home)["processor"]["waiting"] is not None)
            waiting = _run(home, "status", "-m", "QM1").stdout
        finally:
            process.terminate()
            process.wait(20)
    assert (at_work["running"], at_work["pid"], at_work["waiting"]) == (True, process.pid, None)
    assert f"Processor {process.pid} since" in waiting
    assert "It waits since" in waiting
    assert "queue RESULTS.SERVICE: putting is inhibited (reason 2051); the dead-letter queue does not" in waiting
    assert "commands wait, the first for" in waiting


def test_a_terminal_that_goes_away_and_a_log_on_a_full_disk_stop_nothing(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def write(self, _text: str, /) -> int:
            raise BrokenPipeError

    class Full(io.StringIO):
        def write(self, _text: str, /) -> int:
            raise OSError(28, "No space left on device")

    journal = Journal(Console(io.BytesIO(), Gone()), tmp_path / "no-such-directory", None)
    journal._log = Full()  # type: ignore[assignment]
    with journal.following():
        logging.getLogger("qpubsub.processor").error("this cannot be told", extra={"next_try_s": 1.0})
        journal.batch(Tally(commands=1))


def _until(holds: Callable[[], bool], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


LINKS = [
    ({"connected": True, "trouble": "", "next_try_s": None}, "Topic tree: connected since 2026-01-01T00:00:00Z"),
    (
        {"connected": False, "trouble": "the connection is broken", "next_try_s": 4.0},
        "Topic tree: not connected since 2026-01-01T00:00:00Z: the connection is broken; "
        "pause before the next try 4.0 s",
    ),
]


@pytest.mark.parametrize(("state", "line"), LINKS, ids=["connected", "waiting"])
def test_the_link_to_a_topic_tree_is_shown(state: dict[str, Any], line: str) -> None:
    assert _link_line({"since": "2026-01-01T00:00:00Z", **state}) == line


def test_the_state_of_the_link_is_kept_in_the_status_file(tmp_path: Path) -> None:

    class Link:
        state = LinkState(False, "the broker does not answer", 2.0)

    link: Any = Link()
    journal = Journal(Console(io.BytesIO(), io.StringIO()), tmp_path, None)
    journal.watch(link)
    with journal.following():
        told = last_status(tmp_path)["link"]
    assert {**told, "since": ""} == {
        "since": "",
        "connected": False,
        "trouble": "the broker does not answer",
        "next_try_s": 2.0,
    }
