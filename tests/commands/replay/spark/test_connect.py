"""Spark Connect: all functions through a server, to whose workers the package is sent."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
WANTED = ["replayed", "decoded True", "translated True", "analysed True", "differing True", "run True"]


@pytest.mark.skipif(find_spec("grpc") is None, reason="the extra connect is not installed")
@pytest.mark.slow
@pytest.mark.nightly
def test_all_functions_through_a_server(tmp_path: Path) -> None:
    """In a process of its own: one process has sessions of one kind."""
    program = [sys.executable, "-m", "tests.commands.replay.spark.connect_program", "local[2]", str(tmp_path)]
    result = subprocess.run(program, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False)
    assert [line.strip() for line in result.stdout.splitlines()] == WANTED, result.stderr[-4000:]
