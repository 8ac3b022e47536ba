"""Lines of text captures, with bounded memory, in the encoding of the shell that wrote them."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from rfh2.captures.record import MAX_DESCRIPTOR_BYTES, MAX_MESSAGE_BYTES

# A stream of which the beginning was read already.


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


# A message of the greatest length in hex, with room for the other keys of a JSON line.
MAX_LINE_BYTES = 2 * (MAX_MESSAGE_BYTES + MAX_DESCRIPTOR_BYTES) + 1_048_576

_SKIP_BYTES = 1 << 20
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def numbered_lines(
    stream: BinaryIO, limit: int = MAX_LINE_BYTES, *, keep_ends: bool = False
) -> Iterator[tuple[int, bytes | None]]:
    """(line number from 1, line without its end) of each line; None for one of more than *limit* bytes.

    A UTF-8 byte order mark is dropped; UTF-16 with a mark, which PowerShell's ``>`` writes, becomes UTF-8.
    """
    first = stream.readline(limit + 1)
    if first.startswith(_UTF16_BOMS):
        yield from _utf16_lines(first, stream, limit, keep_ends)
        return
    number = 0
    line = first.removeprefix(codecs.BOM_UTF8)
    while line:
        number += 1
        if len(line) > limit and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(_SKIP_BYTES)
            yield number, None
        else:
            yield number, line if keep_ends else line.rstrip(b"\r\n")
        line = stream.readline(limit + 1)


def _utf16_lines(first: bytes, stream: BinaryIO, limit: int, keep_ends: bool) -> Iterator[tuple[int, bytes | None]]:
    number = 0
    text = io.TextIOWrapper(prefixed(first, stream), encoding="utf-16", errors="replace", newline="\n")
    line = text.readline(limit + 1)
    while line:
        number += 1
        if len(line) > limit and not line.endswith("\n"):
            while line and not line.endswith("\n"):
                line = text.readline(_SKIP_BYTES)
            yield number, None
        else:
            yield number, line.encode("utf-8") if keep_ends else line.encode("utf-8").rstrip(b"\r\n")
        line = text.readline(limit + 1)


def as_utf8(head: bytes) -> bytes:
    """*head*, the beginning of a text file, without its byte order mark and in UTF-8."""
    if head.startswith(_UTF16_BOMS):
        order = "utf-16-le" if head.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        return head[2:].decode(order, errors="replace").encode("utf-8")
    return head.removeprefix(codecs.BOM_UTF8)
