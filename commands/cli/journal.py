"""What a processor tells about itself while it runs: talk on stderr, a log file, and the status that ``status`` shows.

The status is a small file in the queue manager's directory, written anew by renaming, at most twice a second: it is for
people, and never what the processor itself goes by.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from commands.cli.console import Console
from commands.tally import Tally
from rfh2.captured import iso

STATUS_FILE: Final = "status.json"
_ERRORS_KEPT: Final = 10
_EVERY_S: Final = 0.5
_ABOUT: Final = ("seq", "queue", "reason")


class Journal(logging.Handler):
    """The processor's log, while inside ``following``; ``batch`` is told after each commit."""

    def __init__(self, console: Console, directory: Path, log: Path | None) -> None:
        super().__init__()
        self._console, self._path = console, directory / STATUS_FILE
        self._log = log.open("a", encoding="utf-8") if log is not None else None
        self._errors: deque[dict[str, Any]] = deque(maxlen=_ERRORS_KEPT)
        self._started = datetime.now(UTC)
        self._written = 0.0
        self._then: tuple[float, Tally] = (time.monotonic(), Tally())
        self._rates: dict[str, float] = {}
        self._tally = Tally()

    def emit(self, record: logging.LogRecord) -> None:
        """One event: to the terminal for people, to the log file as a JSON object, to the last errors."""
        event = {"time": iso(datetime.fromtimestamp(record.created, UTC)), "level": record.levelname.lower()}
        about = {key: getattr(record, key) for key in _ABOUT if hasattr(record, key)}
        event |= {**about, "text": record.getMessage()}
        if self._log is not None:
            self._log.write(json.dumps(event) + "\n")
            self._log.flush()
        if record.levelno >= logging.WARNING:
            self._errors.append(event)
            self._console.warn(record.getMessage())
        else:
            self._console.say(record.getMessage())

    def batch(self, tally: Tally) -> None:
        """A unit of work was committed."""
        self._tally = tally
        if time.monotonic() - self._written >= _EVERY_S:
            self._write(running=True)

    def _write(self, running: bool) -> None:
        now = self._written = time.monotonic()
        since, before = self._then
        if now - since >= 1.0:
            self._rates = {
                name: round((count - getattr(before, name)) / (now - since), 1)
                for name, count in self._tally.as_dict().items()
            }
            self._then = (now, Tally(**self._tally.as_dict()))
        status = {
            "running": running,
            "pid": os.getpid(),
            "started": iso(self._started),
            "written": iso(datetime.now(UTC)),
            "done": self._tally.as_dict(),
            "per_second": self._rates,
            "last_errors": list(self._errors),
        }
        partial = self._path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(status))
            partial.replace(self._path)
        except OSError as error:
            self._console.warn(f"{self._path}: {error.strerror}; the status is not kept")

    @contextmanager
    def following(self) -> Iterator[None]:
        """Hear what the processor says, until it ends."""
        log = logging.getLogger("qpubsub")
        log.handlers, log.propagate = [self], False
        log.setLevel(logging.INFO)
        self._write(running=True)
        try:
            yield
        finally:
            self._write(running=False)
            log.handlers = []
            if self._log is not None:
                self._log.close()


def last_status(directory: Path) -> dict[str, Any]:
    """What the last processor of this queue manager wrote of itself; empty where none did."""
    try:
        status = json.loads((directory / STATUS_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}
