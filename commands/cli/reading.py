"""The messages of one capture, for a verb that goes on past what cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from commands.cli.console import Console
from commands.replay.local import natural_queue
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures

_MOST_TOLD: Final = 20


def tell_problems(console: Console, told: Sequence[str], problems: int) -> None:
    """Tell the first problems of a capture that another engine has read. told: some in words; problems: how many."""
    for line in told[:_MOST_TOLD]:
        console.warn(line)
    if problems > _MOST_TOLD:
        console.warn(f"and more: {problems} records could not be read")


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
