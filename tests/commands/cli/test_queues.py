"""create, put, get, browse: captured messages in, captured messages out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands.broker.objects import LocalQueue
from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd

MD = Mqmd(
    msg_type=1,
    coded_char_set_id=819,
    priority=3,
    persistence=1,
    msg_id=b"\1" * 24,
    reply_to_q="R",
    reply_to_qmgr="QM1",
    user_identifier="app1",
    put_appl_name="app",
    put_date="20090128",
    put_time="11435418",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    assert qpubsub(tmp_path, "create", "QM1").exit_code == 0
    return tmp_path


def qpubsub(home: Path, *args: str, stdin: str | None = None) -> Result:
    return CliRunner(env={"QPUBSUB_HOME": str(home)}).invoke(main, args, input=stdin)


def line(number: int = 1, md: Mqmd | None = MD, **more: Any) -> str:
    md_hex = None if md is None else md.encode().hex()
    captured = {"seq": number, "queue": "FROM", "md_hex": md_hex, "body_hex": f"{number:04x}"}
    return json.dumps(captured | more) + "\n"


def messages(result: Result) -> list[CapturedMessage]:
    assert result.exit_code == 0, result.output
    return [CapturedMessage.model_validate_json(text) for text in result.stdout.splitlines()]


def on(home: Path, queue: str, *options: str) -> list[int]:
    return [int(m.body_hex, 16) for m in messages(qpubsub(home, "browse", "-m", "QM1", queue, *options))]


def test_create(tmp_path: Path) -> None:
    first = qpubsub(tmp_path / "new", "create", "QM1")
    second = qpubsub(tmp_path / "new", "create", "QM1")

    assert (first.exit_code, first.stdout, second.exit_code, second.stdout) == (0, "", 2, "")
    assert "QM1" in first.stderr
    assert "exists already" in second.stderr


def test_home_as_an_option_wins(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"

    assert qpubsub(home, "create", "QM2", "--home", str(other)).exit_code == 0
    assert (other / "QM2").is_dir()


def test_strict(tmp_path: Path) -> None:
    assert qpubsub(tmp_path, "create", "QM1", "--strict").exit_code == 0
    result = qpubsub(tmp_path, "put", "-m", "QM1", "Q", stdin=line())

    assert result.exit_code == 2
    assert "2085" in result.stderr


def test_what_is_put_comes_out_with_its_descriptor(home: Path) -> None:
    put = qpubsub(home, "put", "-m", "QM1", "TO", stdin=line())
    (message,) = messages(qpubsub(home, "browse", "-m", "QM1", "TO"))

    assert (put.exit_code, put.stdout) == (0, "")
    assert put.stderr == "1 message put on TO; there was no such queue, and it was made\n"
    assert (message.seq, message.qmgr, message.queue, message.user) == (1, "QM1", "TO", "app1")
    assert (message.body_hex, message.descriptor()) == ("0001", MD)
    assert message.time is not None
    assert qpubsub(home, "put", "-m", "QM1", "TO", stdin=line()).stderr == "1 message put on TO\n"


def test_the_keys_are_a_captured_messages(home: Path) -> None:
    qpubsub(home, "put", "-m", "QM1", "TO", stdin=line())

    (text,) = qpubsub(home, "browse", "-m", "QM1", "TO").stdout.splitlines()
    assert list(json.loads(text)) == ["seq", "time", "qmgr", "queue", "user", "md_hex", "body_hex"]


USERS = [
    ("captured", {"user": "who"}, MD, "who", "app1"),
    ("descriptors", {}, MD, "app1", "app1"),
    ("callers", {}, replace(MD, user_identifier=""), "me", "me"),
    ("callers-without-a-descriptor", {}, None, "me", "me"),
]


@pytest.mark.parametrize("case", [c[1:] for c in USERS], ids=[c[0] for c in USERS])
def test_who_puts(home: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...]) -> None:
    more, md, user, identifier = case
    monkeypatch.setenv("LOGNAME", "me")
    qpubsub(home, "put", "-m", "QM1", "TO", stdin=line(1, md, **more))
    (message,) = messages(qpubsub(home, "browse", "-m", "QM1", "TO"))

    descriptor = message.descriptor()
    assert descriptor is not None
    assert (message.user, descriptor.user_identifier) == (user, identifier)


def test_files_and_stdin_in_their_order(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(line(1) + line(2))
    (tmp_path / "b").write_text(line(4))
    result = qpubsub(home, "put", "-m", "QM1", "Q", str(tmp_path / "a"), "-", str(tmp_path / "b"), stdin=line(3))

    assert result.exit_code == 0
    assert on(home, "Q") == [1, 2, 3, 4]
    assert on(home, "Q", "--limit", "2") == [1, 2]


BAD_DATA = [
    ("no-json", "nonsense\n", "line 2"),
    ("no-hex", '{"seq":1,"queue":"Q","body_hex":"0"}\n', "line 2"),
    ("bad-descriptor-2026", '{"seq":1,"queue":"Q","md_hex":"00","body_hex":"00"}\n', "record 2: queue Q:"),
    ("bad-expiry-2013", line(1, replace(MD, expiry=0)), "reason 2013"),
]


@pytest.mark.parametrize(("bad", "words"), [c[1:] for c in BAD_DATA], ids=[c[0] for c in BAD_DATA])
def test_bad_data_is_reported_and_the_rest_is_put(home: Path, bad: str, words: str) -> None:
    result = qpubsub(home, "put", "-m", "QM1", "Q", "--format", "jsonl", stdin=line(1) + bad + line(3))

    assert result.exit_code == 1
    assert words in result.stderr
    assert "2 messages put on Q; there was no such queue, and it was made\n" in result.stderr
    assert on(home, "Q") == [1, 3]


def test_a_missing_file_is_one_line_and_2(home: Path) -> None:
    result = qpubsub(home, "put", "-m", "QM1", "Q", "nosuch.jsonl")

    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "nosuch.jsonl" in result.stderr


def test_what_a_queue_took_before_it_was_full_is_kept_and_told(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("Q", max_depth=2))
    result = qpubsub(home, "put", "-m", "QM1", "Q", stdin=line(1) + line(2) + line(3))

    assert result.exit_code == 2
    assert "2053" in result.stderr
    assert "2 messages were put on Q before" in result.stderr
    assert on(home, "Q") == [1, 2]


@pytest.mark.parametrize("verb", ["get", "browse"])
@pytest.mark.parametrize(("qmgr", "words"), [("QM1", "there is no such queue"), ("QM2", "does not exist")])
def test_what_is_unknown_is_one_line_and_2(home: Path, verb: str, qmgr: str, words: str) -> None:
    result = qpubsub(home, verb, "-m", qmgr, "Q", "--limit", "0")

    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert words in result.stderr


def test_get_removes_what_it_gives(home: Path) -> None:
    qpubsub(home, "put", "-m", "QM1", "Q", stdin="".join(line(n) for n in range(250)))
    first = qpubsub(home, "get", "-m", "QM1", "Q", "--limit", "120")
    rest = qpubsub(home, "get", "-m", "QM1", "Q")

    assert [int(m.body_hex, 16) for m in messages(first)] == list(range(120))
    assert [int(m.body_hex, 16) for m in messages(rest)] == list(range(120, 250))
    assert (first.stderr, on(home, "Q")) == ("120 messages got from Q\n", [])


@pytest.mark.parametrize("verb", ["get", "browse"])
def test_a_reader_that_goes_away_is_no_error_to_talk_of_and_loses_nothing(home: Path, verb: str) -> None:
    big = "".join(line(n, body_hex="00" * 50_000) for n in range(50))
    qpubsub(home, "put", "-m", "QM1", "Q", stdin=big)
    process = subprocess.Popen(
        [sys.executable, "-c", "from commands.cli import main; main()", verb, "-m", "QM1", "Q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "QPUBSUB_HOME": str(home)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()

    assert (process.stderr.read(), process.wait()) == (b"", 141)
    assert len(on(home, "Q")) == 50


# Dynamic queues


def test_get_on_a_model_queue_makes_a_queue_that_goes(home: Path) -> None:
    done = qpubsub(home, "get", "-m", "QM1", "SYSTEM.JMS.TEMPQ.MODEL", "--dynamic", "MY.REPLY.*")
    assert (done.exit_code, done.stdout) == (0, "")
    (name,) = re.findall(r"dynamic queue (MY\.REPLY\.[0-9A-F]{16})", done.stderr)
    assert f"queue {name} was deleted" in done.stderr
    assert qpubsub(home, "browse", "-m", "QM1", name).exit_code == 2


def test_put_on_a_model_queue_makes_one_that_stays_until_get_deletes_it(home: Path) -> None:
    made = qpubsub(home, "put", "-m", "QM1", "SYSTEM.JMS.MODEL.QUEUE", "--dynamic", "KEPT.*", stdin=line())
    assert made.exit_code == 0
    (name,) = re.findall(r"dynamic queue (KEPT\.[0-9A-F]{16})", made.stderr)
    shown = json.loads(qpubsub(home, "status", "-m", "QM1", "--json").stdout)
    assert shown["queues"][name]["role"] == "permanent dynamic"
    kept = qpubsub(home, "get", "-m", "QM1", name, "--limit", "0", "--close", "delete")
    assert (kept.exit_code, "2055" in kept.stderr) == (2, True)
    got = qpubsub(home, "get", "-m", "QM1", name, "--close", "delete")
    assert (got.exit_code, len(got.stdout.splitlines())) == (0, 1)
    assert f"queue {name} was deleted" in got.stderr
    assert name not in json.loads(qpubsub(home, "status", "-m", "QM1", "--json").stdout)["queues"]


NOT_DYNAMIC = [
    ("get-no-model", ("get", "SYSTEM.DEAD.LETTER.QUEUE", "--dynamic", "X*")),
    ("put-no-model", ("put", "SYSTEM.DEAD.LETTER.QUEUE", "--dynamic", "X*")),
    ("put-a-temporary-one", ("put", "SYSTEM.JMS.TEMPQ.MODEL", "--dynamic", "X*")),
    ("no-name", ("get", "SYSTEM.JMS.TEMPQ.MODEL", "--dynamic", "A*B")),
    ("purge-what-is-predefined", ("get", "SYSTEM.DEAD.LETTER.QUEUE", "--close", "purge")),
]


@pytest.mark.parametrize("args", [row[1] for row in NOT_DYNAMIC], ids=[row[0] for row in NOT_DYNAMIC])
def test_where_there_is_no_dynamic_queue_to_be_made(home: Path, args: tuple[str, ...]) -> None:
    verb, queue, *options = args
    done = qpubsub(home, verb, "-m", "QM1", queue, *options, stdin="")
    assert (done.exit_code, done.stdout) == (2, "")
    with QueueManagerStore.open(home, "QM1") as store:
        assert [q for q in store.load_state()[0].queues.values() if q.definition_type != "PREDEFINED"] == []
