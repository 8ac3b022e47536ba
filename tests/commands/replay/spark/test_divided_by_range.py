"""Divided is whole: whatever the ranges and the tasks, what each is given leads to the puts of the local replay.

Spark is left out: what it does between the tasks, which is to sort and to deal out, is done here by hand. So many
captures can be tried.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("pyspark")

from commands.broker.context import Semantics, has_stream
from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Arrival
from commands.replay.spark.control import INTERVAL, LOOKUP, NOTES, WINNER, ControlPlaneSetup, notes_of
from commands.replay.spark.prepare import FirstPassRole
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.retained import CANDIDATES, TURNS, LookupTable, PatternLookups, candidates_of, winners_of
from commands.replay.spark.schemas import PUTS, arrow_schema, columns
from commands.replay.spark.second_pass import RangeTask
from commands.replay.spark.twopass import PutKeeper
from rfh2.captured import CapturedMessage
from streams.operations import RetainedCleared, RetainedStored
from streams.subscriptions import WildcardScheme
from streams.topic_objects import QUEUE_NAMELIST
from tests.commands.replay.spark.divided import (
    NOW,
    QMGR,
    ROWS,
    SEQ,
    Row,
    by_role,
    notes_in_tasks,
    plane_of,
    prepared_rows,
    run,
)
from tests.commands.replay.spark.test_twopass import difference
from tests.commands.replay.spark.worlds import SETUP, captures, captures_of_several_groups, local_puts


def _table(lookups: list[Row], least: int, shift: int) -> LookupTable:
    by_pattern: dict[tuple[str, str, str], set[int]] = {}
    for qmgr, _, after, _, _, _, text, scheme, *_ in lookups:
        by_pattern.setdefault((qmgr, text, scheme), set()).add((after - least) >> shift)
    found: dict[str, list[PatternLookups]] = {}
    for (qmgr, text, scheme), places in by_pattern.items():
        place = np.array(sorted(places), np.uint32)
        found.setdefault(qmgr, []).append(PatternLookups(text, WildcardScheme(scheme), place))
    return LookupTable(least, shift, found)


def _winners_in_one_piece(
    roles: dict[FirstPassRole, list[Row]], setting: ReplaySetup, starts: tuple[int, ...]
) -> set[Row]:
    """What lookups find where the control plane has what is retained, too: the longer way, for clocks that go back."""
    theirs = [*roles[FirstPassRole.CONTROL], *roles[FirstPassRole.RETAINING]]
    exact = frozenset(row[QMGR] for row in theirs)
    in_order = sorted(theirs, key=lambda row: (row[QMGR], row[SEQ]))
    notes = run(notes_of(ControlPlaneSetup(setting, starts, exact)), in_order, ROWS, NOTES.names)
    return {(note[0], note[2], note[8], note[3]) for note in notes if note[1] == WINNER}


def divided(
    capture: list[CapturedMessage], setting: ReplaySetup, cuts: list[int], tasks: int, shift: int, control_in: int
) -> list[Row]:
    """The puts, from ranges that begin at *cuts*; topics dealt out to *tasks*, control messages to *control_in*."""
    rows = prepared_rows(capture)
    starts = (rows[0][SEQ], *cuts, rows[-1][SEQ] + 1)
    roles = by_role(rows, setting)
    notes = notes_in_tasks(roles[FirstPassRole.CONTROL], plane_of(rows, setting, starts), control_in)
    lookups = [note for note in notes if note[1] == LOOKUP]
    table = _table([note for note in lookups if note[-1] is None], starts[0], shift)

    def within(some: list[Row], start: int, end: int) -> list[Row]:
        return [row for row in some if start <= row[SEQ] < end]

    turns: list[Row] = []
    for start, end in pairwise(starts):
        retaining = within(roles[FirstPassRole.RETAINING], start, end)
        found = run(candidates_of(setting, table), retaining, ROWS, CANDIDATES.names)
        turns += [(hash(row[:2]) % tasks, *row, 0, None, None, None) for row in found]
    for qmgr, _, after, until, _, _, text, scheme, topic, now, operation in lookups:
        for task in range(tasks) if topic is None else (hash((qmgr, topic)) % tasks,):
            turns.append((task, qmgr, text, after, None, until, scheme, now, operation))
    winners: list[Row] = []
    for task in range(tasks):
        theirs = sorted(
            (turn[1:] for turn in turns if turn[0] == task), key=lambda turn: (turn[0], turn[2], turn[4] or 0)
        )
        winners += run(winners_of(setting, False), theirs, arrow_schema(TURNS), ("qmgr", "at", "topic", "seq"))
    assert set(winners) == _winners_in_one_piece(roles, setting, starts)
    by_place = {(row[QMGR], row[SEQ]): row for row in rows}
    finds: dict[tuple[str, int], list[tuple[Row, str]]] = {}
    for qmgr, at, topic, seq in sorted(winners):
        finds.setdefault((qmgr, at), []).append((by_place[qmgr, seq], topic))
    controlled = frozenset(note[0] for note in notes)
    puts: list[Row] = []
    for number, (start, end) in enumerate(pairwise(starts)):
        keeper = PutKeeper()
        task_of_range = RangeTask([(setting, controlled)], keeper)
        for qmgr, kind, after, until, first, last, text, *_ in notes:
            if kind == INTERVAL and first <= number <= last:
                task_of_range.learn(0, qmgr, after, until, text)
        for row in sorted(within(rows, start, end)):
            for found_row, topic in finds.get((row[QMGR], row[SEQ]), ()):
                task_of_range.process(*(*found_row, topic, 0))
            task_of_range.process(*(*row, None, None))
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


@given(
    data=st.data(),
    tasks=st.integers(1, 3),
    shift=st.sampled_from([0, 0, 2]),
    semantics=st.sampled_from(["v6", "v7"]),
    control_in=st.integers(1, 4),
)
def test_divided_is_whole(data: st.DataObject, tasks: int, shift: int, semantics: str, control_in: int) -> None:
    capture = data.draw(st.one_of(captures(1, 3), captures_of_several_groups()).filter(bool))
    least, most = capture[0].seq, capture[-1].seq
    cuts = st.lists(st.integers(least + 1, most), unique=True, max_size=6) if most > least else st.just([])
    rows = prepared_rows(capture)
    timed = [message.model_copy(update={"time": row[NOW]}) for message, row in zip(capture, rows, strict=True)]
    got = divided(timed, ReplaySetup(SETUP, semantics), sorted(data.draw(cuts)), tasks, shift, control_in)
    assert not difference(got, local_puts(timed, SETUP, semantics))
