"""Runs simulations from seeds (docs/reliability.md).

    python -m tests.simulation --seed 7              # one of each world, said what is amiss
    python -m tests.simulation --minutes 10          # fresh ones
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HASHES: Final = "PYTHONHASHSEED"


@dataclass(frozen=True)
class Result:
    """digest: of the whole trace. hours: of simulated time."""

    world: str
    seed: int
    digest: str
    amiss: tuple[str, ...]
    hours: float
    turns: int
    faults: int


def simulate(world: str, seed: int, shows: bool = False) -> Result:
    """Run *world* from *seed*, in a directory of its own."""
    from tests.simulation.kernel import Kernel, SimulationError, stand_in
    from tests.simulation.worlds import WORLDS

    stand_in()
    before = Path.cwd()
    gc.collect()
    gc.disable()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        os.chdir(directory)
        try:
            kernel = Kernel(seed, shows)
            made = WORLDS[world](kernel, kernel.chance.choice((0.0, 1.0, 3.0, 10.0)))
            try:
                made.run()
                amiss = tuple(made.amiss())
            except SimulationError as error:
                amiss = (str(error),)
        finally:
            kernel.end()
            os.chdir(before)
            gc.enable()
    return Result(world, seed, kernel.digest, amiss, kernel.now / 3_600, kernel.turns, made.faults)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 1 where something is amiss."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--world", choices=("bridge", "listener", "network", "takeover"), action="append")
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args(argv)
    from tests.simulation.kernel import begin_simulating

    begin_simulating()
    bad = 0
    from tests.simulation.worlds import WORLDS

    worlds = given.world or sorted(WORLDS)
    for world, seed in ((world, seed) for seed in range(given.seed, given.seed + given.seeds) for world in worlds):
        began = time.perf_counter()
        result = simulate(world, seed, given.trace)
        print(
            f"{result.world} {seed}: {result.digest}, {result.hours * 60:.1f} min, {result.turns} turns, "
            f"{result.faults} faults, {time.perf_counter() - began:.1f} s", flush=True
        )
        for each in result.amiss:
            bad = 1
            print(f"  {each[:1500]}", flush=True)
    return bad


if __name__ == "__main__":
    if os.environ.get(_HASHES) != "0":
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], {**os.environ, _HASHES: "0"})
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of killed processes wait for ever
