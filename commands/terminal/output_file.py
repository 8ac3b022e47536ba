"""The file that a verb writes: under another name until it is complete, then under its own."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final

from commands.disk.files import directory_to_disk, put_in_place

_OF_FILES: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)


class OutputFile:
    """A file to be written, or written anew. working: where it is while it is written.

    That is ``.NAME.partial`` beside the file; of a symbolic link, beside its target. What is no regular file, such as
    ``/dev/null`` or a named pipe, is written as it is: a rename would put a file in its place. apart: take another name
    if ``.NAME.partial`` is there, because a command that failed may have left it.
    """

    def __init__(self, path: Path, *, apart: bool = False) -> None:
        self._path = path
        self._target: Path | None = None
        self.working = path
        if _is_special(path):
            return
        self._target = Path(os.path.realpath(path))
        names = (f".{self._target.name}.partial{number or ''}" for number in count())
        self.working = next(free for name in names if not ((free := self._target.with_name(name)).exists() and apart))

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file to write to, empty. Raises OSError with the name that the user gave."""
        with naming(str(self._path)):
            with naming(str(self._path), again=True):
                file = self.working.open("wb")
            with file:
                if self._target is not None:
                    # What is written may leave its queue before the file is complete.
                    directory_to_disk(self.working.parent)
                yield file

    def finish(self) -> None:
        """Give the closed file, whose content is on the disk, its own name. Raises OSError."""
        if self._target is not None:
            put_in_place(self.working, self._target)

    def discard(self) -> None:
        """Delete what was written; do nothing if there is nothing."""
        if self._target is not None:
            self.working.unlink(missing_ok=True)


@contextmanager
def naming(path: str, *, again: bool = False) -> Iterator[None]:
    """While inside, an error of writing names the file *path*. again: also if it names one."""
    try:
        yield
    except OSError as error:
        if again or (error.filename is None and error.errno in _OF_FILES):
            error.filename = path
        raise


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False
