"""A server beside ``run`` that is killed is started again, and so is the process that would do that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from tests.commands.links.mosquitto import free_port, listens
from tests.commands.listener.mqi_client import MqiClient
from tests.reliability.takeovers import children_of
from tests.waiting import until

pytestmark = pytest.mark.servers


BEGINS_AGAIN = """
import os, signal, sys, time
from pathlib import Path
from commands.running.listening import Beside, Service, beside
from tests.reliability.takeovers import children_of
from tests.waiting import until

once, again = Path(sys.argv[1], "once"), Path(sys.argv[1], "again")

def make():
    if once.exists():
        again.touch()
        time.sleep(600)
    once.touch()
    async def serve(ended, started):
        started(1)
        await ended.wait()
    return Service("127.0.0.1:1", "--listen", serve)

with beside(Beside("server", make, "")):
    (guardian,) = children_of(os.getpid())
    (server,) = children_of(guardian)
    os.kill(server, signal.SIGKILL)
    until(again.exists)
print("lives", flush=True)
"""


def test_a_server_that_is_ended_while_it_begins_again_takes_nobody_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BEGINS_AGAIN, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    assert (ran.returncode, ran.stdout) == (0, "lives\n")


HAS_A_FAULT = """
import sys
from pathlib import Path
from commands.cli import main
from commands.listener.worker import Worker

fault, look_around = Path(sys.argv[1]), Worker._look_around

def broken(worker, store):
    if fault.exists():
        fault.unlink()
        raise RuntimeError("a fault of the test")
    look_around(worker, store)

Worker._look_around = broken
main(sys.argv[2:])
"""


def test_a_listener_that_is_killed_or_has_a_fault_comes_back(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    port, fault = free_port(), tmp_path / "fault"
    words = ["run", "-m", "QM1", "--home", str(tmp_path), "--listen", str(port)]
    command = [sys.executable, "-c", HAS_A_FAULT, str(fault), *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        until(lambda: listens(port), "the listener")
        for victim in ("listener", "fault", "guardian"):
            (guardian, *_) = children_of(run.pid)
            (listener,) = children_of(guardian)
            if victim == "fault":
                fault.touch()
            else:
                os.kill(listener if victim == "listener" else guardian, signal.SIGKILL)
            until(lambda gone=listener: not Path(f"/proc/{gone}").exists(), f"the {victim} to be gone")  # type: ignore[misc]
            until(lambda: listens(port), f"another one after the {victim}")
        with MqiClient(port) as program:
            assert program.connect() == 0
        run.terminate()
        said = run.stderr.read()
    assert run.returncode == 0
    assert said.count("the listener ended by signal 9, and is started again") == 2
    assert said.count("the listener ended by a fault, and is started again") == 1
    assert "a fault of the test" in said
