"""The errors of queues and of queue managers' directories, with MQ's reason codes where MQ has one."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rfh2.constants import MQRC_UNKNOWN_OBJECT_NAME
from rfh2.errors import QPubSubError, QueueError, StoreError
from rfh2.mqi_constants import MQRC_Q_DELETED

# The errors of reading a row with any contents; pydantic's ValidationError is a ValueError.
UNREADABLE: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error, QPubSubError)


# The reasons for a put to a queue that does not exist, or was deleted.
GONE: Final = frozenset({MQRC_UNKNOWN_OBJECT_NAME, MQRC_Q_DELETED})

DAMAGED: Final = (
    "the database is damaged, or another version of qpubsub wrote it; stop all that uses it, keep a copy, then restore "
    "a backup or let sqlite3 .recover it"
)


class UnknownQueueError(QueueError):
    """There is no queue of this name, and none is to be made (2085)."""

    def __init__(self, queue: str, why: str = "there is no such queue") -> None:
        super().__init__(MQRC_UNKNOWN_OBJECT_NAME, queue, why)
        self.args = (queue, why)


class UndeliverableError(StoreError):
    """A put that neither its queue nor the dead-letter queue took: the command has to wait.

    for_ever: PSNPRES asks for it to be tried until it works.
    """

    def __init__(self, why: str, for_ever: bool = False) -> None:
        super().__init__(why, for_ever)
        self.why, self.for_ever = why, for_ever

    def __str__(self) -> str:
        return self.why


class UnitOfWorkFullError(UndeliverableError):
    """A unit of work is too large to commit: it is backed out, and a smaller one must be tried."""


class SystemUnsuitableError(StoreError):
    """This operating system lacks the file locks that *what* needs."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"{self.what} needs the file locks of Linux or macOS, which this system does not have (on Windows: use "
            "WSL); decode, replay, and migration with --target files work here"
        )


class QueueManagerNotFoundError(StoreError):
    """There is no queue manager of this name in this directory. known: those that there are."""

    def __init__(self, name: str, home: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(name, home, known)
        self.name, self.home, self.known = name, home, known

    def __str__(self) -> str:
        there = (
            f"there {'is' if len(self.known) == 1 else 'are'} {', '.join(self.known)}"
            if self.known
            else "it holds none"
        )
        missing = f"queue manager {self.name} does not exist in {self.home}"
        return f"{missing} ({there}); make it with: qpubsub create {self.name}"


class QueueManagerExistsError(StoreError):
    """A queue manager of this name is there already."""

    def __init__(self, name: str, home: str) -> None:
        super().__init__(name, home)
        self.name, self.home = name, home

    def __str__(self) -> str:
        return f"queue manager {self.name} exists already in {self.home}; nothing was changed"


class QueueManagerInUseError(StoreError):
    """Another process is the command processor of this queue manager. holder: what it wrote of itself, if it did."""

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(name, holder)
        self.name, self.holder = name, holder

    def __str__(self) -> str:
        by = f" by process {self.holder}" if self.holder else ""
        return f"queue manager {self.name} is already being run{by}; end that one first"


class SupersededError(StoreError):
    """Another instance is the command processor of this queue manager now; nothing of the unit of work was kept.

    epoch: of the one that raises it. found: that of its successor.
    """

    def __init__(self, path: str, epoch: int, found: int) -> None:
        super().__init__(path, epoch, found)
        self.path, self.epoch, self.found = path, epoch, found

    def __str__(self) -> str:
        now = f"epoch {self.found} of the queue manager, this one was of epoch {self.epoch}"
        return f"{self.path}: another instance has taken over ({now}); this one changes nothing any more"


class ServerAwayError(StoreError):
    """The server that has the database cannot be reached, or the connection to it was lost: try again later."""


class StoreBusyError(StoreError):
    """Another process kept the database for longer than this one was willing to wait; nothing was changed."""

    def __init__(self, path: str, waited_s: float) -> None:
        super().__init__(path, waited_s)
        self.path, self.waited_s = path, waited_s

    def __str__(self) -> str:
        return f"{self.path} was kept by another process for more than {self.waited_s:g} s; try again"


class StoreFullError(StoreError):
    """There is no space to write; the unit of work is backed out, and no committed data is lost."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: the disk is full; nothing of this unit of work was kept; make room and try again"


class StoreDamagedError(StoreError):
    """A database that is not ours, is newer than this program, or is corrupt; it is left as it is."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    @classmethod
    def unreadable(cls, path: str, what: str) -> StoreDamagedError:
        """Of the database at *path*, *what* cannot be read."""
        return cls(path, f"the {what} cannot be read: {DAMAGED}")

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@contextmanager
def readable(path: str, what: str) -> Iterator[None]:
    """Convert *what*, a row of the database at *path*, inside this block: an error becomes StoreDamagedError."""
    try:
        yield
    except StoreError:
        raise
    except UNREADABLE as error:
        raise StoreDamagedError.unreadable(path, what) from error


class ListenError(StoreError):
    """A server cannot be started. why: one clause. option: that says where it listens."""

    def __init__(self, where: str, why: str, option: str = "--listen") -> None:
        super().__init__(where, why, option)
        self.where, self.why, self.option = where, why, option

    def __str__(self) -> str:
        return f"cannot listen on {self.where}: {self.why}; choose another with {self.option or '--listen'} HOST:PORT"
