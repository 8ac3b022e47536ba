"""How long a process takes that does little: ``qpubsub --help``, and ``qpubsub decode`` of one message.

    python -m tests.benchmarks.start [--rounds 15] [CHECKOUT]...

Beside them are a Python that does nothing, and one that imports the libraries that ``decode`` needs. Each round starts
each of these once, in each CHECKOUT (the default is this one). The table has the best and the median, in milliseconds
of processor time and on the wall, and the multiple of Python alone; for a second checkout also the ratio of its
processor time to that of the first, of runs side by side. Compile the bytecode first:
``python -m compileall -q rfh2 streams commands migrate``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ALONE: Final = "python -c pass"
_LIBRARIES: Final = "import click, construct, lxml.etree, pydantic; from pydantic import BaseModel, Field, TypeAdapter"
_MESSAGE: Final = ROOT / "fixtures/captures/formats/stock.mqmd"
STARTS: Final = {
    ALONE: ("-c", "pass"),
    "import click": ("-c", "import click"),
    "import of the libraries": ("-c", _LIBRARIES),
    "qpubsub --help": ("-m", "commands.cli", "--help"),
    "qpubsub decode": ("-m", "commands.cli", "decode", str(_MESSAGE)),
}


def start(arguments: tuple[str, ...], checkout: Path) -> tuple[float, float]:
    """Run one process: its processor time, and its time on the wall, in milliseconds."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=checkout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, spent = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return (spent.ru_utime + spent.ru_stime) * 1000, (time.perf_counter() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    spent: dict[tuple[str, Path], list[tuple[float, float]]] = {}
    for _ in range(asked.rounds):
        for name, arguments in STARTS.items():
            for checkout in asked.checkout:
                spent.setdefault((name, checkout), []).append(start(arguments, checkout))
    for (name, checkout), runs in spent.items():
        alone = spent[ALONE, checkout]
        cells = [name if len(asked.checkout) == 1 else f"{name}, {checkout}"]
        for at in (0, 1):
            times, floor = [each[at] for each in runs], [each[at] for each in alone]
            cells += [f"{min(times):.0f}", f"{median(times):.0f}", f"{min(times) / min(floor):.1f}"]
        first = spent[name, asked.checkout[0]]
        if runs is not first:
            ratios = [mine[0] / other[0] for mine, other in zip(runs, first, strict=True)]
            cells.append(f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
