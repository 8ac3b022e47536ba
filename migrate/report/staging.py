"""Files that belong together, written to a directory: all of one run, or none.

    staged      written beside their places, and flushed to the disk
    publish     SHA256SUMS of the run before is removed; the files are moved to their places, SHA256SUMS last

A process that is killed in between leaves a directory without SHA256SUMS, and the next run completes it. With
SHA256SUMS, ``sha256sum -c SHA256SUMS`` shows whether somebody has changed a file since.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from commands.disk.files import to_disk
from commands.disk.permissions import make_directory, private
from migrate.contents import Content, pieces
from rfh2.errors import MigrationError

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
            raise MigrationError(f"{directory}: {error.strerror or error}; nothing was changed") from error
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
        (self._directory / SUMS).unlink(missing_ok=True)
        for name in before.keys() - self._sums.keys():
            path = self._directory / name
            if path.is_file() and sha256(path.read_bytes()).hexdigest() == before[name]:
                path.unlink()
        for name in (*self._sums, SUMS):
            (self._staged / name).replace(self._directory / name)
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
