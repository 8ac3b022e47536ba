"""Child processes: they must not outlive the one that started them, and are started again, but not for ever."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

_SET_PDEATHSIG: Final = 1
_TICK_S: Final = 0.1


def die_with(supervisor: int) -> None:
    """Make the system kill this process when its supervisor ends."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, int(signal.SIGKILL))
    else:
        threading.Thread(target=_wait_for_orphanhood, args=(supervisor,), daemon=True).start()
    if os.getppid() != supervisor:
        os.kill(os.getpid(), signal.SIGKILL)


def _wait_for_orphanhood(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(_TICK_S)
    os.kill(os.getpid(), signal.SIGKILL)


# How often a process that ended by a signal is started again: ``run``'s worker, and its listener.

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
