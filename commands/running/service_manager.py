"""What systemd learns of ``run``: ready, alive, ending. A datagram to the socket in $NOTIFY_SOCKET (sd_notify)."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from typing import Final

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
