"""Child processes: they must not outlive the one that started them, and are started again, but not for ever.

What systemd learns of ``run``: ready, alive, ending. A datagram to the socket in $NOTIFY_SOCKET (sd_notify).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
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


_EVERY_S: Final = 1.0


def notify(state: str) -> None:
    """Send *state*, such as ``READY=1``; nothing without a service manager. Raises nothing: a service goes on."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)


class Heartbeat:
    """Says once a second, while it is asked to, that a loop goes on (``WatchdogSec``)."""

    def __init__(self) -> None:
        self._next = 0.0

    def beat(self) -> None:
        """The loop has come round."""
        if "WATCHDOG_USEC" in os.environ and (now := time.monotonic()) >= self._next:
            self._next = now + _EVERY_S
            notify("WATCHDOG=1")
