"""``--where``, ``--since``, ``--until``, ``--seq`` and ``--limit`` on every verb that reads captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from commands.cli import main
from commands.terminal.console import ExitCode
from tests.commands.cli_runs import run

FIXTURES = Path(__file__).parents[3] / "fixtures"
CAPTURE = FIXTURES / "results-service" / "capture.jsonl"
READERS = ["decode", "encode", "convert", "put", "translate", "analyse", "replay", "differences", "why"]
OPTIONS = {"--where", "--since", "--until", "--seq", "--limit"}

LINES = [json.loads(line) for line in CAPTURE.read_text().splitlines()]


def seqs(out: str) -> list[int]:
    return [(json.loads(line).get("captured") or json.loads(line))["seq"] for line in out.splitlines()]


@pytest.mark.parametrize("name", READERS)
def test_every_reader_has_them(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert {word for parameter in command.params for word in parameter.opts} >= OPTIONS


# options, which lines of the capture they select
SELECTED: list[tuple[tuple[str, ...], Any]] = [
    (("--where", "queue = 'SYSTEM.BROKER.CONTROL.QUEUE'"), lambda line: line["queue"] == "SYSTEM.BROKER.CONTROL.QUEUE"),
    (("--where", "seq > 5 and seq < 9"), lambda line: 5 < line["seq"] < 9),
    (("--seq", "2,6-8"), lambda line: line["seq"] in (2, 6, 7, 8)),
    (
        ("--since", LINES[4]["time"], "--until", LINES[9]["time"]),
        lambda line: LINES[4]["time"] <= line["time"] < LINES[9]["time"],
    ),
    (("--limit", "3"), lambda line: line["seq"] <= LINES[2]["seq"]),
    (("--where", "size < 0"), lambda line: False),
]
CASES = pytest.mark.parametrize(("given", "holds"), SELECTED, ids=[" ".join(given) for given, _ in SELECTED])


@CASES
@pytest.mark.parametrize("words", [("decode", "--json"), ("convert",)], ids=" ".join)
def test_what_is_read_is_what_a_filter_of_the_whole_keeps(
    words: tuple[str, ...], given: tuple[str, ...], holds: Any
) -> None:
    whole = run(*words, str(CAPTURE)).out.splitlines()
    kept = [line for line, captured in zip(whole, LINES, strict=True) if holds(captured)]
    ran = run(*words, str(CAPTURE), *given)
    assert (ran.code, ran.out.splitlines()) == (0, kept)


@CASES
def test_encode_selects_among_what_decode_printed(given: tuple[str, ...], holds: Any) -> None:
    decoded = run("decode", "--json", str(CAPTURE)).out
    ran = run("encode", *given, stdin=decoded)
    assert (ran.code, seqs(ran.out)) == (0, [line["seq"] for line in LINES if holds(line)])


@CASES
def test_replay_replays_all_and_writes_what_selected_messages_caused(given: tuple[str, ...], holds: Any) -> None:
    chosen = {line["seq"] for line in LINES if holds(line)}
    whole = run("replay", str(CAPTURE)).out.splitlines()
    ran = run("replay", str(CAPTURE), *given)
    assert ran.out.splitlines() == [line for line in whole if json.loads(line)["seq"] in chosen]
    assert f"{len(chosen)} message" in ran.talk


@CASES
def test_analyse_reports_what_is_selected(given: tuple[str, ...], holds: Any) -> None:
    rows = json.loads(run("analyse", "--json", str(CAPTURE), *given).out)
    whole = json.loads(run("analyse", "--json", str(CAPTURE)).out)
    chosen = [line for line in LINES if holds(line)]
    assert rows["messages"] == len(chosen)
    if chosen:
        (qmgr,) = rows["sections"][0]["rows"]
        assert qmgr["bytes"] == sum(len(line["body_hex"]) // 2 for line in chosen)
        assert whole["messages"] == len(LINES)


@CASES
def test_put_puts_what_is_selected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], holds: Any
) -> None:
    monkeypatch.setenv("QPUBSUB_HOME", str(tmp_path))
    assert run("create", "QM1").code == 0
    put = json.loads(run("put", "-m", "QM1", "Q", str(CAPTURE), "--json", *given).out)
    assert put["put"] == sum(holds(line) for line in LINES)


@CASES
def test_translate_runs_all_and_shows_what_is_selected(given: tuple[str, ...], holds: Any) -> None:
    whole = run("translate", "--json", str(CAPTURE)).out.splitlines()
    kept = [line for line, captured in zip(whole, LINES, strict=True) if holds(captured)]
    assert run("translate", "--json", str(CAPTURE), *given).out.splitlines() == kept


def test_a_fault_is_shown_where_it_is() -> None:
    ran = run("decode", str(CAPTURE), "--where", "command = 'RegSub' and topics like 'Sport/%'")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    lines = ran.talk.splitlines()
    (mark,) = [line for line in lines if line.strip() == "^"]
    shown = lines[lines.index(mark) - 1]
    assert shown[mark.index("^") :].startswith("topics")
    assert "perhaps topic" in ran.talk


WRONG = [
    (("--since", "yesterday"), "'yesterday' is not a time"),
    (("--since", "2009-01-02", "--until", "2009-01-01"), "--until must be later than --since"),
    (("--seq", "9-3"), "the range ends before it begins"),
    (("--limit", "0"), "0 is not in the range"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[" ".join(given) for given, _ in WRONG])
def test_wrong_options(given: tuple[str, ...], said: str) -> None:
    ran = run("decode", str(CAPTURE), *given)
    assert (ran.code, said in ran.talk) == (ExitCode.USAGE, True)


def test_what_cannot_be_read_is_not_selected_and_not_hidden(tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    capture.write_text(CAPTURE.read_text().splitlines()[0] + "\nnonsense\n")
    ran = run("decode", "--json", str(capture), "--where", "size >= 0")
    assert (ran.code, len(ran.lines)) == (1, 1)
    assert "not selected, because it cannot be read" in ran.talk
    assert len(run("decode", "--json", str(capture), "--limit", "5").lines) == 2


@pytest.mark.parametrize(
    ("given", "left"), [((), [4, 6]), (("--seq", "5-"), [6]), (("--where", "usr.x = 1"), []), (("--limit", "4"), [4])]
)
def test_differences_reports_what_is_selected(tmp_path: Path, given: tuple[str, ...], left: list[int]) -> None:
    capture, setup = (str(FIXTURES / "why" / f"silent-v6.{end}") for end in ("jsonl", "mqsc"))
    output = tmp_path / "differences.jsonl"
    ran = run("differences", capture, "--setup", setup, "-o", str(output), "--json", *given)
    report = json.loads(ran.out)
    assert seqs(output.read_text()) == left
    assert (ran.code, report["differences"]) == (0, len(left))
    if not given:
        assert report["messages"] == 6


def test_a_continuous_replay_does_not_select(tmp_path: Path) -> None:
    words = ("--engine", "spark", "--checkpoint", str(tmp_path / "place"), "-o", str(tmp_path / "out.jsonl"))
    ran = run("replay", str(CAPTURE), *words, "--where", "size > 0")
    assert (ran.code, "--checkpoint cannot be used with --where" in ran.talk) == (ExitCode.USAGE, True)


ENCODES = [
    (("--command", "Publish", "--topic", "a", "--seq", "7"), 0, ""),
    (("--command", "Publish", "--topic", "a", "--seq", "7-9"), 2, "it is one number"),
    (("--command", "Publish", "--topic", "a", "--limit", "7"), 2, "--command makes one"),
]


@pytest.mark.parametrize(("given", "code", "said"), ENCODES, ids=[" ".join(given) for given, _, _ in ENCODES])
def test_seq_of_encode_is_the_number_of_what_it_makes(given: tuple[str, ...], code: int, said: str) -> None:
    ran = run("encode", *given)
    assert (ran.code, said in ran.talk) == (code, True)
    if not code:
        assert seqs(ran.out) == [7]
