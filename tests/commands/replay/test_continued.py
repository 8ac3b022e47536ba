"""A replay that is cut anywhere and goes on from rows puts what one in one go puts; no Spark in it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numpy")

from hypothesis import HealthCheck, given, settings, strategies as st

from commands.broker.outcome import Arrival
from commands.broker.times import EPOCH
from commands.mqsc.broker import Broker
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.streaming import Changes, DueMessages, RetainedRow, Waiting, begun, continued, turn
from rfh2.captured import CapturedMessage
from tests.commands.qmgr.test_store_retained import publish
from tests.commands.replay.spark.worlds import EXPIRING, captures, local_puts
from tests.examples import FEW


class Rows:
    """The rows of one queue manager, and the moment it is at."""

    def __init__(self, setting: ReplaySetup, qmgr: str) -> None:
        self.setting, self.qmgr = setting, qmgr
        self.subscriptions: dict[bytes, str] = {}
        self.retained: dict[str, RetainedRow] = {}
        self.now = EPOCH
        self.begun = False

    def process(self, batch: list[CapturedMessage]) -> list[tuple[Any, ...]]:
        """Make a broker of the rows, let it process a batch, and write its changes back."""
        puts, changes = [], Changes()
        broker = self._broker(batch[0], changes)
        for message in batch:
            self.now = message.time or self.now
            arrival = Arrival(message.seq, self.now, message.queue, message.md, message.body, message.user)
            outcome = broker.process(arrival)
            changes.take(message.seq, outcome.effects)
            for n, put in enumerate(outcome.puts):
                completion = None if put.completion is None else put.completion.value
                where = (put.qmgr, put.queue, put.topic, put.sub_name)
                md = put.message.mqmd.encode()
                puts.append((message.seq, n, self.qmgr, put.kind.value, *where, completion, put.reason, md, put.body))
        _apply(changes.subscriptions, self.subscriptions)
        _apply(changes.retained, self.retained)
        return puts

    def _broker(self, first: CapturedMessage, changes: Changes) -> Broker:
        if self.begun:
            return continued(self.setting, self.qmgr, self.subscriptions.values(), self.retained.items())
        self.begun = True
        broker = begun(self.setting, self.qmgr, first.time or self.now)
        changes.subscriptions.update(Changes.first(broker).subscriptions)
        return broker


def _apply(changes: dict[Any, Any], rows: dict[Any, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value


@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_cut_anywhere(semantics: str) -> None:
    @settings(FEW, suppress_health_check=list(HealthCheck))
    @given(capture=captures(most=2), sizes=st.lists(st.integers(1, 12), min_size=1, max_size=8))
    def check(capture: list[CapturedMessage], sizes: list[int]) -> None:
        setting = ReplaySetup(EXPIRING, semantics)
        known: dict[str, Rows] = {}
        got = []
        at = turns = 0
        while at < len(capture):
            size = sizes[turns % len(sizes)]
            by_qmgr: dict[str, list[CapturedMessage]] = {}
            for message in capture[at : at + size]:
                by_qmgr.setdefault(message.qmgr or DEFAULT_QMGR, []).append(message)
            for qmgr, batch in by_qmgr.items():
                got += known.setdefault(qmgr, Rows(setting, qmgr)).process(batch)
            at, turns = at + size, turns + 1
        assert sorted(got) == local_puts(capture, EXPIRING, semantics)

    check()


def _message(name: str) -> Waiting:
    return Waiting(None, name, None, None, b"")


TURNS = [
    # id, new, waiting, last, highest, hold; due, waits, released, late, highest
    ("nothing-held", [3, 1, 2], [], -1, -1, 0, [1, 2, 3], [], [], [], 3),
    ("late", [1, 4], [], 3, 3, 0, [4], [], [], [1], 4),
    ("all-late", [1, 2], [], 3, 3, 0, [], [], [], [1, 2], 3),
    ("held", [1, 2, 9], [], -1, -1, 5, [1, 2], [9], [], [], 9),
    ("let-go-by-another", [20], [9, 12], 2, 12, 10, [9], [20], [9], [], 20),
    ("between-those-that-wait", [10], [9, 12], 2, 12, 2, [9, 10], [], [9], [], 12),
    ("a-copy-in-a-batch", [5, 5], [], -1, -1, 0, [5], [], [], [], 5),
    ("one-like-it-waits", [9], [9], 2, 9, 3, [], [], [], [9], 9),
    ("the-last-one-again", [3], [], 3, 3, 0, [], [], [], [3], 3),
    ("seq-0", [0], [], -1, -1, 0, [0], [], [], [], 0),
    ("less-patience-than-before", [13], [9, 12], 2, 12, 0, [9, 12, 13], [], [9, 12], [], 13),
]


@pytest.mark.parametrize(
    ("new", "waiting", "last", "highest", "hold", "due", "waits", "released", "late", "reached"),
    [case[1:] for case in TURNS],
    ids=[case[0] for case in TURNS],
)
def test_which_are_next(
    new: list[int],
    waiting: list[int],
    last: int,
    highest: int,
    hold: int,
    due: list[int],
    waits: list[int],
    released: list[int],
    late: list[int],
    reached: int,
) -> None:
    found = turn(
        [(seq, _message("new")) for seq in new], {seq: _message("old") for seq in waiting}, last, highest, hold
    )
    assert [seq for seq, _ in found.due] == due
    assert (sorted(found.waits), sorted(found.released)) == (waits, released)
    assert [seq for seq, _ in found.late] == late
    assert found.highest == reached
    assert {name for _, (_, name, *_) in found.late} <= {"new"}


def test_of_two_with_one_seq_the_same_one_is_chosen_in_any_order() -> None:
    one, other = _message("A"), _message("B")
    turns: list[DueMessages] = [turn(new, {}, -1, -1, 0) for new in ([(1, one), (1, other)], [(1, other), (1, one)])]
    assert turns[0] == turns[1]
    assert turns[0].due == ((1, one),)


def test_topics_that_retain_one_publication_share_its_bytes_and_its_object() -> None:
    setting = ReplaySetup("", "v7")
    broker = setting.broker("QM1")
    message = publish("a", "b", "c")
    changes = Changes()
    changes.take(message.seq, broker.process(Arrival(1, EPOCH, message.queue, message.md, message.body)).effects)

    rows = {topic: row for topic, row in changes.retained.items() if row is not None}
    assert sorted(rows) == ["a", "b", "c"]
    assert len({id(row.body) for row in rows.values()}) == 1
    restored = continued(setting, "QM1", [], rows.items()).space.retained_publications()
    assert len({id(each.publication) for each in restored}) == 1
