"""Compressed captures: gzip, bzip2, xz, zstd and lz4, known by their first bytes and read as what they hold.

They are read as a stream, so that memory does not depend on their expanded size, and one record of them is bounded
(``limits``). Python's own modules read the first three, pyarrow the others; their errors for damaged data become an
OSError, as for any other file that cannot be read further.

Archives, other compressions and files of tables are known too, so that none of them is taken for a message's data.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, BinaryIO, Final, cast

from rfh2.captures.record import Ration
from rfh2.distribution import how_to_install

MAGIC_BYTES: Final = 16


class UnreadableDataError(OSError):
    """Data that no reader takes. The text says what it is, and what to do."""


def _by_arrow(codec: str) -> Callable[[BinaryIO], BinaryIO]:
    def opened(stream: BinaryIO) -> BinaryIO:
        try:
            import pyarrow as arrow  # noqa: PLC0415 - only who reads such data needs to have it
        except ImportError as error:
            raise UnreadableDataError(
                f"it is compressed with {codec}, and pyarrow, which reads that, is not installed: "
                f"{how_to_install('parquet')}, or decompress the file first"
            ) from error
        given: Any = arrow.PythonFile(stream, mode="r")
        return cast(BinaryIO, arrow.CompressedInputStream(given, codec))

    return opened


_OPENERS: Final[dict[bytes, Callable[[BinaryIO], BinaryIO]]] = {
    b"\x1f\x8b\x08": lambda stream: cast(BinaryIO, gzip.GzipFile(fileobj=stream)),
    b"BZh": lambda stream: cast(BinaryIO, bz2.BZ2File(stream)),
    b"\xfd7zXZ\0": lambda stream: cast(BinaryIO, lzma.LZMAFile(stream)),  # noqa: SIM115 - read by whoever asked for it
    b"\x28\xb5\x2f\xfd": _by_arrow("zstd"),
    b"\x50\x2a\x4d\x18": _by_arrow("zstd"),  # what pzstd writes in front
    b"\x04\x22\x4d\x18": _by_arrow("lz4"),
}
_SUFFIXES: Final = (".gz", ".bz2", ".xz", ".zst", ".zstd", ".lz4")
_UNREADABLE: Final = {
    b"PK\3\4": "a zip archive: extract the captures first",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: extract the captures first",
    b"Rar!\x1a\x07": "a rar archive: extract the captures first",
    b"\xff\x06\0\0sNaPpY": "compressed with snappy: decompress the file first",
    b"\x89LZO\0": "compressed with lzop: decompress the file first",
    b"LZIP\1": "compressed with lzip: decompress the file first",
    b"\x02\x21\x4c\x18": "compressed with an old form of lz4: decompress the file first",
    b"\x1f\x9d": "compressed with compress: decompress the file first",
    b"Obj\1": "an Avro file: convert it to Parquet or JSON Lines first",
    b"ARROW1\0\0": "an Arrow file: convert it to Parquet or JSON Lines first",
}
_ORC: Final = b"ORC"
_TAR: Final = (257, b"ustar")
# Of compressions whose data begins with nothing of their own, as Hadoop writes them.
_COMPRESSIONS: Final = {
    ".br": "brotli",
    ".deflate": "deflate",
    ".lz4": "lz4",
    ".lzma": "lzma",
    ".lzo": "lzo",
    ".snappy": "snappy",
    ".sz": "snappy",
    ".zz": "zlib",
}
_BUFFER_BYTES: Final = 1 << 18


def is_compressed(head: bytes) -> bool:
    """Whether *head*, the first bytes of a file, begins compressed data."""
    return head.startswith(tuple(_OPENERS))


def decompressed(head: bytes, stream: BinaryIO, ration: Ration | None = None) -> BinaryIO:
    """What *stream*, which begins with *head*, holds, as a stream that cannot seek.

    Reading it raises OSError where the data is damaged or cut, and TooLargeError beyond the *ration*. Raises ValueError
    for data that is not compressed, UnreadableDataError where a library is missing.
    """
    ration = ration or Ration(None)
    opened = next((opened for magic, opened in _OPENERS.items() if head.startswith(magic)), None)
    if opened is None:
        raise ValueError("not compressed")
    guarded = _Guarded(opened(cast(BinaryIO, _Fed(stream, ration))), ration)
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, guarded), _BUFFER_BYTES))


def unreadable(head: bytes) -> str | None:
    """What a file that begins with *head* is, and what to do, where its data is in a form that is known and not read.

    None for any other data. The more of the file is in *head*, the more is known: of a tar archive 262 bytes.
    """
    found = next((what for magic, what in _UNREADABLE.items() if head.startswith(magic)), None)
    if found is None and head.startswith(_ORC) and not head[:MAGIC_BYTES].decode("latin-1").isprintable():
        found = "an ORC file: convert it to Parquet or JSON Lines first"
    at, magic = _TAR
    if found is None and head.startswith(magic, at):
        found = "a tar archive: extract the captures first"
    return None if found is None else f"it is {found}"


def named_compression(name: str) -> str | None:
    """What to do with a file called *name* that no format recognizes, where the name is that of a compressed file."""
    compression = _COMPRESSIONS.get(PurePath(name).suffix.lower())
    if compression is None:
        return None
    return f"by its name, it is compressed with {compression}, in a form that is not read: decompress the file first"


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

    # pyarrow closes what it read; the stream is closed by whoever opened it.
    closed = False

    def close(self) -> None:
        self.closed = True


class _Guarded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, ration: Ration) -> None:
        super().__init__()
        self._stream, self._ration = stream, ration

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        try:
            chunk = self._stream.read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the file's own
            raise OSError(f"the compressed data is damaged: {error}") from error
        self._ration.take(len(chunk))
        buffer[: len(chunk)] = chunk
        return len(chunk)
