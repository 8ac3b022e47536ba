"""The file of an index: the blocks of a capture with their checkpoints, so that any message is reached in seconds.

A SQLite database with two tables: ``about`` says what capture, setup and version it was made of, and ``blocks`` has the
blocks. It is made under another name and renamed when it is complete. It is as good as the capture is unchanged: where
files, sizes, times, setup, version 6 or 7, or the version of this program differ, it is made again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from commands.replay.step.state import VERSION as SNAPSHOT_VERSION, SnapshotError
from commands.replay.step.timeline import Block, BlockHead, StepFacts
from rfh2.distribution import VERSION
from rfh2.errors import StoreError, system_words

_FORMAT: Final = 1
_SCHEMA: Final = """
CREATE TABLE about (mark TEXT NOT NULL);
CREATE TABLE blocks (
    number INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL, snapshot BLOB NOT NULL, messages BLOB NOT NULL, facts BLOB NOT NULL);
"""
_MAGIC: Final = b"SQLite format 3\0"


def mark_of(files: Sequence[Path], form: str, setup: str, semantics: str) -> str:
    """What an index must have in common with a capture and its replay. Raises OSError for a file that is missing."""
    stats = []
    for file in files:
        below = sorted(path for path in file.rglob("*") if path.is_file()) if file.is_dir() else [file]
        stats += [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in below]
    described = json.dumps([_FORMAT, SNAPSHOT_VERSION, VERSION, stats, form, setup, semantics])
    return hashlib.sha256(described.encode()).hexdigest()


class IndexFile:
    """An open index; a ``BlockStore``. Close it."""

    def __init__(self, connection: sqlite3.Connection, label: str) -> None:
        self._connection, self._label = connection, label

    @classmethod
    def temporary(cls, blocks: Iterable[Block]) -> Self:
        """An index that goes when it is closed; on disk, where it is large. Raises what *blocks* raises."""
        # What SQLite calls "": a file of its own without a name, which it writes when memory is short.
        made = cls(sqlite3.connect(""), "the temporary index")
        made._fill(blocks, "")
        return made

    @classmethod
    def of(cls, path: Path, mark: str, blocks: Callable[[], Iterable[Block]], say: Callable[[str], None]) -> Self:
        """The index in *path*; where there is none with this mark, it is made of *blocks*.

        Raises StoreError where *path* holds something else, or cannot be written; what *blocks* raises.
        """
        if path.exists():
            opened = cls._opened(path)
            if opened._mark() == mark:
                return opened
            opened.close()
            say(f"{path} is of another capture, setup or version: it is made again")
        partial = path.with_name(f".{path.name}.partial")
        partial.unlink(missing_ok=True)
        try:
            made = cls(sqlite3.connect(partial), str(path))
            try:
                made._fill(blocks(), mark)
            finally:
                made.close()
            partial.replace(path)
        except sqlite3.Error as error:
            raise StoreError(f"{path}: the index cannot be written: {error}") from error
        except OSError as error:
            raise StoreError(f"{path}: the index cannot be written: {system_words(error)}") from error
        finally:
            partial.unlink(missing_ok=True)
        return cls._opened(path)

    @classmethod
    def _opened(cls, path: Path) -> Self:
        try:
            with path.open("rb") as file:
                magic = file.read(len(_MAGIC))
        except OSError as error:
            raise StoreError(f"{path}: {system_words(error)}") from error
        opened = cls(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True), str(path))
        if magic != _MAGIC or not opened._is_index():
            opened.close()
            raise StoreError(f"{path} is not an index of qpubsub, and is not replaced. Give --index another name")
        return opened

    def _is_index(self) -> bool:
        try:
            self._connection.execute("SELECT mark FROM about").fetchone()
            self._connection.execute("SELECT facts FROM blocks LIMIT 1").fetchone()
        except sqlite3.Error:
            return False
        return True

    def _mark(self) -> str | None:
        row = self._connection.execute("SELECT mark FROM about").fetchone()
        return None if row is None else str(row[0])

    def _fill(self, blocks: Iterable[Block], mark: str) -> None:
        self._connection.executescript(_SCHEMA)
        for number, block in enumerate(blocks):
            head = block.head
            row = (number, head.first, head.count, head.first_seq, head.last_seq)
            packed = (block.snapshot, block.packed_messages, block.packed_facts)
            self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, *packed))
        self._connection.execute("INSERT INTO about VALUES (?)", (mark,))
        self._connection.commit()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def heads(self) -> list[BlockHead]:
        """Where each block is. Raises SnapshotError."""
        rows = self._rows("SELECT first, count, first_seq, last_seq FROM blocks ORDER BY number")
        return [BlockHead(*row) for row in rows]

    def block(self, number: int) -> Block:
        """One block. Raises SnapshotError."""
        columns = "first, count, first_seq, last_seq, snapshot, messages, facts"
        row = self._row(f"SELECT {columns} FROM blocks WHERE number = ?", number)
        return Block(BlockHead(*row[:4]), *row[4:])

    def facts(self, number: int) -> list[StepFacts]:
        """The facts of one block. Raises SnapshotError."""
        row = self._row("SELECT first, count, first_seq, last_seq, facts FROM blocks WHERE number = ?", number)
        return Block(BlockHead(*row[:4]), b"", b"", row[4]).facts()

    def _row(self, statement: str, number: int) -> tuple[Any, ...]:
        rows = self._rows(statement, number)
        if len(rows) != 1:
            raise SnapshotError(f"{self._label}: block {number} is missing")
        return rows[0]

    def _rows(self, statement: str, *values: int) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise SnapshotError(f"{self._label}: {error}. Remove the file; it is made again") from error
