"""The messages of one capture, for a verb that goes on past what cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from commands.cli.console import Console
from commands.replay.local import natural_queue
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures


class Reading:
    """The messages of a capture; what cannot be read is told, and counted in ``problems``."""

    def __init__(self, console: Console, source: Path, form: str) -> None:
        self._console, self._source, self._form = console, source, form
        self.problems = 0

    def messages(self) -> Iterator[CapturedMessage]:
        """Each message in its turn; one whose format names no queue gets the one where such commands belong."""
        for record in read_captures(self._source, self._form, default_queue=natural_queue):
            if record.message is None:
                self.problems += 1
                self._console.warn(str(record.problem))
            else:
                yield record.message
