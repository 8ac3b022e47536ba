"""Finds out when a link has nothing more to do for now; ``run --once`` waits for this.

A thread has nothing to do when it has looked for work and found none, and it began to look after the last event that
could have given it work. So each thread counts how often it found nothing (``IdleCounter``). The caller waits until
each counter has grown by two: the first of the two looks may have begun before the wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

_PAUSE_S: Final = 0.01


class IdleCounter:
    """How often one thread has looked for work and found none, how much it has done, and what it cannot do.

    idle, done: how often it found nothing, and how many things it has done. refused: how many of them the tree
    refused. trouble: why it last gave up; "" after it has looked again.
    """

    def __init__(self) -> None:
        self.idle = self.done = self.refused = 0
        self.trouble = ""

    def failed(self, error: Exception) -> None:
        """It could not do the work that there is."""
        self.trouble = str(error)

    def found(self, count: int) -> None:
        """It has looked, and has finished *count* things."""
        self.trouble = ""
        if count:
            self.done += count
        else:
            self.idle += 1


def settled(
    counters: Sequence[IdleCounter], is_idle: Callable[[], bool], patience_s: float, stop: threading.Event
) -> bool:
    """Wait until no thread finds work; False if *stop* was set, or nothing changed for *patience_s*, before that."""
    wanted = [each.idle + 2 for each in counters]
    done, since = sum(each.done for each in counters), time.monotonic()
    while not stop.is_set():
        if is_idle() and all(each.idle >= least for each, least in zip(counters, wanted, strict=True)):
            return True
        now = sum(each.done for each in counters)
        if now != done:
            done, since = now, time.monotonic()
        elif time.monotonic() - since > patience_s:
            return False
        stop.wait(_PAUSE_S)
    return False
