"""Nothing is dropped: whatever a legacy state holds, each item has one fate, and each fate is what the steps do."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate import log, migmbbrk, strmqbrk
from migrate.existing import existing_target
from migrate.ledger import Verdict
from migrate.legacy_state import LegacyState
from migrate.marker import Marker
from migrate.plan import MigrationPlan, Phase, PlanOptions, Tool
from migrate.readers import state_json
from migrate.report.facts import facts
from migrate.report.html import page
from migrate.report.text import text
from migrate.target import Target
from migrate.targets.files import scripts
from rfh2.errors import MigrationError
from tests.html_pages import check_page
from tests.migrate.in_memory import applied, broker_of
from tests.migrate.legacy_messages import NOW
from tests.migrate.strategies import states

SCRIPT = """
DEFINE TOPIC(SPORT.OTHER) TOPICSTR('Sport')
DEFINE TOPIC('Business') TOPICSTR('elsewhere')
DEFINE QLOCAL(A.Q)
DEFINE SUB('s') TOPICSTR('mine') DEST(A.Q) SUBUSER('anne')
"""
targets = st.sampled_from(("fresh", "used"))


def planned(state: LegacyState, kind: str, tool: Tool, overwrite: bool) -> tuple[MigrationPlan, Target]:
    target = Target.fresh("QM1") if kind == "fresh" else existing_target("QM1", SCRIPT, NOW)
    options = PlanOptions(overwrite=overwrite, accept_unread=True, accept_changed=True)
    if tool is Tool.STRMQBRK:
        return strmqbrk.plan(state, target, options, NOW), target
    target.objects.put(Marker(tool, Phase.INITIAL, "20090101T000000Z", "0" * 40).namelist())
    return migmbbrk.plan(state, target, options, NOW, Phase.COMPLETE), target


@settings(max_examples=150, deadline=None)
@given(states, targets, st.sampled_from(Tool), st.booleans())
def test_items_in_are_items_out(state: LegacyState, kind: str, tool: Tool, overwrite: bool) -> None:
    plan, _ = planned(state, kind, tool, overwrite)
    keys = [key for key, _ in state.items()]
    assert [fate.key for fate in plan.fates] == keys
    counts = plan.counts
    assert counts[Verdict.MIGRATED] + counts[Verdict.CHANGED] + counts[Verdict.REPORTED] == len(keys)
    assert all(fate.becomes for fate in plan.fates if fate.verdict is not Verdict.REPORTED)
    assert all(fate.reasons for fate in plan.fates if fate.verdict is not Verdict.MIGRATED)


@settings(max_examples=150, deadline=None)
@given(states, targets, st.sampled_from(Tool), st.booleans())
def test_fates_are_what_the_steps_do(state: LegacyState, kind: str, tool: Tool, overwrite: bool) -> None:
    plan, target = planned(state, kind, tool, overwrite)
    fates = {fate.key: fate for fate in plan.fates}
    for steps, word in ((plan.subscriptions, "subscription"), (plan.retained, "retained")):
        made = Counter(step.key for step in steps)
        assert set(made.values()) <= {1}
        for key, fate in fates.items():
            if key[0] != word:
                continue
            if fate.verdict is Verdict.REPORTED:
                assert key not in made
            else:
                # Either it is made, or it stands for the same as another item, which it names.
                assert key in made or fate.becomes.startswith(("subscription [", "retained publication "))
    after = applied(plan, target)
    new = {s.sub_id for s in after.subscriptions} - {s.sub_id for s in target.subscriptions}
    assert len(new) == sum(step.replaces is None for step in plan.subscriptions)
    assert {step.retained.topic_string for step in plan.retained} <= set(after.retained)
    # What was there stays, unless it was to be replaced.
    if not overwrite:
        assert set(target.subscriptions) <= set(after.subscriptions)


@settings(max_examples=100, deadline=None)
@given(states, targets, st.sampled_from(Tool), st.booleans())
def test_the_result_is_a_queue_manager_that_starts(state: LegacyState, kind: str, tool: Tool, overwrite: bool) -> None:
    plan, target = planned(state, kind, tool, overwrite)
    after = applied(plan, target)
    broker = broker_of(after)
    assert len(broker.space.subscriptions()) == len(after.subscriptions)
    assert strmqbrk.is_migrated(after) is (tool is Tool.STRMQBRK)


@settings(max_examples=60, deadline=None)
@given(states, st.sampled_from(Tool))
def test_everything_that_tells_of_a_plan_can(state: LegacyState, tool: Tool) -> None:
    plan, target = planned(state, "fresh", tool, False)
    found = facts(plan, target)
    lines = [*log.reading(plan), *log.applying(plan), *log.closing(plan), *text(found), *plan.security]
    assert all("\n" not in line for line in lines)
    check_page(page(found))
    files = scripts(plan, target)
    for step in plan.retained:
        assert step.key in {key for key, _ in state.items()}
    assert "checklist.md" in files


@settings(max_examples=100, deadline=None)
@given(states)
def test_a_state_goes_to_json_and_back(state: LegacyState) -> None:
    again, problems = state_json.read(state_json.write([state]), "state.json")
    assert (again, problems) == ([state], [])


@settings(max_examples=50, deadline=None)
@given(states)
def test_planning_changes_nothing(state: LegacyState) -> None:
    target = existing_target("QM1", SCRIPT, NOW)
    before = existing_target("QM1", SCRIPT, NOW)
    first = strmqbrk.plan(state, target, PlanOptions(accept_unread=True), NOW)
    assert strmqbrk.plan(state, target, PlanOptions(accept_unread=True), NOW) == first
    assert target.subscriptions == before.subscriptions
    assert list(target.objects.topics) == list(before.objects.topics)


def test_a_plan_that_forgets_an_item_cannot_be_made() -> None:
    from migrate.ledger import Ledger
    from migrate.legacy_state import Source, Stream

    state = LegacyState(qmgr="QM1", streams=(Stream(source=Source(file="x"), name="Sport"),))
    with pytest.raises(MigrationError, match="says nothing of 1 items"):
        Ledger(state).close()
