"""The replay of a capture on Spark, file to file, in slices: what ``qpubsub replay --engine spark`` does.

The output is a directory. Until it is whole it stands beside its place, with ``.partial`` behind its name, and holds
what is done so far: the capture in order, and each finished slice. A replay that was interrupted goes on there, where
input, setup and version are the same; else it begins anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from commands.replay.local import DEFAULT_QMGR, Counts
from commands.replay.spark.landing import Landed, landed
from commands.replay.spark.pieces import files_of
from commands.replay.spark.put_files import Written, kinds_of, write_puts
from commands.replay.spark.second_pass_in_files import keep_found
from commands.replay.spark.setting import Setting
from commands.replay.spark.survey import surveyed
from commands.replay.spark.twopass import first_pass

_VERSION: Final = 2
_RANGES_PER_CORE: Final = 8
_MESSAGES_PER_RANGE: Final = 100_000


@dataclass(frozen=True)
class Order:
    """What is to be replayed. source: a capture, or a directory of them. form: its format. ranges: None, as needed."""

    source: Path
    form: str
    target: Path
    setup: str = ""
    semantics: str = "v7"
    ranges: int | None = None

    def check(self) -> None:
        """Raises CaptureError for a path that is missing, QPubSubError for a setup that fails: before Spark starts."""
        files_of([str(self.source)])
        Setting(self.setup, self.semantics).broker(DEFAULT_QMGR)


@dataclass(frozen=True)
class Done:
    """What a replay came to.

    problems: records that could not be read. undecodable: messages that could not be decoded. told: the first of
    either, in words.
    """

    counts: Counts
    problems: int
    undecodable: int
    told: tuple[str, ...]


def run(spark: SparkSession, order: Order, advance: Callable[[int], None], say: Callable[[str], None]) -> Done:
    """Replay, and put the puts in place.

    advance: told of each slice how many messages it had. say: told when an earlier replay is taken up. Raises what
    ``Order.check`` does.
    """
    form = order.target.suffix.removeprefix(".")
    work = order.target.with_name(f"{order.target.name}.partial")
    mark = _mark(order)
    done = _earlier(work, mark)
    if done:
        say(f"going on with the replay in {work}: {len(done)} slices are done")
    cores = spark.sparkContext.defaultParallelism
    capture = landed(spark, order.source, order.form, work)
    ranges = order.ranges or max(cores, -(-capture.files.count // _MESSAGES_PER_RANGE))
    ready = surveyed(spark, capture.files, Setting(order.setup, order.semantics), ranges, work / "survey")
    lane = first_pass(ready, order.semantics)
    found = keep_found(ready, [lane], work / "found")
    slices = _slices(ready.ranges, cores)
    (work / "order.json").write_text(json.dumps(mark))
    for number, span in enumerate(slices):
        if number not in done:
            directory = work / "puts" / f"{number:05}"
            shutil.rmtree(directory, ignore_errors=True)
            done[number] = write_puts(ready.shared, lane, found, span, directory, form)
            _finish(directory, done[number])
        advance(sum(written.messages for written in done[number]))
    _put_in_place(work, order.target, form, done)
    return _summed([written for number in sorted(done) for written in done[number]], capture)


def _mark(order: Order) -> dict[str, Any]:
    """What an earlier replay must have in common with this one to be gone on with."""
    files = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files_of([str(order.source)])]
    told = json.dumps([files, order.form, order.setup, order.semantics, order.ranges, order.target.suffix])
    return {"version": _VERSION, "digest": hashlib.sha256(told.encode()).hexdigest()}


def _earlier(work: Path, mark: dict[str, Any]) -> dict[int, list[Written]]:
    """The slices that an earlier replay has finished; where it was another one, nothing of it is left."""
    try:
        same = json.loads((work / "order.json").read_text()) == mark
    except (OSError, ValueError):
        same = False
    if not same:
        shutil.rmtree(work, ignore_errors=True)
        return {}
    reports = sorted((work / "puts").glob("*/report.json"))
    return {int(path.parent.name): [Written(**each) for each in json.loads(path.read_text())] for path in reports}


def _slices(ranges: int, cores: int) -> list[tuple[int, int]]:
    each = max(1, cores * _RANGES_PER_CORE)
    return [(start, min(start + each, ranges)) for start in range(0, ranges, each)]


def _finish(directory: Path, written: list[Written]) -> None:
    """Say that a slice is whole; the report is renamed into being, so that it is there or not."""
    partial = directory / ".report.json"
    partial.write_text(json.dumps([asdict(each) for each in written]))
    partial.replace(directory / "report.json")


def _put_in_place(work: Path, target: Path, form: str, done: dict[int, list[Written]]) -> None:
    """The finished slices, as files in the order of seq, take the place of whatever stood there."""
    whole = work / "whole"
    whole.mkdir(exist_ok=True)
    number = 0
    for at in sorted(done):
        for written in done[at]:
            path = work / "puts" / f"{at:05}" / written.name
            if path.exists():
                path.rename(whole / f"part-{number:05}.{form}")
            number += 1
    old = target.with_name(f"{target.name}.old")
    if target.exists():
        target.rename(old)
    whole.rename(target)
    shutil.rmtree(work)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)


def _summed(written: list[Written], capture: Landed) -> Done:
    passed_over: Counter[str] = Counter()
    for each in written:
        passed_over.update(each.passed_over)
    messages, errors = sum(each.messages for each in written), sum(each.errors for each in written)
    told = (*capture.told, *(line for each in written for line in each.told))
    counts = Counts(messages, kinds_of(written), errors, dict(passed_over))
    return Done(counts, capture.problems, sum(each.undecodable for each in written), told)
