"""What fails when, in a long run: made from a seed, so that a run can be repeated.

Failures do not overlap, and after each there is a time of ``SPACE_S`` seconds in which nothing fails.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SPACE_S: Final = 20.0


class What(StrEnum):
    """What fails. Each is ended, or started again, by the run itself."""

    SUBSCRIBER = "a subscriber is killed"
    QUEUE = "a subscriber stops until its queue is full"
    LINK = "mosquitto is stopped"
    DISK = "the disk is full"
    WORKER = "the processor is killed"
    PROGRAM = "run is killed, supervisor and processor"


_LONGEST_S: Final = {
    What.SUBSCRIBER: 5.0,
    What.QUEUE: 25.0,
    What.LINK: 10.0,
    What.DISK: 8.0,
    What.WORKER: 0.0,
    What.PROGRAM: 3.0,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One of them. at_s: seconds after the beginning. for_s: how long it lasts."""

    at_s: float
    what: What
    for_s: float


def planned(
    seed: int, seconds: float, without: frozenset[What] = frozenset(), space_s: float = SPACE_S
) -> Iterator[Failure]:
    """The failures of a run of *seconds*, in order: all kinds in turn, each turn in another order."""
    chance, at_s = random.Random(seed), space_s
    while True:
        kinds = [what for what in What if what not in without]
        chance.shuffle(kinds)
        for what in kinds:
            failure = Failure(at_s, what, chance.uniform(0.4, 1.0) * _LONGEST_S[what])
            if failure.at_s + failure.for_s + space_s > seconds:
                return
            yield failure
            at_s += failure.for_s + space_s
