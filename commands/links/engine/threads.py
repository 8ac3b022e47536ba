"""The threads of a link: their beginning and end, their pauses between tries, and when they have no more to do.

A thread does its work until the link is stopped, and handles the errors that it can expect. If another error ends
it, the link looks alive and carries nothing: so the process must end.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final


class Threads:
    """The threads of one link. log: where the end of one is logged. of: what they are threads of."""

    def __init__(self, log: logging.Logger, of: str = "the link to the topic tree") -> None:
        self._log, self._of = log, of
        self._threads: list[threading.Thread] = []
        self._ended: Callable[[], None] = lambda: None
        self.fault = ""

    def start(self, ended: Callable[[], None], **work: Callable[[], None]) -> None:
        """Start a thread for each of *work*. ended: called when one of them ends by a fault (``fault`` says which)."""
        self._ended = ended
        for name, target in work.items():
            thread = threading.Thread(target=self._run, args=(name, target), name=f"qpubsub-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def join(self, timeout_s: float) -> None:
        """Wait for all of them, for each at most so long."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _run(self, name: str, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:
            self.fault = f"thread {name} of {self._of} has failed: {error!r}"
            self._log.critical("%s; the bridge ends; start it again", self.fault, exc_info=error)
            self._ended()


class Backoff:
    """Pauses between tries. first_s, longest_s: seconds. jitter: gives numbers from 0 up to 1.

    A pause is between half of the current length and all of it. So bridges that lost the same broker do not all
    connect again at the same time.
    """

    def __init__(self, first_s: float, longest_s: float, jitter: Callable[[], float] = random.random) -> None:
        self._first_s, self._longest_s, self._jitter = first_s, longest_s, jitter
        self._next_s = first_s

    def next(self) -> float:
        """The pause before the next try, in seconds; the one after it may be twice as long."""
        pause_s, self._next_s = self._next_s, min(self._next_s * 2, self._longest_s)
        return pause_s * (1 + self._jitter()) / 2

    def reset(self) -> None:
        """A try has succeeded."""
        self._next_s = self._first_s


# Finds out when a link has nothing more to do for now; ``run --once`` waits for this.
#
# A thread has nothing to do when it has looked for work and found none, and it began to look after the last event
# that could have given it work. So each thread counts how often it found nothing (``IdleCounter``). The caller waits
# until each counter has grown by two: the first of the two looks may have begun before the wait.

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
