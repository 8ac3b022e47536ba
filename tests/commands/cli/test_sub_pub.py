"""``qpubsub sub`` and ``pub``: a subscriber and a publisher in one line each, beside a processor; ``get --follow``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from tests.commands.cli_runs import Working, run, working
from tests.waiting import PATIENCE_S

PROGRAM = [sys.executable, "-c", "from commands.cli import main; main()"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QPUBSUB_HOME", str(tmp_path / "qmgrs"))
    monkeypatch.setenv("QPUBSUB_QMGR", "QM1")
    assert run("create", "QM1").code == 0
    return tmp_path / "qmgrs"


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
    )


@pytest.fixture
def processor(home: Path) -> Iterator[Working]:
    """A bridge at work."""
    with working(home) as bridge:
        yield bridge


def line_of(process: subprocess.Popen[str], words: str) -> None:
    """Wait until *process* has said *words*."""
    assert process.stderr is not None
    while line := process.stderr.readline():
        if words in line:
            return
    raise AssertionError(f"it never said {words}")


def subscriptions(home: Path) -> int:
    with QueueManagerStore.open(home, "QM1") as store:
        return len(store.load_state()[1])


def dynamic_queues(home: Path) -> list[str]:
    with QueueManagerStore.open(home, "QM1") as store:
        names = [queue.definition.name for queue in store.overview().queues]
    return [name for name in names if name.startswith("QPUBSUB.SUB.")]


def test_what_is_published_is_printed_a_line_each(home: Path, processor: Working) -> None:
    assert run("pub", "--retain", "Sport/Soccer", "1 0").code == 0
    subscriber = started("sub", "Sport/#", "-C", "3")
    line_of(subscriber, "subscribed to Sport/#")
    assert run("pub", "Sport/Golf", "-", stdin="tee\noff").code == 0
    assert run("pub", "News/Today", "not for it").code == 0
    assert run("pub", "Sport/Golf", "par").code == 0
    out, talk = subscriber.communicate(timeout=PATIENCE_S)
    assert (subscriber.returncode, out) == (0, "Sport/Soccer\t1 0\nSport/Golf\ttee off\nSport/Golf\tpar\n")
    assert "3 publications received" in talk
    assert (subscriptions(home), dynamic_queues(home)) == (0, [])


def test_as_json_with_a_filter(home: Path, processor: Working) -> None:
    subscriber = started("sub", "a", "b", "--json", "--filter", "Colour = 'red'", "--new-only", "-C", "1")
    line_of(subscriber, "subscribed to a, b")
    assert run("pub", "a", "x", "--property", "Colour=blue").code == 0
    assert run("pub", "b", "y", "--property", "Colour=red", "--property", "Size:int=3", "--persistent").code == 0
    out, _ = subscriber.communicate(timeout=PATIENCE_S)
    assert json.loads(out) == {
        "format": 1,
        "topic": "b",
        "text": "y",
        "data_hex": b"y".hex(),
        "retained": False,
        "properties": {"Colour": "red", "Size": 3},
    }


ENDS = [("ctrl-c", signal.SIGINT, 0), ("sigterm", signal.SIGTERM, 0), ("killed", signal.SIGKILL, -signal.SIGKILL)]


@pytest.mark.parametrize(("how", "code"), [case[1:] for case in ENDS], ids=[case[0] for case in ENDS])
def test_nothing_stays_behind(home: Path, processor: Working, how: signal.Signals, code: int) -> None:
    subscriber = started("sub", "Sport/#")
    line_of(subscriber, "subscribed")
    subscriber.send_signal(how)
    subscriber.communicate(timeout=PATIENCE_S)
    assert subscriber.returncode == code
    if how is signal.SIGKILL:  # found out when a processor starts, and once a minute
        processor.end()
        assert run("run", "--once").code == 0
    assert dynamic_queues(home) == []
    assert subscriptions(home) == 0


def test_a_refused_subscription_is_an_error_that_says_why(home: Path, processor: Working) -> None:
    ran = run("sub", "a", "--filter", "bad (")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "queue manager QM1 refused the subscription: 3150 MQRCCF_FILTER_ERROR" in ran.talk
    assert dynamic_queues(home) == []


def test_wait_ends_it_and_too_few_publications_are_exit_code_1(home: Path, processor: Working) -> None:
    ran = run("sub", "a", "-C", "1", "--wait", "0.2")
    assert (ran.code, ran.out) == (ExitCode.PROBLEMS, "")
    assert run("sub", "a", "--wait", "0.2").code == ExitCode.DONE


def test_without_a_processor_both_say_so(home: Path) -> None:
    ran = run("pub", "a", "b")
    assert (ran.code, "no processor is running" in ran.talk) == (0, True)
    subscriber = started("sub", "a")
    line_of(subscriber, "no processor is running: publications arrive when qpubsub run -m QM1 is started")
    subscriber.send_signal(signal.SIGTERM)
    subscriber.communicate(timeout=PATIENCE_S)
    assert dynamic_queues(home) == []


def test_wait_ends_it_without_a_processor_and_leaves_nothing(home: Path) -> None:
    ran = run("sub", "a", "--wait", "0.2")
    assert (ran.code, ran.out) == (ExitCode.PROBLEMS, "")
    assert "queue manager QM1 did not answer the subscription in 0.2 s" in ran.talk
    assert dynamic_queues(home) == []
    assert run("browse", "SYSTEM.BROKER.CONTROL.QUEUE").out == ""


def test_a_subscriber_that_no_processor_served_leaves_no_dead_letter(home: Path) -> None:
    subscriber = started("sub", "a")
    line_of(subscriber, "no processor is running")
    subscriber.send_signal(signal.SIGINT)
    subscriber.communicate(timeout=PATIENCE_S)
    assert subscriber.returncode == 0
    assert run("run", "--once").talk.startswith("0 commands")
    assert run("browse", "SYSTEM.DEAD.LETTER.QUEUE").out == ""


@pytest.mark.parametrize("topic", ["", "Sport/#", "+/Soccer"])
def test_a_topic_that_cannot_be_published_on_is_refused(home: Path, topic: str) -> None:
    ran = run("pub", topic, "x")
    assert (ran.code, f"TOPIC {topic!r}: " in ran.talk) == (ExitCode.USAGE, True)
    assert run("browse", "SYSTEM.BROKER.DEFAULT.STREAM").out == ""


def test_lines_are_a_publication_each(home: Path) -> None:
    ran = run("pub", "--lines", "Log", "--json", stdin="one\ntwo\r\n\n")
    assert json.loads(ran.out)["put"] == 3
    texts = [json.loads(line)["body"]["text"] for line in decoded("SYSTEM.BROKER.DEFAULT.STREAM")]
    assert texts == ["one", "two", ""]


def decoded(queue: str) -> list[str]:
    return run("decode", "--json", stdin=run("browse", queue).out).lines


def test_standard_input_that_is_no_text_is_refused(home: Path) -> None:
    ran = run("pub", "a", stdin=b"ok \xff")
    assert (ran.code, "standard input is not UTF-8 at byte 3" in ran.talk) == (ExitCode.USAGE, True)


# get


def test_get_waits_for_a_message(home: Path) -> None:
    assert run("mqsc", stdin="DEFINE QLOCAL(A)\n").code == 0
    waiting = started("get", "A", "--wait", "120", "--limit", "1")
    time.sleep(0.5)
    assert run("put", "A", stdin='{"seq":1,"queue":"A","body_hex":"41"}\n').code == 0
    out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, json.loads(out)["body_hex"]) == (0, "41")


def test_get_waits_no_longer_than_it_is_told(home: Path) -> None:
    assert run("mqsc", stdin="DEFINE QLOCAL(A)\n").code == 0
    ran = run("get", "A", "--wait", "0.3")
    assert (ran.code, ran.out, ran.talk) == (0, "", "0 messages got from A\n")


def test_get_follows_until_it_is_stopped(home: Path) -> None:
    assert run("mqsc", stdin="DEFINE QLOCAL(A)\n").code == 0
    following = started("get", "A", "--follow")
    assert following.stdout is not None
    for seq in (1, 2):
        assert run("put", "A", stdin=f'{{"seq":{seq},"queue":"A","body_hex":"4{seq}"}}\n').code == 0
        assert json.loads(following.stdout.readline())["body_hex"] == f"4{seq}"
    following.send_signal(signal.SIGTERM)
    following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 0


# put --as-captured


def test_each_message_goes_where_it_was_captured(home: Path, tmp_path: Path) -> None:
    rows = [{"seq": n, "queue": queue, "body_hex": "41"} for n, queue in enumerate(("A", "B", "A"), 1)]
    (tmp_path / "c.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = run("put", "--as-captured", str(tmp_path / "c.jsonl"))
    assert (ran.code, ran.talk) == (0, "3 messages put on 2 queues\n")
    assert [len(run("browse", queue).lines) for queue in "AB"] == [2, 1]
    assert run("put", "--as-captured", stdin=(tmp_path / "c.jsonl").read_text()).talk == ran.talk


def test_a_capture_without_queues_goes_where_its_commands_belong(home: Path) -> None:
    capture = run("encode", "--command", "Publish", "--topic", "a").out
    capture += run("encode", "--command", "RegSub", "--topic", "a", "--q-name", "Q").out
    rows = [{**json.loads(line), "queue": ""} for line in capture.splitlines()]
    ran = run("put", "--as-captured", "--json", stdin="".join(f"{json.dumps(row)}\n" for row in rows))
    assert json.loads(ran.out)["queues"] == {"SYSTEM.BROKER.CONTROL.QUEUE": 1, "SYSTEM.BROKER.DEFAULT.STREAM": 1}


def test_messages_for_another_queue_manager_are_named_by_run_status_and_check(home: Path) -> None:
    ask = ("--command", "RegSub", "--topic", "a", "--q-name", "Q", "--msg-type", "request")
    capture = run("encode", *ask, "--reply-to-q", "R", "--reply-to-qmgr", "PROD", "--qmgr", "PROD").out
    assert run("put", "--as-captured", stdin=capture).code == ExitCode.PROBLEMS
    ran = run("run", "--once")
    said = "transmission queue PROD holds 1 message for that queue manager: no channel takes them"
    assert (ran.code, said in ran.talk) == (ExitCode.PROBLEMS, True)
    assert "for queue manager PROD: no channel takes them" in run("status").out
    checked = run("check")
    assert (checked.code, "qpubsub put -m QM1 --as QM1" in checked.out) == (ExitCode.PROBLEMS, True)


def test_as_this_queue_manager_nothing_is_stranded(home: Path) -> None:
    ask = ("--command", "RegSub", "--topic", "a", "--q-name", "Q", "--msg-type", "request")
    capture = run("encode", *ask, "--reply-to-q", "R", "--reply-to-qmgr", "PROD", "--qmgr", "PROD").out
    assert run("put", "--as-captured", "--as", "QM1", stdin=capture).code == 0
    assert run("run", "--once").code == 0
    assert run("check").code == 0
    assert len(run("browse", "R").lines) == 1
