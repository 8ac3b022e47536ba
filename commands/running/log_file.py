"""The file of ``--log``: one event on each line, as JSON or as text; opened again when a signal asks for that.

A program that rotates logs renames the file and sends SIGHUP. The next event goes to a new file of the same name.

The file of ``run --record``: every put, as JSON Lines, once it is committed.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO

from commands.broker.puts import Put
from commands.disk.files import private
from rfh2.errors import StoreError, system_words
from rfh2.terminal_escape import harmless

STDERR: Final = Path("-")


class LogFormat(StrEnum):
    """How an event is written."""

    JSON = "json"
    TEXT = "text"


class LogFile:
    """Writes events to *path*, or with *show* where that is ``-``. Raises OSError where it cannot be opened.

    follows: open it again wherever it was renamed, for a process that gets no signal.
    """

    def __init__(self, path: Path, style: LogFormat, show: Callable[[str], None], follows: bool = False) -> None:
        self._path, self._style, self._show, self._follows = path, style, show, follows
        self._is_asked = False
        self._file = self._opened()

    @property
    def is_stderr(self) -> bool:
        """Whether it is no file: events are shown as they are, and not in the words for people."""
        return self._path == STDERR

    def write(self, event: dict[str, Any]) -> None:
        """Write *event*, at once. Raises OSError."""
        with suppress(OSError):
            self.reopen_if_asked()
        line = json.dumps(event) if self._style is LogFormat.JSON else as_text(event)
        if self._file is None:
            self._show(line)
            return
        self._file.write(line + "\n")
        self._file.flush()

    def reopen_if_asked(self) -> None:
        """Open the file again if a signal has asked for that. Raises OSError; then the open one is kept for now."""
        if self._file is not None and (self._is_asked or (self._follows and self._was_renamed(self._file))):
            file = self._opened()
            self._is_asked = False
            self._file.close()
            self._file = file

    @contextmanager
    def reopening(self) -> Iterator[None]:
        """SIGHUP asks for a new file, while inside; nothing changes on a thread of a program that embeds this."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def asked(_signal: int, _frame: FrameType | None) -> None:
            # Only noted: the signal may come in the middle of a write.
            self._is_asked = True

        before = signal.signal(signal.SIGHUP, asked)
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, before)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def _was_renamed(self, file: TextIO) -> bool:
        try:
            return not os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return True

    def _opened(self) -> TextIO | None:
        if self.is_stderr:
            return None
        appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.fdopen(private(str(self._path), appending), "a", encoding="utf-8")


def as_text(event: dict[str, Any]) -> str:
    """One event as a line: time, level, identifiers, text. Control characters are escaped: an event is one line."""
    ids = "".join(f"{each} " for each in event.get("ids", ()))
    return harmless(f"{event['time']} {event['level'].upper():<7} {ids}{event['text']}")


class RecordError(StoreError):
    """The file cannot be written; the put is not lost, and must be written again."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; no command is processed until all committed puts are recorded"


class Recorder:
    """Appends to the file at *path*. Raises OSError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = private(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        # The state of an incomplete line, which an earlier processor may have left too.
        self._rest = b"\n" if self._is_cut() else b""

    def write(self, put: Put) -> None:
        """Append *put*. Raises RecordError: then it was not taken."""
        self._flush()
        self._rest = put.model_dump_json().encode() + b"\n"
        size_bytes = len(self._rest)
        try:
            self._flush()
        except RecordError:
            if len(self._rest) == size_bytes:
                self._rest = b""
                raise
            # The line was begun, so complete it; the next write reports that there is no room.

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _flush(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._descriptor, self._rest) :]
        except OSError as error:
            raise RecordError(str(self._path), system_words(error)) from error

    def _is_cut(self) -> bool:
        try:
            size_bytes = os.fstat(self._descriptor).st_size
            return size_bytes > 0 and os.pread(self._descriptor, 1, size_bytes - 1) != b"\n"
        except OSError:
            return False  # no file to read in: a pipe, a device
