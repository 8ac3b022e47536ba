"""What goes wrong before a verb has begun, or where it writes: one wording for one situation, with a name in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rfh2.errors import system_words
from tests.commands.cli_runs import run

CAPTURE = Path(__file__).parents[3] / "fixtures" / "results-service" / "capture.jsonl"
MISSING = [
    "decode missing",
    "config check missing",
    "estate plan missing",
    "mqsc -m QM1 missing",
    "strmqbrk -m QM1 missing",
    "replay --setup missing capture",
    "shares status missing",
    "verify -m QM1 missing",
    "put -m QM1 Q missing",
]


@pytest.mark.parametrize("line", MISSING)
def test_a_file_that_is_missing_is_named_in_one_wording(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("create", "QM1").code == 0
    ran = run(*line.split())
    assert (ran.code, ran.talk.partition(";")[0].rstrip()) == (2, "qpubsub: missing: no such file or directory")


NAMED = [
    ("run -m QM1 --command-seconds minus", "'--command-seconds': 'minus' is not a valid number of seconds"),
    ("generate --messages -5", "--messages: input should be greater than or equal to 0"),
    ("passwd --users nowhere/users alice", "qpubsub: nowhere: no such file or directory"),
    ("mqsc QM1", "a queue manager is named with -m, unlike with runmqsc: qpubsub mqsc -m QM1"),
    ("encode", "stdin, line 1: there is no message: it is not an object that decode --json prints"),
]


@pytest.mark.parametrize(("line", "said"), NAMED, ids=[line for line, _ in NAMED])
def test_what_is_wrong_is_named(line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in run(*line.split(), stdin='{"a": 1}\n').talk


def test_a_value_of_the_environment_is_wrong_by_the_name_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QPUBSUB_RUN_LEASE", "abc")
    assert "Invalid value for QPUBSUB_RUN_LEASE: 'abc' is not" in run("run", "-m", "QM1").talk
    assert "Invalid value for '--lease': 'x' is not" in run("run", "-m", "QM1", "--lease", "x").talk


def test_a_setup_that_is_another_file_is_not_shown_whole(tmp_path: Path) -> None:
    (tmp_path / "capture.jsonl").write_text("x" * 5_000)
    talk = run("replay", "--setup", str(tmp_path / "capture.jsonl"), str(CAPTURE)).talk
    assert "line 1: " + "x" * 80 + "...: AMQ8405" in talk
    assert "x" * 81 not in talk


def test_a_command_that_will_be_refused_is_made_with_a_warning() -> None:
    ran = run("encode", "--command", "RegSub", "--topic", "a", "--q-name", "Q", "--option", "Foo")
    assert (ran.code, ran.out.count("\n")) == (0, 1)
    assert "RegSub takes no RegOpt 'Foo'; a queue manager answers 3083" in ran.talk


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "x"), "no such file or directory"),
        (OSError(98, "error while attempting to bind on address ('::1', 1): address in use"), "address in use"),
        (OSError(98, "Address in use (while attempting to bind on address ('::1', 1))"), "address in use"),
        (OSError("Odd"), "odd"),
    ],
)
def test_the_words_of_the_system(error: OSError, words: str) -> None:
    assert system_words(error) == words
