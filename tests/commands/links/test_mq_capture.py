"""``qpubsub capture`` on the stand-in for IBM MQ: nothing lost, nothing twice, whatever ends or fails in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands.cli import main
from commands.config.settings import QueuesConfig
from commands.config.urls import parse_address
from commands.links.ibmmq.manager import MqMessages
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.mqmd import Mqmd
from tests.commands.links.mqi.listening import Running, queue_manager
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def mq(tmp_path: Path, kind: str) -> Iterator[Running]:
    with queue_manager(kind, tmp_path / "mq", {"S": {}, "T": {}}) as running:
        yield running


@pytest.fixture
def programs(mq: Running) -> Iterator[MqMessages]:
    made = MqMessages(parse_address(mq.url, "--queues"), QueuesConfig())
    yield made
    made.close()


def put(programs: MqMessages, queue: str, *data: str, **mqmd: Any) -> None:
    for each in data:
        with programs.unit_of_work() as unit:
            md = Mqmd(format="MQSTR", persistence=1, user_identifier="app", **mqmd).encode()
            unit.put(queue, md, each.encode(), user="app", application="program")


def captured(directory: Path) -> list[CapturedMessage]:
    return [record.message for record in read_captures(directory) if record.message is not None]


def data(directory: Path) -> list[str]:
    return [message.body.decode() for message in captured(directory)]


def capture(mq: Running, directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["capture", "--queues", mq.url, "--to", str(directory), *arguments])


def test_a_look_leaves_the_messages_on_the_queues(tmp_path: Path, mq: Running, programs: MqMessages) -> None:
    put(programs, "S", "1")
    put(programs, "T", "2")
    time.sleep(0.02)  # PutTime has hundredths of a second
    put(programs, "S", "3")
    done = capture(mq, tmp_path / "day", "S", "T=SPORT")
    assert done.exit_code == 0, done.stderr
    assert "3 messages captured" in done.stderr
    found = captured(tmp_path / "day")
    assert [(m.seq, m.qmgr, m.queue, m.user, m.body) for m in found] == [
        (1, "QM1", "S", "app", b"1"),
        (2, "QM1", "SPORT", "app", b"2"),
        (3, "QM1", "S", "app", b"3"),
    ]
    assert all(message.md is not None and message.time is not None for message in found)
    assert (mq.depth("S"), mq.depth("T")) == (2, 1)


def test_a_second_look_would_capture_messages_again(tmp_path: Path, mq: Running, programs: MqMessages) -> None:
    put(programs, "S", "1")
    assert capture(mq, tmp_path / "day", "S").exit_code == 0
    again = capture(mq, tmp_path / "day", "S")
    assert again.exit_code == 2
    assert "give another directory" in again.stderr
    assert data(tmp_path / "day") == ["1"]


def test_what_is_taken_is_gone_and_a_capture_goes_on(tmp_path: Path, mq: Running, programs: MqMessages) -> None:
    put(programs, "S", *"12345")
    assert capture(mq, tmp_path / "day", "--take", "--limit", "3", "--per-file", "2", "S").exit_code == 0
    assert mq.depth("S") == 2
    assert capture(mq, tmp_path / "day", "--take", "--per-file", "2", "--format", "parquet", "S").exit_code == 0
    assert mq.depth("S") == 0
    assert [(message.seq, message.body) for message in captured(tmp_path / "day")] == [
        (n, b"%d" % n) for n in range(1, 6)
    ]
    files = sorted(path.name for path in (tmp_path / "day").glob("capture*"))
    assert files == ["capture-000001.jsonl", "capture-000002.parquet"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("S", "S"), "given twice"),
        (("bad name",), "not the name of a queue"),
        (("S=",), None),
        (("NONE",), "2085"),
    ],
)
def test_what_cannot_be_captured(tmp_path: Path, mq: Running, arguments: tuple[str, ...], why: str | None) -> None:
    done = capture(mq, tmp_path / "day", *arguments)
    assert (done.exit_code, why is None or why in done.stderr) == (0 if why is None else 2, True), done.stderr


@pytest.mark.faults
@pytest.mark.parametrize(
    ("op", "how"),
    [
        ("M", {"reason": 2003}),
        ("M", {"when": "before"}),
        ("M", {"when": "after"}),
        ("G", {"when": "before"}),
        ("G", {"when": "after"}),
    ],
    ids=["backed out", "commit not done", "commit done", "get not done", "get done"],
)
def test_nothing_is_lost_or_twice_when_a_call_fails(
    tmp_path: Path, mq: Running, programs: MqMessages, op: str, how: dict[str, Any]
) -> None:
    put(programs, "S", *"123")
    mq.fault(op, **how)
    done = capture(mq, tmp_path / "day", "--take", "--follow", "--every", "0.05", "--limit", "3", "S")
    assert ("getting the messages again" if "reason" in how else "connecting again") in done.stderr
    assert done.exit_code == 0, done.stderr
    assert data(tmp_path / "day") == ["1", "2", "3"]
    assert mq.depth("S") == 0


@pytest.mark.faults
def test_looks_go_on_after_a_lost_connection(tmp_path: Path, mq: Running, programs: MqMessages) -> None:
    put(programs, "S", *"12")
    process = _started(mq, tmp_path / "day", "--follow", "--every", "0.05", "S")
    partial = tmp_path / "day" / ".capture-000001.jsonl.partial"
    until(lambda: partial.exists() and len(partial.read_bytes().splitlines()) == 2, "the first two messages")
    mq.fault("G", when="before")
    put(programs, "S", "3")
    until(lambda: len(partial.read_bytes().splitlines()) == 3, "the third message")
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, talk
    assert data(tmp_path / "day") == ["1", "2", "3"]
    assert mq.depth("S") == 3


@pytest.mark.faults
@pytest.mark.nightly
def test_a_killed_capture_goes_on(tmp_path: Path, mq: Running, programs: MqMessages) -> None:
    directory, expected = tmp_path / "day", [str(number) for number in range(200)]
    for first in range(0, 200, 20):
        put(programs, "S", *expected[first : first + 20])
        process = _started(mq, directory, "--take", "--follow", "--every", "0.01", "--per-file", "30", "S")
        until(lambda: mq.depth("S") < 20, "messages to be taken")
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    until(lambda: capture(mq, directory, "--take", "S").exit_code == 0 and mq.depth("S") == 0, "the rest")
    assert data(directory) == expected
    assert [message.seq for message in captured(directory)] == list(range(1, 201))


def _started(mq: Running, directory: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "commands.cli", "capture", "--queues", mq.url, "--to", str(directory), *arguments]
    environment = dict(os.environ) | mq.environment
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
