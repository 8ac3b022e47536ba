"""The terminal as the verbs see it: data to stdout, talk to stderr, and whether a person is watching."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import BinaryIO, Final, TextIO

_REDRAW_S: Final = 0.1


class ExitCode(IntEnum):
    """What the command's end tells a script.

    DONE: all of it. PROBLEMS: some of the data had problems; each was reported and the rest was processed. USAGE: the
    command could not be carried out: wrong arguments, or something missing, full, in use or damaged. INTERNAL: a fault
    in this program. INTERRUPTED: Ctrl-C. PIPE_CLOSED: the reader of stdout went away, as for a program that SIGPIPE
    ended.
    """

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    INTERNAL = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class _Closed(io.BytesIO):
    def write(self, _data: object, /) -> int:
        raise OSError(errno.EBADF, "it is closed", "stdout")


class Console:
    """Where a verb's output goes. Tests hand in their own.

    stdout takes bytes: data is UTF-8 whatever the locale. quiet: no talk but warnings and errors.
    """

    def __init__(self, stdout: BinaryIO, stderr: TextIO, *, quiet: bool = False, debug: bool = False) -> None:
        self.stdout, self.stderr = stdout, stderr
        self.quiet, self.debug = quiet, debug

    @classmethod
    def standard(cls) -> Console:
        """The process's own stdout and stderr."""
        # Either may have been closed by whoever started us. Data must not vanish then; talk may.
        stdout = _Closed() if sys.stdout is None else sys.stdout.buffer
        return cls(stdout, sys.stderr or io.StringIO())

    @property
    def stdin(self) -> BinaryIO:
        """The process's own stdin, for data."""
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed", "stdin")
        return sys.stdin.buffer

    @property
    def watched(self) -> bool:
        """Whether a person at a terminal sees the talk."""
        return self.stderr.isatty()

    @property
    def is_the_process(self) -> bool:
        """Whether a person started this program, and no other program called it: the process is the verb's own."""
        return self.stderr is sys.__stderr__ and threading.active_count() == 1

    def data(self, line: str) -> None:
        """One line of data."""
        self.line(line.encode("utf-8"))

    def line(self, line: bytes) -> None:
        """One line of data that is in UTF-8 already."""
        self.stdout.write(line + b"\n")

    def flush(self) -> None:
        """Data is handed over; where stdout is a file, it is on the disk."""
        self.stdout.flush()
        try:
            descriptor = self.stdout.fileno()
        except OSError:
            return
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fsync(descriptor)

    def say(self, text: str) -> None:
        """Talk: what was done."""
        if not self.quiet:
            self._tell(text)

    def warn(self, text: str) -> None:
        """What a person must know even of a quiet command: one line."""
        self._tell(f"qpubsub: {' '.join(text.split())}")

    @contextmanager
    def progress(self, label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A counter on a terminal, nothing elsewhere; call what it gives with how many more are done."""
        if self.quiet or not self.watched:
            yield lambda _more: None
            return
        done, drawn = 0, 0.0
        of = "" if total is None else f" of {total}"

        def advance(more: int) -> None:
            nonlocal done, drawn
            done += more
            if (now := time.monotonic()) - drawn >= _REDRAW_S:
                drawn = now
                self.stderr.write(f"\r{label}: {done}{of}")
                self.stderr.flush()

        try:
            yield advance
        finally:
            if drawn:
                self.stderr.write("\r\x1b[K")
                self.stderr.flush()

    def _tell(self, text: str) -> None:
        self.stderr.write(text + "\n")
        self.stderr.flush()
