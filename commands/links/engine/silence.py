"""Remembers that the tree does not answer, so that no command waits for it again."""

from __future__ import annotations

import threading
import time


class Silence:
    """Begins when the tree does not answer; ends when it answers anything, or after longest_s (None: never)."""

    def __init__(self, longest_s: float | None) -> None:
        self._longest_s = longest_s
        self._lock = threading.Lock()
        self._since: float | None = None

    def begin(self) -> bool:
        """The tree has not answered. Whether it did until now."""
        with self._lock:
            is_new = not self._holds()
            if is_new:
                self._since = time.monotonic()
            return is_new

    def end(self) -> None:
        """The tree has answered."""
        with self._lock:
            self._since = None

    @property
    def holds(self) -> bool:
        """Whether the tree is not to be asked."""
        with self._lock:
            return self._holds()

    def _holds(self) -> bool:
        if self._since is None:
            return False
        return self._longest_s is None or time.monotonic() - self._since < self._longest_s
