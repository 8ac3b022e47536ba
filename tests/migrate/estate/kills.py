"""kill -9 at random moments of ``estate`` plan, apply and undo: each broker is before the action or after it.

    python -m tests.migrate.estate.kills 200

The verb runs in a forked child, and in turn it is the verb that is killed, or one of its workers. After each kill every
queue manager is compared with what it was and with what a run that nobody killed made of it; ``status`` has to say
which of the two it is. At the end of each round the action is done once more, and has to finish what was left.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from commands.disk.lock import is_held
from commands.qmgr.store import QueueManagerStore
from migrate import embedded
from tests.commands.cli_runs import Ran, run
from tests.migrate.cases import told
from tests.migrate.estate.generated import EstateSize, qmgr_name, write_estate
from tests.waiting import until

SIZE: Final = EstateSize(brokers=3, largest=1, most=150, few=60)
NAMES: Final = [qmgr_name(number) for number in range(SIZE.brokers)]
Known = dict[str, object]


def estate(directory: Path, action: str, *options: str) -> Ran:
    """Call the verb in this process."""
    return run("estate", action, str(directory), "--home", str(directory / "qmgrs"), *options)


def known(directory: Path) -> Known:
    """What each queue manager has, the time of its migration apart."""
    found: Known = {}
    for name in NAMES:
        with QueueManagerStore.open(directory / "qmgrs", name) as store:
            state = told(embedded.load(store))
        marker = state["objects"].get("namelist QPUBSUB.MIGRATION.STRMQBRK")
        if marker is not None:
            marker["names"][1] = marker["description"] = ""
        found[name] = state
    return found


def states(directory: Path) -> dict[str, str]:
    """What ``status`` says of each broker."""
    found = json.loads(estate(directory, "status", "--json").out)
    return {each["qmgr"]: each["state"] for each in found["queue_managers"]}


def killed_after(delay_s: float, work: Callable[[], object], *, worker: bool) -> bool:
    """Do *work* in a child, and kill it, or one of its workers, after *delay_s*; whether there was one to kill."""
    child = os.fork()
    if child == 0:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 2)
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(delay_s)
    victims = _children(child) if worker else [child]
    for victim in victims[:1]:
        os.kill(victim, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return bool(victims) if worker else os.WIFSIGNALED(status)


def _children(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    try:
        return [int(word) for word in path.read_text().split()]
    except OSError:
        return []


def wait_for_workers(directory: Path) -> None:
    """Workers end soon after their parent. Until then they hold its lock, and another call is refused."""
    lock = directory / "migration" / "estate.lock"
    until(lambda: not is_held(lock), "workers to end that go on without their parent")


def check(directory: Path, before: Known, after: Known, reached: str) -> Counter[str]:
    """Every queue manager is as before or as after, and ``status`` says so; how many are which."""
    found, said = known(directory), states(directory)
    counted: Counter[str] = Counter()
    for name in NAMES:
        is_after = found[name] == after[name]
        assert is_after or found[name] == before[name], f"{name} is neither as before nor as after"
        assert (said[name] == reached) is is_after, f"{name} is {said[name]}, and {reached} is {is_after}"
        counted["after" if is_after else "before"] += 1
    return counted


def plans_are_whole(directory: Path) -> Counter[str]:
    """Each broker has a record that names a whole plan, or no record."""
    counted: Counter[str] = Counter()
    for name, state in states(directory).items():
        path = directory / "migration" / name / "record.json"
        if not path.exists():
            assert state == "extracted"
            counted["before"] += 1
            continue
        record: dict[str, Any] = json.loads(path.read_text())
        plan = directory / "migration" / name / "plans" / f"{record['plan']:04}"
        assert {"state.json", "fates.jsonl.gz", "wanted.jsonl.gz", "report.json"} <= {p.name for p in plan.iterdir()}
        counted["after"] += 1
    return counted


def kills(directory: Path, count: int, seed: int) -> dict[str, Counter[str]]:
    """At least *count* kills, and one in each action; for each action how many fell into it and what they left.

    Raises AssertionError at the first broker that is neither before nor after.
    """
    chance = random.Random(seed)
    write_estate(directory, SIZE)
    counted = {action: Counter[str]() for action in ("plan", "apply", "undo")}
    began = time.monotonic()
    estate(directory, "plan")
    lasts = {"plan": time.monotonic() - began}
    for action, options in (("apply", ["--create"]), ("undo", [])):
        began = time.monotonic()
        assert estate(directory, action, *options).code in (0, 1)
        lasts[action] = time.monotonic() - began
        if action == "apply":
            after = known(directory)
    before = known(directory)
    done = 0
    while done < count or not all(figures["killed"] for figures in counted.values()):
        for action, reached in (("plan", "planned"), ("apply", "applied"), ("undo", "undone")):
            options = ["--again"] if action == "plan" else []
            for attempt in range(2):
                delay = chance.uniform(0, 1.1 * lasts[action])
                work = partial(estate, directory, action, *options)
                was_killed = killed_after(delay, work, worker=(done + attempt) % 2 == 1)
                wait_for_workers(directory)
                counted[action]["killed"] += was_killed
                done += was_killed
                left = plans_are_whole(directory) if action == "plan" else None
                if left is None:
                    earlier, later = (before, after) if action == "apply" else (after, before)
                    left = check(directory, earlier, later, reached)
                counted[action] += left
            ran = estate(directory, action, *options)
            assert ran.code in (0, 1), f"{action} cannot be finished: {ran.talk}"
            assert set(states(directory).values()) == {reached}
    return counted


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"seed {first}")
    with tempfile.TemporaryDirectory() as place:
        for action_of, figures in kills(Path(place) / "estate", wanted, first).items():
            print(f"{action_of}: {dict(figures)}")
