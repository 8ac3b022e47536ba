"""An authority of a generic profile reaches the topic objects of the streams that it covers (guide 7, MIG)."""

from __future__ import annotations

import pytest

from migrate import log, strmqbrk
from migrate.legacy_state import LegacyAuthority, LegacyState, LegacySubscription, Principal, Source, Stream
from migrate.plan import PlanOptions, outcome_of
from migrate.target import Target
from tests.migrate.legacy_messages import NOW

SOURCE = Source(file="made")
STREAMS = ("CB.FX", "CB.RATES", "NEWS")
CASES = [
    ("two-stars", [("CB.**", "BROWSE")], ["CB.FX SUB", "CB.RATES SUB"], "done"),
    ("one-star", [("CB.*", "PUT")], ["CB.FX PUB", "CB.RATES PUB"], "done"),
    ("one-character", [("CB.F?", "PUT")], ["CB.FX PUB"], "done"),
    ("no-stream", [("APP.**", "PUT")], [], "done"),
    ("most-specific", [("CB.**", "BROWSE"), ("CB.FX", "PUT")], ["CB.FX PUB", "CB.RATES SUB"], "done"),
    ("full", [("NEWS", "PUT")], ["NEWS PUB"], "done"),
    ("everything", [("**", "PUT")], ["CB.FX PUB", "CB.RATES PUB", "NEWS PUB"], "lost"),
    ("default-stream", [("SYSTEM.BROKER.DEFAULT.STREAM", "PUT")], [], "lost"),
]


@pytest.mark.rule("MIG-12")
@pytest.mark.parametrize(("given", "granted", "outcome"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_profiles(given: list[tuple[str, str]], granted: list[str], outcome: str) -> None:
    """What would be granted on the root is lost unless a person acts."""
    state = LegacyState(
        qmgr="QM1",
        streams=tuple(Stream(source=SOURCE, name=name) for name in STREAMS),
        authorities=tuple(
            LegacyAuthority(SOURCE, "QUEUE", profile, "GROUP", "risk", (word,)) for profile, word in given
        ),
    )
    plan = strmqbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW)
    records = [step.definition for step in plan.definitions if getattr(step.definition, "object_type", "") == "TOPIC"]
    assert sorted(f"{each.profile} {','.join(each.authorities)}" for each in records) == granted  # type: ignore[union-attr]
    assert ("lost" if outcome_of(plan) == "lost" else "done") == outcome


@pytest.mark.rule("MIG-12")
def test_a_user_without_authority_has_one_sentence() -> None:
    """On the first of his subscriptions, for each queue and for what he subscribes to; the others are counted."""
    given = [("a", "A.Q"), ("b", "A.Q"), ("c", "B.Q")]
    state = LegacyState(
        qmgr="QM1",
        subscriptions=tuple(LegacySubscription(SOURCE, topic, queue, user="fred") for topic, queue in given),
        authorities=(LegacyAuthority(SOURCE, "QUEUE", "OTHER.Q", "PRINCIPAL", "fred", ("PUT",)),),
        principals=(Principal(SOURCE, "fred", "user"),),
    )
    plan = strmqbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW)
    fates = (fate for fate in plan.fates if fate.key[0] == "subscription")
    told = [[each.text for each in fate.reasons if "P06" in each.ids] for fate in fates]
    assert told == [
        [
            "user fred has no authority to subscribe there: registering again fails; the same holds for 2 other "
            "subscriptions",
            "user fred has no authority to put to A.Q; the same holds for 1 other subscription",
        ],
        [],
        ["user fred has no authority to put to B.Q"],
    ]
    assert sum("no authority" in line for line in log.reading(plan)) == 3


def test_the_log_names_a_client_that_has_no_queue() -> None:
    item = LegacySubscription(SOURCE, "a", "", client_id="jms:QM1:CLIENT:T", user="fred")
    plan = strmqbrk.plan(LegacyState(qmgr="QM1", subscriptions=(item,)), Target.fresh("QM1"), PlanOptions(), NOW)
    lines = list(log.reading(plan))
    assert "    Client: jms:QM1:CLIENT:T, which has no queue" in lines
    assert not any(line.startswith(("    Format", "    Queue")) for line in lines)
