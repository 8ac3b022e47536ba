"""Protects the processor from any message: a budget, reading outside the unit of work, and dead letters.

    got ── read and worked out in the unit of work ── put
            │ takes long to read, or ended a processor before
            └─> backed out ── read while others can work ── got again, the first of a unit of work ── put

A message that ended two processors is not processed again: it becomes a dead letter with reason
MQRC_BACKOUT_THRESHOLD_REACHED.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from commands.broker.budget import Budget, Meter, OverBudgetError
from commands.broker.reading import Reading
from commands.qmgr.store.port import StoredMessage
from commands.qmgr.watch import MOST_DEATHS, Blame, OverdueError, Watch
from rfh2.constants import MQRC_BACKOUT_THRESHOLD_REACHED, MQRC_RESOURCE_PROBLEM
from rfh2.errors import QPubSubError

P = ParamSpec("P")
T = TypeVar("T")


class ApartError(Exception):
    """This message must be read outside the unit of work, or must be the first one in it."""

    def __init__(self, message: StoredMessage) -> None:
        super().__init__(message)
        self.message = message


class PoisonError(QPubSubError):
    """Processors ended on this message."""

    def __init__(self, blame: Blame) -> None:
        super().__init__(blame)
        self.blame = blame

    def __str__(self) -> str:
        return f"the processor ended {self.blame.deaths} times while it worked on it; the last time {self.blame.cause}"


def reason_of(fault: Exception) -> int | None:
    """The reason of the dead letter of a message that is set aside for *fault*; None for a fault of the bridge."""
    if isinstance(fault, OverBudgetError):
        return MQRC_RESOURCE_PROBLEM
    return MQRC_BACKOUT_THRESHOLD_REACHED if isinstance(fault, PoisonError) else None


@dataclass(frozen=True, slots=True)
class _Apart:
    """A message that was read outside a unit of work, with the result or the error of reading it."""

    message: StoredMessage
    reading: Reading | Exception

    def is_of(self, message: StoredMessage) -> bool:
        return (message.queue, message.body) == (self.message.queue, self.message.body)


class Guard:
    """For one processor. budget: of one command. watch: who looks after the processor. meter: for its broker."""

    def __init__(self, budget: Budget, watch: Watch) -> None:
        self._budget, self._watch = budget, watch
        self.meter = Meter(budget, watch.understood)
        self._apart: _Apart | None = None

    def reading_of(self, message: StoredMessage, is_first: bool) -> Reading | None:
        """The result of reading *message* outside the unit of work; None for a message that needs no such reading.

        is_first: whether the unit of work has done nothing yet. Raises ApartError where the message must still be read,
        or is not the first one; PoisonError; and the error of reading it.
        """
        blame, apart = self._watch.blame(message), self._apart
        if blame is None and apart is None:
            return None  # the usual case
        if apart is not None and not apart.is_of(message):
            apart = None
        if blame is None and apart is None:
            return None
        if blame is not None and blame.deaths >= MOST_DEATHS:
            raise PoisonError(blame)
        if apart is None or not is_first:
            raise ApartError(message)
        if isinstance(apart.reading, Exception):
            raise apart.reading
        return apart.reading

    def read_apart(self, message: StoredMessage) -> None:
        """Read *message*, which may take long, while no unit of work is open. Raises nothing."""
        if self._apart is not None and self._apart.is_of(message):
            return
        reading: Reading | Exception
        try:
            try:
                self._watch.begin(message, held=False)
                reading = Reading.of(message.md, message.body)
            finally:
                self._watch.idle()
        except OverdueError:
            reading = self._too_long()
        except Exception as fault:
            reading = fault
        self._apart = _Apart(message, reading)

    def work_out(
        self,
        message: StoredMessage,
        reading: Reading | None,
        work: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """The result of *work* for *message*, called with the arguments that follow it.

        Raises ApartError where reading it takes long, OverBudgetError.
        """
        meter = self.meter
        meter.begin()
        try:
            try:
                self._watch.begin(message, True)
                return work(*args, **kwargs)
            finally:
                self._watch.worked_out()
        except OverdueError:
            if reading is None and not meter.is_understood:
                raise ApartError(message) from None
            raise self._too_long() from None

    def idle(self) -> None:
        """Tell the watch that no message is in progress."""
        self._watch.idle()

    def must_end(self) -> bool:
        """Whether the processor was told to end at once."""
        return self._watch.must_end()

    def done(self, message: StoredMessage) -> None:
        """Note that the result of *message*, which was treated with special care, is committed."""
        self._apart = None
        self._watch.absolve(message)

    def _too_long(self) -> OverBudgetError:
        return OverBudgetError(f"more than {self._budget.time_s:g} s of time")
