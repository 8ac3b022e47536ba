"""The contents of files that are written: bytes, or pieces that are made while they are written.

A report of 100,000 items has 50 MB and more. In pieces it needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

Content = bytes | Callable[[], Iterable[bytes]]
_PIECE_BYTES = 1 << 16
_SPOOLED_BYTES = 1 << 22


def write_content(content: Content, file: BinaryIO) -> None:
    """Write all of *content* to *file*. Raises OSError."""
    for piece in pieces(content):
        file.write(piece)


def pieces(content: Content) -> Iterable[bytes]:
    """*content*, piece by piece."""
    return (content,) if isinstance(content, bytes) else content()


class Spool:
    """Content that is written first and read later: in memory while it is small, else in a temporary file."""

    def __init__(self) -> None:
        # It is closed when nobody can read it any more.
        self.file = cast(BinaryIO, SpooledTemporaryFile(_SPOOLED_BYTES))  # noqa: SIM115

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return self.file.seek(0, SEEK_END) == 0

    def __call__(self) -> Iterator[bytes]:
        """The pieces, from the beginning. Raises OSError."""
        self.file.seek(0)
        while piece := self.file.read(_PIECE_BYTES):
            yield piece


def content_bytes(content: Content) -> bytes:
    """All of *content* at once."""
    return content if isinstance(content, bytes) else b"".join(content())


def encoded_lines(lines: Iterable[str], errors: str = "strict") -> Iterator[bytes]:
    """*lines*, which bring their line ends, in pieces of some 64 KiB."""
    piece = bytearray()
    for line in lines:
        piece += line.encode(errors=errors)
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
