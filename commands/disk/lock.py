"""Locks between processes, which the operating system releases however their holder ends.

``exclusive`` limits a queue manager to one command processor, by a ``HolderLock``. ``WriteTurn`` orders the processes
that wait to write. After a commit, SQLite gives the database to the process that asks first, nearly always the one that
has just committed. The others, which try again every tenth of a second, could wait as long as that process is busy. So
a process that wants to write takes the turn first, and releases it when it has the database. A process that comes back
at once then finds that a waiting process has the turn.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from commands.disk.errors import QueueManagerInUseError, SystemUnsuitableError
from commands.disk.files import private

try:
    import fcntl
except ImportError:  # Windows: everything that needs no queue manager works there.
    CAN_LOCK = False
else:
    CAN_LOCK = True

PROCESSOR_LOCK: Final = "run.lock"
NAP_S: Final = 0.001
LOOKED_AT_S: Final = 0.3
"""For so long a mere check may hold a lock (``is_held``)."""


def require_locks(what: str) -> None:
    """Refuse *what* where the operating system lacks the locks that it needs.

    A lock on the directory itself prevents a second processor. Only ``flock`` can lock a directory; no portable lock
    library can. Raises SystemUnsuitableError.
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
        """Take the turn, or give up at *deadline* (``time.monotonic``); whether it was taken."""
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
        """Release the turn for the next process."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Forget the lock file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class HolderLock:
    """A lock on a file, which has the process id of its last holder. A forked child holds it too, until both ended.

    with_directory: hold the file's directory too. A file can be removed while it is locked, and the next one of that
    name is a different file; without the directory there is no database either. Raises OSError.
    """

    def __init__(self, path: Path, with_directory: bool = False) -> None:
        self.path, self._with_directory = path, with_directory
        self._held: list[int] = []

    def take(self, deadline: float = 0.0) -> bool:
        """Take it, or give up at *deadline* (``time.monotonic``); whether it is held here."""
        if self._held:
            return True
        descriptors = []
        try:
            if self._with_directory:
                descriptors.append(os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            descriptors.append(private(str(self.path), os.O_RDWR | os.O_CREAT))
            while not all(_is_locked(each, fcntl.LOCK_EX) for each in descriptors):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(NAP_S)
            os.ftruncate(descriptors[-1], 0)
            os.pwrite(descriptors[-1], f"{os.getpid()}\n".encode("ascii"), 0)
            self._held, descriptors = descriptors, []
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise
        finally:
            for each in descriptors:
                os.close(each)
        return True

    def holder(self) -> str:
        """The process id of the last holder, as it wrote it; "" for none."""
        try:
            return self.path.read_bytes()[:20].decode("ascii", "replace").strip()
        except OSError:
            return ""

    def release(self) -> None:
        """Let it go, as far as this process has it."""
        for each in self._held:
            os.close(each)
        self._held = []


@contextmanager
def exclusive(path: Path, name: str) -> Iterator[None]:
    """Hold the directory of *path* and the lock file *path* for queue manager *name* while inside.

    The lock on the directory decides; the file is locked too, because earlier versions look only at it. Both locks end
    with the process, whatever the signal. Raises QueueManagerInUseError where another process has either for longer
    than a mere check takes (``is_held``); SystemUnsuitableError; OSError.
    """
    require_locks(f"queue manager {name}" if name else "a checkpoint")
    lock = HolderLock(path, with_directory=True)
    if not lock.take(time.monotonic() + LOOKED_AT_S):
        raise QueueManagerInUseError(name, lock.holder())
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Whether another process, or another part of this one, has *path* locked; nothing is changed.

    path: the directory that ``exclusive`` locks, or the file of a ``HolderLock``.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
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
