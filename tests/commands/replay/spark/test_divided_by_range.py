"""Divided is whole: whatever the ranges and the tasks, what each is given leads to the puts of the local replay.

Spark is left out: what it does between the tasks, which is to sort and to deal out, is done here by hand. So many
captures can be tried.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("pyspark")

from commands.broker.context import Semantics, has_stream
from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Arrival
from commands.broker.times import EPOCH
from commands.replay.spark.control import (
    BEFORE_ALL,
    DELETED,
    SUBSCRIBED,
)
from commands.replay.spark.prepare import FirstPassRole
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import PUTS, arrow_schema, columns
from commands.replay.spark.second_pass import RangeTask
from commands.replay.spark.twopass import KEPT, LAST, TURNS, PutKeeper, kept_of, last_in_range
from rfh2.captured import CapturedMessage
from streams.operations import RetainedCleared, RetainedStored
from streams.topic_objects import QUEUE_NAMELIST
from tests.commands.replay.spark.divided import (
    NOW,
    QMGR,
    ROWS,
    SEQ,
    Row,
    by_role,
    microseconds,
    notes_in_tasks,
    plane_of,
    prepared_rows,
    run,
    ticks_in,
)
from tests.commands.replay.spark.test_twopass import difference
from tests.commands.replay.spark.worlds import EXPIRING, SETUP, captures, captures_of_several_groups, local_puts
from tests.examples import FEW


def _in_tasks(
    rows: list[Row], setting: ReplaySetup, starts: tuple[int, ...], tasks: int, control_in: int
) -> tuple[list[Row], list[Row]]:
    """Notes, and what is retained."""
    roles = by_role(rows, setting)
    plane = plane_of(rows, setting, starts)
    ticks = ticks_in(rows, plane)
    notes = notes_in_tasks(roles[FirstPassRole.CONTROL], plane, control_in, ticks)
    turns: list[Row] = []
    for start, end in pairwise(starts):
        retaining = [row for row in roles[FirstPassRole.RETAINING] if start <= row[SEQ] < end]
        found = run(last_in_range(setting), retaining, ROWS, LAST.names)
        turns += [(hash(row[:2]) % tasks, *row, None, None) for row in found]
    for qmgr, kind, _, _, _, topic, seq, now, operation in notes:
        if kind == DELETED:
            for task in range(tasks) if topic is None else (hash((qmgr, topic)) % tasks,):
                turns.append((task, qmgr, topic, seq, None, now, operation))
    for qmgr, seq, now, for_retained in ticks:
        if for_retained:
            turns += [(task, qmgr, None, seq, None, now, None) for task in range(tasks)]
    kept: list[Row] = []
    for task in range(tasks):
        theirs = sorted(
            (turn[1:] for turn in turns if turn[0] == task), key=lambda turn: (turn[0], turn[2], bool(turn[3]))
        )
        kept += run(kept_of(plane), theirs, arrow_schema(TURNS), KEPT.names)
    return notes, kept


def divided(
    capture: list[CapturedMessage], setting: ReplaySetup, cuts: list[int], tasks: int, control_in: int
) -> list[Row]:
    """The puts, from ranges that begin at *cuts*; topics dealt out to *tasks*, control messages to *control_in*."""
    rows = prepared_rows(capture, clocks_go_back=True)
    starts = (rows[0][SEQ], *cuts, rows[-1][SEQ] + 1)

    def within(some: list[Row], start: int, end: int) -> list[Row]:
        return [row for row in some if start <= row[SEQ] < end]

    notes, kept = _in_tasks(rows, setting, starts, tasks, control_in)
    by_place = {(row[QMGR], row[SEQ]): row for row in rows}
    controlled = frozenset(note[0] for note in notes)
    puts: list[Row] = []
    for number, (start, end) in enumerate(pairwise(starts)):
        keeper = PutKeeper()
        task_of_range = RangeTask([(setting, controlled)], keeper)
        for qmgr, kind, first, last, text, *_ in notes:
            if kind == SUBSCRIBED and first <= number <= last:
                task_of_range.learn(0, qmgr, Arrival(BEFORE_ALL, EPOCH, "", None, text.encode()), None)
        for qmgr, topic, seq, first, last in kept:
            if first <= number <= last:
                task_of_range.process(*(*by_place[qmgr, seq], topic, 0))
        for row in sorted(within(rows, start, end)):
            task_of_range.process(*row)
        puts += [row for batch in keeper.end() for row in columns(batch, *PUTS.names)]
    return puts


@given(capture=captures(1, 3).filter(bool), semantics=st.sampled_from(["v6", "v7"]))
def test_the_first_pass_has_what_changes_retained_publications(capture: list[CapturedMessage], semantics: str) -> None:
    setting = ReplaySetup(SETUP, semantics)
    rows = prepared_rows(capture)
    roles = by_role(rows, setting)
    seen = {(row[QMGR], row[SEQ]) for role in (FirstPassRole.CONTROL, FirstPassRole.RETAINING) for row in roles[role]}
    brokers = {qmgr: setting.broker(qmgr) for qmgr in {row[QMGR] for row in rows}}
    for seq, now, qmgr, queue, user, md, body in rows:
        brokers[qmgr].expire(now)  # what time does is not a message's doing
        effects = brokers[qmgr].process(Arrival(seq, now, queue, md, body, user)).effects
        if any(isinstance(effect, RetainedStored | RetainedCleared) for effect in effects):
            assert (qmgr, seq) in seen


# (setup, whether X is a stream of version 6, whether of version 7)
STREAMS = [
    ("", False, False),
    ("DEFINE QLOCAL(X)", True, False),
    ("DEFINE QLOCAL(X) USAGE(XMITQ)", False, False),
    ("DEFINE QLOCAL(X)\nALTER QMGR DEADQ(X)", False, False),
    (f"ALTER NAMELIST({QUEUE_NAMELIST}) NAMES(X, {CONTROL_QUEUE})", True, True),
]


@pytest.mark.parametrize(("setup", "old", "new"), STREAMS)
def test_6_1_publications_are_taken_from_the_queues_of_the_brokers_rule(setup: str, old: bool, new: bool) -> None:
    for semantics, is_stream in ((Semantics.V6, old), (Semantics.V7, new)):
        setting = ReplaySetup(setup, semantics.value)
        objects = setting.broker("QM1").objects
        asked = {DEFAULT_STREAM, ADMIN_STREAM, "X", "UNKNOWN", *objects.queues} - {CONTROL_QUEUE}
        assert set(setting.stream_queues) & asked == {q for q in asked if has_stream(q, objects, semantics)}
        assert ("X" in setting.stream_queues, "X" in setting.listed_queues) == (is_stream, new)


@FEW
@given(
    data=st.data(),
    tasks=st.integers(1, 3),
    semantics=st.sampled_from(["v6", "v7"]),
    control_in=st.integers(1, 4),
    clocks_go_back=st.booleans(),
    setup=st.sampled_from([SETUP, EXPIRING]),
)
def test_divided_is_whole(
    data: st.DataObject, tasks: int, semantics: str, control_in: int, clocks_go_back: bool, setup: str
) -> None:
    capture = data.draw(st.one_of(captures(1, 3), captures_of_several_groups()).filter(bool))
    least, most = capture[0].seq, capture[-1].seq
    cuts = st.lists(st.integers(least + 1, most), unique=True, max_size=6) if most > least else st.just([])
    rows = prepared_rows(capture, clocks_go_back=clocks_go_back)
    timed = [message.model_copy(update={"time": row[NOW]}) for message, row in zip(capture, rows, strict=True)]
    setting = ReplaySetup(setup, semantics).beginning({row[QMGR]: microseconds(row) for row in reversed(rows)})
    got = divided(timed, setting, sorted(data.draw(cuts)), tasks, control_in)
    assert not difference(got, local_puts(timed, setup, semantics))
