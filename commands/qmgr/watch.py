"""The port to the supervisor of the processor, which ends the processor when it hangs, and starts it again.

No limit inside a program is always effective: a call into C that does not return blocks the interpreter, and with it
every thread and every signal handler. So another process must know which message the processor works on, and on which
messages it ended before (``commands.running.supervisor``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from commands.qmgr.store.port import StoredMessage

# Deaths of a processor over one message, after which the message is set aside.
MOST_DEATHS: Final = 2

WAITS: Final = 3.0
"""How many times its limit of processor time a command may take by the clock."""


class OverdueError(BaseException):
    """Raised by a Watch in the middle of the work on a message. No Exception: nothing on the way may swallow it."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A message on which processors ended. deaths: how many. cause: of the last one, for people."""

    deaths: int
    cause: str


class Watch(Protocol):
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

    def blame(self, message: StoredMessage) -> Blame | None:
        """How many processors ended on *message*, and why; None where there were none."""

    def absolve(self, message: StoredMessage) -> None:
        """The result of *message* is committed."""


class Unwatched:
    """A watch that does nothing."""

    def begin(self, message: StoredMessage, held: bool) -> None: ...
    def understood(self) -> None: ...
    def worked_out(self) -> None: ...
    def idle(self) -> None: ...
    def absolve(self, message: StoredMessage) -> None: ...

    def must_end(self) -> bool:
        return False

    def blame(self, _message: StoredMessage) -> Blame | None:
        return None
