"""Trying a rule on many cases that a seeded generator makes: what came of them, what broke it, how to repeat that.

A target makes cases and checks them. A case is JSON, so that one that breaks a rule can be kept in a file:

    python -m tests.reliability again FILE...

tries it again. The case of round n of seed s is the same on every machine, whatever rounds were tried before it. A
case that breaks a rule is made smaller, as long as it breaks in the same way, before it is kept.
"""

from __future__ import annotations

import hashlib
import json
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final

from tests.reliability.workload import unlogged

Json = Any

# Processor time for a case: some thousand times what one costs, and a bound for what grows with its length.
ALLOWED_S: Final = 1.0
ALLOWED_S_PER_MB: Final = 20.0
# A case is made smaller for so long, in seconds and in tries.
_SHRINK_S: Final = 10.0
_SHRINK_TRIES: Final = 2_000
_KEPT: Final = 20


class TooSlowError(BaseException):
    """A case that costs more processor time than it may. Not an Exception: nobody is to catch it on the way."""


@dataclass(frozen=True, slots=True)
class Target:
    """One rule. rule: what holds of every case, in words. make: a case. check: one word for what came of it.

    check raises whatever breaks the rule: AssertionError, or any error that the project does not foresee. allowed_s: of
    processor time for a case beside what its length adds. rounds: how many of them take about ten seconds.
    """

    name: str
    rule: str
    make: Callable[[Random], Json]
    check: Callable[[Json], str]
    rounds: int
    allowed_s: float = ALLOWED_S


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that broke the rule of a target. how: the error's class and the place in the code."""

    target: str
    how: str
    why: str
    case: Json
    found: str

    def keep(self, directory: Path) -> Path:
        """Write it to *directory*, under a name made of the target and the case."""
        directory.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(json.dumps(self.case, sort_keys=True).encode()).hexdigest()[:10]
        path = directory / f"{self.target}-{name}.json"
        kept = {"target": self.target, "found": self.found, "how": self.how, "why": self.why, "case": self.case}
        path.write_text(json.dumps(kept, indent=1) + "\n")
        return path


@dataclass(slots=True)
class Tally:
    """What came of the cases of one target. slowest_s: of processor time."""

    target: str
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        """A line for each way in which the rule was broken."""
        seen = Counter(failure.how for failure in self.failures)
        first = {failure.how: failure for failure in reversed(self.failures)}
        where = {failure.how: path for failure, path in reversed(list(zip(self.failures, self.kept, strict=False)))}
        return [
            f"{self.target}, {count} times: {how}: {first[how].why[:300]} ({first[how].found}; {where.get(how, '')})"
            for how, count in seen.items()
        ]


def hunt(target: Target, seed: int, rounds: int, found: Path | None = None, first: int = 0) -> Tally:
    """Try *rounds* cases. found: where cases that break the rule are kept."""
    tally = Tally(target.name)
    for number in range(first, first + rounds):
        case = target.make(Random(f"{target.name} {seed} {number}"))
        failure = attempt(target, case, tally, f"seed {seed}, round {number}")
        if failure is None:
            continue
        known = sum(other.how == failure.how for other in tally.failures)
        if known == 0:
            failure = smaller(target, failure)
        if known < _KEPT:
            tally.failures.append(failure)
            if found is not None:
                tally.kept.append(failure.keep(found))
    return tally


def attempt(target: Target, case: Json, tally: Tally, found: str = "") -> Failure | None:
    """Check one case; how it broke the rule, or None."""
    start = time.process_time()
    broken = _broken(target, case, tally.outcomes)
    tally.cases += 1
    tally.slowest_s = max(tally.slowest_s, time.process_time() - start)
    return None if broken is None else Failure(target.name, *broken, case, found)


def again(path: Path, targets: Mapping[str, Target]) -> Failure | None:
    """Try the case that is kept in *path*; how it breaks the rule, or None where it holds."""
    kept = json.loads(path.read_text())
    target = targets[kept["target"]]
    return attempt(target, kept["case"], Tally(target.name), str(path))


def smaller(target: Target, failure: Failure) -> Failure:
    """The same failure with as little of its case as a short search finds."""
    best, end, tries = failure, time.monotonic() + _SHRINK_S, 0
    improved = True
    while improved:
        improved = False
        for candidate in _reduced(best.case):
            tries += 1
            if tries > _SHRINK_TRIES or time.monotonic() > end:
                return best
            try:
                broken = _broken(target, candidate, Counter())
            except (KeyError, IndexError, TypeError):
                continue
            if broken is not None and broken[0] == best.how:
                best, improved = Failure(target.name, *broken, candidate, failure.found), True
                break
    return best


def allowance(case: Json, base_s: float = ALLOWED_S) -> float:
    """Seconds of processor time that *case* may cost."""
    return base_s + ALLOWED_S_PER_MB * len(json.dumps(case)) / 1e6


def _broken(target: Target, case: Json, outcomes: Counter[str]) -> tuple[str, str] | None:
    try:
        with unlogged(), _limited(allowance(case, target.allowed_s)):
            outcomes[target.check(case)] += 1
    except (Exception, TooSlowError) as error:  # whatever it is: it is what is looked for
        return _how(error), f"{error}"
    return None


def _how(error: BaseException) -> str:
    """The class of an error and where it came from: what tells one way to break a rule from another."""
    if isinstance(error, TooSlowError):
        return "TooSlowError"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    last = frames[-1]
    return f"{type(error).__name__} at {Path(last.filename).parent.name}/{Path(last.filename).name}:{last.name}"


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TooSlowError where what is within costs more processor time than *seconds*."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TooSlowError(f"more than {seconds:.1f} s of processor time")

    before = signal.signal(signal.SIGPROF, ring)
    # Again and again: an error raised within a callback of C may be swallowed there.
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _reduced(value: Json) -> Iterator[Json]:
    """Values a little smaller than *value*, the smallest first."""
    if isinstance(value, str | list):
        # Bytes first where it may be hexadecimal: without half of one it is none any more.
        for unit in (2, 1) if isinstance(value, str) and len(value) % 2 == 0 and _is_hex(value) else (1,):
            size = len(value) // unit
            step = size
            while step >= 1:
                for at in range(0, size, step):
                    yield value[: at * unit] + value[(at + step) * unit :]
                step //= 2
    if isinstance(value, list):
        for at, each in enumerate(value):
            yield from ([*value[:at], less, *value[at + 1 :]] for less in _reduced(each))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from ({**value, key: less} for less in _reduced(each))
    elif isinstance(value, int) and not isinstance(value, bool) and value not in (0, 1):
        yield from (0, 1, value // 2)


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)
