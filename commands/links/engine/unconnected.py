"""The part of an adapter about its connection (``Adapter``), where none is kept: calls connect when they need to."""

from __future__ import annotations


class Unconnected:
    """No connection to start, to stop, or to wait for."""

    def start(self) -> None:
        """Do nothing: the adapter keeps no connection."""

    def stop(self) -> None:
        """Do nothing: each thread has released what it needs."""

    @property
    def is_up(self) -> bool | None:
        return None

    def wait_up(self, timeout_s: float) -> bool:
        del timeout_s
        return True

    @property
    def trouble(self) -> str:
        return ""

    @property
    def next_try_s(self) -> float | None:
        return None
