"""What systemd learns of ``run``, by a socket as systemd's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.running.listening import notify
from tests.commands.cli_runs import run
from tests.waiting import PATIENCE_S


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def test_run_is_ready_alive_and_ending(tmp_path: Path, manager: socket.socket) -> None:
    home = str(tmp_path / "home")
    assert run("create", "QM1", "--home", home).code == 0
    words = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", home]
    process = subprocess.Popen(words, env={**os.environ, "WATCHDOG_USEC": "30000000"}, stderr=subprocess.DEVNULL)
    seen: list[str] = []

    def until(state: str) -> None:
        while not seen or state not in seen[-1]:
            seen.append(manager.recv(4096).decode())

    try:
        until("READY=1\nSTATUS=queue manager QM1: processing commands")
        until("WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        until("STOPPING=1")
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("address", ["", "/nowhere/socket", "@nothing-listens-here"])
def test_without_a_service_manager_nothing_happens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify("READY=1")
