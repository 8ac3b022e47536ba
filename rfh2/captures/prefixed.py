"""A stream of which the beginning was read already."""

from __future__ import annotations

import io
from typing import BinaryIO, cast


def prefixed(first: bytes, stream: BinaryIO) -> BinaryIO:
    """*first*, which was read already, and then the rest of *stream*, as one buffered stream that cannot seek."""
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, _Prefixed(first, stream)), 65_536))


class _Prefixed(io.RawIOBase):
    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._first, self._given = memoryview(first), 0
        # read1 gives what a pipe holds now, where read would wait for more.
        self._read = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if self._given < len(self._first):
            chunk = bytes(self._first[self._given : self._given + len(buffer)])
            self._given += len(chunk)
        else:
            chunk = self._read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)
