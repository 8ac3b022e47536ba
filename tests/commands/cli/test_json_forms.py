"""What verbs print with ``--json`` is what ``qpubsub schema`` says, key by key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click
import pytest
from pydantic import ValidationError

from commands.cli import main
from commands.cli.schema import COMPARED, FORMS, model_of
from tests.commands.cli_runs import Working, run

FIXTURES: Final = Path(__file__).parents[3] / "fixtures"
CAPTURE: Final = str(FIXTURES / "results-service" / "capture.jsonl")
DEMO: Final = Path(__file__).parents[3] / "commands" / "cli" / "demo_files"
MESSAGES: Final = {"get", "browse", "encode", "convert", "translate", "capture", "schema"}
"""They print captured messages, operations, or the schema itself."""

SHARES: Final = 'name = "W"\n[[share]]\nqmgr = "W.ALL"\nqueues = ["*"]\n'
ESTATE: Final = f'[[queue_manager]]\nname = "QM1"\nsource = "{DEMO}/state"\n'


def test_every_verb_with_json_has_a_schema() -> None:
    with_json = {
        words
        for words, command in main.every_command()
        if not isinstance(command, click.Group) and any("--json" in each.opts for each in command.params)
    }
    assert with_json - MESSAGES == {*FORMS, *COMPARED}


LINES = [
    ("decode", f"decode --json {CAPTURE}"),
    ("why", f"why --json --input {CAPTURE}"),
    ("why", "why -m QM1 --json --publish Sport/Soccer"),
    ("inspect", f"inspect --json --at 12 {CAPTURE}"),
    ("replay", f"replay --json -o puts.jsonl {CAPTURE}"),
    ("analyse", f"analyse --json {CAPTURE}"),
    ("differences", f"differences --json {CAPTURE}"),
    ("generate", "generate --json --messages 3 -o made.jsonl"),
    ("create", "create --json QM2"),
    ("list", "list --json"),
    ("run", "run --json -m QM1 --once"),
    ("stop", "stop --json -m QM1"),
    ("delete", "delete --json --yes QM3"),
    ("mqsc", "mqsc --json -m QM1 script.mqsc"),
    ("status", "status --json -m QM1 --list topics --list subscriptions"),
    ("topics", "topics --json -m QM1"),
    ("put", f"put --json -m QM1 Q {CAPTURE}"),
    ("pub", "pub --json -m QM1 a b"),
    ("config check", "config check --json wrong.toml"),
    ("check", "check --json -m QM1"),
    ("passwd", "passwd --json alice"),
    ("shares status", "shares status --json shares.toml"),
    ("shares where", "shares where --json shares.toml Q"),
    ("shares put", f"shares put --json shares.toml {CAPTURE}"),
    ("cleanup", "cleanup --json -m QM1"),
    ("strmqbrk", f"strmqbrk --json --rehearse -m QM1 {DEMO}/state"),
    ("migmbbrk", f"migmbbrk --json -r -b BRK1 -m QM1 {DEMO}/outfile.txt"),
    ("extract", "extract --json -m QM1 -o state.json"),
    ("estate status", "estate status --json"),
    *((f"estate {verb}", f"estate {verb} --json") for verb in ("plan", "rehearse", "apply", "verify", "undo")),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("QM1", "QM3"):
        assert run("create", name, "--home", str(home / "qmgrs")).code == 0
    assert run("put", "-m", "QM1", "--as-captured", CAPTURE, "--home", str(home / "qmgrs")).code == 0
    (home / "script.mqsc").write_text("DEFINE SUB(S) TOPICSTR('a/b') DEST(Q)\nDISPLAY QLOCAL(*)\nNONSENSE\n")
    (home / "wrong.toml").write_text("[run]\nqmgrs = 3\n")
    (home / "shares.toml").write_text(SHARES)
    (home / "estate.toml").write_text(ESTATE)
    assert run("shares", "create", str(home / "shares.toml"), "--home", str(home / "qmgrs")).code == 0
    return home


@pytest.mark.parametrize(("words", "line"), LINES, ids=[line.partition(" /")[0] for _, line in LINES])
def test_what_a_verb_prints_fits_its_schema(words: str, line: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    ran = run(*line.split(), stdin="secret\n")
    model = model_of(words, "forbid")
    assert ran.lines, ran.talk
    for each in ran.lines:
        model.model_validate_json(each)


def test_a_publication_fits_its_schema(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    working = Working(home / "qmgrs")
    try:
        assert run("pub", "-m", "QM1", "--retain", "--property", "a:int=1", "x/y", "1").code == 0
        (line,) = run("sub", "-m", "QM1", "-C", "1", "--json", "x/y").lines
    finally:
        working.end()
    model_of("sub", "forbid").model_validate_json(line)


def test_a_key_too_many_or_of_another_type_does_not_fit() -> None:
    for wrong in ('"qmgr": "Q", "was_running": true, "more": 1', '"qmgr": 1, "was_running": true', '"qmgr": "Q"'):
        with pytest.raises(ValidationError):
            model_of("stop", "forbid").model_validate_json(f'{{"format": 1, {wrong}}}')


def test_the_schema_is_printed_by_the_name_of_the_verb() -> None:
    shown = json.loads(run("schema", "estate", "plan").out)
    assert (shown["title"], shown["properties"]["format"]["const"]) == ("qpubsub estate plan --json", 1)
    assert {"queue_managers", "action"} <= set(shown["required"])
    assert {*FORMS, *COMPARED, "message", "put"} == set(run("schema").lines)
    assert "there is no schema nothing" in run("schema", "nothing").talk
