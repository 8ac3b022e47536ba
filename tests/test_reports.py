"""The reports of tests, which processes that run them send to the one that prints them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

LOGS = """
import logging

def test_logs():
    logging.getLogger("qpubsub").warning("topic %s", "a\\udab5")
    print("b\\udab5")
"""


def test_half_a_character_that_a_test_has_logged_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_logs.py").write_text(LOGS)
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "--numprocesses", "1", "-q", "--rootdir", tmp_path]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
