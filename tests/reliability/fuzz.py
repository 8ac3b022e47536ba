"""All generators that write their cases piece by piece, and the inputs that once broke something."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.reliability import fuzz_links, fuzz_stores, hostile
from tests.reliability.corpus import HOSTILE
from tests.reliability.figures import Table, counted
from tests.reliability.trials import Tally, Target, again, hunt

FUZZ: Final[tuple[Target, ...]] = (*fuzz_stores.TARGETS, *fuzz_links.TARGETS)
TARGETS: Final = {target.name: target for target in (*FUZZ, *hostile.TARGETS)}
COLUMNS: Final = ("target", "what holds", "cases", "what came of them", "slowest")


def tried(title: str, targets: tuple[Target, ...], seed: int, scale: float, found: Path | None) -> Table:
    """Try each target. scale: 1 is some ten seconds for each."""
    tallies = [(target, hunt(target, seed, max(1, int(target.rounds * scale)), found)) for target in targets]
    return Table(title, COLUMNS, [_row(*each) for each in tallies], [line for _, t in tallies for line in t.broken])


def _row(target: Target, tally: Tally) -> tuple[str, ...]:
    outcomes = counted(dict(tally.outcomes.most_common(6)))
    return target.name, target.rule, f"{tally.cases:,}", outcomes, f"{tally.slowest_s:.2f} s"


def kept() -> list[Path]:
    """The inputs that once broke something."""
    return sorted(HOSTILE.glob("*.json"))


def known(paths: list[Path]) -> Table:
    """Try the inputs that once broke something again."""
    failures = [(path, again(path, TARGETS)) for path in paths]
    broken = [f"{path.name}: {failure.how}: {failure.why}" for path, failure in failures if failure is not None]
    rows = [("inputs that once broke something", f"{len(paths)}", f"{len(broken)}")]
    return Table("Kept inputs", ("what", "tried", "broken"), rows, broken)
