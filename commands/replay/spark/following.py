"""A replay that goes on: captures that appear in a directory or a topic of Kafka, and their puts in a directory.

This is ``qpubsub replay --engine spark --checkpoint``. The puts of each batch are in one directory below the output,
``batch=N``. The directory gets this name when it is complete, before Spark records that the batch is done. After a kill
at any instant, the query replays the interrupted batch again, with the same puts. If the directory exists already, it
is left unchanged. Any program that reads the output finds each put once.

Beside the puts of a batch, ``_late.jsonl`` has the captured messages that were too late to be replayed, and
``_problems.txt`` the records that could not be read.

An output named ``.delta`` is a Delta table, too: its files are the Parquet files of the batches.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from commands.disk.errors import QueueManagerInUseError
from commands.disk.files import directory_to_disk, put_in_place, to_disk
from commands.disk.lock import exclusive
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.spark.piece_reader import NATURAL
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import PUTS, STREAMED, arrow_schema, columns
from commands.replay.spark.source import FORMAT, TopicSource, write_batches
from commands.replay.spark.streaming import LATE, PROBLEM, READ, digest_of, replay_stream
from rfh2.captured import CapturedMessage
from rfh2.distribution import how_to_install
from rfh2.errors import CaptureError, QPubSubError

# A Delta table as the output of a continuous replay: the puts of each batch are added to it once.
#
# The file of a batch is written and gets its name as in every output. Then one commit of the table adds
# the file, and notes that this replay has added batch N (the action ``txn`` of the Delta protocol). A kill between the
# two leaves a file that the table does not have: the next run finds no note on the batch, and commits. A kill after the
# commit leaves the note, and the next run commits nothing. Spark records that the batch is done after that.
#
# The lock of the checkpoint keeps a second process of the same replay out. Other programs may add to the table
# meanwhile.


class PutsTable:
    """The table in *directory*, which is made with its first batch. app_id: names the replay in the table."""

    def __init__(self, directory: Path, app_id: str) -> None:
        self._directory, self._app_id = directory, app_id

    def add(self, batch: int, file: Path) -> None:
        """Add the puts of a batch, unless they have been added. file: below the directory, with the columns PUTS."""
        from deltalake import CommitProperties, DeltaTable, Schema, Transaction  # noqa: PLC0415 - an extra
        from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

        action = _added(file, file.relative_to(self._directory))
        properties = CommitProperties(app_transactions=[Transaction(self._app_id, batch)])
        place, schema = str(self._directory), Schema.from_arrow(arrow_schema(PUTS))
        if DeltaTable.is_deltatable(place):
            table = DeltaTable(place)
            done = table.transaction_version(self._app_id)
            if done is None or done < batch:
                table.create_write_transaction([action], "append", schema, commit_properties=properties)
        else:
            create_table_with_add_actions(place, schema, [action], commit_properties=properties)
        self._to_disk()

    def _to_disk(self) -> None:
        """The last commit is not lost with the power."""
        log = self._directory / "_delta_log"
        with max(log.glob("*.json")).open("rb") as file:
            to_disk(file)
        directory_to_disk(log)
        directory_to_disk(self._directory)


def _added(file: Path, inside: Path) -> Any:
    from deltalake.transaction import AddAction  # noqa: PLC0415

    about = parquet.read_metadata(file)
    column = about.schema.names.index("seq")
    found = [about.row_group(number).column(column).statistics for number in range(about.num_row_groups)]
    bounds = {"minValues": {"seq": min(s.min for s in found)}, "maxValues": {"seq": max(s.max for s in found)}}
    state = file.stat()
    stats = json.dumps({"numRecords": about.num_rows, **bounds, "nullCount": {"seq": 0}})
    return AddAction(inside.as_posix(), state.st_size, {}, state.st_mtime_ns // 1_000_000, True, stats)


DELTA: Final = ".delta"
"""So ends the name of an output that is a Delta table."""
LATE_FILE: Final = "_late.jsonl"
PROBLEM_FILE: Final = "_problems.txt"
_PUTS: Final = "puts"
_INSTALL_DELTA: Final = how_to_install("delta")
_MARK: Final = "_qpubsub.json"
_FILES: Final = "_files"
_LOCK: Final = "_lock"
_BATCH_BYTES: Final = 256 << 20
_REPORT: Final = StructType([StructField("report", StringType())])
_ARROW_REPORT: Final = arrow_schema(_REPORT)
_MOST_TEXTS: Final = 20


class FollowError(QPubSubError):
    """A continuous replay that cannot go on with its checkpoint and its output as they are."""


@dataclass
class Batch:
    """The result of one batch. kinds: how many rows of each kind. problem_texts: the first few problems."""

    kinds: dict[str, int] = field(default_factory=dict)
    problem_texts: list[str] = field(default_factory=list)

    @property
    def puts(self) -> int:
        """How many rows are puts."""
        return sum(count for kind, count in self.kinds.items() if kind not in (LATE, PROBLEM))


@dataclass(frozen=True)
class Following:
    """The replay to do, and its output.

    source: a directory that captures are moved into, or a topic. form: the format of files. target: a directory named
    .jsonl, .parquet or .delta. checkpoint: a directory that Spark keeps its place in. hold, idle_s: as for
    ``replay_stream``. batch_bytes: the most bytes of files in one batch, which has one file at least.
    """

    source: Path | TopicSource
    form: str
    target: Path
    checkpoint: Path
    setup: str = ""
    semantics: str = "v7"
    hold: int = 0
    idle_s: float | None = None
    batch_bytes: int = _BATCH_BYTES
    monotonic_clock: bool = False

    def check(self) -> None:
        """Before Spark starts. Raises CaptureError for a source that is no directory, QPubSubError for a setup that
        fails, FollowError where checkpoint or output belong to another replay."""
        if isinstance(self.source, Path) and not self.source.is_dir():
            raise CaptureError(str(self.source), None, "no such directory")
        self._setting.broker(DEFAULT_QMGR)
        if self.target.suffix == DELTA and find_spec("deltalake") is None:
            raise FollowError(f"{self.target}: a Delta table needs the package deltalake: {_INSTALL_DELTA}")
        self._marks()

    def _marks(self) -> dict[str, Any]:
        """The mark that checkpoint and output bear or are to bear. Raises FollowError where they bear others."""
        mine, theirs = _read(self.checkpoint / _MARK), _read(self.target / _MARK)
        if mine is None:
            if _holds_anything(self.target):
                raise FollowError(
                    f"{self.target} is not empty, but {self.checkpoint} is: a new replay needs a new output"
                )
            if _holds_anything(self.checkpoint):
                raise FollowError(f"{self.checkpoint} is not empty, and is not the checkpoint of a replay")
            return {"id": uuid.uuid4().hex, **self._parameters(READ[-1])}
        if mine.get("version") not in READ:
            raise FollowError(
                f"{self.checkpoint} was written by another version of qpubsub: use that one, or another checkpoint"
            )
        for name, value in self._parameters(mine["version"]).items():
            if mine.get(name) != value:
                why = f"{self.checkpoint} {_WHY[name]}"
                raise FollowError(f"{why}: use what it was started with, or another checkpoint")
        begun = any((self.checkpoint / "commits").glob("[0-9]*"))
        if theirs is None and (begun or _holds_anything(self.target)):
            raise FollowError(f"{self.target} is not the output that {self.checkpoint} belongs to")
        if theirs is not None and theirs.get("id") != mine["id"]:
            raise FollowError(f"{self.target} is the output of a replay other than that of {self.checkpoint}")
        return {**mine, **self._parameters(READ[-1])}

    def claim(self) -> str:
        """Mark checkpoint and output as belonging together: what the two are marked with.

        Raises FollowError where they belong to others.
        """
        mark = self._marks()
        for directory in (self.checkpoint, self.target):
            directory.mkdir(parents=True, exist_ok=True)
            directory_to_disk(directory.parent)
            _write(directory / _MARK, mark)
        return str(mark["id"])

    def _parameters(self, version: int) -> dict[str, Any]:
        return {
            "version": version,
            "source": str(self.source.resolve() if isinstance(self.source, Path) else self.source),
            "format": self.form,
            "suffix": self.target.suffix,
            "setting": digest_of(self._setting, version),
            "timers": self._has_timers,
        }

    @property
    def _setting(self) -> ReplaySetup:
        return ReplaySetup(self.setup, self.semantics, monotonic_clock=self.monotonic_clock)

    @property
    def _has_timers(self) -> bool:
        return self.idle_s is not None and self.hold > 0

    @contextmanager
    def running(self, spark: SparkSession, report: Callable[[Batch], None], *, once: bool) -> Iterator[StreamingQuery]:
        """The query while it runs; it is stopped in the end.

        report: called with the result of each batch, from another thread. once: whether the query ends by itself, when
        it has done what is there now; not with idle_s, which waits for later messages. Raises what ``check`` does;
        FollowError where another process has the checkpoint; ValueError for once with idle_s.
        """
        if once and self._has_timers:
            raise ValueError("a replay with idle_s never ends")
        with ExitStack() as stack:
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            try:
                stack.enter_context(exclusive(self.checkpoint / _LOCK, ""))
            except QueueManagerInUseError as error:
                raise FollowError(f"{self.checkpoint} is in use by another process") from error
            mark = self.claim()
            for left in self.target.glob("_batch-*"):
                shutil.rmtree(left)
            rows = replay_stream(
                self._captured(spark),
                self.setup,
                self.semantics,
                hold=self.hold,
                idle_s=self.idle_s,
                monotonic_clock=self.monotonic_clock,
            )
            sink = self._sink(mark)
            writer = rows.writeStream.foreachBatch(lambda batch, number: report(sink.put(batch, number)))
            writer = writer.option("checkpointLocation", str(self.checkpoint.resolve()))
            query = (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="1 second")).start()
            try:
                yield query
            finally:
                query.stop()

    def _captured(self, spark: SparkSession) -> DataFrame:
        if isinstance(self.source, TopicSource):
            return self.source.stream(spark)
        reader = spark.readStream.format(FORMAT).option("format", self.form).option("defaultQueue", NATURAL)
        reader = reader.option("filesLog", str((self.checkpoint / _FILES).resolve()))
        return reader.option("maxBytesPerTrigger", str(self.batch_bytes)).load(str(self.source.resolve()))

    def _sink(self, mark: str) -> BatchSink:
        target = self.target.resolve()
        if target.suffix != DELTA:
            return BatchSink(target, target.suffix.removeprefix("."))

        return BatchSink(target, "parquet", PutsTable(target, f"qpubsub-{mark}"))


class BatchSink:
    """Puts each batch of a stream of STREAMED in place, once.

    form: ``jsonl`` or ``parquet``. table: to which the puts of each batch are added, too.
    """

    def __init__(self, target: Path, form: str, table: PutsTable | None = None) -> None:
        self._target, self._form, self._table = target.resolve(), form, table

    def put(self, batch: DataFrame, number: int) -> Batch:
        """Put batch *number* in place, unless it is in place already."""
        staging = self._target / f"_batch-{number}-{uuid.uuid4().hex[:12]}"
        staging.mkdir()
        path, form = str(staging), self._form
        in_order = batch.repartition(1).sortWithinPartitions("seq", "at_qmgr", "n")
        # Always to the end: only then is the batch's state kept.
        rows = in_order.mapInArrow(lambda batches: _written(batches, path, form), _REPORT).collect()
        report = json.loads(rows[0]["report"]) if rows else {**asdict(Batch()), "files": {}}
        done = Batch(report["kinds"], report["problem_texts"])
        place = self._target / f"batch={number:010}"
        if place.exists() or not done.kinds:
            shutil.rmtree(staging)
        else:
            self._put_in_place(staging, report["files"], place)
        if self._table is not None and done.puts:
            self._table.add(number, place / f"{_PUTS}.{form}")
        return done

    def _put_in_place(self, staging: Path, files: dict[str, str], place: Path) -> None:
        for name, final in files.items():
            (staging / name).rename(staging / final)
        for left in staging.iterdir():
            if left.name not in files.values():
                left.unlink()
        directory_to_disk(staging)
        put_in_place(staging, place)


def _written(batches: Iterable[pa.RecordBatch], directory: str, form: str) -> Iterator[pa.RecordBatch]:
    """Write the one partition of a batch into files of its own, and say which those are."""
    kinds: Counter[str] = Counter()
    problem_texts: list[str] = []
    late: list[bytes] = []
    problems: list[str] = []

    def puts() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kind = batch.column("kind")
            kinds.update(kind.to_pylist())
            is_other = pc.is_in(kind, value_set=pa.array([LATE, PROBLEM]))
            for row in columns(batch.filter(is_other), *STREAMED.names):
                named = dict(zip(STREAMED.names, row, strict=True))
                if named["kind"] == PROBLEM:
                    problems.append(named["problem"])
                else:
                    late.append(_captured(named))
            rest = batch.filter(pc.invert(is_other)).select(PUTS.names)
            if rest.num_rows:
                yield rest

    root, attempt, files = Path(directory), uuid.uuid4().hex, {}

    def write(name: str, content: Callable[[BinaryIO], object]) -> None:
        temporary = f"{attempt}.{name}"
        with (root / temporary).open("wb") as file:
            content(file)
            to_disk(file)
        files[temporary] = name

    write(f"{_PUTS}.{form}", lambda file: write_batches(puts(), file, form, puts=True))
    if late:
        write(LATE_FILE, lambda file: file.writelines(late))
    if problems:
        write(PROBLEM_FILE, lambda file: file.writelines(line.encode() + b"\n" for line in problems))
        problem_texts = problems[:_MOST_TEXTS]
    report = json.dumps({**asdict(Batch(dict(kinds), problem_texts)), "files": files})
    yield pa.RecordBatch.from_pylist([{"report": report}], schema=_ARROW_REPORT)


def _captured(named: dict[str, Any]) -> bytes:
    md = named["md"]
    message = CapturedMessage(
        seq=named["seq"],
        time=named["time"],
        qmgr=named["qmgr"],
        queue=named["queue"],
        user=named["user"],
        md_hex=None if md is None else md.hex(),
        body_hex=named["body"].hex(),
    )
    return message.model_dump_json().encode() + b"\n"


_WHY: Final = {
    "source": "belongs to a replay of another directory",
    "format": "belongs to a replay of captures in another format",
    "suffix": "belongs to a replay with another kind of output",
    "setting": "belongs to a replay with another setup, or other semantics",
    "timers": "belongs to a replay that was begun with --hold and --idle, or without",
}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise FollowError(f"{path} is damaged") from error
    return found if isinstance(found, dict) else None


def _write(path: Path, mark: dict[str, Any]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(mark, file)
        to_disk(file)
    put_in_place(partial, path)


def _holds_anything(directory: Path) -> bool:
    """Whether the directory has anything except the remains of a failed try."""
    if directory.exists() and not directory.is_dir():
        return True
    own = (_LOCK, _MARK, f"{_MARK}.partial")
    return directory.is_dir() and any(path.name not in own for path in directory.iterdir())
