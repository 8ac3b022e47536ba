"""Compressed captures: gzip, bzip2 and xz, known by their first bytes and read as what they hold.

They are read as a stream, so that memory does not depend on their expanded size, and one record of them is bounded
(``limits``). Python's own modules do it; their errors for damaged data become an OSError, as for any other file that
cannot be read further.
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

from rfh2.captures.limits import Ration

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


def decompressed(head: bytes, stream: BinaryIO, ration: Ration | None = None) -> BinaryIO:
    """What *stream*, which begins with *head*, holds, as a stream that cannot seek.

    Reading it raises OSError where the data is damaged or cut, and TooLargeError beyond the *ration*. Raises ValueError
    for data that is not compressed.
    """
    ration = ration or Ration(None)
    opened = next((opened for magic, opened in _OPENERS.items() if head.startswith(magic)), None)
    if opened is None:
        raise ValueError("not compressed")
    guarded = _Guarded(opened(cast(BinaryIO, _Fed(stream, ration))), ration)
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, guarded), _BUFFER_BYTES))


def name_inside(name: str) -> str:
    """What a file called *name* is called without compression: ``capture.jsonl`` for ``capture.jsonl.gz``."""
    return name.removesuffix(PurePath(name).suffix) if name.lower().endswith(_SUFFIXES) else name


class _Fed:
    """The compressed stream, as far as Python's modules need one, counting what is read of it."""

    def __init__(self, stream: BinaryIO, ration: Ration) -> None:
        self._stream, self._ration = stream, ration

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size)
        self._ration.feed(len(chunk))
        return chunk

    def seekable(self) -> bool:
        return False


class _Guarded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, ration: Ration) -> None:
        super().__init__()
        self._stream, self._ration = stream, ration

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        try:
            chunk = self._stream.read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise OSError(f"the compressed data is damaged: {error}") from error
        self._ration.take(len(chunk))
        buffer[: len(chunk)] = chunk
        return len(chunk)
