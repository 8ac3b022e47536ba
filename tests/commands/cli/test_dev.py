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

from commands.config.home import PostgresqlHome
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import MQOO_INPUT_SHARED, MQOO_OUTPUT
from tests.commands.cli_runs import run
from tests.commands.listener.mqi_client import MqiClient
from tests.postgresql import needs_postgresql
from tests.waiting import PATIENCE_S

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
        socket.create_connection(("127.0.0.1", ready["port"]), PATIENCE_S).close()
        process.send_signal(signal.SIGTERM)
        out, talk = process.communicate(timeout=PATIENCE_S)
    port = ready["port"]
    name = f"localhost({port})"
    assert ready == {
        "format": 1,
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


@needs_postgresql
def test_in_postgresql_another_one_goes_on(postgresql_home: PostgresqlHome) -> None:
    command = [*DEV, "--port", "0", "--home", postgresql_home.url, "--json"]
    for signalled, asked in ((signal.SIGKILL, "put"), (signal.SIGTERM, "get")):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert ready["home"] == str(postgresql_home)
            with MqiClient(ready["port"], channel=ready["channel"]) as program:
                assert program.connect(ready["user"]) == 0
                queue = program.opened("DEV.QUEUE.1", MQOO_INPUT_SHARED | MQOO_OUTPUT)
                if asked == "put":
                    assert program.put(queue, b"stays", persistence=1)[0] == 0
                else:
                    assert program.get(queue).body == b"stays"
            process.send_signal(signalled)
    assert process.returncode == 0


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = subprocess.run(
            [*DEV, "--port", str(port)], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    said = f"qpubsub: cannot listen on 127.0.0.1:{port}: address already in use"
    assert (ran.returncode, ran.stdout, ran.stderr[: len(said)], ran.stderr.count("\n")) == (2, "", said, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-m", "no name"), "'no name' cannot name a queue manager: 1 to 48 of A-Z a-z 0-9 . _ / %"),
        (("--home", "file/x"), "file/x/QM1: cannot be made: not a directory"),
        (("--port", "elsewhere"), "--listen: elsewhere is not HOST:PORT or a port, as in 127.0.0.1:1414"),
    ],
)
def test_other_errors_of_a_user_are_too(
    options: tuple[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    ran = run("dev", *options)
    assert (ran.code, ran.out, ran.talk) == (2, "", f"qpubsub: {said}\n")
