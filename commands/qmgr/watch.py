"""Who looks after the processor while it works: the port to whatever ends it, and starts it again, when it hangs.

No limit inside a program holds for everything: a call into C that does not return keeps the interpreter, and with it
every thread and every signal handler. So somebody outside has to know on which message the processor is, and on which
messages it died before (``commands.running.supervisor``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from commands.qmgr.store.port import StoredMessage

# Deaths of a processor over one message, after which the message is set aside.
MOST_DEATHS: Final = 2


class OverdueError(BaseException):
    """Raised by a Watch in the middle of the work on a message. No Exception: nothing on the way may swallow it."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A message on which processors ended. deaths: how many. cause: of the last one, for people."""

    deaths: int
    cause: str


class Watch(Protocol):
    """Called as the processor goes on. Between ``begin`` and ``worked_out`` OverdueError may come out of anything."""

    def begin(self, message: StoredMessage, held: bool) -> None:
        """Work on *message* begins; held: in a unit of work, for which other programs wait."""

    def understood(self) -> None:
        """The message was read; now what it causes is worked out."""

    def worked_out(self) -> None:
        """From now on nothing may be interrupted."""

    def idle(self) -> None:
        """No message is to blame for what happens now."""

    def must_end(self) -> bool:
        """Whether the processor is to end after the command that it works on."""

    def blame(self, message: StoredMessage) -> Blame | None:
        """What is known against *message*."""

    def absolve(self, message: StoredMessage) -> None:
        """What became of *message* is committed."""


class Unwatched:
    """Nobody looks."""

    def begin(self, message: StoredMessage, held: bool) -> None: ...
    def understood(self) -> None: ...
    def worked_out(self) -> None: ...
    def idle(self) -> None: ...
    def absolve(self, message: StoredMessage) -> None: ...

    def must_end(self) -> bool:
        return False

    def blame(self, _message: StoredMessage) -> Blame | None:
        return None
