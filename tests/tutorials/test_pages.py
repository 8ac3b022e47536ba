"""The commands of the tutorials run, in their order, in an empty directory.

A block of commands is fenced as ``sh``. A comment in the line above it says that it is not run, or that its commands
may end in 1 (``tests.tour.pages``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tour.pages import blocks

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def _script(page: Path) -> str:
    """The blocks of a page; a command that may end in another code than 0 does not end the script."""
    lines = []
    for block in blocks(page, page.name):
        if block.language == "sh" and block.not_run is None:
            ending = f" || test $? -eq {block.exits}" if block.exits else ""
            lines += [f"{command}{ending}" for command, _ in block.commands]
    assert len(lines) > 5
    return "\n".join(["set -euo pipefail", *lines])


def test_there_are_tutorials() -> None:
    assert [page.name for page in TUTORIALS] == ["1999-program.md", "dump-and-question.md", "retire-a-broker.md"]


@pytest.mark.nightly
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_of_a_tutorial_run(page: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    qpubsub = programs / "qpubsub"
    qpubsub.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m commands.cli "$@"\n')
    qpubsub.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-c", _script(page)], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for shown in _shown(page):
        assert shown in done.stdout


def _shown(page: Path) -> list[str]:
    """What a page shows as the output of commands that were run: a ``text`` block right after such a block."""
    lines = r"((?:(?!```).*\n)*)```\n"
    return re.findall(rf"^(?<!-->\n)```sh\n(?:(?!```).*\n)*```\n\n```text\n{lines}", page.read_text(), re.MULTILINE)
