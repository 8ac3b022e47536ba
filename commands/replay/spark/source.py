"""``spark.read.format("qpubsub")`` and ``spark.readStream``: captured messages from any capture format.

Options: ``path`` (a file, a directory or a glob; ``load`` takes several), ``format`` (``auto``), ``defaultQueue`` (the
queue of messages that name none; ``natural`` is the one that the command in the message belongs on), ``pieceBytes``
(how large a part of a file one task reads), ``mode``, for records that cannot be read: ``PERMISSIVE``, rows with a
problem; ``DROPMALFORMED``, nothing; ``FAILFAST``, an error. Of streams, how much one batch takes:
``maxFilesPerTrigger``, ``maxBytesPerTrigger`` (one file at least), and ``filesLog``, a directory for the names of the
files that were read. Any other option is an error.

``df.write.format("qpubsub")``: puts as JSON Lines or Parquet, captured messages in any format that has a writer.

A directory with one file for each partition, in the order of the partitions. Files appear when the whole job has
succeeded; a task that is tried again writes another file, and one of the two counts.

A topic of Kafka with captured messages, as a stream of Spark.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from commands.broker.puts import Put
from commands.disk.files import directory_to_disk, put_in_place, to_disk
from commands.replay.spark.captured_values import captured_values
from commands.replay.spark.piece_reader import read_piece
from commands.replay.spark.pieces import PIECE_BYTES, Piece, ReadTask, files_of, path_of, pieces_of, seq_after, tasks_of
from commands.replay.spark.schemas import CAPTURED, PUTS, READ, arrow_schema, check_columns, columns
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, write_captures
from rfh2.captures.parquet import open_parquet
from rfh2.captures.reading import partition_values
from rfh2.errors import CaptureError, QPubSubError

# Which files a stream has read, in a directory beside its checkpoint, so that its offsets are numbers.
#
# ``N.json`` has the files that offset N adds, each with the seq where counting begins in it. It is on disk before Spark
# gets the number. A number that Spark has not recorded when the query is killed is given again, with what is there
# then. Each hundredth file has the names of all before it too, and older ones are deleted.
#
# An offset of a checkpoint that was begun without a log names its files: the log continues from there.

_COMPACTED: Final = 100


class FilesLog:
    """The log in *directory*, which is made with the first files. An offset has ``log``, or ``files`` without a log."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # What is known up to an offset, and the files of the next one, which Spark may or may not record.
        self._known: dict[str, int] = {}
        self._at = -1
        self._added: Mapping[str, int] = {}

    def up_to(self, offset: Mapping[str, Any]) -> Mapping[str, int]:
        """All files up to *offset*: the first seq by path."""
        number = offset.get("log", 0)
        if number == self._at + 1 and self._added:
            self._known.update(self._added)
            self._at, self._added = number, {}
        elif number != self._at:
            known, later = offset.get("files", {}), list[dict[str, int]]()
            for at in range(number, 0, -1):
                content = self._content(at)
                later.append(content["files"])
                if "all" in content:
                    known = content["all"]
                    break
            self._known = dict(known)
            for files in reversed(later):
                self._known.update(files)
            self._at = number
        return self._known

    def between(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, int]:
        """The files that *end* adds to *start*."""
        found: dict[str, int] = {}
        for at in range(start.get("log", 0) + 1, end.get("log", 0) + 1):
            found.update(self._content(at)["files"])
        return found

    def add(self, offset: Mapping[str, Any], files: Mapping[str, int]) -> int:
        """The number of the offset that adds *files* to *offset*; it is on disk."""
        known = self.up_to(offset)
        number = self._at + 1
        self._directory.mkdir(parents=True, exist_ok=True)
        whole = number % _COMPACTED == 0 or "files" in offset
        self._write(number, {"files": files, **({"all": {**known, **files}} if whole else {})})
        self._added = files
        return number

    def forget(self, offset: Mapping[str, Any]) -> None:
        """Delete what is not needed for *offset*, which Spark has recorded, nor for the hundred before it."""
        last = (offset.get("log", 0) // _COMPACTED - 1) * _COMPACTED
        for path in self._directory.glob("[0-9]*.json"):
            if int(path.stem) < last:
                path.unlink()

    def _content(self, number: int) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self._directory / f"{number}.json").read_text(encoding="utf-8"))
        return content

    def _write(self, number: int, content: Mapping[str, Any]) -> None:
        partial = self._directory / f".{number}"
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            to_disk(file)
        put_in_place(partial, self._directory / f"{number}.json")


# Conditions of a query that spare reading: row groups of Parquet are left out where no row can fulfil them.
#
# Spark tests every row all the same, so that a condition that is not known here costs nothing but time. What may be
# compared is ``seq``, ``time``, ``qmgr`` and ``queue``, by the least and the most of a row group, and ``source``.

_COMPARED: Final = ("seq", "time", "qmgr", "queue", "source")


class Condition(NamedTuple):
    """A value of *column* between two bounds, or one of several values; None for no bound."""

    column: str
    least: Any = None
    most: Any = None
    values: tuple[Any, ...] | None = None

    def is_possible(self, least: Any, most: Any) -> bool:
        """Whether a value from *least* to *most* fulfils it."""
        if self.values is not None:
            return any(least <= value <= most for value in self.values)
        return (self.least is None or most >= self.least) and (self.most is None or least <= self.most)


def conditions_of(filters: Iterable[Filter]) -> list[Condition]:
    """What is known of *filters*, all of which a row has to fulfil."""
    found = []
    for each in filters:
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        column = attribute[0] if len(attribute) == 1 else ""
        if column not in _COMPARED:
            continue
        match each:
            case EqualTo(_, value):
                found.append(Condition(column, values=(value,)))
            case In(_, values):
                found.append(Condition(column, values=tuple(values)))
            case GreaterThan(_, value) | GreaterThanOrEqual(_, value):
                found.append(Condition(column, least=value))
            case LessThan(_, value) | LessThanOrEqual(_, value):
                found.append(Condition(column, most=value))
    return found


def needed(pieces: Iterable[Piece], conditions: Sequence[Condition]) -> Iterator[Piece]:
    """Of *pieces* what a row that fulfils all *conditions* may be in."""
    by_file = [each for each in conditions if each.column == "source"]
    by_group = [each for each in conditions if each.column != "source"]
    for piece in pieces:
        if not all(each.is_possible(piece.path, piece.path) for each in by_file):
            continue
        if piece.form != "parquet" or piece.end is None or not by_group:
            yield piece
            continue
        groups = [*_possible(piece, by_group)]
        for at, (number, size) in enumerate(groups):
            if at and groups[at - 1][0] == number - 1:
                continue
            run = [size]
            while at + len(run) < len(groups) and groups[at + len(run)][0] == number + len(run):
                run.append(groups[at + len(run)][1])
            yield replace(piece, start=number, end=number + len(run), size=sum(run))


def _possible(piece: Piece, conditions: Sequence[Condition]) -> Iterator[tuple[int, int]]:
    """The row groups of *piece* in which a row may be, with their sizes."""
    assert piece.end is not None
    try:
        about = open_parquet(Path(piece.path)).metadata
    except (pa.ArrowException, OSError):
        # The task that reads it says what is wrong.
        yield from ((number, 0) for number in range(piece.start, piece.end))
        return
    leaves = {about.schema.column(number).path: number for number in range(about.num_columns)}
    # Of these, rows without a value of their own get one.
    given = partition_values(Path(piece.path))
    known = [each for each in conditions if each.column in leaves and each.column not in given]
    for number in range(piece.start, piece.end):
        group = about.row_group(number)
        if all(_may_be_in(group.column(leaves[each.column]).statistics, each) for each in known):
            yield number, group.total_byte_size


def _may_be_in(statistics: Any, condition: Condition) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    try:
        return condition.is_possible(_comparable(statistics.min), _comparable(statistics.max))
    except TypeError:
        return True


def _comparable(value: Any) -> Any:
    """In a file, a time without a zone is UTC. Spark's have one; with others nothing is compared."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


_PUT_FORMATS: Final = ("jsonl", "parquet")


@dataclass
class CommittedFiles(WriterCommitMessage):
    """What one task wrote."""

    name: str
    rows: int


class FilesWriter(DataSourceArrowWriter):
    """Writes the partitions of a DataFrame of puts or of captured messages as files.

    Raises SchemaError where the columns are neither; CaptureError for a format that is not written.
    """

    def __init__(self, schema: StructType, overwrite: bool, path: str, form: str) -> None:
        self._puts = {"n", "kind"} <= set(schema.names)
        check_columns(schema, PUTS if self._puts else CAPTURED, "what is to be written")
        able = _PUT_FORMATS if self._puts else tuple(f.name for f in FORMATS.values() if f.writer is not None)
        if form not in able:
            what = "puts" if self._puts else "captures"
            raise CaptureError(form, None, f"{what} are written as {', '.join(able)}")
        self._directory, self._form, self._overwrite = path_of(path), form, overwrite
        self._job = uuid.uuid4().hex[:12]
        self._staging = self._directory / f"_qpubsub-{self._job}"
        # Not by the tasks: some of them may still begin after another has failed and the job is given up.
        self._staging.mkdir(parents=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> CommittedFiles:
        """One partition."""
        context = TaskContext.get()
        partition, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        name = f"part-{partition:05}-{attempt}-{self._job}.{self._form}"
        with (self._staging / name).open("wb") as file:
            rows = write_batches(iterator, file, self._form, self._puts)
            to_disk(file)
        return CommittedFiles(name, rows)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All partitions are written: give the files their names."""
        old = [path for path in self._directory.iterdir() if path.name[0] not in "._"] if self._overwrite else []
        for message in messages:
            if isinstance(message, CommittedFiles):
                partition, _, job = message.name.rsplit("-", 2)
                (self._staging / message.name).replace(self._directory / f"{partition}-{job}")
        directory_to_disk(self._directory)
        for path in old:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self._staging, ignore_errors=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what was written. Tasks that are still at work find no place for another file."""
        gone = self._staging.with_name(f"{self._staging.name}-given-up")
        with suppress(FileNotFoundError):
            self._staging.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def write_batches(batches: Iterable[pa.RecordBatch], target: BinaryIO, form: str, puts: bool) -> int:
    """Write batches of puts, or of captured messages, to *target*; returns how many rows."""
    if form == "parquet":
        return _write_parquet(batches, target, arrow_schema(PUTS if puts else CAPTURED))
    if not puts:
        return write_captures(_messages(batches), target, form)
    count = 0
    for batch in batches:
        for row in columns(batch, *PUTS.names):
            target.write(put_line(row))
            count += 1
    return count


def put_line(row: tuple[Any, ...]) -> bytes:
    """A put as a line of JSON: the line that the local replay writes."""
    *fields, md, body = row
    named = dict(zip(PUTS.names, fields, strict=False))
    return Put(**named, md_hex=md.hex(), body_hex=body.hex()).model_dump_json().encode() + b"\n"


def _write_parquet(batches: Iterable[pa.RecordBatch], target: BinaryIO, schema: pa.Schema) -> int:
    count = 0
    with parquet.ParquetWriter(target, schema) as writer:
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(schema.names)
            writer.write_table(table.cast(schema))
            count += batch.num_rows
    return count


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[CapturedMessage]:
    for batch in batches:
        for seq, time, qmgr, queue, user, md, body in columns(batch, *CAPTURED.names):
            if body is not None:
                md_hex = None if md is None else md.hex()
                yield CapturedMessage(
                    seq=seq, time=time, qmgr=qmgr, queue=queue or "", user=user, md_hex=md_hex, body_hex=body.hex()
                )


_BATCH_RECORDS: Final = 50_000


class ConnectorMissingError(QPubSubError):
    """Spark cannot read Kafka. source: what it was to read."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source

    def __str__(self) -> str:
        where = "docs/continuous-replay.md says how Spark gets it"
        return f"{self.source}: Spark has no connector for Kafka; {where}"


@dataclass(frozen=True)
class TopicSource:
    """A topic of Kafka with captured messages (``captured_values``). servers: host:port, with commas between several.

    secure: by TLS.
    """

    servers: str
    topic: str
    secure: bool = False

    def __str__(self) -> str:
        return f"kafka{'s' if self.secure else ''}://{self.servers}/{self.topic}"

    def stream(self, spark: SparkSession) -> DataFrame:
        """All that the topic has, and then what comes.

        Raises ConnectorMissingError; CaptureError for whatever else Spark does not accept.
        """
        options = {
            "kafka.bootstrap.servers": self.servers,
            "kafka.security.protocol": "SSL" if self.secure else "PLAINTEXT",
            "kafka.isolation.level": "read_committed",
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(_BATCH_RECORDS),
        }
        try:
            records = spark.readStream.format("kafka").options(**options).load()
        except AnalysisException as error:
            # The condition has another name in each version of Spark; the sentence is the same.
            if "to find data source: kafka" in str(error):
                raise ConnectorMissingError(str(self)) from error
            raise CaptureError(str(self), None, str(error).split("\n", 1)[0]) from error
        return captured_values(records)


FORMAT: Final = "qpubsub"
_PLACE: Final = ("path", "paths")
_MODES: Final = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_READ_OPTIONS: Final = ("format", "defaultQueue", "pieceBytes", "mode")
_STREAM_OPTIONS: Final = (*_READ_OPTIONS, "maxFilesPerTrigger", "maxBytesPerTrigger", "filesLog")
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
        _check_schema(schema)
        return _Reader(_Options(self.options, _READ_OPTIONS))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For ``spark.readStream``."""
        _check_schema(schema)
        return _StreamReader(_Options(self.options, _STREAM_OPTIONS))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """For ``df.write``: puts or captured messages, by their columns."""
        _check_options(self.options, _WRITE_OPTIONS)
        return FilesWriter(schema, overwrite, _paths(self.options)[0], self.options.get("format", "jsonl"))


def _check_schema(given: StructType) -> None:
    """Raises CaptureError for a schema that somebody asks for."""
    if given != READ:
        raise CaptureError(
            FORMAT, None, "the columns of this format are its own: leave out schema(), and select from them"
        )


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
        self.mode = given.get("mode", _MODES[0]).upper()
        if self.mode not in _MODES:
            raise CaptureError(FORMAT, None, f"option mode must be one of {', '.join(_MODES)}, not {given['mode']}")
        self.files_log = path_of(given["filesLog"]) if given.get("filesLog") else None

    def tasks(self, pieces: Sequence[Piece]) -> Sequence[InputPartition]:
        """*pieces* as tasks."""
        return tasks_of(pieces, self.piece_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        assert isinstance(partition, ReadTask)
        for piece in partition.pieces:
            for batch in read_piece(piece, self.default_queue):
                yield batch if self.mode == "PERMISSIVE" else self._without_problems(batch)

    def _without_problems(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        problems = batch.column("problem")
        if self.mode == "FAILFAST" and problems.null_count < batch.num_rows:
            raise CaptureError(FORMAT, None, f"mode FAILFAST: {problems.drop_null()[0].as_py()}")
        return batch.filter(pc.is_null(problems))


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
        self._conditions: list[Condition] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._conditions = conditions_of(filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        pieces = pieces_of(files_of(options.paths), options.form, piece_bytes=options.piece_bytes)
        return options.tasks([*needed(pieces, self._conditions)] if self._conditions else pieces)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._options.read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Files as they appear in directories: each once, whole; to be seen whole, it has to be moved there.

    The offset names every file that was read, and says where counting begins in it. With ``filesLog`` it has a number
    instead: the names are in a directory (``files_log``), and the offset is as long at the end of a year as on the
    first day.
    """

    def __init__(self, options: _Options) -> None:
        self._options = options
        self._until: frozenset[str] | None = None
        self._log = None if options.files_log is None else FilesLog(options.files_log)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Leave files that appear from now on to the next run."""
        self._until = frozenset(map(str, files_of(self._options.paths)))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"files": {}, "next": 1}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        options = self._options
        before = start or self.initialOffset()
        known = before["files"] if self._log is None else self._log.up_to(before)
        new = [path for path in files_of(options.paths) if str(path) not in known]
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
        following = begin if all(piece.numbered for piece in pieces) else seq_after(pieces, begin)
        if self._log is not None:
            return {"log": self._log.add(before, first), "next": following}
        return {"files": {**before["files"], **first}, "next": following}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        options = self._options
        if self._log is None:
            new = {path: at for path, at in end["files"].items() if path not in start["files"]}
        else:
            new = self._log.between(start, end)
        pieces: list[Piece] = []
        for path, first_seq in new.items():
            pieces += pieces_of([Path(path)], options.form, first_seq, options.piece_bytes)
        return options.tasks(pieces)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._options.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Files stay where they are; what the log no longer needs is deleted."""
        if self._log is not None:
            self._log.forget(end)


__all__ = ["FORMAT", "CaptureDataSource", "Piece"]
