"""The simulations of the gate find nothing amiss, and a seed gives the same trace again (docs/reliability.md)."""

from __future__ import annotations

import re
import subprocess
import sys


def _simulated(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_nothing_is_amiss_in_those_of_the_gate_and_a_seed_gives_the_same_trace() -> None:
    gate = _simulated("--gate")
    assert gate.returncode == 0, gate.stdout + gate.stderr
    again = _simulated("--seed", "1", "--world", "bridge")
    assert re.findall("bridge 1: .*", gate.stdout) == re.findall("bridge 1: .*", again.stdout) != []
