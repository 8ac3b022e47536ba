"""kill -9 at random moments of ``estate`` apply and undo on live queue managers: nothing is lost or done twice.

    python -m tests.migrate.estate.live_kills 100

In turn it is the verb that is killed, or one of its workers. After each kill ``status`` has to say what the queue
managers have: what was before, what is planned, or something in between with the checkpoint that follows. The same
command then finishes the rest, and each queue manager is as a run that nobody killed has left it.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.migrate.estate.kills import killed_after, wait_for_workers
from tests.migrate.estate.live_estate import LiveEstate, broker, servers

NAMES: Final = ("QM1", "QM2")
SUBSCRIPTIONS: Final = 10
_APPLY: Final = ("--all", "--confirm", "stopped")
Known = dict[str, dict[str, Any]]


def known(place: LiveEstate) -> Known:
    """What each queue manager has, the times of its migration apart."""
    found = {name: place.known(name) for name in NAMES}
    for state in found.values():
        for subscription in state["subscriptions"]:
            del subscription["created"]
        for retained in state["retained"].values():
            del retained["published_at"]
        state["subscriptions"].sort(key=str)
        marker = state["objects"].get("namelist QPUBSUB.MIGRATION.STRMQBRK")
        if marker is not None:
            marker["names"][1] = marker["description"] = ""
    return found


def names_in(state: dict[str, Any]) -> set[str]:
    """The names of the objects and of the subscriptions of a queue manager."""
    subscriptions = {f"{each['name']} {each['topic_string']}" for each in state["subscriptions"]}
    return subscriptions | {name for name in state["objects"] if "QPUBSUB.APPLY" not in name}


def check(place: LiveEstate, before: Known, after: Known) -> Counter[str]:
    """``status`` says what the queue managers have; how many brokers are in which state."""
    found, counted = known(place), Counter[str]()
    for name, (state, checkpoint) in place.states().items():
        counted[state] += 1
        if state == "applied":
            assert found[name] == after[name], f"{name} is {state}, and is not as planned"
        elif state == "applying":
            assert checkpoint
            assert names_in(before[name]) <= names_in(found[name]) <= names_in(after[name])
        else:
            assert names_in(found[name]) == names_in(before[name]), f"{name} is {state}, and is not as before"
    return counted


def kills(directory: Path, count: int, seed: int) -> dict[str, Counter[str]]:
    """At least *count* kills, and one in each action; for each action how many fell into it and what they left.

    Raises AssertionError at the first broker that is otherwise than ``status`` says.
    """
    chance = random.Random(seed)
    counted = {action: Counter[str]() for action in ("apply", "undo")}
    with servers(directory / "live", *NAMES) as made:
        place = made.live_estate(directory, *(broker(name, SUBSCRIPTIONS) for name in NAMES))
        before = known(place)
        lasts, after = _unkilled(place)
        assert known(place) == before
        done = 0
        while done < count or not all(figures["killed"] for figures in counted.values()):
            assert place.estate("plan").code == 0
            for action, options in (("apply", _APPLY), ("undo", ())):
                for attempt in range(2):
                    work = partial(place.estate, action, *options)
                    delay = chance.uniform(0, 1.1 * lasts[action])
                    was_killed = killed_after(delay, work, worker=attempt == 1)
                    wait_for_workers(directory)
                    counted[action]["killed"] += was_killed
                    done += was_killed
                    counted[action] += check(place, before, after)
                if action == "apply":
                    place.apply_all()
                    assert known(place) == after
                else:
                    assert place.estate("undo").code == 0
                    assert known(place) == before
    return counted


def _unkilled(place: LiveEstate) -> tuple[dict[str, float], Known]:
    """How long each action takes, and what is there when all was applied."""
    assert place.estate("plan").code == 0
    began = time.monotonic()
    place.estate("apply", *_APPLY)
    lasts = {"apply": time.monotonic() - began}
    place.apply_all()
    after = known(place)
    began = time.monotonic()
    assert place.estate("undo").code == 0
    return lasts | {"undo": time.monotonic() - began}, after


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    first = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4))
    print(f"seed {first}")
    with tempfile.TemporaryDirectory() as temporary:
        for action_of, figures in kills(Path(temporary), wanted, first).items():
            print(f"{action_of}: {dict(figures)}")
