"""The limits of what one command may use, so that no message can stop the processor for all others.

If a command exceeds a limit, it becomes a dead letter with MQRC_RESOURCE_PROBLEM, and no part of it is carried out.
Each count is checked when it grows, before the work that it counts. The supervisor of the processor checks the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rfh2.errors import QPubSubError


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one command may use; 0 for no limit.

    time_s: seconds to read it and to work out what it causes. topics: the topics that it names. changes: the
    publications to subscribers and the changes of subscriptions and retained publications that it causes. size_bytes:
    the size of all messages that it puts; the memory for them is two to five times that (docs/administration.md).
    """

    time_s: float = 10.0
    topics: int = 10_000
    changes: int = 1_000_000
    size_bytes: int = 1_000_000_000


class OverBudgetError(QPubSubError):
    """A command uses more than its budget. what: the limit that it exceeds, in words for people."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"the command needs too much: {self.what}"


class Meter:
    """Counts what one command uses of *budget*; each method raises OverBudgetError. ``begin`` is for the next command.

    when_understood: called when a command was read.
    """

    __slots__ = ("_budget", "_changes", "_size_bytes", "_when_understood", "is_understood")

    def __init__(self, budget: Budget, when_understood: Callable[[], None]) -> None:
        self._budget, self._when_understood = budget, when_understood
        self.begin()

    def begin(self) -> None:
        """Start again from zero, for the next command."""
        self._changes = self._size_bytes = 0
        self.is_understood = False

    def understood(self, topics: int) -> None:
        """Note that the command was read and how many topics it names."""
        self.is_understood = True
        self._when_understood()
        if 0 < self._budget.topics < topics:
            raise OverBudgetError(f"{topics} topics, and at most {self._budget.topics} are allowed")

    def changed(self, count: int) -> None:
        """Count more publications to subscribers, or changes of state, that the command causes."""
        self._changes += count
        if 0 < self._budget.changes < self._changes:
            raise OverBudgetError(f"more than {self._budget.changes} publications and changes of state")

    def made(self, size_bytes: int) -> None:
        """Count the bytes of one more message that is about to be put."""
        self._size_bytes += size_bytes
        if 0 < self._budget.size_bytes < self._size_bytes:
            raise OverBudgetError(f"the messages that it puts have more than {self._budget.size_bytes} bytes in all")
