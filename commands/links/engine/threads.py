"""The threads of a link.

A thread does its work until the link is stopped, and handles the errors that it can expect. If another error ends
it, the link looks alive and carries nothing: so the process must end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable


class Threads:
    """The threads of one link. log: where the end of one is logged. of: what they are threads of."""

    def __init__(self, log: logging.Logger, of: str = "the link to the topic tree") -> None:
        self._log, self._of = log, of
        self._threads: list[threading.Thread] = []
        self._ended: Callable[[], None] = lambda: None
        self.fault = ""

    def start(self, ended: Callable[[], None], **work: Callable[[], None]) -> None:
        """Start a thread for each of *work*. ended: called when one of them ends by a fault (``fault`` says which)."""
        self._ended = ended
        for name, target in work.items():
            thread = threading.Thread(target=self._run, args=(name, target), name=f"qpubsub-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def join(self, timeout_s: float) -> None:
        """Wait for all of them, for each at most so long."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _run(self, name: str, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:
            self.fault = f"thread {name} of {self._of} has failed: {error!r}"
            self._log.critical("%s; the bridge ends, start it again", self.fault, exc_info=error)
            self._ended()
