"""``run`` waits for a server of PostgreSQL that is away, also before it begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from tests.postgresql import needs_postgresql, postgresql_server

pytestmark = [needs_postgresql, pytest.mark.servers]


def test_run_waits_for_the_server_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with postgresql_server() as server:
        command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", server.home().url]
        QueueManagerStore.create(server.home(), QueueManager("QM1")).close()
        server.stop()
        once = subprocess.run([*command, "--once"], capture_output=True, text=True, check=False)
        assert (once.returncode, "the server cannot be reached" in once.stderr) == (2, True)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
            assert run.stderr is not None
            assert run.stderr.readline().endswith("look whether it runs, and at host and port; it is tried again\n")
            server.start()
            assert "waiting for commands" in run.stderr.readline()
            run.terminate()
            run.communicate()
        assert run.returncode == 0
