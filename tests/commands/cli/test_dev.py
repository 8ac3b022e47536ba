"""``qpubsub dev``, as a program starts it: what it says, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerStore

pytestmark = pytest.mark.servers
DEV = (sys.executable, "-m", "commands.cli", "dev")


def test_it_answers_to_the_variables_of_ibms_image_and_says_its_lines(tmp_path: Path) -> None:
    scripts = tmp_path / "mqsc"
    scripts.mkdir()
    (scripts / "1.mqsc").write_text("DEFINE QLOCAL(A)\nDEFINE NONSENSE(B)\n")
    variables = {"LICENSE": "accept", "MQ_QMGR_NAME": "QM9", "MQ_APP_PASSWORD": "passw0rd", "MQ_DEV": "true"}
    command = [*DEV, "--port", "0.0.0.0:0", "--home", str(tmp_path), "--mqsc", str(scripts), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables}
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        socket.create_connection(("127.0.0.1", ready["port"]), 10).close()
        process.send_signal(signal.SIGTERM)
        out, talk = process.communicate(timeout=60)
    port = ready["port"]
    name = f"localhost({port})"
    assert ready == {
        "qmgr": "QM9",
        "host": "localhost",
        "port": port,
        "conn_name": name,
        "home": str(tmp_path),
        "channel": "DEV.APP.SVRCONN",
        "user": "app",
        "admin_channel": "DEV.ADMIN.SVRCONN",
        "admin_user": "admin",
        "pid": process.pid,
    }
    assert (process.returncode, out) == (0, "")
    assert (
        f"AMQ5026I: The listener 'DEV.LISTENER.TCP' has started. ProcessId({process.pid}).\nStarted queue manager\n"
        in talk
    )
    assert f"MQSERVER='DEV.APP.SVRCONN/TCP/{name}'" in talk
    assert f"ibm.mq.queueManager=QM9 ibm.mq.connName={name} ibm.mq.channel=DEV.APP.SVRCONN ibm.mq.user=app" in talk
    assert re.search(r"1\.mqsc, line 2: AMQ8405", talk)
    assert "passw0rd" not in talk
    with QueueManagerStore.open(tmp_path, "QM9") as store:
        assert store.find_queue("A") is not None


def _file(tmp_path: Path) -> Path:
    (tmp_path / "file").touch()
    return tmp_path / "file"


def test_a_users_errors_are_one_sentence_each(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options, said in (
            (("--port", str(port)), f"cannot listen on 127.0.0.1:{port}: Address already in use"),
            (("-m", "no name", "--port", "0"), "'no name' cannot name a queue manager"),
            (
                ("--port", "0", "--home", str(_file(tmp_path) / "x")),
                f"{tmp_path}/file/x/QM1: cannot be made: Not a directory",
            ),
        ):
            ran = subprocess.run([*DEV, *options], capture_output=True, text=True, check=False, timeout=60)
            assert (ran.returncode, ran.stdout) == (2, "")
            assert ran.stderr.startswith(f"qpubsub: {said}")
            assert ran.stderr.count("\n") == 1
