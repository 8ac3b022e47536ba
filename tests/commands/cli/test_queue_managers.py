"""``qpubsub list``, ``stop`` and ``delete``: what dspmq, endmqm and dltmqm do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands.disk.lock import PROCESSOR_LOCK, exclusive
from tests.commands.cli_runs import run
from tests.waiting import PATIENCE_S

MESSAGE = Path(__file__).parents[3] / "fixtures/captures/ibm/single_rfh2.dat"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QPUBSUB_HOME", str(tmp_path))
    assert run("create", "QM1").code == 0
    return tmp_path


def test_list_says_which_queue_managers_there_are_and_which_are_running(home: Path) -> None:
    run("create", "A.QM")
    with exclusive(home / "QM1" / PROCESSOR_LOCK, "QM1"):
        assert run("dspmq").lines == ["QMNAME(A.QM) STATUS(Ended)", "QMNAME(QM1) STATUS(Running)"]


def test_stop_ends_run_and_waits_for_its_end(home: Path) -> None:
    command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stderr is not None
        assert "waiting for commands" in process.stderr.readline()

        ended = run("stop", "-m", "QM1")

        assert (ended.code, ended.talk) == (0, "queue manager QM1 has ended\n")
        assert process.wait(PATIENCE_S) == 0
    assert run("endmqm", "-m", "QM1").code == 1


def test_what_does_not_end_in_time_is_named(home: Path) -> None:
    holder = (
        "import signal, time; from pathlib import Path; from commands.disk.lock import exclusive\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"with exclusive(Path({str(home / 'QM1' / PROCESSOR_LOCK)!r}), 'QM1'): print(flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            for verb in (["stop", "-m", "QM1", "--wait", "0"], ["delete", "QM1", "--yes"]):
                refused = run(*verb)
                assert (refused.code, refused.talk.rstrip()) == (
                    2,
                    f"qpubsub: queue manager QM1 is already being run by process {process.pid}; end that one first",
                )
        finally:
            process.kill()


def test_delete_removes_what_is_empty_and_asks_for_what_is_not(home: Path) -> None:
    run("create", "QM2")
    assert run("delete", "QM2").code == 0
    run("mqsc", "-m", "QM1", stdin="DEFINE SUB(S) TOPICSTR('a') DEST(D)")
    run("put", "-m", "QM1", "SYSTEM.BROKER.CONTROL.QUEUE", stdin=MESSAGE.read_bytes())

    refused = run("dltmqm", "QM1")

    assert refused.code == 2
    assert "QM1 holds 1 message, 1 subscription; to delete them with it: qpubsub delete QM1 --yes" in refused.talk
    assert run("delete", "QM1", "--yes").code == 0
    assert [*home.iterdir()] == []


HOMES = [
    ("./qmgrs", True, {"XDG_STATE_HOME": "/nowhere"}, "qmgrs"),
    ("XDG_STATE_HOME", False, {"XDG_STATE_HOME": "{tmp}/state"}, "{tmp}/state/qpubsub"),
    ("of-the-user", False, {"HOME": "{tmp}"}, "{tmp}/.local/state/qpubsub"),
    ("QPUBSUB_HOME", True, {"QPUBSUB_HOME": "{tmp}/own"}, "{tmp}/own"),
]


@pytest.mark.parametrize(("has_local", "variables", "home"), [case[1:] for case in HOMES], ids=[c[0] for c in HOMES])
def test_where_queue_managers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_local: bool, variables: dict[str, str], home: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_STATE_HOME", "QPUBSUB_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    if has_local:
        (tmp_path / "qmgrs").mkdir()
    home = home.format(tmp=tmp_path)
    assert run("create", "QM1").talk == f"queue manager QM1 created in {home}/QM1\n"
    assert f"queue manager QM2 does not exist in {home} (there is QM1)" in run("status", "-m", "QM2").talk
