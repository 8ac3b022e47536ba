"""IBM's Java classes at the other end of the same queues.

Rows of docs/conformance.md: MQC-7.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commands.client.queue_manager import connect
from rfh2.mqmd import Mqmd
from tests.commands.listener.conftest import listener_at
from tests.ibm_java import compiled, needs_ibm_java
from tests.quick_java import JAVA

pytestmark = [pytest.mark.slow, needs_ibm_java]

SIZES = [0, 1, 7, 1_024, 40_000, 300_000]


@pytest.mark.rule("MQC-7")
def test_each_side_gets_what_the_other_puts(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = compiled(Path(__file__).parent / "java", tmp_path_factory.mktemp("classes"))
    sent = {}
    with listener_at(home) as port, connect(f"mq://127.0.0.1:{port}/QM1?channel=C") as qmgr:
        command = [*JAVA, "-cp", path, "Echo", str(port), str(len(SIZES))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=path.partition(":")[0]) as java:
            for n, size in enumerate(SIZES):
                data = os.urandom(size)
                mqmd = Mqmd(version=2, persistence=n % 2)
                sent[qmgr.put("Q", data, mqmd=mqmd, properties={"Colour": f"red {n}"})] = data, f"red {n}!", n % 2
            got = {}
            for message in qmgr.queue("R").messages(60 if java.poll() is None else 1):
                mqmd = message.descriptor
                got[mqmd.correl_id] = message.data, message.properties["Colour"], mqmd.persistence
                if len(got) == len(sent):
                    break
            printed = java.stdout.read() if java.stdout is not None else ""
    assert java.returncode == 0
    assert got == sent
    assert printed.split() == [str(size) for size in SIZES]
