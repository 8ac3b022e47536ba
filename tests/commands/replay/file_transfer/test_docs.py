"""docs/managed-file-transfer.md: its commands run as they are printed, and its tables name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from commands.replay.file_transfer import TABLES, columns_of
from tests.commands.cli_runs import run

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "managed-file-transfer.md").read_text()


def test_the_commands_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    commands = 0
    for block in re.findall(r"^```\n(\$ .*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        for printed in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *shown = printed.splitlines()
            name, *words = shlex.split(line)
            assert name == "qpubsub"
            ran = run(*words)
            assert ran.code == (1 if words[0] == "analyse" else 0), (line, ran.talk)
            assert not shown or ran.out.splitlines() == shown, line
            commands += 1
    assert commands == 9
    assert {path.name for path in (tmp_path / "transfers").iterdir()} == {f"{table}.csv" for table in TABLES}


def test_the_columns_that_the_page_names_are_there() -> None:
    for table in TABLES:
        (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{table}` |"))
        named = set(re.findall(r"`(\w+)`", row.split("|")[3])) - {"log", "status"}
        assert named <= columns_of(table).keys(), table
        assert named
