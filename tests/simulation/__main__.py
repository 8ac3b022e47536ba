"""Runs simulations from seeds, and says what is amiss at their end (docs/reliability.md).

python -m tests.simulation --seed 7                   # one of each world
python -m tests.simulation --seed 7 --world bridge --trace
python -m tests.simulation --gate                     # a few, and all that once found something
python -m tests.simulation --minutes 10 --seed 1000   # as many as there is time for
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from tests.simulation.kernel import Kernel, SimulationError
from tests.simulation.stand_ins import begin_simulating, stand_in
from tests.simulation.worlds import WORLDS

_HASHES: Final = "PYTHONHASHSEED"
_BUGS: Final = Path(__file__).with_name("bugs.txt")
_GATE: Final = (("bridge", 1), ("listener", 3), ("network", 1), ("takeover", 3))
_EVERY_S: Final = (0.0, 0.5, 1.0, 2.0, 5.0)
"""Mean pauses between two faults; 0 for no faults."""


@dataclass(frozen=True)
class Result:
    """digest: of the whole trace. simulated_s: how long it was there."""

    digest: str
    amiss: tuple[str, ...]
    simulated_s: float
    turns: int
    faults: int


def simulate(world: str, seed: int, shows: bool = False) -> Result:
    """Run *world* from *seed*, in a directory of its own. shows: print the trace."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        os.chdir(directory)
        kernel = Kernel(seed, shows)
        try:
            made = WORLDS[world](kernel, kernel.chance.choice(_EVERY_S))
            try:
                made.run()
                amiss = tuple(made.amiss())
            except SimulationError as error:
                amiss = (str(error), *kernel.broken)
        finally:
            kernel.end()
            os.chdir(before)
    gc.collect()
    return Result(kernel.digest, amiss, kernel.now, kernel.turns, made.faults)


def _asked(given: argparse.Namespace) -> Iterator[tuple[str, int]]:
    worlds = given.world or sorted(WORLDS)
    if given.gate:
        for line in _BUGS.read_text().splitlines():
            if line and not line.startswith("#"):
                yield line.split()[0], int(line.split()[1])
        yield from _GATE
        return
    end = None if given.minutes is None else time.monotonic() + given.minutes * 60
    for seed in count(given.seed) if end is not None else range(given.seed, given.seed + given.seeds):
        for world in worlds:
            if end is not None and time.monotonic() > end:
                return
            yield world, seed


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 1 where something is amiss."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--minutes", type=float, help="seeds from --seed on, for so long")
    parser.add_argument("--world", choices=sorted(WORLDS), action="append")
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args(argv)
    begin_simulating()
    gc.disable()  # at its own moments it would have objects with a __del__ end at others than before
    runs = faults = bad = 0
    simulated_s, began = 0.0, time.monotonic()
    for world, seed in _asked(given):
        stand_in()
        result = simulate(world, seed, given.trace)
        about = f"{result.simulated_s:.0f} s, {result.turns:,} turns, {result.faults} faults"
        print(f"{world} {seed}: {result.digest} {about}", flush=True)
        for each in result.amiss:
            print(f"    {each}", flush=True)
        runs, faults, bad = runs + 1, faults + result.faults, bad + bool(result.amiss)
        simulated_s += result.simulated_s
    took_s = time.monotonic() - began
    rate = simulated_s / 3_600 / (took_s / 60)
    print(
        f"{runs} runs, {faults} faults, {rate:.1f} simulated hours a minute, {took_s:.0f} s; {bad} with something amiss"
    )
    return int(bad > 0)


if __name__ == "__main__":
    if os.environ.get(_HASHES) != "0":
        # Sets of texts have another order in each process; then one seed would give two traces.
        again = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, _HASHES: "0"})
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the threads of killed processes wait for ever
