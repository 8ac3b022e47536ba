"""What is written, on the disk: a power cut does not lose it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Any


def to_disk(file: IO[Any]) -> None:
    """Flush *file*; if it is a regular file, have it on the disk. Raises OSError."""
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


def directory_to_disk(directory: Path) -> None:
    """Have the names of a directory on the disk: files made, renamed and removed in it. Raises OSError.

    Nothing on Windows, on file systems that cannot do it, and in a directory that this user may not read.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise OSError(error.errno, error.strerror, str(directory)) from error
    finally:
        os.close(descriptor)


def put_in_place(made: Path, place: Path) -> None:
    """Give *made*, whose content is on the disk, the name *place*, which is on the disk then too. Raises OSError."""
    made.replace(place)
    directory_to_disk(place.parent)
