"""File to file: the same bytes as the local replay, slice by slice, and again after an interruption."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from commands.explain.selection import MessageSelection, SeqRanges
from commands.replay import LocalReplay
from commands.replay.arrivals import in_order
from commands.replay.spark import engine
from commands.replay.spark.engine import Done, Order, run
from commands.replay.spark.put_files import write_puts
from commands.replay.spark.second_pass import RepeatedSeqError
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captures import write_captures
from rfh2.errors import CaptureError, QPubSubError
from tests.commands.replay.spark.test_twopass import difference
from tests.commands.replay.spark.worlds import local_puts

KNOBS = WorkloadOptions(messages=120, control=0.15, errors=0.08, strays=0.03, topics=40, subscribers=40)
SETUP = setup_script(KNOBS)


def _capture(directory: Path, form: str = "jsonl", files: int = 3, order: int = 1) -> Path:
    """The workload in several files, of which the first has the first messages, or with order -1 the last."""
    directory.mkdir()
    for number in range(files)[::order]:
        start, end = (KNOBS.messages * at // files for at in (number, number + 1))
        with (directory / f"{number if order == 1 else files - number}.{form}").open("wb") as file:
            write_captures(Workload(KNOBS).messages(start, end), file, form)
    return directory


def _replay(spark: SparkSession, order: Order) -> tuple[Done, list[int], list[str]]:
    advanced: list[int] = []
    said: list[str] = []
    return run(spark, order, advanced.append, said.append), advanced, said


def _local_lines() -> bytes:
    puts = LocalReplay(SETUP).puts(Workload(KNOBS).messages())
    return b"".join(put.model_dump_json().encode() + b"\n" for put in puts)


def _lines(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


def test_an_interrupted_replay_goes_on_to_the_lines_and_counts_of_the_local_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of lines in files that are not in order, which are written out, and of which one is none."""
    source, target = _capture(tmp_path / "in", order=-1), tmp_path / "puts.jsonl"
    with (source / "2.jsonl").open("ab") as file:
        file.write(b"this is not a message\n")
    order = Order(source, "auto", target, SETUP, ranges=4)
    monkeypatch.setattr(engine, "_RANGES_PER_CORE", 1)
    real, calls = write_puts, []

    def failing(ready, lane, found, numbers, *where):  # type: ignore[no-untyped-def]
        calls.append(numbers)
        if len(calls) == 2:
            # What was finished before the end came is done, though nobody was told.
            real(ready, lane, found, numbers[:1], *where)
            raise KeyboardInterrupt
        return real(ready, lane, found, numbers, *where)

    monkeypatch.setattr(engine, "write_puts", failing)
    with pytest.raises(KeyboardInterrupt):
        _replay(spark, order)
    assert not target.exists()
    done, advanced, said = _replay(spark, order)
    assert len(said) == 1
    assert f"continuing the replay in {target}.partial: " in said[0]
    assert calls[2] == calls[1][1:] != []
    assert _lines(target) == _local_lines()
    assert done.problems == 1
    assert "2.jsonl, line 41: invalid JSON" in done.problem_texts[0]
    assert sum(advanced) == done.counts.messages == KNOBS.messages
    assert len(advanced) > 1
    assert not list(tmp_path.glob("*.partial"))
    local = LocalReplay(SETUP)
    outcomes = [local.replay(message)[0] for message in Workload(KNOBS).messages()]
    assert done.counts == local.counts
    assert done.undecodable == sum(outcome.undecodable for outcome in outcomes) > 0
    assert set(done.problem_texts[1:]) <= {
        f"message {message.seq} on {message.queue}: {outcome.why}"
        for message, outcome in zip(Workload(KNOBS).messages(), outcomes, strict=True)
    }


@pytest.mark.nightly
def test_an_end_while_clearing_up_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Order(_capture(tmp_path / "in"), "auto", tmp_path / "puts.jsonl", SETUP, ranges=3)

    def ended(_path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", ended)
    with pytest.raises(KeyboardInterrupt):
        _replay(spark, order)
    monkeypatch.undo()
    assert _lines(order.target) == _local_lines()
    _replay(spark, order)
    assert _lines(order.target) == _local_lines()
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(
    "changed",
    [
        *({"form": "jsonl"}, {"setup": SETUP}, {"semantics": "v6"}, {"ranges": 3}, {"monotonic_clock": True}),
        *({"target": Path("puts.parquet")}, {"selection": MessageSelection(seqs=SeqRanges.parse("2-"))}),
        {"source": Path("other.jsonl")},
    ],
    ids=str,
)
def test_another_replay_begins_anew(tmp_path: Path, changed: dict[str, Any]) -> None:
    """Nothing of the earlier one is left; the same one finds all of it."""
    source = _capture(tmp_path / "in", files=1) / "0.jsonl"
    (tmp_path / "other.jsonl").write_bytes(source.read_bytes() + b"\n")
    order, work = Order(source, "auto", tmp_path / "puts.jsonl"), tmp_path / "puts.jsonl.partial"
    work.mkdir()
    engine._write(work / "order.json", engine._mark(order))
    engine._earlier(work, engine._mark(order))
    assert work.exists()
    if "source" in changed:
        changed = {"source": tmp_path / changed["source"]}
    engine._earlier(work, engine._mark(replace(order, **changed)))
    assert not work.exists()


def test_a_seq_that_occurs_twice_is_told_in_words(spark: SparkSession, tmp_path: Path) -> None:
    source = _capture(tmp_path / "in")
    line = json.loads((source / "1.jsonl").read_text().splitlines()[0])
    (source / "3.jsonl").write_text(json.dumps(line | {"user": "somebody"}) + "\n")
    with pytest.raises(RepeatedSeqError, match=r"^seq 41 is that of two different messages at queue manager QM1: give"):
        _replay(spark, Order(source, "auto", tmp_path / "puts.jsonl", SETUP))


@pytest.mark.parametrize("monotonic", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_clock_that_goes_back_is_reported_or_passed_over(
    spark: SparkSession, tmp_path: Path, monotonic: bool
) -> None:
    """From Parquet, which is read as it is, to Parquet, which takes the place of what stood there."""
    knobs = WorkloadOptions(messages=60, subscribers=20, streams=1, control=0.4, expiring=0.5, per_second=20)
    capture = list(Workload(knobs).messages())
    for at in (20, 40):
        time = capture[at].time
        assert time is not None
        capture[at] = capture[at].model_copy(update={"time": time - timedelta(minutes=1)})
    source, target = tmp_path / "in", tmp_path / "puts.parquet"
    source.mkdir()
    for number in range(3):
        with (source / f"{number}.parquet").open("wb") as file:
            write_captures(capture[20 * number : 20 * (number + 1)], file, "parquet")
    target.write_text("an older replay")
    order = Order(source, "auto", target, setup_script(knobs), ranges=2, monotonic_clock=monotonic)
    _, _, said = _replay(spark, order)
    messages = list(in_order(capture, monotonic_clock=monotonic))
    rows = [tuple(row.values()) for path in sorted(target.iterdir()) for row in parquet.read_table(path).to_pylist()]
    assert not difference(rows, local_puts(messages, setup_script(knobs)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "puts.parquet"]
    told = ["the clock of QM1 goes back 2 times, and something expires there" in line for line in said]
    assert told == ([] if monotonic else [True])


def test_orders_are_checked_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        Order(tmp_path / "nowhere", "auto", tmp_path / "puts.jsonl").check()
    with pytest.raises(QPubSubError, match="line 1"):
        Order(tmp_path, "auto", tmp_path / "puts.jsonl", "DEFINE NONSENSE(X)").check()


@pytest.mark.nightly
def test_the_verb(tmp_path: Path) -> None:
    _capture(tmp_path / "in")
    (tmp_path / "streams.mqsc").write_text(SETUP)
    arguments = ["replay", "--engine", "spark", "--master", "local[1]", "--input", "in", "--output", "puts.jsonl"]
    result = subprocess.run(
        [sys.executable, "-m", "commands.cli", *arguments, "--setup", "streams.mqsc"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "360 messages" in result.stderr
    assert _lines(tmp_path / "puts.jsonl") == _local_lines()
