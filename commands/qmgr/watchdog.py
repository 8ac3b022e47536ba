"""Protects the processor from any message: a budget, a watchdog, and reading outside the unit of work.

    got ── read and worked out in the unit of work ── put
            │ takes long to read, or ended a processor before
            └─> backed out ── read while others can work ── got again, the first of a unit of work ── put

A poison message, one that ended as many processors as ``BACKOUT_THRESHOLD``, is not processed again: it becomes a dead
letter with reason MQRC_BACKOUT_THRESHOLD_REACHED.

No limit inside a program is always effective: a call into C that does not return blocks the interpreter, and with it
every thread and every signal handler. So another process, the watchdog, must know which message the processor works on,
and on which messages it ended before (``commands.running.supervisor``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, ParamSpec, Protocol, TypeVar

from commands.broker.budget import Budget, Meter, OverBudgetError
from commands.broker.reading import Reading
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import MQRC_BACKOUT_THRESHOLD_REACHED, MQRC_RESOURCE_PROBLEM
from rfh2.errors import QPubSubError

P = ParamSpec("P")
T = TypeVar("T")


BACKOUT_THRESHOLD: Final = 2
"""How many processors may end on a message before it is set aside."""

WAITS: Final = 3.0
"""How many times its limit of processor time a command may take by the clock."""


class OverdueError(BaseException):
    """Raised by a Watchdog in the middle of the work on a message. No Exception: nothing on the way may swallow it."""


@dataclass(frozen=True, slots=True)
class EndedProcessors:
    """The processors that ended on one message."""

    deaths: int  # how many
    cause: str  # of the last one, for people


class Watchdog(Protocol):
    """The processor calls this as it works. Between ``begin`` and ``worked_out`` any call may raise OverdueError."""

    def begin(self, message: StoredMessage, held: bool) -> None:
        """Work on *message* begins; held: in a unit of work, for which other programs wait."""

    def understood(self) -> None:
        """The message was read; now what it causes is worked out."""

    def worked_out(self) -> None:
        """From now on the processor must not be interrupted."""

    def idle(self) -> None:
        """From now on no message is the cause of what happens."""

    def must_end(self) -> bool:
        """Whether the processor is to end after the command that it works on."""

    def ended_on(self, message: StoredMessage) -> EndedProcessors | None:
        """How many processors ended on *message*, and why; None where there were none."""

    def succeeded(self, message: StoredMessage) -> None:
        """The result of *message* is committed."""


class NoWatchdog:
    """A watchdog that does nothing."""

    def begin(self, message: StoredMessage, held: bool) -> None: ...
    def understood(self) -> None: ...
    def worked_out(self) -> None: ...
    def idle(self) -> None: ...
    def succeeded(self, message: StoredMessage) -> None: ...

    def must_end(self) -> bool:
        return False

    def ended_on(self, _message: StoredMessage) -> EndedProcessors | None:
        return None


class ApartError(Exception):
    """This message must be read outside the unit of work, or must be the first one in it."""

    def __init__(self, message: StoredMessage) -> None:
        super().__init__(message)
        self.message = message


class PoisonMessageError(QPubSubError):
    """Processors ended on this message."""

    def __init__(self, ended: EndedProcessors) -> None:
        super().__init__(ended)
        self.ended = ended

    def __str__(self) -> str:
        return f"the processor ended {self.ended.deaths} times while it worked on it; the last time {self.ended.cause}"


def reason_of(fault: Exception) -> int | None:
    """The reason of the dead letter of a message that is set aside for *fault*; None for a fault of the bridge."""
    if isinstance(fault, OverBudgetError):
        return MQRC_RESOURCE_PROBLEM
    return MQRC_BACKOUT_THRESHOLD_REACHED if isinstance(fault, PoisonMessageError) else None


@dataclass(frozen=True, slots=True)
class _Apart:
    """A message that was read outside a unit of work, with the result or the error of reading it."""

    message: StoredMessage
    reading: Reading | Exception

    def is_of(self, message: StoredMessage) -> bool:
        return (message.queue, message.body) == (self.message.queue, self.message.body)


class CommandLimits:
    """For one processor. budget: of one command. watchdog: looks after the processor. meter: for its broker."""

    def __init__(self, budget: Budget, watchdog: Watchdog) -> None:
        self._budget, self._watchdog = budget, watchdog
        self.meter = Meter(budget, watchdog.understood)
        self._apart: _Apart | None = None

    def reading_of(self, message: StoredMessage, is_first: bool) -> Reading | None:
        """The result of reading *message* outside the unit of work; None for a message that needs no such reading.

        is_first: whether the unit of work has done nothing yet. Raises ApartError where the message must still be read,
        or is not the first one; PoisonMessageError; and the error of reading it.
        """
        ended, apart = self._watchdog.ended_on(message), self._apart
        if ended is None and apart is None:
            return None  # the usual case
        if apart is not None and not apart.is_of(message):
            apart = None
        if ended is None and apart is None:
            return None
        if ended is not None and ended.deaths >= BACKOUT_THRESHOLD:
            raise PoisonMessageError(ended)
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
                self._watchdog.begin(message, held=False)
                reading = Reading.of(message.md, message.body)
            finally:
                self._watchdog.idle()
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
                self._watchdog.begin(message, True)
                return work(*args, **kwargs)
            finally:
                self._watchdog.worked_out()
        except OverdueError:
            if reading is None and not meter.is_understood:
                raise ApartError(message) from None
            raise self._too_long() from None

    def idle(self) -> None:
        """Tell the watchdog that no message is in progress."""
        self._watchdog.idle()

    def must_end(self) -> bool:
        """Whether the processor was told to end at once."""
        return self._watchdog.must_end()

    def done(self, message: StoredMessage) -> None:
        """Note that the result of *message*, which was treated with special care, is committed."""
        self._apart = None
        self._watchdog.succeeded(message)

    def _too_long(self) -> OverBudgetError:
        return OverBudgetError(f"more than {self._budget.time_s:g} s of time")
