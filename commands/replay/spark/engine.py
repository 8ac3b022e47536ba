"""The replay of a capture on Spark, file to file, range by range: what ``qpubsub replay --engine spark`` does.

The output is a directory. Until it is complete, its name ends in ``.partial``. It then holds the finished work: the
capture in order, and each finished range. An interrupted replay continues there if input, setup and version are the
same; otherwise it starts again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import StringType, StructField, StructType

from commands.broker.puts import PutKind
from commands.disk.files import directory_to_disk, put_in_place, to_disk
from commands.explain.selection import EVERYTHING, MessageSelection
from commands.replay.arrivals import DEFAULT_QMGR, RepeatedSeqError, in_order
from commands.replay.local import ReplayCounts
from commands.replay.network.local import NetworkReplay, NetworkSetup
from commands.replay.put_columns import PutColumns
from commands.replay.spark.capture_scan import surveyed
from commands.replay.spark.in_order import StagedCapture, staged
from commands.replay.spark.pieces import files_of
from commands.replay.spark.prepare import cores_of
from commands.replay.spark.put_files import WrittenFiles, earlier_written, keep_found, kinds_of, write_puts
from commands.replay.spark.replay_setup import ReplaySetup, check
from commands.replay.spark.schemas import CAPTURED, PUTS, arrow_schema, columns, message_of
from commands.replay.spark.source import FORMAT
from commands.replay.spark.twopass import first_pass
from commands.terminal.counted import counted
from rfh2.errors import QPubSubError

_VERSION: Final = 9
_RANGES_PER_CORE: Final = 8
_FEW_MESSAGES: Final = 100_000
_MOST_MESSAGES: Final = 500_000


@dataclass(frozen=True)
class Order:
    """The replay to do.

    source: a capture, or a directory of them. form: its format. ranges: None, as needed. selection: whose puts are
    written and counted; all messages are replayed. monotonic_clock: as in ``ReplaySetup``.
    """

    source: Path
    form: str
    target: Path
    setup: str = ""
    semantics: str = "v7"
    ranges: int | None = None
    selection: MessageSelection = EVERYTHING
    monotonic_clock: bool = False

    def check(self) -> None:
        """Raises CaptureError for a path that is missing, QPubSubError for a setup that fails: before Spark starts."""
        check(self.source, self.setup, self.semantics)


@dataclass(frozen=True)
class Done:
    """The result of a replay.

    problems: records that could not be read. undecodable: messages that could not be decoded. problem_texts: the
    first of either, in words.
    """

    counts: ReplayCounts
    problems: int
    undecodable: int
    problem_texts: tuple[str, ...]


def run(spark: SparkSession, order: Order, advance: Callable[[int], None], say: Callable[[str], None]) -> Done:
    """Replay, and put the puts in place.

    advance: called with how many messages more are done. say: called with a line when an earlier replay is taken up,
    and when a clock makes the replay longer. Raises what ``Order.check`` does; RepeatedSeqError where two messages of a
    queue manager have the same seq.
    """
    with _in_words():
        return _run(spark, order, advance, say)


def _run(spark: SparkSession, order: Order, advance: Callable[[int], None], say: Callable[[str], None]) -> Done:
    # Executors have working directories of their own.
    order = replace(order, source=order.source.absolute(), target=order.target.absolute())
    form = order.target.suffix.removeprefix(".")
    work = order.target.with_name(f"{order.target.name}.partial")
    puts = work / "puts"
    mark = _mark(order)
    done = _earlier(work, mark)
    if done:
        messages = sum(written.messages for written in done.values())
        say(f"continuing the replay in {work}: {messages:,} messages are done")
        advance(messages)
    work.mkdir(parents=True, exist_ok=True)
    _write(work / "order.json", mark)
    cores = cores_of(spark)
    capture = staged(spark, order.source, order.form, work)
    ranges = _ranges(work / "ranges.json", order.ranges or _fitting(capture.files.count, cores))
    setting = ReplaySetup(order.setup, order.semantics, monotonic_clock=order.monotonic_clock)
    ready = surveyed(spark, capture.files, setting, ranges, work / "survey", order.selection, cores)
    for qmgr, steps in ready.expiry.back.items():
        say(
            f"the clock of {qmgr} goes back {counted(steps, 'time')}, and something expires there; ranges that are "
            f"read once more: {len(ready.expiry.behind[qmgr])} of {ready.ranges}. --monotonic-clock avoids this"
        )
    lane = first_pass(ready, order.semantics)
    found = keep_found(ready, [lane], work / "found")
    left = [number for number in range(ready.ranges) if number not in done]
    for at in range(0, len(left), cores * _RANGES_PER_CORE):
        for written in write_puts(ready, lane, found, left[at : at + cores * _RANGES_PER_CORE], puts, form):
            done[written.number] = written
            advance(written.messages)
    in_order = [done[number] for number in sorted(done)]
    _put_in_place(work, order.target, form, in_order)
    return _summed(in_order, capture)


@contextmanager
def _in_words() -> Iterator[None]:
    """A fault of the capture that a task found is raised as one, and not as a failure of Spark."""
    try:
        yield
    except PythonException as error:
        found = re.search(rf"{RepeatedSeqError.__name__}: (.*)", str(error))
        if found is None:
            raise
        raise RepeatedSeqError(found[1]) from error


def _fitting(count: int, cores: int) -> int:
    """How many ranges: several for each core, of a size at which it pays to begin anew, and to have done one."""
    wanted = max(cores * _RANGES_PER_CORE, -(-count // _MOST_MESSAGES))
    return max(cores, min(wanted, -(-count // _FEW_MESSAGES)))


def _ranges(place: Path, wanted: int) -> int:
    """How many ranges; as many as there were when the replay began, on however many cores that was."""
    if place.exists():
        return int(json.loads(place.read_text(encoding="utf-8")))
    _write(place, wanted)
    return wanted


def _write(place: Path, what: object) -> None:
    """It is written under another name and renamed, so that it is complete or missing."""
    partial = place.with_name(f".{place.name}")
    with partial.open("w", encoding="utf-8") as file:
        file.write(json.dumps(what))
        to_disk(file)
    put_in_place(partial, place)


def _mark(order: Order) -> dict[str, Any]:
    """The values that an earlier replay must share with this one, so that this one can continue it."""
    files = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files_of([str(order.source)])]
    what = (
        order.form,
        order.setup,
        order.semantics,
        order.ranges,
        order.target.suffix,
        order.selection.texts,
        order.monotonic_clock,
    )
    described = json.dumps([files, *what])
    return {"version": _VERSION, "digest": hashlib.sha256(described.encode()).hexdigest()}


def _earlier(work: Path, mark: dict[str, Any]) -> dict[int, WrittenFiles]:
    """The ranges that an earlier replay has finished; where it was another one, nothing of it is left."""
    try:
        same = json.loads((work / "order.json").read_text()) == mark
    except (OSError, ValueError):
        same = False
    if not same:
        shutil.rmtree(work, ignore_errors=True)
        return {}
    return {written.number: written for written in earlier_written(work / "puts")}


def _put_in_place(work: Path, target: Path, form: str, done: list[WrittenFiles]) -> None:
    """The files, in the order of seq, take the place of whatever stood there."""
    whole = work / "whole"
    whole.mkdir(exist_ok=True)
    for number, written in enumerate(done):
        path = work / "puts" / written.name
        # A file that is not there was moved before an interruption.
        if written.name and path.exists():
            path.rename(whole / f"part-{number:05}.{form}")
    directory_to_disk(whole)
    old = target.with_name(f"{target.name}.old")
    if target.exists():
        put_in_place(target, old)
    # After this, the replay cannot be continued: a new run would replace all puts by none.
    (work / "order.json").unlink()
    directory_to_disk(work)
    put_in_place(whole, target)
    shutil.rmtree(work)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)


def _summed(written: list[WrittenFiles], capture: StagedCapture) -> Done:
    passed_over: Counter[str] = Counter()
    for each in written:
        passed_over.update(each.passed_over)
    messages, errors = sum(each.messages for each in written), sum(each.errors for each in written)
    problem_texts = (*capture.problem_texts, *(line for each in written for line in each.problem_texts))
    counts = ReplayCounts(messages, kinds_of(written), errors, dict(passed_over))
    return Done(counts, capture.problems, sum(each.undecodable for each in written), problem_texts)


# The replay of a network on Spark: one task replays one network, with the code of the local replay.
#
#     capture ─ staged ─> by network, in order of seq ─ NetworkReplay ─> puts, and a report ─> in order of seq, files
#
# A network is replayed in one piece, because what each queue manager does depends on all others of it. Several networks
# in one estate are replayed at the same time.

_NETWORK: Final = "network"
_REPORT: Final = "report"
_RESULT: Final = StructType([*PUTS.fields, StructField(_REPORT, StringType())])
_ARROW_RESULT: Final = arrow_schema(_RESULT)
_IN: Final = (_NETWORK, *CAPTURED.names)
_MOST_TEXTS: Final = 20


@dataclass(frozen=True)
class NetworkOrder:
    """The replay to do. source: a capture, or a directory of them. form: its format."""

    source: Path
    form: str
    target: Path
    setup: NetworkSetup
    monotonic_clock: bool = False


def run_network(spark: SparkSession, order: NetworkOrder) -> Done:
    """Replay, and put the puts in place: a directory of files in the order of seq.

    Raises CaptureError for a path that is missing; QPubSubError for a setup that fails, and for a message of a queue
    manager that the network does not have.
    """
    source, target = order.source.absolute(), order.target.absolute()
    numbers = {qmgr: n for n, names in enumerate(order.setup.build().topology.networks()) for qmgr in names}
    work = target.with_name(f"{target.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        capture = staged(spark, source, order.form, work)
        made = work / "made"
        _results(capture.messages, order, numbers).write.parquet(str(made))
        results = spark.read.schema(_RESULT).parquet(str(made))
        found = results.where("report is not null").select(_REPORT).collect()
        reports = [WrittenFiles(**json.loads(row[_REPORT])) for row in found]
        puts = results.where("report is null").drop(_REPORT).orderBy("seq", "at_qmgr", "n")
        puts.write.format(FORMAT).option("format", target.suffix.removeprefix(".")).mode("overwrite").save(str(target))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return _done(reports, capture.problems, capture.problem_texts)


def _results(messages: DataFrame, order: NetworkOrder, numbers: Mapping[str, int]) -> DataFrame:
    """The puts of each network, and a report."""
    named = messages.withColumn("qmgr", F.when(F.col("qmgr") == "", None).otherwise(F.col("qmgr")))
    named = named.fillna({"qmgr": DEFAULT_QMGR})
    unknown = named.where(~F.col("qmgr").isin(list(numbers))).select("qmgr", "seq").orderBy("seq").first()
    if unknown is not None:
        raise QPubSubError(f"message {unknown[1]} was put at queue manager {unknown[0]}, which is not in the network")
    number = F.element_at(F.create_map([F.lit(each) for pair in numbers.items() for each in pair]), F.col("qmgr"))
    count = len(set(numbers.values()))
    by_network = named.withColumn(_NETWORK, number.cast("int")).repartitionById(count, _NETWORK)
    in_order = by_network.sortWithinPartitions(_NETWORK, "seq", "qmgr").select(*_IN)

    def replayed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in columns(batch, *_IN))
        for at, of_network in groupby(rows, key=lambda row: row[0]):
            yield from _replayed(at, of_network, order)

    return in_order.mapInArrow(replayed, _RESULT)


def _replayed(number: int, rows: Iterable[tuple[Any, ...]], order: NetworkOrder) -> Iterator[pa.RecordBatch]:
    """The puts of one network in batches; the report last."""
    replay, held, report = NetworkReplay(order.setup), PutColumns(), WrittenFiles(number)
    messages = (message_of(*row) for _, *row in rows)
    for message in in_order(messages, monotonic_clock=order.monotonic_clock):
        outcome = replay.put_all(message, held)
        if outcome.undecodable:
            report.undecodable += 1
            if len(report.problem_texts) < _MOST_TEXTS:
                report.problem_texts.append(f"message {message.seq} on {message.queue}: {outcome.why}")
        if held.is_full:
            yield from map(_with_report, held.take())
    yield from map(_with_report, held.take())
    counts = replay.counts
    report.messages, report.errors, report.passed_over = counts.messages, counts.errors, counts.passed_over
    report.kinds = {kind.value: count for kind, count in counts.puts.items()}
    row = dict.fromkeys(_ARROW_RESULT.names) | {_REPORT: json.dumps(asdict(report))}
    yield pa.RecordBatch.from_pylist([row], schema=_ARROW_RESULT)


def _with_report(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, pa.string())], schema=_ARROW_RESULT)


def _done(reports: Iterable[WrittenFiles], problems: int, texts: tuple[str, ...]) -> Done:
    passed_over: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    messages = errors = undecodable = 0
    for each in sorted(reports, key=lambda report: report.number):
        messages, errors, undecodable = messages + each.messages, errors + each.errors, undecodable + each.undecodable
        passed_over.update(each.passed_over)
        kinds.update(each.kinds)
        texts = (*texts, *each.problem_texts)
    puts = {kind: kinds[kind.value] for kind in PutKind}
    return Done(ReplayCounts(messages, puts, errors, dict(passed_over)), problems, undecodable, texts)
