"""Every reason of the MQRFH interface: what provokes it, and the names in the response that tell the culprit.

Guide 6.7.7 and, of the older interface alone, 3070, 3071, 3075, 3078 and 3082 (wire formats 4.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from commands.broker.authority import Action
from commands.broker.outcome import Arrival
from rfh2.constants import MQRCCF_BROKER_DELETED
from tests.commands.headers.rfh1_pcf_table import SPORT, OlderScenario, rfh1_done, rfh1_groups, rfh1_refused
from tests.commands.scenario import CORREL_ID, Result

Pairs = tuple[tuple[str, str], ...]
Provoke = Callable[[OlderScenario], Result]


def puts(text: str, before: str | None = None, queue: str | None = None) -> Provoke:
    """A program puts *text*; *before*: what another user put before it."""

    def provoke(world: OlderScenario) -> Result:
        if before is not None:
            rfh1_done(world.rfh1(before, user="app2"))
        return world.rfh1(text, queue)

    return provoke


def after(*before: str) -> Callable[[str], Provoke]:
    """The same user put *before*."""

    def then(text: str) -> Provoke:
        def provoke(world: OlderScenario) -> Result:
            for one in before:
                rfh1_done(world.rfh1(one))
            return world.rfh1(text)

        return provoke

    return then


def unauthorized(world: OlderScenario) -> Result:
    world.authority.topics = {("app1", Action.SUBSCRIBE, "Sport/a")}
    return world.rfh1(f"MQPSCommand RegSub MQPSTopic a MQPSStreamName {SPORT}")


def strict(text: str) -> Provoke:
    """On a queue manager that makes no queues."""

    def provoke(world: OlderScenario) -> Result:
        world.objects.put(replace(world.objects.qmgr, strict=True))
        return world.rfh1(text)

    return provoke


JOINED = "MQPSCommand RegSub MQPSTopic a MQPSSubName S MQPSSubIdentity other MQPSRegOpts "
NAMED = "MQPSCommand RegSub MQPSTopic a MQPSSubName S"
A = (("MQPSTopic", "a"),)

REASONS: list[tuple[int, str, Provoke, Pairs]] = [
    (2335, "string", puts('MQPSCommand RegSub MQPSTopic "a'), (("MQPSErrorPos", "29"),)),
    (2336, "command", puts("MQPSCommand Sub MQPSTopic a"), (("MQPSCommand", "Sub"), ("MQPSErrorPos", "0"))),
    (
        2337,
        "name",
        puts("MQPSCommand DeletePub MQPSTopic a MQPSQName Q"),
        (("MQPSParmId", "MQPSQName"), ("MQPSErrorPos", "34")),
    ),
    (
        2338,
        "twice",
        puts("MQPSCommand ReqUpdate MQPSTopic a MQPSSubName n MQPSSubName n"),
        (("MQPSParmId", "MQPSSubName"), ("MQPSErrorPos", "48")),
    ),
    (2339, "missing", puts("MQPSCommand DeregSub"), (("MQPSParmId", "MQPSTopic"),)),
    (3071, "stream-name", puts("MQPSCommand RegSub MQPSTopic a MQPSStreamName A-B"), (("MQPSStreamName", "A-B"),)),
    (3072, "pattern", puts("MQPSCommand RegSub MQPSTopic a%b"), (("MQPSTopic", "a%b"),)),
    (3072, "wildcard-in-publish", puts("MQPSCommand Publish MQPSTopic a/*"), (("MQPSTopic", "a/*"),)),
    (3072, "empty-topic", puts('MQPSCommand RegSub MQPSTopic ""'), (("MQPSTopic", ""),)),
    (3073, "not-registered", puts("MQPSCommand DeregSub MQPSTopic a"), A),
    (3073, "update-not-registered", puts("MQPSCommand ReqUpdate MQPSTopic a"), A),
    (
        3074,
        "queue-manager-name",
        puts('MQPSCommand RegSub MQPSTopic a MQPSQMgrName "no name"'),
        (("MQPSQMgrName", "no name"),),
    ),
    (
        3074,
        "queue-manager-unknown",
        strict("MQPSCommand RegSub MQPSTopic a MQPSQMgrName QM9"),
        (("MQPSQMgrName", "QM9"),),
    ),
    (
        3075,
        "another-stream",
        puts(f"MQPSCommand Publish MQPSTopic a MQPSStreamName {SPORT}"),
        (("MQPSStreamName", SPORT),),
    ),
    (3076, "queue-name", puts("MQPSCommand RegSub MQPSTopic a MQPSQName no!"), (("MQPSQName", "no!"),)),
    (3076, "queue-unknown", strict("MQPSCommand RegSub MQPSTopic a MQPSQName NO.Q"), (("MQPSQName", "NO.Q"),)),
    (
        3077,
        "nothing-retained",
        after("MQPSCommand RegSub MQPSTopic a")("MQPSCommand ReqUpdate MQPSTopic a"),
        A,
    ),
    (3078, "name-of-another-user", puts(NAMED, before=NAMED), (("MQPSSubName", "S"), ("MQPSUserId", "app2"))),
    (3079, "queue", puts("MQPSCommand RegSub MQPSTopic a", queue=SPORT), (("MQPSCommand", "RegSub"),)),
    (
        3080,
        "correl-id",
        puts("MQPSCommand RegSub MQPSTopic a MQPSRegOpts CorrelAsId"),
        (("MQPSRegOpts", "CorrelAsId"),),
    ),
    (3081, "authority", unauthorized, A),
    (3082, "no-such-stream", puts("MQPSCommand RegSub MQPSTopic a MQPSStreamName B"), (("MQPSStreamName", "B"),)),
    (
        3083,
        "registration-option",
        puts("MQPSCommand DeregSub MQPSTopic a MQPSRegOpts Local"),
        (("MQPSRegOpts", "Local"), ("MQPSErrorPos", "33")),
    ),
    (
        3084,
        "publication-option",
        puts("MQPSCommand Publish MQPSTopic a MQPSPubOpts 32"),
        (("MQPSPubOpts", "32"), ("MQPSErrorPos", "32")),
    ),
    (
        3087,
        "delete-option",
        puts("MQPSCommand DeletePub MQPSTopic a MQPSDelOpts RetainPub"),
        (("MQPSDelOpts", "RetainPub"), ("MQPSErrorPos", "34")),
    ),
    (
        3151,
        "of-another-user",
        puts("MQPSCommand DeregSub MQPSTopic a", before="MQPSCommand RegSub MQPSTopic a"),
        A,
    ),
    (
        3152,
        "under-another-name",
        after(NAMED)("MQPSCommand RegSub MQPSTopic a MQPSSubName T"),
        (("MQPSSubName", "T"),),
    ),
    (
        3153,
        "without-a-name",
        after("MQPSCommand RegSub MQPSTopic a")("MQPSCommand DeregSub MQPSTopic a MQPSSubName S"),
        (("MQPSSubName", "S"),),
    ),
    (3154, "identity", puts(f"{NAMED} MQPSSubIdentity me"), (("MQPSSubIdentity", "me"),)),
    (
        3155,
        "in-use",
        after(JOINED + "JoinShared")(f"{NAMED} MQPSSubIdentity me MQPSRegOpts JoinExcl"),
        (("MQPSSubIdentity", "me"),),
    ),
    (
        3156,
        "locked",
        after(JOINED + "JoinExcl")(f"{NAMED} MQPSSubIdentity me MQPSRegOpts JoinShared"),
        (("MQPSSubIdentity", "me"),),
    ),
]


@pytest.mark.rule("OLD-8", "RC-3071", "RC-3075", "RC-3078", "RC-3082", "OLD-15")
@pytest.mark.parametrize(
    ("reason", "provoke", "details"),
    [(reason, provoke, details) for reason, _, provoke, details in REASONS],
    ids=[f"{reason}-{name}" for reason, name, _, _ in REASONS],
)
def test_reason(reason: int, provoke: Provoke, details: Pairs) -> None:
    rfh1_refused(provoke(OlderScenario()), reason, *details)


def test_3157_is_a_warning() -> None:
    result = after(JOINED + "JoinExcl")(JOINED + "JoinExcl MQPSRegOpts FullResp")
    (group,) = rfh1_groups(result(OlderScenario()).response)
    assert (group.comp_code, group.reason) == (1, 3157)
    assert [detail for detail in group.details if detail[0] in ("MQPSTopic", "MQPSSubIdentity")] == [
        ("MQPSSubIdentity", "other"),
        ("MQPSTopic", "a"),
    ]


@pytest.mark.rule("OLD-8")
def test_every_reason_has_its_constant_as_text() -> None:
    for _, _, provoke, _ in REASONS:
        (group,) = rfh1_groups(provoke(OlderScenario()).response)
        assert group.text is not None
        assert group.text.startswith("MQRC")
        assert not group.text.removeprefix("MQRC_").isdecimal()


@pytest.mark.rule("RC-3078")
def test_3078_version_6_ties_an_identity_to_its_user() -> None:
    world = OlderScenario("v6")
    rfh1_done(world.rfh1("MQPSCommand RegSub MQPSTopic a", user="app2"))
    result = world.rfh1("MQPSCommand RegSub MQPSTopic b")
    rfh1_refused(result, 3078, ("MQPSUserId", "app2"))


@pytest.mark.rule("RC-3070")
def test_3070_what_a_deleted_broker_leaves_is_a_dead_letter() -> None:
    """Nobody deletes a broker through the interface; who empties its queues sets each message aside with this."""
    world = OlderScenario()
    result = world.rfh1("MQPSCommand RegSub MQPSTopic a", correl_id=CORREL_ID)
    put = result.response.put
    arrival = Arrival(99, world.now, SPORT, bytes.fromhex(put.md_hex), bytes.fromhex(put.body_hex))
    outcome = world.broker.set_aside(arrival, MQRCCF_BROKER_DELETED, "the broker is deleted")
    assert [(put.kind, put.reason) for put in outcome.puts] == [("deadletter", 3070)]
