"""``why`` beside ``replay`` on one generated capture: processor time and memory, each in a process of its own.

    python -m tests.benchmarks.why [--messages 100000] [--rounds 1]

Both read the capture from a file and write to one, one process: ``replay`` its puts, ``why`` its answers (``--json``)
and the sums. The last column is the ratio to ``replay`` in the same round.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

_CHILD = """
import resource, sys, time
from commands.cli import main
began = time.process_time()
try:
    main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
spent = resource.getrusage(resource.RUSAGE_SELF)
print(code, time.process_time() - began, spent.ru_maxrss / 1024, file=sys.stderr)
"""
RUNS = {"replay": ("replay", "--jobs", "1"), "why": ("why",), "why --json": ("why", "--json")}


def measured(words: tuple[str, ...], capture: Path, setup: Path, output: Path) -> tuple[float, float]:
    """Processor time in seconds, and the highest memory in megabytes."""
    arguments = [*words, "-q", "--input", str(capture), "--setup", str(setup), "--output", str(output)]
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    code, seconds, megabytes = done.stderr.splitlines()[-1].split()
    assert code in ("0", "1"), done.stderr
    return float(seconds), float(megabytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        capture, setup = Path(name, "capture.jsonl"), Path(name, "setup.mqsc")
        made = ["generate", "-q", "--messages", str(asked.messages), "--output", str(capture)]
        subprocess.run([sys.executable, "-c", _CHILD, *made, "--write-setup", str(setup)], check=True)
        rounds = []
        for _ in range(asked.rounds):
            found = {run: measured(words, capture, setup, Path(name, "out.jsonl")) for run, words in RUNS.items()}
            rounds.append(found)
            for run, (seconds, megabytes) in found.items():
                print(f"{run:<12} {seconds:8.1f} s  {megabytes:7.0f} MB", flush=True)
    print(f"\n{asked.messages:,} messages, median of {asked.rounds} rounds, ratio to replay:")
    for run in RUNS:
        time = median(found[run][0] / found["replay"][0] for found in rounds)
        memory = median(found[run][1] / found["replay"][1] for found in rounds)
        print(f"{run:<12} time {time:.2f}  memory {memory:.2f}")


if __name__ == "__main__":
    main()
