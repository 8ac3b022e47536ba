"""Nothing is dropped: whatever a legacy state holds, each item has one fate, and each fate is what the steps do."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import pytest
from hypothesis import given, strategies as st

from migrate import log, migmbbrk, strmqbrk
from migrate.cli.cutover import broker_of
from migrate.embedded import applied
from migrate.ledger import Severity, Verdict
from migrate.legacy_state import LegacyState
from migrate.plan import Marker, MigrationPlan, Phase, PlanOptions, Tool
from migrate.plan_files import plan_files
from migrate.report.facts import facts
from migrate.report.html import page
from migrate.report.outputs import text
from migrate.target import Target, existing_target
from rfh2.errors import MigrationError
from tests.html_pages import check_page
from tests.migrate.cases import report_files
from tests.migrate.legacy_messages import NOW
from tests.migrate.strategies import states

SCRIPT = """
DEFINE TOPIC(SPORT.OTHER) TOPICSTR('Sport')
DEFINE TOPIC('Business') TOPICSTR('elsewhere')
DEFINE QLOCAL(A.Q)
DEFINE SUB('s') TOPICSTR('mine') DEST(A.Q) SUBUSER('anne')
"""
targets = st.sampled_from(("fresh", "used"))
FIGURE = re.compile(r'class="figure [^"]*"><b>([\d,]+)</b><span>([^<]*)</span>')


def planned(state: LegacyState, kind: str, tool: Tool, overwrite: bool) -> tuple[MigrationPlan, Target]:
    target = Target.fresh("QM1") if kind == "fresh" else existing_target("QM1", SCRIPT, NOW)
    options = PlanOptions(overwrite=overwrite, accept_unread=True, accept_changed=True)
    if tool is Tool.STRMQBRK:
        return strmqbrk.plan(state, target, options, NOW), target
    target.objects.put(Marker(tool, Phase.INITIAL, "20090101T000000Z", "0" * 40).namelist())
    return migmbbrk.plan(state, target, options, NOW, Phase.COMPLETE), target


@pytest.mark.rule("MIG-1")
@given(states, targets, st.sampled_from(Tool), st.booleans())
def test_items_in_are_items_out(state: LegacyState, kind: str, tool: Tool, overwrite: bool) -> None:
    """Each item has one fate, each fate is what the steps do, and their result is a queue manager that starts."""
    plan, target = planned(state, kind, tool, overwrite)
    each_item_has_one_fate(state, plan)
    after = applied(plan, target)
    fates_are_what_the_steps_do(plan, target, after, overwrite)
    broker = broker_of(after)
    assert len(broker.space.subscriptions()) == len(after.subscriptions)
    assert strmqbrk.is_migrated(after) is (tool is Tool.STRMQBRK)


def each_item_has_one_fate(state: LegacyState, plan: MigrationPlan) -> None:
    keys = [key for key, _ in state.items()]
    assert [fate.key for fate in plan.fates] == keys
    assert [plan.fates.of(key) for key in keys] == list(plan.fates) == [plan.fates[at] for at in range(len(keys))]
    counts = plan.counts
    assert counts[Verdict.MIGRATED] + counts[Verdict.CHANGED] + counts[Verdict.REPORTED] == len(keys)
    assert all(fate.becomes for fate in plan.fates if fate.verdict is not Verdict.REPORTED)
    assert all(fate.reasons for fate in plan.fates if fate.verdict is not Verdict.MIGRATED)


def fates_are_what_the_steps_do(plan: MigrationPlan, target: Target, after: Target, overwrite: bool) -> None:
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
    new = {s.sub_id for s in after.subscriptions} - {s.sub_id for s in target.subscriptions}
    assert len(new) == sum(step.replaces is None for step in plan.subscriptions)
    assert {step.retained.topic_string for step in plan.retained} <= set(after.retained)
    # What was there stays, unless it was to be replaced.
    if not overwrite:
        assert set(target.subscriptions) <= set(after.subscriptions)


@given(states, st.sampled_from(Tool))
def test_everything_that_tells_of_a_plan_can(state: LegacyState, tool: Tool) -> None:
    plan, target = planned(state, "fresh", tool, False)
    found = facts(plan, target)
    lines = [*log.reading(plan), *log.applying(plan), *log.closing(plan), *text(found), *plan.security]
    assert all("\n" not in line for line in lines)
    check_page(page(found))
    files = plan_files(plan, target)
    for step in plan.retained:
        assert step.key in {key for key, _ in state.items()}
    assert "checklist.md" in files.contents
    told = files.reported(plan)
    assert [fate.key for fate in told.fates] == [fate.key for fate in plan.fates]
    sums = sums_in_every_form(told, target)
    assert set(sums.values()) == {sums["fates"]}, "the sums agree where files alone carry the plan too"


@given(states)
def test_planning_changes_nothing(state: LegacyState) -> None:
    target = existing_target("QM1", SCRIPT, NOW)
    before = existing_target("QM1", SCRIPT, NOW)
    first = strmqbrk.plan(state, target, PlanOptions(accept_unread=True), NOW)
    assert strmqbrk.plan(state, target, PlanOptions(accept_unread=True), NOW) == first
    assert target.subscriptions == before.subscriptions
    assert list(target.objects.topics) == list(before.objects.topics)


def numbers_of(lines: Iterable[str]) -> tuple[int, ...]:
    """Items, migrated, changed, reported, left by choice, of lines, which say the last where something was reported."""
    counts, reported = islice(lines, 2)
    items, migrated, changed, every = map(int, re.findall(r"\d+", counts))
    refused, left = map(int, re.findall(r"\d+", reported)) if reported.startswith("Reported: ") else (0, 0)
    assert refused + left == every
    return items, migrated, changed, every, left


def sums_in_every_form(plan: MigrationPlan, target: Target) -> dict[str, tuple[int, ...]]:
    """Items, migrated, changed, reported, left by choice, as each form of the report has them."""
    found = facts(plan, target)
    contents = {name: data.decode(errors="replace") for name, data in report_files(found).items()}
    json_form = json.loads(contents["report.json"])
    rows = list(csv.DictReader(io.StringIO(contents["items.csv"], newline="")))
    results = Counter(row["result"] for row in rows)
    figures = {label: int(value.replace(",", "")) for value, label in FIGURE.findall(contents["report.html"])}
    (reported,) = (label for label in figures if label.startswith("reported"))
    closing, text_form = numbers_of(log.closing(plan)), numbers_of(contents["report.txt"].splitlines()[2:])
    return {
        "fates": (
            len(plan.fates),
            *(sum(fate.verdict is verdict for fate in plan.fates) for verdict in Verdict),
            sum(f.verdict is Verdict.REPORTED and f.severity is Severity.INFO for f in plan.fates),
        ),
        "json": (json_form["items"], *json_form["counts"].values(), json_form["left_by_choice"]),
        "json-items": (
            len(json_form["fates"]),
            *(sum(fate["verdict"] == verdict for fate in json_form["fates"]) for verdict in Verdict),
            json_form["left_by_choice"],
        ),
        "json-kinds": (
            json_form["items"],
            *(sum(kind[verdict] for kind in json_form["by_kind"].values()) for verdict in Verdict),
            json_form["left_by_choice"],
        ),
        "csv": (
            len(rows),
            *(results[verdict] for verdict in Verdict),
            sum(row["result"] == "reported" and row["severity"] == "info" for row in rows),
        ),
        "html": (
            figures["items"],
            figures["migrated"],
            figures["changed"],
            figures[reported],
            int(re.findall(r"\d+", reported)[0]),
        ),
        "log": closing,
        "text": text_form,
    }


@given(states, targets, st.sampled_from(Tool), st.booleans())
def test_the_sums_agree_in_every_report(state: LegacyState, kind: str, tool: Tool, overwrite: bool) -> None:
    """Every item that was read is migrated (perhaps changed), refused with a reason, or left by choice."""
    plan, target = planned(state, kind, tool, overwrite)
    sums = sums_in_every_form(plan, target)
    assert set(sums.values()) == {sums["fates"]}, sums
    items, *verdicts, left = sums["fates"]
    assert items == sum(1 for _ in state.items()) == sum(verdicts)
    refused = [fate for fate in plan.fates if fate.verdict is Verdict.REPORTED and fate.severity is not Severity.INFO]
    assert len(refused) + left == verdicts[-1]
    assert all(reason.text for fate in refused for reason in fate.reasons)
    assert all(fate.reasons for fate in refused)


def test_a_plan_that_forgets_an_item_cannot_be_made() -> None:
    from migrate.ledger import Ledger
    from migrate.legacy_state import Source, Stream

    state = LegacyState(qmgr="QM1", streams=(Stream(source=Source(file="x"), name="Sport"),))
    with pytest.raises(MigrationError, match="says nothing of 1 items"):
        Ledger(state).close()
