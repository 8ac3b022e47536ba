"""``qpubsub run`` answers PCF commands; an inquiry of many subscriptions takes no memory for its answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands.broker.objects import ADMIN_COMMAND_QUEUE
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from rfh2 import pcf_admin_names as c
from rfh2.constants import MQMT_REQUEST
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfst, Pcf, decode_pcf
from rfh2.pcf_names import MQCA_TOPIC_STRING
from tests.commands.cli_runs import run
from tests.waiting import until

TOPIC = Cfst.of(c.MQCA_TOPIC_NAME, "T")
CREATE = Pcf(c.MQCMD_CREATE_TOPIC, (TOPIC, Cfst.of(MQCA_TOPIC_STRING, "a/b")))
INQUIRE = Pcf(c.MQCMD_INQUIRE_TOPIC, (TOPIC,))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    assert run("create", "QM1", "--home", str(tmp_path)).code == ExitCode.DONE
    return tmp_path


def ask(home: Path, *commands: Pcf) -> None:
    md = Mqmd(format="MQADMIN", msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q", priority=0, persistence=0).encode()
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        for command in commands:
            unit.put(ADMIN_COMMAND_QUEUE, md, command.encode(), user="admin")


def answers(home: Path) -> list[Pcf]:
    got = run("get", "-m", "QM1", "--home", str(home), "REPLY.Q")
    return [decode_pcf(bytes.fromhex(json.loads(line)["body_hex"]), 1208) for line in got.lines]


@pytest.mark.rule("PCF-9")
def test_run_once_carries_out_and_answers(home: Path, tmp_path: Path) -> None:
    ask(home, CREATE, INQUIRE, Pcf(c.MQCMD_DELETE_TOPIC, (Cfst.of(c.MQCA_TOPIC_NAME, "NONE"),)))
    record = tmp_path / "puts.jsonl"
    ended = run("run", "-m", "QM1", "--home", str(home), "--once", "--record", str(record))
    assert (ended.code, ended.talk.splitlines()[-1]) == (
        ExitCode.DONE,
        "3 commands (1 in error): 0 publications delivered, 4 responses, 0 dead letters",
    )
    assert [(pcf.command, pcf.reason) for pcf in answers(home)] == [(172, 0), (174, 0), (173, 2085), (173, 3008)]
    assert len(record.read_text().splitlines()) == 4
    shown = run("mqsc", "-m", "QM1", "--home", str(home), stdin="DISPLAY TOPIC(T) TOPICSTR\n")
    assert "TOPICSTR(a/b)" in shown.out


@pytest.mark.nightly
def test_a_processor_that_waits_answers_at_once_and_after_a_kill(home: Path) -> None:
    command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(home)]
    for kill in (signal.SIGKILL, signal.SIGTERM):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as processor:
            try:
                ask(home, INQUIRE)
                until(lambda: [pcf.reason for pcf in answers(home)] == [2085, 3008])
            finally:
                os.killpg(processor.pid, kill)


_MANY = """
import re, sys
from datetime import UTC, datetime
from pathlib import Path
from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2 import pcf_admin_names as c
from rfh2.pcf import Cfst
from streams.operations import SubscriptionAdded
from streams.subscriptions import Subscription
from tests.commands.mqsc.pcf_desk import NOW, Desk

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

home, count = Path(sys.argv[1]), int(sys.argv[2])
with QueueManagerStore.create(home, QueueManager("QM1")) as store:
    made = (
        Subscription(i.to_bytes(24, "big"), f"sport/{i}", "Q", "QM1", NOW, name=f"SUB.{i:06}") for i in range(count)
    )
    with store.unit_of_work() as unit:
        unit.save_effects([SubscriptionAdded(each) for each in made])
    desk = Desk(store)
    desk.done(c.MQCMD_PING_Q_MGR)
    before = peak()
    desk.replies = lambda: []
    desk.ask(c.MQCMD_INQUIRE_SUBSCRIPTION, Cfst.of(c.MQCACF_SUB_NAME, "*"))
    with store.unit_of_work() as unit:
        print(unit.depth("REPLY.Q"), peak() - before)
"""


@pytest.mark.nightly
def test_the_answers_to_an_inquiry_are_not_held_in_memory(tmp_path: Path) -> None:
    """20,000 responses of 1,100 bytes would be 22 MB, and as rows and parameters ten times as much."""
    arguments = [sys.executable, "-c", _MANY, str(tmp_path), "20000"]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    depth, grown = map(int, ended.stdout.split())
    assert depth == 20_000
    assert grown < 12_000_000
