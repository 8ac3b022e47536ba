"""What the tutorial shows of its programs is in them, and the JMS program compiles with IBM's classes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ibm_java import JARS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "1999-program.md"
PROGRAMS = {"c": "scores.c", "py": "scores.py", "java": "Scores.java"}
JAVAC = shutil.which("javac")


def _lines(text: str) -> str:
    """The lines of *text* without indentation, each with its end."""
    return "".join(f"{line.strip()}\n" for line in text.splitlines() if line.strip())


@pytest.mark.parametrize(("language", "name"), PROGRAMS.items(), ids=list(PROGRAMS))
def test_excerpts_are_in_the_program(language: str, name: str) -> None:
    program = _lines((PAGE.parent / "programs" / name).read_text())
    (shown,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    parts = [_lines(part) for part in re.split(r"/\* \.\.\. \*/|# \.\.\.", shown)]

    assert [part for part in parts if part not in program] == []
    assert f"(programs/{name})" in PAGE.read_text()


@pytest.mark.skipif(JAVAC is None, reason="javac is not installed; see .ci/run")
@pytest.mark.skipif(not JARS, reason="IBM MQ classes for JMS are not in .venv/peers/java; .ci/run fetches them")
def test_the_jms_program_compiles(tmp_path: Path) -> None:
    assert JAVAC is not None
    # Java 8 is what the classes need at least; newer compilers warn that it is old.
    options = ["--release", "8", "-Xlint:all,-options,-path", "-Werror", "-d", str(tmp_path)]
    source = PAGE.parent / "programs" / PROGRAMS["java"]
    done = subprocess.run(
        [JAVAC, *options, "-cp", ":".join(map(str, JARS)), str(source)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (tmp_path / "Scores.class").is_file()
