"""The files for IBM MQ, run here: scripts and messages together make the state that the embedded queue manager gets."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given

from commands.mqsc.administration import Administration
from commands.mqsc.broker import Broker
from commands.mqsc.equivalents import OperationContext
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from migrate import strmqbrk
from migrate.embedded import applied
from migrate.legacy_state import LegacyState
from migrate.plan import MigrationPlan, PlanOptions, Store
from migrate.subscription_files import define_sub, is_carried
from migrate.target import Target
from rfh2.captures import read_captures
from rfh2.constants import MQRCCF_NOT_AUTHORIZED
from streams.patterns import is_read_alike
from streams.subscriptions import (
    DeliveryPersistence,
    PublicationFormat,
    Subscription,
    SubscriptionOptions,
    WildcardScheme,
)
from tests.examples import FEW
from tests.migrate.cases import Case, scripts, told
from tests.migrate.legacy_messages import NOW
from tests.migrate.strategies import states

NAMED = Subscription(
    sub_id=bytes(24), topic_string="a/+", dest_queue="A.Q", dest_qmgr="QM1", created=NOW, name="named", user="anne"
)
CASES = ["streams", "subscription-points", "log-example", "metatopics"]


def run_files(files: dict[str, str | bytes], target: Target, plan: MigrationPlan) -> Target:
    """What a queue manager like *target* knows once every file has been run in the order of their names."""
    objects, space = target.scratch()
    broker = Broker(plan.qmgr, objects=objects, space=space)
    seq = 0
    announced = "P06" in plan.problem_counts()
    for name in sorted(files):
        content = files[name]
        if name.endswith(".mqsc"):
            assert isinstance(content, str)
            administration = Administration.of(objects, space, plan.now)
            for statement in parse(content):
                answer = execute(statement, administration)
                # Whom nobody has given authority is refused, and the report says so beforehand (P06).
                refused = answer.amq == "AMQ8135" and announced
                assert answer.ok or refused, (name, statement.text, answer.lines)
        elif name.endswith(".qload"):
            assert isinstance(content, bytes)
            for record in read_captures(BytesIO(content), "qload", name=name):
                assert record.message is not None, record.problem
                seq += 1
                message = record.message.model_copy(update={"seq": seq, "time": plan.now})
                outcome, _ = broker.replay(message)
                refused_for_p06 = outcome.reason == MQRCCF_NOT_AUTHORIZED and announced
                assert outcome.completion == "ok" or refused_for_p06, (name, outcome.why)
    retained = {kept.topic_string: kept for kept in space.retained_publications()}
    return Target(objects, space.subscriptions(), retained)


def comparable(target: Target) -> dict[str, Any]:
    """What has to be equal. Not compared: who defined a subscription, when, and NewPubsOnly, which keeps what is
    retained from being sent a second time; the wildcard scheme of a topic that has no wildcards in either; of a
    retained publication the time, and the wrapping of a copy."""
    found = told(target)
    for subscription in found["subscriptions"]:
        # A topic that both schemes read as the same one is registered in either.
        if is_read_alike(subscription["topic_string"]):
            del subscription["wildcard"]
        for field in ("created", "admin", "expires_at"):
            del subscription[field]
        del subscription["options"]["new_pubs_only"]
    found["subscriptions"].sort(key=str)
    for kept in found["retained"].values():
        del kept["published_at"], kept["sha256"]
    return found


def expected(plan: MigrationPlan, target: Target) -> dict[str, Any]:
    """What the embedded queue manager gets, less what authority will refuse: each such item has been told of (P06)."""
    refused = {fate.key for fate in plan.fates if any("P06" in reason.ids for reason in fate.reasons)}
    kept = tuple(step for step in plan.steps if isinstance(step, Store) or step.key not in refused)
    return comparable(applied(replace(plan, steps=kept), target))


def by_hand(files: dict[str, str | bytes]) -> list[str]:
    """The lines of the checklist under the heading that says what no file does."""
    text = str(files["checklist.md"])
    _, found, rest = text.partition("## What no file here does")
    return [line for line in rest.split("## ")[0].splitlines() if line.startswith("- ")] if found else []


@pytest.mark.parametrize("name", CASES)
def test_files_make_the_planned_state(name: str) -> None:
    case = Case.of(name)
    plan, target = case.plan(), case.target()
    files = scripts(plan, target)
    made, wanted = comparable(run_files(files, target, plan)), expected(plan, target)
    assert made["objects"] == wanted["objects"]
    assert made["retained"] == wanted["retained"]
    missing = [s for s in wanted["subscriptions"] if s not in made["subscriptions"]]
    more = [s for s in made["subscriptions"] if s not in wanted["subscriptions"]]
    # Those that nothing can register are defined under a name, and the checklist says so.
    assert len(missing) == len(more) == len(by_hand(files))
    assert [(s["topic_string"], s["dest_queue"]) for s in missing] == [
        (s["topic_string"], s["dest_queue"]) for s in more
    ]


@FEW
@given(states)
def test_files_run_whatever_the_state(state: LegacyState) -> None:
    """Every command of every script succeeds, every message is taken; what is left over, the checklist names."""
    state = state.model_copy(update={"authorities": ()})
    target = Target.fresh("QM1")
    plan = strmqbrk.plan(state, target, PlanOptions(accept_unread=True), NOW)
    files = scripts(plan, target)
    made, wanted = comparable(run_files(files, target, plan)), expected(plan, target)
    assert made["objects"] == wanted["objects"]
    lost = [s for s in wanted["subscriptions"] if s not in made["subscriptions"]]
    unpublished = wanted["retained"].keys() - made["retained"].keys()
    assert len(lost) + len(unpublished) <= len(by_hand(files))
    assert made["retained"].keys() <= wanted["retained"].keys()


CARRIED = [
    ("named-rfh2", {}, True),
    ("named-rfh1-characters", {"format": PublicationFormat.RFH1, "wildcard": WildcardScheme.CHAR}, True),
    ("local-on-request-variable", {"options": SubscriptionOptions(local=True, pub_on_req_only=True)}, True),
    ("9.3-traditional-identity", {"name": None}, False),
    ("9.3-persistence", {"options": SubscriptionOptions(persistence=DeliveryPersistence.PERSISTENT)}, False),
    ("9.3-identity-set", {"identities": ("one",)}, False),
    ("9.3-inform-if-ret", {"options": SubscriptionOptions(inform_if_ret=True)}, False),
    ("9.3-incl-stream-name", {"options": SubscriptionOptions(incl_stream_name=True)}, False),
    ("6.1-stream-prefix", {"prefix": "Sport", "stream": "Sport"}, False),
    ("6.2-subscription-point", {"prefix": "USD", "sub_point": "USD"}, False),
    ("pcf", {"format": PublicationFormat.PCF}, False),
    ("no-user-would-be-the-administrator", {"user": ""}, False),
]


@pytest.mark.parametrize(("change", "carried"), [case[1:] for case in CARRIED], ids=[case[0] for case in CARRIED])
def test_what_define_sub_carries(change: dict[str, Any], carried: bool) -> None:
    assert is_carried(replace(NAMED, **change)) is carried


@pytest.mark.rule("MIG-35")
@pytest.mark.parametrize("is_sent_retained", [False, True], ids=["nothing-retained", "something-retained"])
@pytest.mark.parametrize(
    "change", [case[1] for case in CARRIED if case[2]], ids=[case[0] for case in CARRIED if case[2]]
)
def test_define_sub_makes_what_it_carries(change: dict[str, Any], is_sent_retained: bool) -> None:
    """Also in the two commands that keep retained publications back (guide 4.8.2)."""
    wanted = replace(NAMED, **change)
    objects, space = Target.fresh("QM1").scratch()
    administration = Administration.of(objects, space, NOW)
    context = OperationContext("QM1", NOW)
    statements = parse("\n".join(define_sub(wanted, context, replaces=False, is_sent_retained=is_sent_retained)))
    assert len(statements) == (2 if is_sent_retained and not wanted.options.pub_on_req_only else 1)
    assert all(execute(statement, administration).ok for statement in statements)
    (made,) = space.subscriptions()
    assert replace(made, sub_id=wanted.sub_id, admin=False, created=wanted.created) == wanted


def test_long_topic_strings_go_over_several_lines() -> None:
    wanted = replace(NAMED, topic_string="a/" + "*x b" * 2_000)
    lines = define_sub(wanted, OperationContext("QM1", NOW), replaces=False)
    assert max(map(len, lines)) < 2_048
    objects, space = Target.fresh("QM1").scratch()
    (statement,) = parse("\n".join(lines))
    assert execute(statement, Administration.of(objects, space, NOW)).ok
    assert space.subscriptions()[0].topic_string == wanted.topic_string


def test_the_order_works_from_queues_to_enabling() -> None:
    files = Case.of("streams").outputs()
    scripts_in_order = [name for name in sorted(files) if name.endswith(".mqsc")]
    heads = {name: [line for line in files[name].splitlines() if line[:1].isalpha()] for name in scripts_in_order}
    assert [name for name, lines in heads.items() if any(line.startswith("DEFINE QLOCAL") for line in lines)] == [
        "1-queues.mqsc"
    ]
    objects = [line.split("(")[0] for line in heads["2-objects.mqsc"]]
    assert objects == ["DEFINE TOPIC", "DEFINE TOPIC", "ALTER NAMELIST", "ALTER QMGR +"]
    assert heads["5-subscriptions.mqsc"] == ["DEFINE SUB('news') +"]
    assert "PSMODE(ENABLED)" in files["7-enable.mqsc"]
