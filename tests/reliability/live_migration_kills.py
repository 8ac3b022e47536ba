"""kill -9 at random moments of work on a live queue manager.

    python -m tests.reliability.live_migration_kills [KILLS] [--seed N]

``extract`` of a version 6 broker, ``apply``, ``verify`` and ``apply --undo``, as many kills of each. After each kill:

    extract         the capture is whole or not there; the same command again asks only what is missing
    apply           the same command again goes on: the queue manager has what a run has that nobody killed
    verify          the queue manager is as before; the same command again says the same
    apply --undo    the same command again goes on: the queue manager is as it was before ``apply``

Each round has one queue manager with a command processor at work in a process of its own. Prints a table, and ends with
1 where a promise was broken.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands.qmgr.store import QueueManagerStore
from migrate import embedded
from migrate.extract import REPLY_QUEUE
from migrate.live.loading import PROGRESS_QUEUE
from migrate.readers import read_sources
from rfh2.captures import write_captures
from tests.commands.cli_runs import run
from tests.migrate.cases import told
from tests.migrate.legacy_messages import publish, register
from tests.migrate.live.rigs import create, processing
from tests.migrate.live.version6 import Version6
from tests.reliability.figures import Table, counted
from tests.reliability.kills import killed_after, killed_when, time_of, time_since, verb

COLUMNS = ("killed", "kills", "what the kill left", "run again")
SUBSCRIPTIONS = 60
PUBLICATIONS = 60
WHERE = ("-m", "QM1", "--home", "home")
APPLY = ("apply", *WHERE, "--all", "--confirm", "stopped", "--wait", "60", "files")
UNDO = ("apply", *WHERE, "--undo", "files")
VERIFY = ("verify", *WHERE, "files")
EXTRACT = ("extract", *WHERE, "--metatopics", "-o", "extract.jsonl")
JOURNAL = Path("files/apply.journal")


@dataclass(slots=True)
class Outcomes:
    """What came of the kills of one command. broken: a line for each rule that did not hold."""

    name: str
    left: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.left.total()

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.broken.append(f"{self.name}: {what}")

    def row(self) -> tuple[str, ...]:
        again = "broken" if self.broken else "as a run that nobody killed"
        return (f"`{self.name}`", str(self.kills), counted(self.left), again)


def kills(count: int, seed: int) -> Table:
    """At least *count* kills: a third of ``extract`` and ``verify``, others of ``apply`` and its undo; one of each."""
    chance = random.Random(seed)
    outcomes = {name: Outcomes(name) for name in ("extract --metatopics", "apply --all", "verify", "apply --undo")}
    extracted, applied, verified, undone = outcomes.values()
    with tempfile.TemporaryDirectory() as made, chdir(made):
        _extracted(count // 6, chance, extracted)
        _live(count - count // 6, chance, applied, verified, undone)
    broken = [line for each in outcomes.values() for line in each.broken]
    rows = [each.row() for each in outcomes.values()]
    total = sum(each.kills for each in outcomes.values())
    rows.append(("all", str(total), "", ""))
    return Table(f"kill -9 of work on a live queue manager, seed {seed}", COLUMNS, rows, broken)


def _extracted(count: int, chance: random.Random, outcomes: Outcomes) -> None:
    create(Path("home"))
    run("mqsc", *WHERE, stdin=f"DEFINE QLOCAL({REPLY_QUEUE})\n")
    capture = Path("extract.jsonl")
    with _beside(lambda: Version6(Path("home")).running()):
        took = time_of(verb(*EXTRACT))
        wanted = _items(capture)
        while outcomes.kills < count:
            _remove(capture, Path("extract-QM1.work"))
            if not killed_after(chance.uniform(0, 1.05) * took, verb(*EXTRACT)):
                continue
            is_there = capture.exists()
            outcomes.left["whole" if is_there else "nothing"] += 1
            outcomes.expect(is_there or run(*EXTRACT).code == 0, "it cannot be run again")
            outcomes.expect(_items(capture) == wanted, "the capture is another one")


def _items(capture: Path) -> list[object]:
    """What a migration reads in *capture*, without the places."""
    return sorted(item.label for _, item in read_sources([str(capture)], "QM1").items())


def _live(count: int, chance: random.Random, applied: Outcomes, verified: Outcomes, undone: Outcomes) -> None:
    _write_files()
    shutil.rmtree("home", ignore_errors=True)
    create(Path("home"))
    before = _state()
    with _beside(lambda: processing(Path("home"))):
        applying = time_since(JOURNAL.exists, verb(*APPLY))
        after = _state()
        verifying = time_of(verb(*VERIFY))
        undoing = time_of(verb(*UNDO))
        outcome = _State(before, after)
        while min(kinds := (applied.kills, verified.kills, undone.kills)) == 0 or sum(kinds) < count:
            _forget_journals()
            for _attempt in range(2):
                if killed_when(JOURNAL.exists, chance.uniform(0, 0.6) * applying, verb(*APPLY)):
                    applied.left[outcome.word()] += 1
            applied.expect(run(*APPLY).code == 0, "it cannot be run again")
            applied.expect(_state() == after, "it made something else")
            applied.expect(_depths() == {}, "messages were put twice, or not at all")
            if killed_after(chance.uniform(0, 1) * verifying, verb(*VERIFY)):
                verified.left["nothing changed" if _state() == after else "changes"] += 1
            ran = run(*VERIFY)
            verified.expect((ran.code, ran.out) == (0, "") and _state() == after, f"it says: {ran.out}{ran.talk}")
            for _attempt in range(2):
                if JOURNAL.exists() and killed_after(chance.uniform(0, 0.6) * undoing, verb(*UNDO)):
                    undone.left[outcome.word()] += 1
            undone.expect(not JOURNAL.exists() or run(*UNDO).code == 0, "it cannot be run again")
            undone.expect(_state() == before, "it restored something else")


@dataclass(frozen=True, slots=True)
class _State:
    """Two states of the queue manager; the present one is one of them, or a part of the way."""

    before: Any
    after: Any

    def word(self) -> str:
        now = _state()
        return "nothing done" if now == self.before else "all done" if now == self.after else "a part done"


def _state() -> Any:
    with QueueManagerStore.open(Path("home"), "QM1") as store:
        found = told(embedded.load(store))
    for name, value in found["objects"].items():
        if name.startswith("namelist QPUBSUB.MIGRATION."):
            value["names"][1] = value["description"] = ""
    for each in found["subscriptions"]:
        each["created"] = ""
    for each in found["retained"].values():
        each["published_at"] = each["sha256"] = ""
    return found


def _depths() -> dict[str, int]:
    """The queues that hold messages, and the queue on which messages are counted if it is still there."""
    with QueueManagerStore.open(Path("home"), "QM1") as store:
        depths = {queue.definition.name: queue.depth for queue in store.overview().queues}
    return {name: depth for name, depth in depths.items() if depth or name == PROGRESS_QUEUE}


def _write_files() -> None:
    """Streams, many registrations and retained publications, planned as files."""
    count = SUBSCRIPTIONS
    messages = [register(n, f"T{n}/*", "Sport", queue_name=f"Q{n % 9}", user="anne") for n in range(1, count)]
    messages += [publish(count + n, f"T{n}/a", "Sport", b"%d" % n, user="feed") for n in range(1, PUBLICATIONS)]
    messages += [register(900, "News", queue_name="N.Q", name="news", user="anne")]
    with Path("capture.jsonl").open("wb") as stream:
        write_captures(messages, stream, "jsonl")
    ran = run("strmqbrk", "-m", "QM1", "--target", "files", "--out", "files", "capture.jsonl")
    assert ran.code in (0, 1), ran.talk


def _forget_journals() -> None:
    _remove(*Path("files").glob("apply.journal*"))


def _remove(*paths: Path) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


@contextmanager
def _beside(work: Callable[[], AbstractContextManager[object]]) -> Iterator[None]:
    """*work* is entered in a process of its own: one with threads must not be forked for the kills."""
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            with work():
                os.write(begun, b"!")
                while not stop.wait(0.1):
                    pass
        finally:
            os._exit(0)
    os.close(begun)
    os.read(ready, 1)
    os.close(ready)
    try:
        yield
    finally:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)


def main() -> int:
    """The table; 1 if something was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    table = kills(options.kills, options.seed)
    print(table.markdown())
    return 1 if table.broken else 0


if __name__ == "__main__":
    sys.exit(main())
