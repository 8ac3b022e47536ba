"""``--exit`` of replay and why, on the example of docs/publish-exit.md (guide 4.6.2)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands.cli_runs import Ran, run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "publish-exit.md").read_text()
EXAMPLE = Path("fixtures/publish-exit")
CONFIG, CAPTURE = str(EXAMPLE / "bridge.toml"), str(EXAMPLE / "capture.jsonl")


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.rule("APP-5g")
@pytest.mark.parametrize(("language", "file"), [("python", "exits.py"), ("toml", "bridge.toml")])
def test_the_page_shows_the_files(language: str, file: str) -> None:
    shown = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown[1] == (EXAMPLE / file).read_text()


def _replayed(*options: str) -> Ran:
    return run("replay", "--exit", CONFIG, CAPTURE, *options)


def test_the_transcript_is_that_of_the_page() -> None:
    ran = _replayed("--transcript")
    assert ran.code == 1
    assert ran.out in PAGE
    assert "there is no league for Rugby (exits.py, line 24)" in ran.talk


def test_two_replays_are_the_same_bytes_and_a_selection_shows_the_same() -> None:
    once = _replayed()
    assert _replayed().out == once.out
    assert [json.loads(line)["queue"] for line in once.lines] == [
        "BOARD",
        "SOCCER",
        "SYSTEM.DEAD.LETTER.QUEUE",
        "SYSTEM.DEAD.LETTER.QUEUE",
    ]
    assert _replayed("--seq", "3").lines == once.lines[1:2]


def test_a_capture_out_of_order_is_replayed_again_with_a_new_exit(tmp_path: Path) -> None:
    lines = Path(CAPTURE).read_text().splitlines(keepends=True)
    shuffled = tmp_path / "shuffled.jsonl"
    shuffled.write_text("".join([*lines[1:3], lines[0], *lines[3:]]))
    assert run("replay", "--exit", CONFIG, str(shuffled)).out == _replayed().out


def test_why() -> None:
    ran = run("why", "--input", CAPTURE, "--exit", CONFIG, "--json")
    found = [json.loads(line) for line in ran.lines]
    assert [(each["seq"], each["delivered"], each["reason"], each["detail"]) for each in found] == [
        (2, True, "delivered", ""),
        (3, True, "delivered", "the publish exit sent it to queue SOCCER"),
        (
            *(4, False, "dead-letter"),
            "the publish exit suppressed it: it is on SYSTEM.DEAD.LETTER.QUEUE (Feedback 70001, an application's own)",
        ),
        (
            *(5, False, "blocked"),
            "the publish exit suppressed it, and Report says MQRO_DISCARD_MSG"
            " (Feedback 279, MQFB_STOPPED_BY_PUBSUB_EXIT)",
        ),
        (
            *(6, False, "dead-letter"),
            "Publish 6 was refused: reason 2557 (topic Sport/Rugby): publish exit: ValueError: there is no league for"
            " Rugby (exits.py, line 24); it is a dead letter",
        ),
    ]


def test_why_without_the_exit() -> None:
    ran = run("why", "--input", CAPTURE, "--json")
    assert {json.loads(line)["reason"] for line in ran.lines} == {"delivered"}


WRONG: list[tuple[str, tuple[str, ...], str]] = [
    ("no file", ("replay", "--exit", "none.toml", CAPTURE), "none.toml: no such file or directory"),
    (
        "spark",
        ("replay", "--exit", CONFIG, "--engine", "spark", CAPTURE, "-o", "x.jsonl"),
        "--exit cannot be used with --engine spark",
    ),
    (
        "live why",
        ("why", "-m", "QM1", "--exit", CONFIG),
        "--exit and --network need --input FILE",
    ),
]


@pytest.mark.parametrize(("arguments", "says"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_use(arguments: tuple[str, ...], says: str) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert says in ran.talk


def test_a_configuration_without_an_exit(tmp_path: Path) -> None:
    empty = tmp_path / "empty.toml"
    empty.write_text("[run]\n")
    ran = run("replay", "--exit", str(empty), CAPTURE)
    assert (ran.code, "table [publish_exit] needs path, entry_point or program" in ran.talk) == (2, True)


def test_config_check(tmp_path: Path) -> None:
    file = tmp_path / "bridge.toml"
    file.write_text('[publish_exit]\npath = "none.py"\n')
    ran = run("config", "check", str(file))
    assert (ran.code, "publish_exit.path: none.py: there is no such file" in ran.out) == (1, True)
    file.write_text('[publish_exit]\npath = "none.py"\nprogram = ["x"]\n')
    assert "only one of path, entry_point and program" in run("config", "check", str(file)).out
