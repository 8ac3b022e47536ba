"""One command processor a queue manager: a lock that the operating system gives back however its holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands.queues.errors import QueueManagerInUseError


@contextmanager
def exclusive(path: Path, name: str) -> Iterator[None]:
    """Hold the lock file *path* for queue manager *name* while inside; it holds the process id of the last holder.

    The file stays behind: what counts is the lock on it, which ends with the process, by whatever signal.
    Raises QueueManagerInUseError at once where another process has it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise QueueManagerInUseError(name, holder) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)
