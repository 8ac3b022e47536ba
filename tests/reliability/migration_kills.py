"""kill -9 at random moments of a migration: ``python -m tests.reliability.migration_kills [KILLS] [--seed N]``.

Rehearsals, strmqbrk, migmbbrk -c, both undone, and both as files. After each kill the queue manager is what it was
before the command, or what the command makes of it; a directory of files has all files of one run, or no SHA256SUMS.
Then the same command is run again, to its end, and gives what a run gives that nobody killed. Prints a table, and ends
with 1 where a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from migrate import embedded
from migrate.contents import sums_of
from migrate.legacy_state import Access, AclEntry, LegacyState, Source
from migrate.readers import state_json
from tests.migrate.cases import told
from tests.migrate.test_embedded import many_subscriptions
from tests.reliability.figures import Table
from tests.reliability.kills import killed_after, killed_when, time_of, time_since, verb

COLUMNS = ("killed", "kills", "before", "after", "between", "run again")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One command that is killed. prepare: the commands that come before it. again: the exit that the rerun may have.

    result: what is compared, of a directory in which all of it takes place.
    """

    name: str
    prepare: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]
    result: Callable[[Path], Any]


def queue_manager(directory: Path) -> Any:
    """What the queue manager knows; the moment of the migration, which is another one in each run, is left out."""
    with QueueManagerStore.open(directory / "home", "QM1") as store:
        found = told(embedded.load(store))
    for name, value in found["objects"].items():
        if name.startswith("namelist QPUBSUB.MIGRATION."):
            value["names"][1] = value["description"] = ""
    return json.loads(json.dumps(found))


def files(directory: Path) -> Any:
    """The names of the files of one run, whose sums are right; None if a run did not end."""
    out = directory / "out"
    sums = sums_of(out)
    if not sums:
        return None
    assert all(sha256((out / name).read_bytes()).hexdigest() == each for name, each in sums.items()), "between"
    return sorted(sums)


MQ = ("--home", "home", "state.json")
WMB = ("-b", "BRK1", "--home", "home", "--directory", "logs", "state.json")
INITIAL = ("migmbbrk", "-m", "QM1", "-t", *WMB)
COMPLETE = ("migmbbrk", "-m", "QM1", "-c", *WMB)
STRMQBRK = ("strmqbrk", "-m", "QM1", *MQ)
SCENARIOS = (
    Scenario("strmqbrk --rehearse", (), (*STRMQBRK, "--rehearse"), queue_manager),
    Scenario("strmqbrk", (), STRMQBRK, queue_manager),
    Scenario("strmqbrk --undo", (STRMQBRK,), ("strmqbrk", "-m", "QM1", "--home", "home", "--undo"), queue_manager),
    Scenario("migmbbrk -c", (INITIAL,), COMPLETE, queue_manager),
    Scenario(
        "migmbbrk --undo", (INITIAL, COMPLETE), ("migmbbrk", "-m", "QM1", "--home", "home", "--undo"), queue_manager
    ),
    Scenario(
        "strmqbrk --target files",
        (),
        ("strmqbrk", "-m", "QM1", "--target", "files", "--out", "out", "state.json"),
        files,
    ),
    Scenario(
        "migmbbrk -r --target files",
        (),
        ("migmbbrk", "-m", "QM1", "-r", "-b", "BRK1", "--directory", "logs", "--target", "files", "--out", "out",
         "state.json"),
        files,
    ),
)  # fmt: skip


def state(subscriptions: int) -> LegacyState:
    """What is migrated: subscriptions on two streams and a few lists."""
    made = Source(file="made")
    acl = tuple(
        AclEntry(
            source=made, topic=f"Prices/{n}", principal=f"group{n}", principal_type="group", subscribe=Access.ALLOW
        )
        for n in range(20)
    )
    return many_subscriptions(subscriptions).model_copy(update={"acl": acl})


def kills(count: int, seed: int, subscriptions: int = 250) -> Table:
    """*count* kills, as many of each command. subscriptions: how many are migrated."""
    chance = random.Random(seed)
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as made, chdir(made):
        for number, scenario in enumerate(SCENARIOS):
            share = count // len(SCENARIOS) + (number < count % len(SCENARIOS))
            outcomes: Counter[str] = Counter()
            for outcome in _killed(Path(made) / str(number), scenario, share, chance, subscriptions):
                outcomes[outcome] += 1
                if outcome not in ("before", "after"):
                    broken.append(f"{scenario.name}: {outcome}")
            odd = share - outcomes["before"] - outcomes["after"]
            rows.append((scenario.name, str(share), str(outcomes["before"]), str(outcomes["after"]), str(odd),
                         "as a run that nobody killed"))  # fmt: skip
    total = [sum(int(row[at]) for row in rows) for at in range(1, 5)]
    rows.append(("all", *map(str, total), ""))
    return Table(f"kill -9 of migrations, seed {seed}", COLUMNS, rows, broken)


def _killed(
    directory: Path, scenario: Scenario, count: int, chance: random.Random, subscriptions: int
) -> Iterator[str]:
    start = directory / "start"
    _prepared(start, scenario, subscriptions)
    before = _result(start, scenario)
    whole = directory / "whole"
    shutil.copytree(start, whole)
    with chdir(whole):
        writes = time_since(_Writing(), verb(*scenario.command))
    after = _result(whole, scenario)
    again = directory / "again"
    shutil.copytree(start, again)
    with chdir(again):
        took = time_of(verb(*scenario.command))
    number = killed = 0
    while killed < count:
        number += 1
        here = directory / f"killed{number}"
        shutil.copytree(start, here)
        with chdir(here):
            # Every third kill at any time, the others from the first write on, most of them near the commit.
            if number % 3 == 0:
                is_killed = killed_after(chance.uniform(0.1, 1) * took, verb(*scenario.command))
            else:
                is_killed = killed_when(_Writing(), chance.uniform(0.6, 1.05) * writes, verb(*scenario.command))
        if not is_killed:
            # It came to its end first, which is no kill.
            writes, took = 0.9 * writes, 0.9 * took
            shutil.rmtree(here)
            continue
        killed += 1
        found = _result(here, scenario)
        outcome = "before" if found == before else "after" if found == after else f"between, {here.name}"
        # The next kill is later or earlier: most of them are near the commit, whatever else the machine does.
        writes *= 1.05 if outcome == "before" else 0.95
        if not (outcome == "after" and scenario.name.endswith("--undo")):
            # A second --undo would undo the phase before. Every other command takes no action if it was done.
            with chdir(here):
                time_of(_any_end(verb(*scenario.command)))
        if _result(here, scenario) != after:
            outcome = f"run again, {here.name}"
        yield outcome
        shutil.rmtree(here)


class _Writing:
    """Whether the command has begun to write: to the database's log, to a directory of files, or its log."""

    def __init__(self) -> None:
        self._before = self._written()

    def __call__(self) -> bool:
        return self._written() != self._before

    def _written(self) -> tuple[int, ...]:
        here = Path()
        logs = [path.stat().st_size for path in here.glob("home/*/*-wal") if path.exists()]
        return (*logs, len(list(here.glob("out/*"))), len(list(here.glob("home/*/migration/*"))))


def _any_end(work: Callable[[], None]) -> Callable[[], None]:
    def ended() -> None:
        try:
            work()
        except SystemExit as code:
            if code.code not in (0, 1, 2):
                raise

    return ended


def _prepared(directory: Path, scenario: Scenario, subscriptions: int) -> None:
    directory.mkdir(parents=True)
    (directory / "state.json").write_text(state_json.write([state(subscriptions)]))
    with QueueManagerStore.create(directory / "home", QueueManager("QM1", psmode="COMPAT", deadq="DEAD.Q")):
        pass
    with chdir(directory):
        for command in scenario.prepare:
            time_of(verb(*command))


def _result(directory: Path, scenario: Scenario) -> Any:
    try:
        return scenario.result(directory)
    except AssertionError as error:
        return str(error)


def main() -> int:
    """The table; 1 if something was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    table = kills(options.kills, options.seed)
    print(table.markdown())
    return 1 if table.broken else 0


if __name__ == "__main__":
    sys.exit(main())
