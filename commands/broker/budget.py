"""What one command may take, and what takes too much: no message may stop the processor for all others.

A command that goes beyond is set aside as a dead letter with MQRC_RESOURCE_PROBLEM, and nothing of it is done. The
counts are checked as they grow, before the work that they stand for. The supervisor of the processor checks the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rfh2.errors import QPubSubError


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one command may take; 0 for no limit.

    time_s: to read it and to work out what it causes. topics: that it names. changes: publications to subscribers, and
    changes of subscriptions and retained publications, that it causes. size_bytes: of all that it puts.
    """

    time_s: float = 10.0
    topics: int = 10_000
    changes: int = 1_000_000
    size_bytes: int = 1_000_000_000


class OverBudgetError(QPubSubError):
    """A command takes more than it may. what: of what, for people."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"the command needs too much: {self.what}"


class Meter:
    """What one command takes of *budget*; each method raises OverBudgetError. ``begin`` is for the next command.

    when_understood: called when a command was read.
    """

    __slots__ = ("_budget", "_changes", "_size_bytes", "_when_understood", "is_understood")

    def __init__(self, budget: Budget, when_understood: Callable[[], None]) -> None:
        self._budget, self._when_understood = budget, when_understood
        self.begin()

    def begin(self) -> None:
        """Nothing was taken yet."""
        self._changes = self._size_bytes = 0
        self.is_understood = False

    def understood(self, topics: int) -> None:
        """The command was read, and names so many topics."""
        self.is_understood = True
        self._when_understood()
        if 0 < self._budget.topics < topics:
            raise OverBudgetError(f"{topics} topics, and at most {self._budget.topics} are allowed")

    def changed(self, count: int) -> None:
        """So many more publications to subscribers, or changes of state, come of it."""
        self._changes += count
        if 0 < self._budget.changes < self._changes:
            raise OverBudgetError(f"more than {self._budget.changes} publications and changes of state")

    def made(self, size_bytes: int) -> None:
        """A message of so many bytes more is to be put."""
        self._size_bytes += size_bytes
        if 0 < self._budget.size_bytes < self._size_bytes:
            raise OverBudgetError(f"the messages that it puts have more than {self._budget.size_bytes} bytes in all")
