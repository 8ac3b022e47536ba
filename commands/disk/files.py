"""What is written, on the disk: a power cut does not lose it."""

from __future__ import annotations

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
    """Have the names of a directory on the disk: files made, renamed and removed in it. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
