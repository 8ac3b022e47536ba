"""A gate file: how many differences of each rule a pipeline accepts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from commands.cli import main
from commands.replay.differences.gate import parse_gate
from commands.terminal.console import Console, ExitCode
from rfh2.captures import write_captures
from rfh2.errors import QPubSubError
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


BAD = [
    ("D99 1", "line 1: D99 is no rule"),
    ("# a\nD01 many", "line 2: a rule and a number"),
    ("D01 1 2", "line 1: a rule and a number"),
    ("D01 -1", "line 1: a rule and a number"),
    ("D01\nD01 4", "line 2: D01 stands there twice"),
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
        ("D77\n", ExitCode.USAGE, "D77 is no rule"),
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
