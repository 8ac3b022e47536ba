"""The files for IBM MQ, run here: scripts and messages together make the state that the embedded queue manager gets."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from commands.broker import Broker
from commands.mqsc import Administration, execute, parse
from migrate.plan import Plan
from migrate.target import Target
from migrate.targets.files import is_carried, scripts
from migrate.targets.in_memory import applied
from rfh2.captures import read_captures
from tests.migrate.cases import Case, told

CASES = ["streams", "subscription-points", "log-example", "metatopics"]


def run_files(files: dict[str, str | bytes], target: Target, plan: Plan) -> Target:
    """What a queue manager like *target* knows once every file has been run in the order of their names."""
    objects, space = target.scratch()
    broker = Broker(plan.qmgr, objects=objects, space=space)
    seq = 0
    for name in sorted(files):
        content = files[name]
        if name.endswith(".mqsc"):
            assert isinstance(content, str)
            administration = Administration.of(objects, space, plan.now)
            for statement in parse(content):
                answer = execute(statement, administration)
                assert answer.ok, (name, statement.text, answer.lines)
        elif name.endswith(".qload"):
            assert isinstance(content, bytes)
            for record in read_captures(BytesIO(content), "qload", name=name):
                assert record.message is not None, record.problem
                seq += 1
                message = record.message.model_copy(update={"seq": seq, "time": plan.now})
                outcome, _ = broker.replay(message)
                assert outcome.completion == "ok", (name, outcome.why)
    retained = {kept.topic_string: kept for kept in space.retained_publications()}
    return Target(objects, space.subscriptions(), retained)


def comparable(target: Target) -> dict[str, Any]:
    """What has to be equal. Not compared: who defined a subscription, when, and NewPubsOnly, which keeps what is
    retained from being sent a second time; of a retained publication the time, and the wrapping of a copy."""
    found = told(target)
    for subscription in found["subscriptions"]:
        for field in ("created", "admin", "expires_at"):
            del subscription[field]
        del subscription["options"]["new_pubs_only"]
    found["subscriptions"].sort(key=str)
    for kept in found["retained"].values():
        del kept["published_at"], kept["sha256"]
    return found


@pytest.mark.parametrize("name", CASES)
def test_files_make_the_planned_state(name: str) -> None:
    case = Case.of(name)
    plan, target = case.plan(), case.target()
    files = scripts(plan, target)
    left_to_people = [
        line for line in str(files["checklist.md"]).splitlines() if "by hand" in line and "[ ]" not in line
    ]
    made, wanted = comparable(run_files(files, target, plan)), comparable(applied(plan, target))
    missing = [s for s in wanted["subscriptions"] if s not in made["subscriptions"]]
    assert [s for s in made["subscriptions"] if s not in wanted["subscriptions"]] in ([], missing) or not missing
    assert len(missing) <= len(left_to_people) + _dead(plan)
    assert made["objects"] == wanted["objects"]
    assert made["retained"] == wanted["retained"]


def _dead(plan: Plan) -> int:
    """Subscriptions that a file makes in another form, and says so."""
    return sum(1 for step in plan.subscriptions if not is_carried(step.subscription))
