"""When another process may be about to commit: the kernel tells of a write to the write-ahead log.

Of the commit itself it tells nothing: that becomes visible in shared memory, a moment after the last write to the log.
So what is heard here means that it is time to look often.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

# The shortest time that the kernel waits for events.
_SHORTEST_S: Final = 0.001


class LogWatch:
    """Watches the write-ahead log of the database at *path*.

    Nothing is heard where the system has no inotify, where the user's watches are used up, on a file system of the
    network of what other machines write, and before there is a log.
    """

    def __init__(self, path: Path) -> None:
        self._log = Path(f"{path}-wal")
        self._events: Any = None

    def heard(self, timeout_s: float) -> bool:
        """Wait until somebody writes to the log, at most so long; whether somebody has since the last call."""
        events = self._events or self._begun()
        if events is None or timeout_s < _SHORTEST_S:
            time.sleep(timeout_s)
            return False
        return any(events.read(timeout=int(timeout_s * 1000)))

    def _begun(self) -> Any:
        if not self._log.exists():
            return None
        # Linux alone has it; and those who do not wait need not load it.
        with suppress(ImportError, OSError):
            from inotify_simple import INotify, flags  # noqa: PLC0415

            events = INotify(nonblocking=True)
            try:
                events.add_watch(self._log, flags.MODIFY)
            except OSError:
                events.close()
                raise
            self._events = events
        return self._events

    def close(self) -> None:
        """Watch no longer."""
        if self._events is not None:
            self._events.close()
            self._events = None
