"""A process that must not outlive the one that started it: ``run``'s worker and its listener, and publish exits."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
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
