"""The file of ``run --record``: every put, as JSON Lines, once it is committed."""

from __future__ import annotations

import os
from pathlib import Path

from commands.broker.puts import Put
from commands.disk.files import private
from rfh2.errors import StoreError, system_words


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
