"""How long to wait between tries: twice as long each time, up to a limit, with a random part."""

from __future__ import annotations

import random
from collections.abc import Callable


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
