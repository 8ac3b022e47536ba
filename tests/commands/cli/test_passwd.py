"""``qpubsub passwd``: what it prints, and what it does to a users file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.config.access import in_users_file, is_password
from tests.commands.cli_runs import run


def test_the_line_is_printed() -> None:
    ran = run("passwd", "Alice", stdin="right\nmore\n")
    name, _, stored = ran.lines[0].partition(":")
    assert (ran.code, name, len(ran.lines)) == (0, "alice", 1)
    assert is_password("right", stored)
    assert "right" not in ran.out + ran.talk


def test_a_file_is_written_and_changed(tmp_path: Path) -> None:
    users = tmp_path / "users"
    assert "alice added" in run("passwd", "--users", str(users), "alice", stdin="one").talk
    assert oct(users.stat().st_mode)[-3:] == "600"
    users.write_text(f"# ours\n{users.read_text()}bob:x\n")
    users.chmod(0o640)
    assert "alice changed" in run("passwd", "--users", str(users), "alice", stdin="two").talk

    lines = users.read_text().splitlines()
    assert (lines[0], lines[1][:6], lines[2], len(lines)) == ("# ours", "alice:", "bob:x", 3)
    assert oct(users.stat().st_mode)[-3:] == "640"
    assert (in_users_file(users)("alice", "one"), in_users_file(users)("alice", "two")) == (False, True)


def test_a_user_is_removed(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice:x\nbob:y\n ALICE : z\n")
    assert "alice removed" in run("passwd", "--users", str(users), "--delete", "alice").talk
    assert users.read_text() == "bob:y\n"
    assert run("passwd", "--users", str(users), "--delete", "alice").code == 2


def test_json() -> None:
    printed = json.loads(run("passwd", "--json", "alice", stdin="right").out)
    assert is_password("right", printed.pop("hash"))
    assert printed == {"format": 1, "user": "alice", "users_file": None}


@pytest.mark.parametrize(
    ("words", "stdin", "why"),
    [
        (("a:b",), "x", "'a:b' is not a user"),
        (("#a",), "x", "is not a user"),
        (("",), "x", "is not a user"),
        (("alice",), "", "1 to 256 bytes"),
        (("alice",), "x" * 257, "1 to 256 bytes"),
        (("--delete", "alice"), "", "--delete needs --users FILE"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], stdin: str, why: str) -> None:
    ran = run("passwd", *words, stdin=stdin)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.talk
