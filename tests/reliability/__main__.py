"""What was tried against the promises, again: ``python -m tests.reliability [ATTACK]... [--seed N] [--quick]``.

Prints a table of figures in Markdown for each attack, and ends with 1 where a promise was broken. A failing input is
kept in a directory; ``python -m tests.reliability again FILE...`` tries it again. docs/reliability.md says what is
promised, and what the figures were.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from runpy import run_module

from tests.reliability import hostile, situations, transports
from tests.reliability.disk import disk
from tests.reliability.figures import Table
from tests.reliability.fuzz import FUZZ, TARGETS, kept, known, tried
from tests.reliability.kills import kills

Attack = Callable[[argparse.Namespace], Sequence[Table]]
QUICK = 0.02


def _scale(options: argparse.Namespace) -> float:
    return QUICK if options.quick else options.scale


def _kills(options: argparse.Namespace) -> Sequence[Table]:
    return [kills(options.seed, 0.1 if options.quick else options.scale)]


def _disk(options: argparse.Namespace) -> Sequence[Table]:
    return [disk(options.seed, 0.1 if options.quick else options.scale)]


def _hostile(options: argparse.Namespace) -> Sequence[Table]:
    chosen = _chosen(options, hostile.TARGETS)
    return [known(kept()), tried("Mutants", chosen, options.seed, _scale(options), options.found)]


def _fuzz(options: argparse.Namespace) -> Sequence[Table]:
    return [tried("Generated", _chosen(options, FUZZ), options.seed, _scale(options), options.found)]


def _situations(options: argparse.Namespace) -> Sequence[Table]:
    return [situations.situations(_scale(options))]


def _transports(options: argparse.Namespace) -> Sequence[Table]:
    return [transports.transports(15 if options.quick else int(1_000 * options.scale), options.seed)]


def _elsewhere(quick: Mapping[str, Sequence[str]]) -> Attack:
    """Attacks that are programs of their own: what they print, and whether they end with 0.

    quick: the arguments of each for a little of it.
    """

    def attack(options: argparse.Namespace) -> Sequence[Table]:
        return [_program(name, little if options.quick else ()) for name, little in quick.items()]

    return attack


def _program(name: str, arguments: Sequence[str]) -> Table:
    printed, given, ended = io.StringIO(), sys.argv, None
    sys.argv = [name, *arguments]
    try:
        with contextlib.redirect_stdout(printed):
            run_module(f"tests.reliability.{name}", run_name="__main__")
    except SystemExit as end:
        ended = end.code
    finally:
        sys.argv = given
    broken = [f"{name} ended with {ended}"] if ended else []
    lines, title = printed.getvalue().splitlines(), name.replace("_", " ").capitalize()
    try:
        figures = json.loads(lines[-1])
    except (ValueError, IndexError):
        return Table(title, ("figures",), [(f"`{line}`",) for line in lines], broken)
    return Table(title, tuple(figures), [tuple(str(value) for value in figures.values())], broken)


ATTACKS: dict[str, Attack] = {
    "kills": _kills,
    "disk": _disk,
    "hostile": _hostile,
    "fuzz": _fuzz,
    "situations": _situations,
    "transports": _transports,
    "listener": _elsewhere({"listener_kills": ("--kills", "3", "--clients", "8")}),
    "network": _elsewhere({"network_kills": ("--kills", "4")}),
    "shared_tree": _elsewhere({"shared_tree_kills": ("--kills", "3")}),
    "dynamic": _elsewhere({"dynamic": ("300",)}),
    "nats": _elsewhere({"nats_cuts": ("10",)}),
    "kafka": _elsewhere({"kafka_cuts": ("10",)}),
    "growth": _elsewhere({"growth": ("--largest-kib", "64"), "growth_streams": ()}),
    "shares": _elsewhere({"shares": ("4",)}),
    "postgresql": _elsewhere({"postgresql_faults": ("10", "--promotions", "1", "--full", "2")}),
    "power": _elsewhere({"power": ("--cuts", "300", "--faults", "1")}),
    "segments": _elsewhere({"segments": ("--segments", "2000")}),
    "orders": _elsewhere({"orders": ("300",), "packets": ("50",)}),
    "model": _elsewhere({"model": ("--quick",)}),
}


def _chosen(options: argparse.Namespace, targets: Sequence[hostile.Target]) -> tuple[hostile.Target, ...]:
    return tuple(target for target in targets if not options.only or target.name in options.only)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the attacks that are asked for; 1 where one of them broke a promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("attack", nargs="*", metavar="ATTACK", help=f"{', '.join(ATTACKS)}, all; again FILE...")
    parser.add_argument("--seed", type=int, default=1, help="of all that is made by chance (1)")
    parser.add_argument("--scale", type=float, default=1.0, help="how much of each: 1 is ten seconds to two minutes")
    parser.add_argument("--quick", action="store_true", help="a little of each, in seconds")
    parser.add_argument("--only", action="append", help=f"of hostile and fuzz: {', '.join(TARGETS)}")
    parser.add_argument("--found", type=Path, default=Path("build/reliability"), help="where failing inputs are kept")
    options = parser.parse_args(arguments)
    if options.attack[:1] == ["again"]:
        table = known([Path(name) for name in options.attack[1:]])
        print(table.markdown())
        return int(bool(table.broken))
    asked = list(ATTACKS) if options.attack in ([], ["all"]) else options.attack
    if unknown := set(asked) - set(ATTACKS):
        parser.error(f"no attack {', '.join(sorted(unknown))}; there are {', '.join(ATTACKS)}")
    broken = 0
    for name in asked:
        start = time.monotonic()
        for table in ATTACKS[name](options):
            print(table.markdown(), flush=True)
            broken += len(table.broken)
        size = "quick" if options.quick else f"scale {options.scale:g}"
        print(f"{name}: seed {options.seed}, {size}, {time.monotonic() - start:.0f} s\n", flush=True)
    return int(bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
