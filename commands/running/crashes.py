"""How often a process that ended by a signal is started again: ``run``'s worker, and its listener."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

MOST_CRASHES: Final = 5
_WITHIN_S: Final = 60.0


class Crashes:
    """The ends of one process. clock: in seconds, never back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=MOST_CRASHES)

    def may_restart(self) -> bool:
        """The process has ended by a signal; whether it is started again: not after the fifth such end in a minute."""
        self._ends.append(self._clock())
        return len(self._ends) < MOST_CRASHES or self._ends[-1] - self._ends[0] >= _WITHIN_S
