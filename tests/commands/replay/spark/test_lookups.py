"""Who looks at what is retained: the small table leaves nobody out, and a range is given its own intervals alone."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)

from commands.replay.spark.control import INTERVAL, LOOKUP, control_plane
from commands.replay.spark.journal import FOREVER
from commands.replay.spark.prepare import Prepared, prepared
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.retained import LooksByTopic, LookupTable, PatternLookups, lookup_table
from commands.replay.spark.second_pass import Lane, intervals_of
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme
from tests.commands.replay.spark.test_twopass import frame
from tests.commands.replay.spark.worlds import PATTERNS, TOPICS

KNOBS = WorkloadOptions(messages=1200, control=0.3, qmgrs=2, topics=60, subscribers=50, retained=0.6, expiring=0.2)


@given(
    looks=st.lists(st.tuples(st.sampled_from(PATTERNS), st.integers(0, 400)), max_size=30),
    shift=st.sampled_from([0, 0, 3]),
    topic=st.sampled_from(TOPICS),
    between=st.tuples(st.integers(0, 200), st.one_of(st.none(), st.integers(1, 200))),
)
def test_nobody_who_looks_is_left_out(
    looks: list[tuple[str, int]], shift: int, topic: str, between: tuple[int, int | None]
) -> None:
    least = 7
    by_pattern: dict[str, list[int]] = {}
    for pattern, seq in looks:
        by_pattern.setdefault(pattern, []).append(2 * seq >> shift)
    found = [
        PatternLookups(pattern, WildcardScheme.TOPIC, np.array(sorted(set(places)), np.uint32))
        for pattern, places in by_pattern.items()
    ]
    table = LookupTable(least, shift, {"QM1": found})
    # Publications have odd numbers, those who look even ones: none is both.
    after = 2 * between[0] + 1
    before = None if between[1] is None else after + 2 * between[1]
    looked = any(
        after < 2 * seq and (before is None or 2 * seq < before)
        for pattern, seq in looks
        if parse_pattern(pattern, WildcardScheme.TOPIC).matches(topic)
    )
    maybe = LooksByTopic(table, "QM1").any_between(topic, least + after, None if before is None else least + before)
    if shift == 0:
        assert maybe == looked
    else:
        assert maybe or not looked


@pytest.fixture(scope="module")
def ready(spark: SparkSession) -> Prepared:
    return prepared(frame(spark, list(Workload(KNOBS).messages())), ReplaySetup(setup_script(KNOBS)), 7)


@pytest.fixture(scope="module")
def notes(ready: Prepared) -> DataFrame:
    return control_plane(ready).cache()


def test_a_range_is_given_the_intervals_that_its_messages_may_be_in(ready: Prepared, notes: DataFrame) -> None:
    (given_rows,) = intervals_of([Lane(ready.setting, notes, frozenset(), None)], F.sequence("first", "last"))
    given_to: dict[int, set[tuple[Any, ...]]] = {number: set() for number in range(ready.ranges)}
    for row in given_rows.collect():
        given_to[row["range"]].add((row["qmgr"], row["seq"], row["until"], bytes(row["body"]).decode()))
    whole = {(row.qmgr, row.after, row.until, row.text) for row in notes.where(F.col("kind") == INTERVAL).collect()}
    assert len(whole) > 200
    assert any(until == FOREVER for _, _, until, _ in whole)
    for number, got in given_to.items():
        start, end = ready.starts[number : number + 2]
        # Those of the last message have no message behind it; the last range has them for want of another one.
        assert {each for each in whole if each[1] + 1 < end and each[2] >= start} == {
            each for each in got if each[1] + 1 < end
        }
        assert len(got) < len(whole) / 2


def test_the_table_has_every_lookup(ready: Prepared, notes: DataFrame) -> None:
    rows = notes.where(F.col("kind") == LOOKUP).collect()
    for clears in (False, True):
        table = lookup_table(notes, ready.starts, clears=clears)
        wanted = {(row.qmgr, row.text, row.scheme, row.after) for row in rows if clears or row.operation is None}
        assert wanted == {
            (qmgr, each.pattern, each.scheme.value, table.least + int(place))
            for qmgr, found in table.lookups.items()
            for each in found
            for place in each.places
        }
        assert len(wanted) > 100
    assert sum(row.operation is not None for row in rows) > 5


def test_a_lookup_without_a_wildcard_names_its_only_topic(notes: DataFrame) -> None:
    rows = notes.where(F.col("kind") == LOOKUP).select("text", "scheme", "topic").collect()
    assert {row.topic is None for row in rows} == {True, False}
    for row in rows:
        pattern = parse_pattern(row.text, WildcardScheme(row.scheme))
        assert row.topic == (None if pattern.is_wild else pattern.literal)


def test_numbers_that_need_more_than_four_bytes(spark: SparkSession) -> None:
    """Numbers that are time stamps: the places are coarser, and in order."""
    capture = [
        message.model_copy(update={"seq": 1_700_000_000_000_000_000 + 1_000_000_007 * message.seq})
        for message in Workload(KNOBS).messages()
    ]
    ready = prepared(frame(spark, capture), ReplaySetup(setup_script(KNOBS)), 3)
    notes = control_plane(ready)
    table = lookup_table(notes, ready.starts, clears=True)
    assert table.shift > 0
    assert table.place(ready.starts[-1]) < 2**32
    for row in notes.where(F.col("kind") == LOOKUP).collect():
        (found,) = [
            each for each in table.lookups[row.qmgr] if (each.pattern, each.scheme.value) == (row.text, row.scheme)
        ]
        at = bisect_right(found.places.tolist(), table.place(row.after)) - 1
        assert found.places[at] == table.place(row.after)
