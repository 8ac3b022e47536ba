"""The commands of the tutorials run, in their order, in a directory that has nothing but the captures.

A block of commands is fenced as ``sh``. One that begins with ``# not run:`` and a reason needs what
a test machine lacks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"# not run: \w")


def _blocks(page: Path) -> list[str]:
    return [block for block in BLOCK.findall(page.read_text()) if not NOT_RUN.match(block)]


def test_there_are_tutorials() -> None:
    assert [page.name for page in TUTORIALS] == ["1999-program.md", "dump-and-question.md", "retire-a-broker.md"]


@pytest.mark.nightly
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_of_a_tutorial_run(page: Path, tmp_path: Path) -> None:
    blocks = _blocks(page)
    assert len(blocks) > 3
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    programs = tmp_path / "bin"
    programs.mkdir()
    qpubsub = programs / "qpubsub"
    qpubsub.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m commands.cli "$@"\n')
    qpubsub.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    script = "set -euo pipefail\n" + "\n".join(blocks)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-c", script], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for shown in _shown(page):
        assert shown in done.stdout


def _shown(page: Path) -> list[str]:
    """What a page shows as the output of commands that were run: a ``text`` block right behind such a block."""
    lines = r"((?:(?!```).*\n)*)```\n"
    found = re.findall(rf"^```sh\n{lines}\n```text\n{lines}", page.read_text(), re.MULTILINE)
    return [shown for block, shown in found if not NOT_RUN.match(block)]
