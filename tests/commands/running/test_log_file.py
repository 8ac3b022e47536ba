"""The file of --log: formats, and a new file when SIGHUP asks for one, with the supervisor in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands.running.journal import LogFile, LogFormat, as_text
from tests.commands.cli_runs import run
from tests.waiting import until

EVENT = {"time": "2026-01-02T09:11:20Z", "level": "warning", "text": "message 3 on Q: bad"}
LOGS = ("log", "log.1", "log.2")
LINES = [
    ("plain", EVENT, "2026-01-02T09:11:20Z WARNING message 3 on Q: bad"),
    (
        "ids",
        EVENT | {"ids": ["AMQ5857W", "AMQ5882W"]},
        "2026-01-02T09:11:20Z WARNING AMQ5857W AMQ5882W message 3 on Q: bad",
    ),
    (
        "a forged line",
        EVENT | {"text": "a\n2026 ERROR b\x1b[2J"},
        r"2026-01-02T09:11:20Z WARNING a\u000a2026 ERROR b\u001b[2J",
    ),
]


@pytest.mark.parametrize(("event", "line"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_an_event_as_text_is_one_line(event: dict[str, object], line: str) -> None:
    assert as_text(event) == line


def test_sighup_opens_a_new_file_between_two_events(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path, LogFormat.JSON, print)
    with log.reopening():
        log.write(EVENT)
        path.rename(tmp_path / "log.1")
        log.write(EVENT)
        os.kill(os.getpid(), signal.SIGHUP)
        log.write(EVENT | {"text": "new"})
    log.close()
    assert len((tmp_path / "log.1").read_text().splitlines()) == 2
    assert [json.loads(line)["text"] for line in path.read_text().splitlines()] == ["new"]
    assert path.stat().st_mode & 0o077 == 0


def test_a_process_that_gets_no_signal_opens_a_new_file_where_the_old_one_was_renamed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path, LogFormat.JSON, print, follows=True)
    log.write(EVENT)
    path.rename(tmp_path / "log.1")
    log.write(EVENT | {"text": "new"})
    log.write(EVENT | {"text": "more"})
    path.rename(tmp_path / "log.2")
    path.touch(0o600)
    log.write(EVENT | {"text": "newest"})
    log.close()
    texts = [[json.loads(line)["text"] for line in (tmp_path / name).read_text().splitlines()] for name in LOGS]
    assert texts == [["newest"], [EVENT["text"]], ["new", "more"]]


def test_where_no_new_file_can_be_opened_the_old_one_goes_on_for_now(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = tmp_path / "there" / "log"
    log = LogFile(path, LogFormat.JSON, print)
    with log.reopening():
        (tmp_path / "there").rename(tmp_path / "gone")
        os.kill(os.getpid(), signal.SIGHUP)
        log.write(EVENT)
        log.write(EVENT)
        (tmp_path / "there").mkdir()
        log.write(EVENT)
    log.close()
    assert [len(each.read_text().splitlines()) for each in (tmp_path / "gone" / "log", path)] == [2, 1]


@pytest.mark.nightly
def test_sighup_to_run_opens_its_log_again_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QPUBSUB_HOME", str(tmp_path))
    assert run("create", "QM1").code == 0
    path, old = tmp_path / "run.log", tmp_path / "run.log.1"
    words = ["run", "-m", "QM1", "--log", str(path)]
    process = subprocess.Popen([sys.executable, "-m", "commands.cli", *words], stderr=subprocess.DEVNULL)
    try:
        until(lambda: path.exists() and "AMQ5806I" in path.read_text())
        path.rename(old)
        process.send_signal(signal.SIGHUP)
        # The processor looks twice a second where there is nothing to do.
        until(path.exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
    assert "AMQ5807I" in path.read_text()
    assert "AMQ5807I" not in old.read_text()
