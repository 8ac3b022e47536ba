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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from commands.disk.files import directory_to_disk, put_in_place, to_disk
from commands.explain.selection import EVERYTHING, MessageSelection
from commands.replay.arrivals import RepeatedSeqError
from commands.replay.local import ReplayCounts
from commands.replay.spark.capture_scan import surveyed
from commands.replay.spark.in_order import StagedCapture, staged
from commands.replay.spark.pieces import files_of
from commands.replay.spark.prepare import cores_of
from commands.replay.spark.put_files import WrittenFiles, earlier_written, keep_found, kinds_of, write_puts
from commands.replay.spark.replay_setup import ReplaySetup, check
from commands.replay.spark.twopass import first_pass
from commands.terminal.counted import counted

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
