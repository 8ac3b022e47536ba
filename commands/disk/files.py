"""What is written, on the disk: a power cut does not lose it.

Files of a queue manager, and others that hold messages, are for their owner alone. A directory that was prepared for a
group, with setgid and write permission for it (``chmod 2770``, as IBM MQ's are), gives what is made in it to that group
too. The umask plays no part, and files that are there already keep what they have.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final


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


_FOR_A_GROUP: Final = stat.S_ISGID | stat.S_IWGRP


def make_directory(path: Path) -> None:
    """Make *path* for its owner, or as the directory that it is in; nothing where it is there.

    Directories above it are made as others are. Their names are on the disk when this returns. Raises OSError.
    """
    if path.is_dir():
        return
    new = [each for each in (path, *path.parents) if not each.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from error
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    if _is_for_a_group(path.parent):
        path.chmod(0o2770)
    for each in new:
        directory_to_disk(each.parent)


def private(path: str, flags: int) -> int:
    """The opener for ``open``: a file that it makes is its owner's, or its directory's group's too. Raises OSError."""
    if not flags & os.O_CREAT:
        return os.open(path, flags)
    try:
        descriptor = os.open(path, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags, 0o600)
    if _is_for_a_group(Path(path).parent):
        os.fchmod(descriptor, 0o660)
    return descriptor


def touch(path: Path) -> None:
    """Make a file, where there is none, before others write to it. Raises OSError."""
    os.close(private(str(path), os.O_RDWR | os.O_CREAT))


def open_to_others(directory: Path) -> bool:
    """Whether a user who is neither owner nor of the group can read or write a file in *directory*.

    False where that cannot be seen.
    """
    with suppress(OSError):
        above = directory.resolve()
        if not all(each.stat().st_mode & stat.S_IXOTH for each in (above, *above.parents)):
            return False
        return _is_open_below(directory)
    return False


def closing(directory: Path) -> str:
    """The shell command that closes *directory* to others."""
    return f"chmod -R o-rwx {shlex.quote(str(directory))}"


def warning(directory: Path) -> str:
    """What to tell a person of a directory that is open to others."""
    return f"any user of this machine can read or change messages in {directory}; close it with: {closing(directory)}"


def _is_open_below(directory: Path) -> bool:
    for entry in directory.iterdir():
        mode = entry.lstat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_IROTH | stat.S_IWOTH):
            return True
        if stat.S_ISDIR(mode) and mode & stat.S_IXOTH and _is_open_below(entry):
            return True
    return False


def _is_for_a_group(directory: Path) -> bool:
    return directory.stat().st_mode & _FOR_A_GROUP == _FOR_A_GROUP
