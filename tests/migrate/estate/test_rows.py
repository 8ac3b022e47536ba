"""For whatever a legacy state holds: the sums agree, rows survive their file, and a plan carried out is as wanted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from commands.mqsc.administration import Administration
from commands.network.estate_file import EstateQueueManager
from migrate.embedded import applied
from migrate.estate import records
from migrate.estate.overview import EstateOverview, of_overview
from migrate.estate.pack.collecting import Applications
from migrate.estate.records import BrokerState, ItemRow, Owner, Record, plan_differences
from migrate.ledger import Result, Sums, total
from migrate.legacy_state import LegacyState
from migrate.live.differences import compare
from migrate.live.snapshot import read_live
from migrate.plan import Outcome, Tool
from migrate.planned_state import planned_lines, read_planned
from migrate.target import Target, same_state
from rfh2.errors import MigrationError
from tests.migrate.legacy_messages import NOW
from tests.migrate.live.memory import MemoryAdministrator
from tests.migrate.strategies import states
from tests.migrate.test_conservation import planned, targets

tools = st.sampled_from(Tool)


@given(states, targets, tools, st.booleans())
def test_every_item_is_in_one_sum_and_one_application(state: LegacyState, kind: str, tool: Tool, force: bool) -> None:
    plan, _ = planned(state, kind, tool, force)
    rows = list(records.rows_of(plan))
    sums = Sums.of((row.result for row in rows), sum(1 for _ in state.items()))
    assert sums == plan.sums
    applications = Applications()
    applications.learn((row.owner for row in rows), ())
    parts: dict[str, list[Result]] = {}
    for row in rows:
        parts.setdefault(applications.name_of(row.owner, ()), []).append(row.result)
    assert total(Sums.of(part, len(part)) for part in parts.values()) == sums
    for row in rows:
        if row.result in (Result.REFUSED, Result.LEFT):
            assert row.reasons, f"{row.label} is {row.result} without a reason"


@given(states, targets, tools)
def test_rows_survive_their_file(state: LegacyState, kind: str, tool: Tool) -> None:
    plan, _ = planned(state, kind, tool, False)
    rows = list(records.rows_of(plan))
    with TemporaryDirectory() as place:
        path = Path(place) / "rows"
        path.write_bytes(records.packed(rows))
        again = list(records.unpacked(path))
    assert again == rows
    assert plan_differences(rows, again) == []
    assert records.decided(reversed(again)) == records.decided(rows)


@given(states, targets, tools, st.booleans())
def test_a_plan_that_is_carried_out_is_as_planned(state: LegacyState, kind: str, tool: Tool, force: bool) -> None:
    """Also where it is read from its file; a subscription that is not there is one difference."""
    plan, target = planned(state, kind, tool, force)
    after = applied(plan, target)
    with TemporaryDirectory() as place:
        path = Path(place) / "planned"
        path.write_text("".join(f"{line}\n" for line in planned_lines(plan, target, {})))
        heading, objects = read_planned(path)
    heading = heading.model_copy(update={"is_complete": tool is Tool.STRMQBRK})

    def differences(there: Target) -> list[str]:
        live = read_live(MemoryAdministrator(Administration.of(*there.scratch(), NOW)))
        return list(map(str, compare(heading, objects, live, NOW).differences))

    assert differences(after) == []
    assert list(same_state(after, after)) == []
    if plan.subscriptions:
        gone = plan.subscriptions[0].subscription.sub_id
        less = replace(after, subscriptions=tuple(s for s in after.subscriptions if s.sub_id != gone))
        assert len(differences(less)) == 1
        assert len(list(same_state(after, less))) == 1


def row(digest: str, result: Result = Result.MIGRATED, becomes: str = "") -> ItemRow:
    return ItemRow("stream", 1, f"stream {digest}", digest, "x", result, becomes, (), Owner())


DIFFERENCES = [
    ("same", [row("a"), row("b")], [row("b"), row("a")], []),
    ("new-and-gone", [row("a")], [row("b")], ["new: stream b (migrated)", "gone: stream a (migrated)"]),
    (
        "another-result",
        [row("a")],
        [row("a", Result.REFUSED)],
        ["other: stream a: migrated before, refused now"],
    ),
    ("another-place", [row("a", becomes="x")], [row("a", becomes="y")], ["other: stream a: becomes y, before x"]),
    ("one-of-two", [row("a"), row("a")], [row("a")], ["gone: stream a (migrated)"]),
    (
        "the-same-one-is-matched-first",
        [row("a"), row("a", Result.REFUSED)],
        [row("a", Result.REFUSED), row("a", Result.CHANGED)],
        ["other: stream a: migrated before, changed now"],
    ),
]


@pytest.mark.parametrize(("before", "after", "lines"), [c[1:] for c in DIFFERENCES], ids=[c[0] for c in DIFFERENCES])
def test_differences_between_two_plans(before: list[ItemRow], after: list[ItemRow], lines: list[str]) -> None:
    assert [found.line() for found in plan_differences(before, after)] == lines


def test_sums_that_do_not_agree() -> None:
    with pytest.raises(MigrationError, match="3 items were read, but 1 are migrated"):
        Sums.of([Result.MIGRATED, Result.LEFT], 3)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(records.packed([row("a")])[:-9])
    with pytest.raises(MigrationError, match="plan the broker again"):
        list(records.unpacked(path))


def test_of_many_brokers_those_without_anything_to_look_at_share_lines() -> None:
    def record(number: int, outcome: Outcome) -> Record:
        sums = Sums(items=2, migrated=2)
        return Record(qmgr=f"QM{number:03}", state=BrokerState.PLANNED, at="", plan=1, outcome=outcome, sums=sums)

    records = tuple(record(n, Outcome.LOST if n == 30 else Outcome.DONE) for n in range(50))
    waves = {each.qmgr: 1 + (n >= 45) for n, each in enumerate(records)}
    chosen = [EstateQueueManager(name=each.qmgr) for each in records]
    lines = list(of_overview(EstateOverview(records, waves, (), {}, {}), chosen, with_collisions=False))
    rows = [line.split()[:5] for line in lines[1 : lines.index("")]]
    assert [" ".join(row) for row in rows] == [
        "1 30 brokers planned 60",
        "1 QM030 planned 2 2",
        "1 14 brokers planned 28",
        "2 5 brokers planned 10",
        "all 50 100 100 0",
    ]
