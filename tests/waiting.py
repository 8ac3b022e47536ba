"""Waiting for what has to come to be, everywhere with the patience that the busiest machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 120.0
PATIENCE_MS: Final = 120_000
_NAP_S: Final = 0.01


def until(holds: Callable[[], object], what: str = "it", timeout_s: float = PATIENCE_S) -> None:
    """Wait until *holds* says so. what: for the message. Raises AssertionError after *timeout_s* seconds."""
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"waited {timeout_s:g} s in vain for {what}"
        time.sleep(_NAP_S)
