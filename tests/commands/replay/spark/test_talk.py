"""A program on Spark says what it has to say, and Java what matters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PROGRAM = """
from commands.replay.spark import session
spark = session("local[1]")
spark._jvm.java.lang.System.err.println("a word that matters")
print(spark.range(5).count())
spark.stop()
"""


@pytest.mark.nightly
def test_what_matters_is_passed_on_and_nothing_else() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (0, "5\n")
    assert result.stderr.splitlines() == ["a word that matters"]


@pytest.mark.nightly
def test_a_java_that_does_not_start_says_why() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": "--no-such-option pyspark-shell"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "--no-such-option" in result.stderr
