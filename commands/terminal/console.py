"""The terminal for the verbs: data on stdout, messages on stderr, and whether a person reads them.

Every character that this program shows passes through here, and text from messages must not control a terminal. The
console escapes control characters in all lines of data and talk, also in files, because someone may show a file later.
It escapes other data, such as captures in binary formats, only on a terminal. Text that other code writes to
``sys.stderr`` (warnings, threads that fail, logs without a handler) passes ``guarded_stderr``.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO, cast

from commands.terminal.output_file import OutputFile
from rfh2.terminal_escape import harmless

# The line of progress on a terminal: how many are done, how fast, and, where the total is known, how long it takes.
#
#     messages replayed: 30,112 of 100,000  [#########                     ]  30%  10,400/s  7 s left

_REDRAW_S: Final = 0.1
_BAR_COLUMNS: Final = 30
_SURE_S: Final = 1.0
"""Before this number of seconds, the rate and the time left have no meaning."""


class Progress:
    """One line that is drawn again and again. total: how many there are. share: what is done, from 0 to 1."""

    def __init__(
        self, stream: TextIO, label: str, total: int | None, share: Callable[[], float | None] | None = None
    ) -> None:
        self._stream, self._label, self._total, self._share = stream, label, total, share
        self._began = time.monotonic()
        self._done, self._drawn, self._shown = 0, 0.0, False

    def advance(self, more: int) -> None:
        """Count more as done. The line is drawn at most ten times a second."""
        self._done += more
        now = time.monotonic()
        if now - self._drawn >= _REDRAW_S:
            self._drawn = now
            columns = shutil.get_terminal_size().columns
            line = progress_line(self._label, self._done, self._total, self._share_done(), now - self._began)
            self._stream.write(f"\r{line[: max(1, columns - 1)]}\x1b[K")
            self._stream.flush()
            self._shown = True

    def wipe(self) -> None:
        """Remove the line: another one is written in its place."""
        if self._shown:
            self._shown = False
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _share_done(self) -> float | None:
        if self._total is not None:
            return self._done / self._total if self._total else None
        return None if self._share is None else self._share()


def progress_line(label: str, done: int, total: int | None, share: float | None, elapsed_s: float) -> str:
    """What the line says. share: what is done, from 0 to 1; None where that is not known."""
    parts = [f"{label}: {done:,}" + ("" if total is None else f" of {total:,}")]
    if share is not None:
        share = min(max(share, 0.0), 1.0)
        parts += [f"[{'#' * int(share * _BAR_COLUMNS):<{_BAR_COLUMNS}}]", f"{share:4.0%}"]
    if elapsed_s >= _SURE_S:
        parts.append(f"{done / elapsed_s:,.0f}/s")
        if share:
            parts.append(f"{_time_left(elapsed_s * (1 - share) / share)} left")
    return "  ".join(parts)


def _time_left(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"


_STDOUT: Final = Path("-")
# Cursor to the first place, and all below it erased.
_CLEARED: Final = b"\x1b[H\x1b[J"
_COLOUR: Final = re.compile("(\x1b\\[[0-9;]*m)")


class ExitCode(IntEnum):
    """What a script learns from the command's end.

    DONE: all of it. PROBLEMS: some of the data had problems; each was reported and the rest was processed. USAGE: the
    command could not be carried out: wrong arguments, or something missing, full, in use or damaged. CHANGED: it was
    carried out, and something has another meaning than before. LOST: it was carried out, and something is lost, or
    will be lost if no person acts. INTERNAL: a fault in this program. INTERRUPTED: Ctrl-C. PIPE_CLOSED: the reader of
    stdout went away, as for a program that SIGPIPE ended.
    """

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    CHANGED = 3
    LOST = 4
    INTERNAL = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class Colour(StrEnum):
    """When data has colours: ``--color``. AUTO: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class _Closed(io.BytesIO):
    def write(self, _data: object, /) -> int:
        raise OSError(errno.EBADF, "it is closed", "stdout")


class _HarmlessBytes(io.BufferedIOBase):
    """A terminal for bytes that are not our lines: line ends and tabs pass, other control characters are escaped."""

    def __init__(self, terminal: BinaryIO) -> None:
        super().__init__()
        self._terminal = terminal

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        shown = _harmless_lines(bytes(data).decode("utf-8", "backslashreplace"))
        self._terminal.write(shown.encode("utf-8"))
        return len(data)

    def flush(self) -> None:
        self._terminal.flush()


class _HarmlessText:
    """A text stream that escapes control characters in its lines; otherwise the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        self._stream.write(_harmless_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _harmless_lines(text: str) -> str:
    return "\n".join(map(harmless, text.split("\n")))


def harmless_data(lines: Sequence[str], *, coloured: bool = False) -> bytes:
    """Lines of data as bytes, with what drives a terminal escaped. coloured: see ``Console.data``."""
    if not coloured and "".join(lines).isprintable():
        return "\n".join([*lines, ""]).encode("utf-8")
    return b"".join([_harmless_line(line, coloured) for line in lines])


def _harmless_line(line: str, coloured: bool) -> bytes:
    parts = _COLOUR.split(line) if coloured else [line]
    parts[::2] = map(harmless, parts[::2])
    return "".join(parts).encode("utf-8") + b"\n"


def harmless_json(line: bytes) -> bytes:
    """The same for one line of JSON that is in UTF-8 already."""
    # JSON has escapes for ASCII's controls but the last: the usual line is known at a glance.
    if line.isascii() and b"\x7f" not in line:
        return line + b"\n"
    return harmless_data([line.decode("utf-8", "surrogatepass")])


@contextmanager
def guarded_stderr() -> Iterator[None]:
    """While inside, nothing that any code writes to ``sys.stderr`` can control a terminal."""
    before = sys.stderr
    if before is not None:
        sys.stderr = cast(TextIO, _HarmlessText(before))
    try:
        yield
    finally:
        sys.stderr = before


class Console:
    """Where a verb's output goes. Tests hand in their own.

    stdout takes bytes: data is UTF-8 whatever the locale. quiet: no talk but warnings and errors.
    """

    def __init__(self, stdout: BinaryIO, stderr: TextIO, *, quiet: bool = False, debug: bool = False) -> None:
        self.stdout, self.stderr = stdout, stderr
        self.quiet, self.debug = quiet, debug
        self.colour: Colour | None = None
        self._progress: Progress | None = None

    @classmethod
    def standard(cls) -> Console:
        """The process's own stdout and stderr."""
        # The calling program may have closed either of them. Then data must not be lost; talk may.
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

    @property
    def binary(self) -> BinaryIO:
        """Where data goes that is no line, such as a capture. It is not closed."""
        return cast(BinaryIO, _HarmlessBytes(self.stdout)) if self.stdout.isatty() else self.stdout

    @property
    def coloured(self) -> bool:
        """Whether what is shown may have colours: ``--color``, else NO_COLOR, else FORCE_COLOR, else on a terminal."""
        if self.colour in (Colour.ALWAYS, Colour.NEVER):
            return self.colour is Colour.ALWAYS
        if os.environ.get("NO_COLOR"):
            return False
        return bool(os.environ.get("FORCE_COLOR")) or self.stdout.isatty()

    @property
    def width(self) -> int | None:
        """The width of a line of data in columns; None if no person reads it: then nothing is cut off."""
        return shutil.get_terminal_size().columns if self.stdout.isatty() else None

    @contextmanager
    def data_to(self, path: Path | None) -> Iterator[None]:
        """While inside, data goes to the file *path*, as with ``>``; to stdout where it is None or ``-``.

        The file has another name until it is whole (``.NAME.partial``), and that name stays where the verb fails:
        messages that were taken off a queue may be in it. Raises OSError.
        """
        if path is None or path == _STDOUT:
            yield
            return
        before, output = self.stdout, OutputFile(path, apart=True)
        with output.open() as file:
            self.stdout = file
            try:
                yield
                self.flush()
            except BaseException:
                self.stdout = before
                file.close()
                if not output.working.stat().st_size:
                    output.discard()
                else:
                    self.warn(f"what was written before is in {output.working}")
                raise
            self.stdout = before
        output.finish()

    def data(self, line: str, *, coloured: bool = False) -> None:
        """One line of data. coloured: it may have colours, for what is not ours in it has been made visible already."""
        self.stdout.write(harmless_data([line], coloured=coloured))

    def new_page(self) -> None:
        """What follows replaces what was shown: on a terminal it is cleared, elsewhere there is an empty line."""
        self.stdout.write(_CLEARED if self.stdout.isatty() else b"\n")

    def json(self, form: Mapping[str, Any]) -> None:
        """One object of JSON, with the number of its format: 1 until a key changes its meaning or goes."""
        self.data(json.dumps({"format": 1, **form}, ensure_ascii=False))

    def line(self, line: bytes) -> None:
        """One line of JSON that is in UTF-8 already."""
        self.stdout.write(harmless_json(line))

    def harmless(self, data: bytes) -> None:
        """Lines that ``harmless_data`` or ``harmless_json`` made, perhaps in another process."""
        self.stdout.write(data)

    def flush(self) -> None:
        """Flush the data; if stdout is a file, write it to the disk."""
        self.stdout.flush()
        try:
            descriptor = self.stdout.fileno()
        except OSError:
            return
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fsync(descriptor)

    def abandon_data(self) -> None:
        """The reader of the data has ended: discard the rest, so that it causes no error when the process ends."""
        try:
            descriptor = self.stdout.fileno()
        except (OSError, ValueError):
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)

    def say(self, text: str) -> None:
        """Talk: what was done, in one line; behind the data, where both go to one place."""
        if not self.quiet:
            self.stdout.flush()
            self._write_line(text)

    def warn(self, text: str) -> None:
        """A line that a person must see even with a quiet command."""
        self._write_line(f"qpubsub: {' '.join(text.split())}")

    @contextmanager
    def progress(
        self, label: str, total: int | None = None, share: Callable[[], float | None] | None = None
    ) -> Iterator[Callable[[int], None]]:
        """A line of progress on a terminal, nothing elsewhere; call what it gives with how many more are done.

        label: what is counted and done, ``messages put``. total: how many there are; share: what is done, from 0 to 1,
        where the total is not known in this unit. With either the line has a bar and the time left.
        """
        if self.quiet or not self.watched:
            yield lambda _more: None
            return
        progress = self._progress = Progress(self.stderr, label, total, share)
        try:
            yield progress.advance
        finally:
            self._progress = None
            progress.wipe()

    def lines(self, text: str) -> None:
        """Talk of several lines that even a quiet command has: how to use it, or where it failed."""
        for line in text.rstrip("\n").split("\n"):
            self._write_line(line)

    def _write_line(self, line: str) -> None:
        if self._progress is not None:
            self._progress.wipe()
        self.stderr.write(harmless(line) + "\n")
        self.stderr.flush()
