"""The contents of files that are written: bytes, or pieces that are made while they are written.

A report of 100,000 items has 50 MB and more. In pieces it needs no memory.

Files that belong together, written to a directory: all of one run, or none.

    staged      written beside their places, and flushed to the disk
    publish     SHA256SUMS of the run before is removed; the files are moved to their places, SHA256SUMS last

A process that is killed in between leaves a directory without SHA256SUMS, and the next run completes it. With
SHA256SUMS, ``sha256sum -c SHA256SUMS`` shows whether somebody has changed a file since.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from os import SEEK_END
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Final, cast

from commands.disk.files import directory_to_disk, make_directory, private, put_in_place, to_disk
from rfh2.errors import MigrationError, system_words


@contextmanager
def disk(place: object, more: str = "") -> Iterator[None]:
    """What the disk refuses in the block is a MigrationError that names *place*. more: what follows its words."""
    try:
        yield
    except OSError as error:
        raise MigrationError(f"{place}: {system_words(error)}{more}") from error


Content = bytes | Callable[[], Iterable[bytes]]
_PIECE_BYTES = 1 << 16
_SPOOLED_BYTES = 1 << 22
_LEVEL = 5


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


def packed(values: Iterable[object]) -> bytes:
    """*values* as JSON, a line each, compressed: what a plan keeps for later."""
    lines = (f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n" for value in values)
    return gzip.compress("".join(lines).encode("utf-8", "surrogatepass"), _LEVEL, mtime=0)


def unpacked(path: Path) -> Iterator[Any]:
    """The values in the file at *path*, one by one. Raises MigrationError if it is missing or damaged."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as file:
            yield from map(json.loads, file)
    except (OSError, EOFError, ValueError) as error:
        raise MigrationError(f"{path}: cannot be read: {error}; plan the broker again") from error


SUMS: Final = "SHA256SUMS"
_PREFIX: Final = ".writing-"


class StagedFiles:
    """Files that are on the disk of *directory* already, and not yet in their places.

    Raises MigrationError if they cannot be written; nothing is left of them then.
    """

    def __init__(self, directory: Path, contents: Mapping[str, Content]) -> None:
        self._directory = directory
        self._sums: dict[str, str] = {}
        self._staged: Path | None = None
        try:
            make_directory(directory)
            _remove_stale(directory)
            self._staged = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=directory))
            for name, content in contents.items():
                if (directory / name).is_dir():
                    raise IsADirectoryError(0, f"{name} is a directory")
                self._sums[name] = write_synced(self._staged / name, content)
            write_synced(
                self._staged / SUMS, "".join(f"{each}  {name}\n" for name, each in self._sums.items()).encode()
            )
        except OSError as error:
            self.discard()
            raise MigrationError(f"{directory}: {system_words(error)}; nothing was changed") from error
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        """Move them to their places. Raises OSError.

        Files of an earlier run are replaced, or removed if this run has none of that name and nobody has changed them.
        """
        if self._staged is None:
            return
        before = sums_of(self._directory)
        # On the disk in this order: with sums, there are the files that they are of.
        (self._directory / SUMS).unlink(missing_ok=True)
        directory_to_disk(self._directory)
        for name in before.keys() - self._sums.keys():
            path = self._directory / name
            if path.is_file() and sha256(path.read_bytes()).hexdigest() == before[name]:
                path.unlink()
        for name in self._sums:
            (self._staged / name).replace(self._directory / name)
        directory_to_disk(self._directory)
        put_in_place(self._staged / SUMS, self._directory / SUMS)
        self.discard()

    def discard(self) -> None:
        """Leave nothing of what has not been moved."""
        if self._staged is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
            self._staged = None


def sums_of(directory: Path) -> dict[str, str]:
    """The sums that SHA256SUMS of *directory* has, by file name; none if a run did not end, or there was none."""
    try:
        lines = (directory / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.partition("  ") for line in lines)
    return {name: digest for digest, _, name in pairs if name and "/" not in name}


def write_synced(path: Path, content: Content) -> str:
    """Write a file, flushed to the disk; its SHA-256 sum. Raises OSError."""
    digest = sha256()
    with open(path, "wb", opener=private) as file:
        for piece in pieces(content):
            digest.update(piece)
            file.write(piece)
        to_disk(file)
    return digest.hexdigest()


def _remove_stale(directory: Path) -> None:
    """Remove what killed runs have left. Only one run at a time writes to a directory."""
    for stale in directory.glob(f"{_PREFIX}*"):
        shutil.rmtree(stale, ignore_errors=True)
