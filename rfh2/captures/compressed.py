"""Compressed captures: gzip, bzip2 and xz, known by their first bytes and read as what they hold.

They are read as a stream, so that memory does not depend on what they come to. Python's own modules do it; their errors
for damaged data become an OSError, as for any other file that cannot be read further.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import PurePath
from typing import BinaryIO, Final, cast

MAGIC_BYTES: Final = 6

_OPENERS: Final[dict[bytes, Callable[[BinaryIO], BinaryIO]]] = {
    b"\x1f\x8b\x08": lambda stream: cast(BinaryIO, gzip.GzipFile(fileobj=stream)),
    b"BZh": lambda stream: cast(BinaryIO, bz2.BZ2File(stream)),
    b"\xfd7zXZ\0": lambda stream: cast(BinaryIO, lzma.LZMAFile(stream)),  # noqa: SIM115 - read by whoever asked for it
}
_SUFFIXES: Final = (".gz", ".bz2", ".xz")
_BUFFER_BYTES: Final = 1 << 18


def is_compressed(head: bytes) -> bool:
    """Whether *head*, the first bytes of a file, begins compressed data."""
    return head.startswith(tuple(_OPENERS))


def decompressed(head: bytes, stream: BinaryIO) -> BinaryIO:
    """What *stream*, which begins with *head*, holds, as a stream that cannot seek.

    Reading it raises OSError where the data is damaged or cut. Raises ValueError for data that is not compressed.
    """
    opened = next((opened for magic, opened in _OPENERS.items() if head.startswith(magic)), None)
    if opened is None:
        raise ValueError("not compressed")
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, _Guarded(opened(stream))), _BUFFER_BYTES))


def name_inside(name: str) -> str:
    """What a file called *name* is called without compression: ``capture.jsonl`` for ``capture.jsonl.gz``."""
    return name.removesuffix(PurePath(name).suffix) if name.lower().endswith(_SUFFIXES) else name


class _Guarded(io.RawIOBase):
    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        try:
            chunk = self._stream.read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise OSError(f"the compressed data is damaged: {error}") from error
        buffer[: len(chunk)] = chunk
        return len(chunk)
