"""A gate file: how many differences of each rule a pipeline accepts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from commands.cli import main
from commands.replay.differences.report import parse_gate
from commands.replay.differences.text import lines_of, page
from commands.terminal.console import Console, ExitCode
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.constants import MQAT_BROKER
from rfh2.errors import QPubSubError
from rfh2.mqmd import Mqmd
from tests.commands.replay.differences.test_differences import NOBODY_YET, capture, compared, pub, reg

# Two differences of D01, one sign of D14.
MESSAGES = capture(
    reg("t"), pub("t", options=("Local",)), pub("t", options=("Local",)), reg("u*"), pub("x", options=("Local",))
)

GATES = [
    ("", []),
    ("D01", ["D01: 2 differences, of which 0 are accepted"]),
    ("D01 1  # one is known\n", ["D01: 2 differences, of which 1 are accepted"]),
    ("D01 2", []),
    ("sign:D14", ["D14: 1 signs, of which 0 are accepted"]),
    ("sign:D14 1\nD01 2\n* 0", []),
    ("D01 2\n*", ["D14: 1 signs, of which 0 are accepted"]),
    ("finding", []),
]


@pytest.mark.parametrize(("text", "exceeded"), GATES)
def test_what_is_more_than_accepted(text: str, exceeded: list[str]) -> None:
    differences, _ = compared(MESSAGES, NOBODY_YET)
    assert list(parse_gate(text).exceeded(differences.report())) == exceeded


FORGOTTEN = capture(reg("t", rfh1=True, StreamName="FORGOTTEN"), pub("t", rfh1=True, queue="FORGOTTEN"), pub("t"))


def test_messages_that_neither_version_processes_are_no_clean_bill() -> None:
    """A stream that the setup lacks: both refuse its subscribers, and leave its publications unread."""
    differences, found = compared(FORGOTTEN, NOBODY_YET)
    report = differences.report()
    assert (found, report.messages, report.not_processed) == ([], 3, {"FORGOTTEN": 2})
    text = "\n".join(lines_of(report))
    assert "3 messages, 2 not processed; of the others both versions put the same" in text
    assert "not processed by either version: 2 messages on FORGOTTEN: FORGOTTEN is not in" in text
    assert "add it with ALTER NAMELIST in the script of --setup" in " ".join(text.split())
    assert "2 messages on FORGOTTEN" in page(report, "x")
    for gate, exceeded in (("", 1), ("finding 0\n* 0", 1), ("unprocessed 1", 1), ("unprocessed 2", 0)):
        assert len(list(parse_gate(gate).exceeded(report))) == exceeded, gate


def test_what_is_for_programs_is_not_counted() -> None:
    """Deliveries and responses of a broker on queues of programs, and data without a command."""
    (delivered,) = capture(pub("t", queue="Q1", mqmd=Mqmd(put_appl_type=MQAT_BROKER)))
    plain = CapturedMessage(seq=2, time=delivered.time, queue="Q2", body_hex=b"data".hex())
    differences, _ = compared([delivered, plain], NOBODY_YET)
    assert differences.report().not_processed == {}


BAD = [
    ("D99 1", "line 1: D99 is not a rule"),
    ("# a\nD01 many", "line 2: a rule and a number"),
    ("D01 1 2", "line 1: a rule and a number"),
    ("D01 -1", "line 1: a rule and a number"),
    ("D01\nD01 4", "line 2: D01 is given twice"),
]


@pytest.mark.parametrize(("text", "says"), BAD)
def test_a_gate_that_is_wrong(text: str, says: str) -> None:
    with pytest.raises(QPubSubError, match=says):
        parse_gate(text)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("D01 2\n", ExitCode.DONE, ""),
        ("D01 1\n", ExitCode.PROBLEMS, "--fail-on: D01: 2 differences, of which 1 are accepted"),
        ("D77\n", ExitCode.USAGE, "D77 is not a rule"),
    ],
)
def test_the_exit_code(tmp_path: Path, text: str, code: ExitCode, says: str) -> None:
    source, gate, setup = tmp_path / "capture.jsonl", tmp_path / "gate.txt", tmp_path / "setup.mqsc"
    with source.open("wb") as stream:
        write_captures(MESSAGES, stream, "jsonl")
    gate.write_text(text)
    setup.write_text(NOBODY_YET)
    out, err = io.BytesIO(), io.StringIO()
    arguments = ["differences", "--input", str(source), "--setup", str(setup), "--fail-on", str(gate)]
    with pytest.raises(SystemExit) as ended:
        main.main(arguments, obj=Console(out, err))
    assert ended.value.code == code, err.getvalue()
    assert says in err.getvalue()


@pytest.mark.parametrize("words", [[], ["--fail-on"]])
def test_the_exit_code_of_a_stream_that_was_forgotten(tmp_path: Path, words: list[str]) -> None:
    source, gate = tmp_path / "capture.jsonl", tmp_path / "gate.txt"
    with source.open("wb") as stream:
        write_captures(FORGOTTEN, stream, "jsonl")
    gate.write_text("finding 0\n")
    given = [*words, *([str(gate)] if words else [])]
    with pytest.raises(SystemExit) as ended:
        main.main(["differences", "--input", str(source), *given], obj=Console(io.BytesIO(), io.StringIO()))
    assert ended.value.code == ExitCode.PROBLEMS
