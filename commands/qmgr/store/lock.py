"""Locks between processes, which the operating system gives back however their holder ends.

``exclusive`` keeps a queue manager to one command processor. ``WriteTurn`` is for those who wait to write: SQLite lets
whoever asks first after a commit have the database, and that is nearly always the process that has just committed; the
others, which look again every tenth of a second, could wait for as long as it is busy. So who wants to write takes the
turn first, and gives it on when it has the database: who comes back at once finds the turn with the one who waited.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from commands.qmgr.store.errors import QueueManagerInUseError, SystemUnsuitableError
from commands.qmgr.store.permissions import private

try:
    import fcntl
except ImportError:  # Windows: everything that needs no queue manager works there.
    CAN_LOCK = False
else:
    CAN_LOCK = True

NAP_S: Final = 0.001
_LOOKED_AT_S: Final = 0.3


def require_locks(what: str) -> None:
    """Refuse *what* where the operating system lacks the locks that keep it whole.

    A second processor is made impossible by a lock on the directory itself, which ``flock`` alone gives: no portable
    lock library has it. Raises SystemUnsuitableError.
    """
    if not CAN_LOCK:
        raise SystemUnsuitableError(what)


class WriteTurn:
    """Whose turn it is to begin a unit of work. The lock file stays behind; what counts is the lock on it."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, deadline: float) -> bool:
        """Have the turn, or give up at *deadline* (``time.monotonic``); whether it was had."""
        if self._descriptor is None:
            self._descriptor = private(str(self._path), os.O_RDWR | os.O_CREAT)
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(NAP_S)
            else:
                return True

    def is_taken(self) -> bool:
        """Whether another process has the turn, and waits."""
        free = self.take(deadline=0.0)
        if free:
            self.give()
        return not free

    def give(self) -> None:
        """Let the next one have it."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Forget the lock file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def exclusive(path: Path, name: str) -> Iterator[None]:
    """Hold the directory of *path* and the lock file *path* for queue manager *name* while inside.

    A file may be removed while it is locked, and the next one of that name is another file: so what counts is the lock
    on the directory, without which there is no database either. The file, which stays behind, has the process id of its
    last holder; it is locked too, since earlier versions look at it alone. Both locks end with the process, by whatever
    signal. Raises QueueManagerInUseError where another process has either for longer than who only looks
    (``is_held``); SystemUnsuitableError; OSError.
    """
    require_locks(f"queue manager {name}" if name else "a checkpoint")
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = private(str(path), os.O_RDWR | os.O_CREAT)
        try:
            deadline = time.monotonic() + _LOOKED_AT_S
            while not (_is_locked(directory, fcntl.LOCK_EX) and _is_locked(descriptor, fcntl.LOCK_EX)):
                if time.monotonic() >= deadline:
                    holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                    raise QueueManagerInUseError(name, holder)
                time.sleep(NAP_S)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
            yield
        finally:
            os.close(descriptor)
    finally:
        os.close(directory)


def is_held(path: Path) -> bool:
    """Whether another process, or another part of this one, holds what ``exclusive`` does; nothing is changed."""
    try:
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _is_locked(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int, how: int) -> bool:
    """Lock it, where that can be done at once; whether it could."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
