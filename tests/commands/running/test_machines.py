"""Three machines and a server of PostgreSQL: A and B run QM1, with a listener, and programs and people are on C.

A machine is a directory here, in which its processes keep what is theirs. They share the database, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commands.config.home import PostgresqlHome, process_here
from tests.commands.listener.mqi_client import MqiClient
from tests.postgresql import needs_postgresql
from tests.waiting import PATIENCE_S, until

pytestmark = [needs_postgresql, pytest.mark.faults]

SUBSCRIBER = "DEFINE QLOCAL(BOARD)\nDEFINE SUB(BOARD) TOPICSTR('sport/#') DEST(BOARD)\n"


class Machine:
    """A directory, and the processes that work there."""

    def __init__(self, place: Path, home: PostgresqlHome) -> None:
        place.mkdir()
        self.place = place
        self._environment = {**os.environ, "XDG_STATE_HOME": str(place), "QPUBSUB_HOME": home.url}
        self._started: list[subprocess.Popen[bytes]] = []

    def qpubsub(self, *words: str, stdin: str = "") -> str:
        """What ``qpubsub`` prints there."""
        done = subprocess.run(
            [sys.executable, "-m", "commands.cli", *words],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.qpubsub("status", "-m", "QM1", "--json"))
        return found

    def run(self, port: int) -> int:
        """``qpubsub run``, with a listener: its process."""
        command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--lease", "1", "--listen", str(port)]
        with (self.place / "talk").open("ab") as talk:
            process = subprocess.Popen(command, env=self._environment, stderr=talk, start_new_session=True)
        self._started.append(process)
        return process.pid

    def page(self, path: str) -> str:
        """A page of ``qpubsub console`` there."""
        command = [sys.executable, "-m", "commands.cli", "console", "-m", "QM1", "--listen", "0"]
        with subprocess.Popen(command, env=self._environment, stderr=subprocess.PIPE, text=True) as console:
            assert console.stderr is not None
            address = next(found[1] for line in console.stderr if (found := re.search(r"console on (\S+)/", line)))
            with urllib.request.urlopen(f"{address}{path}", timeout=PATIENCE_S) as answer:
                page: str = answer.read().decode()
            console.terminate()
        return page

    def talk(self) -> str:
        return (self.place / "talk").read_text()

    def kill(self) -> None:
        """Kill all that works there."""
        for each in self._started:
            if each.poll() is None:
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()

    def wait(self) -> list[int]:
        """The exit codes, when all has ended."""
        return [each.wait(PATIENCE_S) for each in self._started]


@pytest.fixture
def machines(postgresql_home: PostgresqlHome, tmp_path: Path) -> Iterator[tuple[Machine, Machine, Machine]]:
    a, b, c = (Machine(tmp_path / name, postgresql_home) for name in "ABC")
    yield a, b, c
    for each in (a, b, c):
        each.kill()


@pytest.fixture
def port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        found: int = free.getsockname()[1]
        return found


def test_one_queue_manager_on_three_machines(machines: tuple[Machine, Machine, Machine], port: int) -> None:
    a, b, c = machines
    c.qpubsub("create", "QM1")
    c.qpubsub("mqsc", "-m", "QM1", stdin=SUBSCRIBER)

    works = a.run(port)
    until(lambda: "waiting for commands" in a.talk(), "A to work")
    waits = b.run(port)
    until(lambda: "running as standby" in b.talk(), "B to wait")

    c.qpubsub("pub", "-m", "QM1", "sport/goals", "one")
    until(lambda: b"one".hex() in c.qpubsub("browse", "-m", "QM1", "BOARD"), "a delivery, which C sees")

    # C has none of A's files and sockets, and sees what A does and who is connected there.
    with MqiClient(port) as program:
        assert program.connect() == 0
        seen = c.status()
        assert [(each["mode"], each["pid"]) for each in seen["processor"]["instances"]] == [
            ("active", works),
            ("standby", waits),
        ]
        assert seen["processor"]["done"]["publications"] == 1
        assert seen["connections"]["listeners"] == [f"127.0.0.1:{port}"]
        assert seen["connections"]["programs"] == 1
        (channel,) = seen["connections"]["channels"]
        assert channel in c.page("/connections")
        assert "CONN(" in c.qpubsub("mqsc", "-m", "QM1", stdin="DISPLAY CONN(*) ALL\n")
    # Connections to the server: A's are the supervisor's, the processor's and the listener's, however many programs.
    assert seen["database"]["sessions"][process_here(works)] == 1
    assert sum(seen["database"]["sessions"].values()) < 10

    a.kill()
    c.qpubsub("pub", "-m", "QM1", "sport/goals", "two")
    until(lambda: b"two".hex() in c.qpubsub("browse", "-m", "QM1", "BOARD"), "B to go on")
    assert [each["pid"] for each in c.status()["processor"]["instances"]] == [waits]

    c.qpubsub("stop", "-m", "QM1")
    assert b.wait() == [0]
    assert c.status()["processor"]["instances"] == []
