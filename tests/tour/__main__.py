"""The tour: what README, docs and help pages print is run as a newcomer would, on an installed package.

    python -m tests.tour                         # everything, a few minutes
    python -m tests.tour live-brokers decode     # the pages and verbs with such names
    python -m tests.tour --spark                 # what starts Spark, which the others leave out
    python -m tests.tour --no-cache              # pip loads everything anew, as on a new machine

The checkout is copied, the README's install block makes the environment, and everything else runs in copies of what
``qpubsub demo --copy`` writes, with a queue manager QM1 where the page does not make it. ``tests.tour.pages`` says how
a page marks what cannot run, ``tests.tour.examples`` which examples of help pages cannot. The exit code is 1 where
anything ended otherwise than it should.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.tour.journey import Journey, Step


def main(chosen: list[str], *, spark: bool = False, cached: bool = True, report: Path | None = None) -> list[Step]:
    """Make the tour, print each step and return them all.

    chosen: parts of names of pages and verbs, [] for all. spark: what
    starts Spark is run, and nothing else; otherwise it is left out. cached: whether pip may use its cache.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tour-") as scratch:
        steps = Journey(Path(scratch), spark=spark, cached=cached).make(chosen)
    lines = [str(step) for step in sorted(steps, key=lambda step: (step.where, step.number))]
    failed = [step for step in steps if step.failure is not None]
    skipped = [step for step in steps if step.not_run is not None]
    ran = len(steps) - len(skipped)
    lines.append(f"{ran} steps ran, {len(failed)} failed, {len(skipped)} not run; {time.monotonic() - began:.0f} s")
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if report is not None:
        report.write_text(text, encoding="utf-8")
    return steps


if __name__ == "__main__":
    about = str(__doc__).split("\n", maxsplit=1)[0]
    arguments = argparse.ArgumentParser(prog="python -m tests.tour", description=about)
    arguments.add_argument("chosen", nargs="*", help="parts of names of pages and verbs")
    arguments.add_argument("--spark", action="store_true", help="run what starts Spark, and nothing else")
    arguments.add_argument("--no-cache", action="store_true", help="install without pip's cache")
    arguments.add_argument("--report", type=Path, help="write the list of steps to this file too")
    given = arguments.parse_args()
    made = main(given.chosen, spark=given.spark, cached=not given.no_cache, report=given.report)
    sys.exit(any(step.failure is not None for step in made))
