"""``spark.read.format("qpubsub")`` and ``spark.readStream``: captured messages from any capture format.

Options: ``path`` (a file, a directory or a glob; ``load`` takes several), ``format`` (``auto``), ``defaultQueue`` (the
queue of messages that name none; ``natural`` is the one that the command in the message belongs on), ``pieceBytes``
(how large a part of a file one task reads). Of streams, how much one batch takes: ``maxFilesPerTrigger``,
``maxBytesPerTrigger`` (one file at least). Any other option is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from commands.replay.spark.piece_reader import read_piece
from commands.replay.spark.pieces import PIECE_BYTES, Piece, ReadTask, files_of, pieces_of, seq_after
from commands.replay.spark.schemas import READ
from commands.replay.spark.writer import FilesWriter
from rfh2.errors import CaptureError

FORMAT: Final = "qpubsub"
_PLACE: Final = ("path", "paths")
_READ_OPTIONS: Final = ("format", "defaultQueue", "pieceBytes")
_STREAM_OPTIONS: Final = (*_READ_OPTIONS, "maxFilesPerTrigger", "maxBytesPerTrigger")
_WRITE_OPTIONS: Final = ("format",)


class CaptureDataSource(DataSource):
    """The format ``qpubsub``."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return FORMAT

    def schema(self) -> StructType:
        """READ."""
        return READ

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        return _Reader(_Options(self.options, _READ_OPTIONS))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For ``spark.readStream``."""
        return _StreamReader(_Options(self.options, _STREAM_OPTIONS))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """For ``df.write``: puts or captured messages, by their columns."""
        _check_options(self.options, _WRITE_OPTIONS)
        return FilesWriter(schema, overwrite, _paths(self.options)[0], self.options.get("format", "jsonl"))


class _Options:
    """The options of a load, read. Raises CaptureError for an option that is not *known* and for a bad number."""

    def __init__(self, given: Any, known: Sequence[str]) -> None:
        _check_options(given, known)
        self.paths = _paths(given)
        self.form = given.get("format", "auto")
        self.default_queue = given.get("defaultQueue", "")
        self.piece_bytes = _number(given, "pieceBytes", PIECE_BYTES, least=1)
        self.most_files = _number(given, "maxFilesPerTrigger", 0)
        self.most_bytes = _number(given, "maxBytesPerTrigger", 0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one piece."""
        assert isinstance(partition, ReadTask)
        return read_piece(partition.piece, self.default_queue)


def _check_options(given: Iterable[str], known: Sequence[str]) -> None:
    """Raises CaptureError for an option whose name is neither in *known* nor that of the path; case does not matter."""
    names = {name.lower(): name for name in (*known, *_PLACE)}
    for option in given:
        if option.lower() in {name.lower() for name in _STREAM_OPTIONS} - names.keys():
            raise CaptureError(
                FORMAT, None, f"option {option} is not for this use of the format: use {', '.join(known)}"
            )
        if option.lower() not in names:
            near = get_close_matches(option.lower(), names, n=1)
            hint = f"; did you mean {names[near[0]]}?" if near else ""
            raise CaptureError(FORMAT, None, f"there is no option {option}: use {', '.join(known)}{hint}")


def _number(given: Any, option: str, default: int, least: int = 0) -> int:
    text = str(given.get(option, default))
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise CaptureError(FORMAT, None, f"option {option} must be a whole number of at least {least}, not {text}")
    return int(text)


def _paths(given: Any) -> list[str]:
    if given.get("paths"):
        return [str(path) for path in json.loads(given["paths"])]
    if not given.get("path"):
        raise CaptureError("qpubsub", None, "the path is missing: use load(PATH)")
    return [given["path"]]


class _Reader(DataSourceReader):
    def __init__(self, options: _Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        pieces = pieces_of(files_of(options.paths), options.form, piece_bytes=options.piece_bytes)
        return [ReadTask(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._options.read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Files as they appear in directories: each once, whole; to be seen whole, it has to be moved there.

    The offset names every file that was read, and says where counting begins in it.
    """

    def __init__(self, options: _Options) -> None:
        self._options = options
        self._until: frozenset[str] | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Leave files that appear from now on to the next run."""
        self._until = frozenset(map(str, files_of(self._options.paths)))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"files": {}, "next": 1}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        options = self._options
        before = start or self.initialOffset()
        new = [path for path in files_of(options.paths) if str(path) not in before["files"]]
        if self._until is not None:
            new = [path for path in new if str(path) in self._until]
        # In the order in which they were put there: rename keeps the time of the last write, but not that of the inode.
        new.sort(key=lambda path: (path.stat().st_ctime_ns, str(path)))
        if options.most_files:
            new = new[: options.most_files]
        if options.most_bytes:
            so_far = accumulate(path.stat().st_size for path in new)
            new = [
                path
                for at, (path, size) in enumerate(zip(new, so_far, strict=True))
                if not at or size <= options.most_bytes
            ]
        if not new:
            return before
        begin = before["next"]
        pieces = pieces_of(new, options.form, begin, options.piece_bytes)
        first = {piece.path: piece.first_seq for piece in reversed(pieces)}
        following = seq_after(pieces, begin) if any(piece.end is None for piece in pieces) else begin
        return {"files": {**before["files"], **first}, "next": following}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        options = self._options
        tasks: list[InputPartition] = []
        for path, first_seq in end["files"].items():
            if path not in start["files"]:
                pieces = pieces_of([Path(path)], options.form, first_seq, options.piece_bytes)
                tasks += [ReadTask(piece) for piece in pieces]
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._options.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: files stay where they are."""


__all__ = ["FORMAT", "CaptureDataSource", "Piece"]
