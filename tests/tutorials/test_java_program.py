"""The Java program of the tutorial connects to ``qpubsub run --listen``, gets a score, and the console shows it."""

from __future__ import annotations

import subprocess
import urllib.request
from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerStore
from tests.commands.console.served import served
from tests.commands.listener.test_java import java, running
from tests.ibm_java import compiled, needs_ibm_java
from tests.quick_java import JAVA
from tests.waiting import until

# That the program compiles is in the gate (``test_excerpts``).
pytestmark = [pytest.mark.slow, pytest.mark.servers, pytest.mark.nightly, needs_ibm_java]

PROGRAMS = Path(__file__).parents[2] / "docs" / "tutorials" / "programs"


def _subscriptions(home: Path) -> int:
    with QueueManagerStore.open(home, "QM1") as store:
        return len(store.load_state()[1])


def test_the_scoreboard_gets_a_score_over_the_listener_and_the_console_shows_it(tmp_path: Path) -> None:
    home, made = tmp_path / "qmgrs", tmp_path / "classes"
    home.mkdir()
    made.mkdir()
    path = compiled(PROGRAMS, made)
    with running(home) as port:
        command = [*JAVA, "-cp", path, "Scores", f"localhost({port})", "follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=made) as board:
            try:
                until(lambda: _subscriptions(home) > 0, "the scoreboard to subscribe")
                assert java(path, "Scores", f"localhost({port})", "publish", "Liverpool", "2 1") == []
                assert board.stdout is not None
                assert board.stdout.readline() == "score: 2 1\n"
                with served(home) as console, urllib.request.urlopen(f"{console}/connections") as page:
                    assert "Scores" in page.read().decode()
            finally:
                board.kill()
