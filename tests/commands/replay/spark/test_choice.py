"""``--where`` and the other options of selection on Spark: the results are those of the local engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql import SparkSession

from commands.explain.selection import Choosing, MessageSelection, SeqRanges, compile_where
from commands.replay import LocalReplay
from commands.replay.analysis import LocalAnalysis
from commands.replay.differences.deliveries import LocalDifferences
from commands.replay.spark import replayed
from commands.replay.spark.analysing import analysed
from commands.replay.spark.differing import differing
from commands.replay.spark.engine import Order, run as replay_files
from commands.replay.spark.prepare import selected, up_to
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from tests.commands.replay.spark.test_analysing import difference as table_difference
from tests.commands.replay.spark.test_differing import _row, run as run_differing
from tests.commands.replay.spark.test_twopass import QUICK, difference, frame, puts_of
from tests.commands.replay.spark.worlds import SETUP, START, captures, local_puts

# Each needs something else of a message: nothing but its columns, its descriptor, its header, its properties.
CONDITIONS = (
    "command = 'Publish'",
    "topic LIKE 'a%' AND user = 'ann'",
    "qmgr IS NULL OR queue = 'NEWS'",
    "time >= '2026-01-01T00:00:02'",
    "usr.n > 3",
)
TIMES = st.integers(0, 12).map(lambda s: START + timedelta(seconds=s))
SELECTIONS = st.builds(
    MessageSelection,
    where=st.none() | st.sampled_from(CONDITIONS).map(compile_where),
    since=st.none() | TIMES,
    seqs=st.none() | st.sampled_from(["7-20", "10-", "-30,1007-9007"]).map(SeqRanges.parse),
    limit=st.none() | st.integers(1, 12),
)
KNOBS = WorkloadOptions(messages=250, control=0.15, several=0.05, topics=30, subscribers=30, qmgrs=2, retained=0.3)
WORKLOAD = list(Workload(KNOBS).messages())
WORKLOAD_SETUP = setup_script(KNOBS) + "DEFINE SUB(EVERYTHING) TOPICSTR('#') DEST(AUDIT)\n"
CHOSEN = [
    pytest.param(MessageSelection(where=compile_where("command = 'Publish' AND size > 250")), id="where"),
    pytest.param(MessageSelection(seqs=SeqRanges.parse("60-"), limit=70), id="limit"),
]


def replayed_to(
    capture: Sequence[CapturedMessage], selection: MessageSelection
) -> Iterator[tuple[CapturedMessage, bool]]:
    """The messages that a verb replays here, and whether their results are wanted."""
    choosing = Choosing(selection)
    for message in capture:
        yield message, choosing.chooses(message)
        if choosing.is_over:
            return


def local(capture: Sequence[CapturedMessage], selection: MessageSelection, *how: str) -> list[tuple[Any, ...]]:
    chosen = {message.seq for message, is_chosen in replayed_to(capture, selection) if is_chosen}
    return [put for put in local_puts(capture, *how) if put[0] in chosen]


def test_puts_are_those_of_the_local_replay(spark: SparkSession) -> None:
    @settings(QUICK, max_examples=3)
    @given(captures(most=3), SELECTIONS, st.integers(1, 3), st.sampled_from(["v7", "v6"]))
    def check(capture: list[CapturedMessage], selection: MessageSelection, ranges: int, semantics: str) -> None:
        captured = frame(spark, capture[::-1])
        try:
            got = puts_of(replayed(captured, SETUP, semantics, ranges=ranges, selection=selection))
            assert not difference(got, local(capture, selection, SETUP, semantics))
        finally:
            captured.unpersist()

    check()


@pytest.mark.parametrize("selection", CHOSEN)
@pytest.mark.nightly
def test_puts_in_files_and_their_counts(spark: SparkSession, tmp_path: Path, selection: MessageSelection) -> None:
    source, target = tmp_path / "capture.jsonl", tmp_path / "puts.jsonl"
    source.write_text("".join(message.model_dump_json() + "\n" for message in WORKLOAD))
    order = Order(source, "auto", target, WORKLOAD_SETUP, ranges=3, selection=selection)
    done = replay_files(spark, order, lambda _: None, lambda _: None)
    here = LocalReplay(WORKLOAD_SETUP)
    wanted = []
    for message, is_chosen in replayed_to(WORKLOAD, selection):
        puts = here.replay(message, counted=is_chosen)[1]
        wanted += [put.model_dump_json() for put in puts if is_chosen]
    assert 0 < here.counts.messages < KNOBS.messages
    assert done.counts == here.counts
    assert [line for path in sorted(target.iterdir()) for line in path.read_text().splitlines()] == wanted


@pytest.mark.parametrize("selection", CHOSEN[1:])
def test_analysis(spark: SparkSession, selection: MessageSelection) -> None:
    here = LocalAnalysis(WORKLOAD_SETUP)
    for message, is_chosen in replayed_to(WORKLOAD, selection):
        here.take(message, counted=is_chosen)
    assert not table_difference(analysed(frame(spark, WORKLOAD), WORKLOAD_SETUP, ranges=3, selection=selection), here)


@pytest.mark.parametrize("selection", CHOSEN[:1])
def test_differences(spark: SparkSession, selection: MessageSelection) -> None:
    here = LocalDifferences(WORKLOAD_SETUP)
    wanted = [
        _row(each)
        for message, is_chosen in replayed_to(WORKLOAD, selection)
        for each in here.compare(message, counted=is_chosen)
    ]
    rows, report = run_differing(differing(frame(spark, WORKLOAD), WORKLOAD_SETUP, ranges=3, selection=selection))
    assert wanted
    assert not difference(rows, wanted)
    assert report == here.report()


def test_messages_themselves(spark: SparkSession) -> None:
    selection = MessageSelection(compile_where("command = 'RegSub'"), limit=5)
    seqs = [row["seq"] for row in selected(frame(spark, WORKLOAD), selection).orderBy("seq").collect()]
    assert seqs == [message.seq for message, is_chosen in replayed_to(WORKLOAD, selection) if is_chosen]


@pytest.mark.parametrize(("seq", "left"), [(2, "ab"), (5, "abcd"), (9, "abcde")])
def test_nothing_is_behind_the_limit(seq: int, left: str) -> None:
    batches = [
        pa.RecordBatch.from_pydict({"seq": [1, 2], "qmgr": ["A", "B"], "name": ["a", "b"]}),
        pa.RecordBatch.from_pydict({"seq": [5, 5, 5], "qmgr": ["A", "B", "C"], "name": ["c", "d", "e"]}),
    ]
    assert "".join(name for batch in up_to(batches, (seq, "B")) for name in batch.column("name").to_pylist()) == left
