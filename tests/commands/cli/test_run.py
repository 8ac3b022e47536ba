"""``run``, ``status`` and ``replay`` as a person uses them: what is said, where, and the exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commands.cli import main
from commands.explain.build import CommandSpec, command_message
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from rfh2 import Mqmd
from tests.commands.results_service import FIXTURE, capture

CAPTURE = FIXTURE / "capture.jsonl"


def _run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments], env={"QPUBSUB_HOME": str(home)})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A queue manager QM1 with the results service on its queues."""
    assert _run(tmp_path, "create", "QM1").exit_code == ExitCode.DONE
    with QueueManagerStore.open(tmp_path, "QM1") as store, store.unit_of_work() as unit:
        for message in capture():
            unit.put(message.queue, message.md, message.body, user=message.user)
    return tmp_path


def test_run_once_says_what_it_did_and_records_every_put(home: Path, tmp_path: Path) -> None:
    record = tmp_path / "puts.jsonl"
    result = _run(home, "run", "-m", "QM1", "--once", "--record", str(record))
    assert result.exit_code == ExitCode.DONE
    assert "26 commands (2 in error): 16 publications delivered, 12 responses, 0 dead letters" in result.stderr
    assert "reason 3073 (topic Sport/Soccer/State/LatestScore/*)" in result.stderr
    recorded = [json.loads(line) for line in record.read_text().splitlines()]
    golden = [json.loads(line) for line in (FIXTURE / "puts.jsonl").read_text().splitlines()]
    same = ("n", "kind", "queue", "topic", "completion", "reason", "body_hex")
    assert [[row[key] for key in same] for row in recorded] == [[row[key] for key in same] for row in golden]


def test_the_log_is_a_json_object_an_event(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    _run(home, "run", "-m", "QM1", "--once", "--log", str(log))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(event["level"], event.get("seq"), event.get("reason"), event["ids"]) for event in events] == [
        ("info", None, None, ["AMQ5806I"]),
        ("info", 3, 3077, ["AMQ5857I"]),
        ("warning", 26, 3073, ["AMQ5857W"]),
        ("info", None, None, ["AMQ5807I"]),
    ]


def test_a_log_as_text_is_a_line_an_event(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert _run(home, "run", "-m", "QM1", "--once", "--log", str(log), "--log-format", "text").exit_code == 0
    lines = log.read_text().splitlines()
    assert [line.split()[1:3] for line in lines] == [
        ["INFO", "AMQ5806I"],
        ["INFO", "AMQ5857I"],
        ["WARNING", "AMQ5857W"],
        ["INFO", "AMQ5807I"],
    ]
    assert re.fullmatch(
        r"[-0-9T:.]+Z INFO    AMQ5806I queued publish/subscribe started for queue manager QM1", lines[0]
    )


def test_a_log_on_stderr_takes_the_place_of_the_talk_about_events(home: Path) -> None:
    result = _run(home, "run", "-m", "QM1", "--once", "--log", "-")
    events = [json.loads(line)["ids"][0] for line in result.stderr.splitlines() if line.startswith("{")]
    assert events == ["AMQ5806I", "AMQ5857I", "AMQ5857W", "AMQ5807I"]
    assert "qpubsub: message 26" not in result.stderr


def test_metrics_are_served_while_run_works_and_the_place_is_said(home: Path) -> None:
    result = _run(home, "run", "-m", "QM1", "--once", "--metrics", "0")
    assert result.exit_code == ExitCode.DONE
    assert re.search(r"queue manager QM1: metrics on 127\.0\.0\.1:[1-9]\d*$", result.stderr, re.MULTILINE)


def test_spans_are_lines_of_json_on_stderr(home: Path) -> None:
    pytest.importorskip("opentelemetry.sdk.trace")
    config = home / "config.toml"
    config.write_text('[tracing]\nendpoint = "console"\nshare = 1\nload = 1\n')
    result = _run(home, "run", "-m", "QM1", "--once", "--config", str(config))
    spans = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    assert {"get", "decode", "match", "deliver", "commit"} < {span["name"] for span in spans}


NOT_MEASURED = [
    (("--metrics", "host"), "--metrics: host is not HOST:PORT or a port"),
    (("--metrics", "99999"), "--metrics: 99999 is not HOST:PORT or a port"),
    (("--tracing", "collector:4318"), "--tracing: collector:4318 is neither console nor a URL"),
]


@pytest.mark.parametrize(("words", "said"), NOT_MEASURED, ids=[" ".join(words) for words, _ in NOT_MEASURED])
def test_what_cannot_be_measured_is_named(home: Path, words: tuple[str, ...], said: str) -> None:
    result = _run(home, "run", "-m", "QM1", "--once", *words)
    assert (result.exit_code, said in result.stderr) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(("words", "extra"), [(("--metrics", "0"), "metrics"), (("--tracing", "console"), "tracing")])
def test_a_missing_library_is_named_with_how_to_install_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], extra: str
) -> None:
    monkeypatch.setattr("commands.monitoring.opening.find_spec", lambda _name: None)
    result = _run(home, "run", "-m", "QM1", "--once", *words)
    assert (result.exit_code, f"[{extra}]" in result.stderr) == (ExitCode.USAGE, True)


@pytest.mark.rule("QM-12")
def test_a_second_processor_is_refused_by_name(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.processor_lock():
        result = _run(home, "run", "-m", "QM1", "--once")
        assert json.loads(_run(home, "status", "-m", "QM1", "--json").stdout)["processor"]["running"] is True
    assert result.exit_code == ExitCode.USAGE
    assert "QM1" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_dead_letters_are_exit_code_1(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.put("SYSTEM.BROKER.DEFAULT.STREAM", None, b"RFH \2\0\0\0")
    assert _run(home, "run", "-m", "QM1", "--once").exit_code == ExitCode.PROBLEMS


def test_replay_needs_an_input_that_is_there(tmp_path: Path) -> None:
    result = _run(tmp_path, "replay", "--input", str(tmp_path / "none.jsonl"), "--output", str(tmp_path / "p.jsonl"))
    assert (result.exit_code, len(result.stderr.splitlines())) == (ExitCode.USAGE, 1)
    assert not (tmp_path / "p.jsonl").exists()


def test_replay_goes_by_seq_whatever_the_order_of_the_lines(tmp_path: Path) -> None:
    lines = CAPTURE.read_text().splitlines(keepends=True)
    (tmp_path / "mixed.jsonl").write_text("".join(lines[13:] + lines[:13]))
    result = _run(tmp_path, "replay", "--input", str(tmp_path / "mixed.jsonl"), "--output", str(tmp_path / "p.jsonl"))
    assert result.exit_code == ExitCode.DONE
    assert (tmp_path / "p.jsonl").read_text() == (FIXTURE / "puts.jsonl").read_text()


def test_replay_of_a_bad_line_reports_it_and_does_the_rest(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text("{broken\n" + CAPTURE.read_text())
    result = _run(tmp_path, "replay", "--input", str(tmp_path / "c.jsonl"), "--output", str(tmp_path / "p.jsonl"))
    assert result.exit_code == ExitCode.PROBLEMS
    assert "c.jsonl, line 1" in result.stderr
    assert (tmp_path / "p.jsonl").read_text() == (FIXTURE / "puts.jsonl").read_text()


def test_replay_with_a_setup_that_fails_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.mqsc").write_text("DEFINE TOPIC(T) TOPICSTR('t')\nNONSENSE\n")
    arguments = ["--input", str(CAPTURE), "--output", str(tmp_path / "p.jsonl"), "--setup", str(tmp_path / "s.mqsc")]
    result = _run(tmp_path, "replay", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert "line 2" in result.stderr


def test_replay_transcript_says_who_received_what(tmp_path: Path) -> None:
    result = _run(tmp_path, "replay", "--input", str(CAPTURE), "--output", str(tmp_path / "p.jsonl"), "--transcript")
    assert "      -> SCOREBOARD receives Sport/Soccer/State/LatestScore/Liverpool ManUtd: 0 1" in result.stdout


@pytest.mark.rule("STR-4")
def test_6_5_4_a_replay_says_what_nobody_reads(tmp_path: Path) -> None:
    message = command_message(CommandSpec("Publish", ("a",), data="x", queue="SCORES"))
    (tmp_path / "in.jsonl").write_text(message.model_dump_json() + "\n")
    result = _run(tmp_path, "replay", "--input", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "p.jsonl"))
    assert (result.exit_code, (tmp_path / "p.jsonl").read_text()) == (0, "")
    assert "1 message on SCORES not processed: SCORES is not in SYSTEM.QPUBSUB.QUEUE.NAMELIST" in result.stderr


@pytest.mark.rule("QM-14")
@pytest.mark.parametrize(("psmode", "noted"), [("COMPAT", True), ("DISABLED", True), ("ENABLED", False)])
def test_6_3_a_replay_says_that_psmode_does_not_count(tmp_path: Path, psmode: str, noted: bool) -> None:
    message = command_message(CommandSpec("RegSub", ("a",), mqmd=Mqmd(msg_type=1, reply_to_q="R")))
    (tmp_path / "in.jsonl").write_text(message.model_dump_json() + "\n")
    (tmp_path / "s.mqsc").write_text(f"ALTER QMGR PSMODE({psmode})\n")
    files = ("--input", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "p.jsonl"))
    result = _run(tmp_path, "replay", *files, "--setup", str(tmp_path / "s.mqsc"))
    assert (f"PSMODE({psmode}) of the setup is ignored" in result.stderr) is noted
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 1


def test_the_former_name_of_transcript_gives_the_same(tmp_path: Path) -> None:
    arguments = ["replay", "--input", str(CAPTURE), "--output", str(tmp_path / "p.jsonl")]
    former, now = (_run(tmp_path, *arguments, option) for option in ("--tell", "--transcript"))
    assert (former.exit_code, former.stdout) == (now.exit_code, now.stdout)
    assert former.stdout
    assert former.stderr == "--tell is now --transcript; the former name still works\n" + now.stderr
    assert "--tell" not in _run(tmp_path, "replay", "--help").stdout
