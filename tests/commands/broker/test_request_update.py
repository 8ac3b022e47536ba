"""ReqUpdate (guide 6.7.5): retained publications on request."""

from __future__ import annotations

import pytest

from commands.broker.authority import Action
from tests.commands.scenario import CORREL_ID, Scenario, done, refused


@pytest.mark.rule("REG-17", "REQ-1")
def test_6_7_5_retained_publications_come_before_the_response(world: Scenario) -> None:
    world.register("a/+", options=["PubOnReqOnly"], reply_to="SUB.Q")
    world.publish("a/1", options=["RetainPub"], data=b"1")
    world.publish("a/2", options=["RetainPub"], data=b"2")
    world.publish("b", options=["RetainPub"], data=b"3")
    result = world.request_update("a/+", reply_to="SUB.Q")
    done(result)
    assert [(p.queue, p.topic, p.data) for p in result.publications] == [("SUB.Q", "a/1", b"1"), ("SUB.Q", "a/2", b"2")]
    assert [received.put.kind for received in result.puts] == ["publication", "publication", "response"]


@pytest.mark.rule("PUB-8")
def test_6_7_5_informifret_marks_what_answers_a_request(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a", options=["PubOnReqOnly", "InformIfRet"])
    assert [p.told("PubOpt") for p in world.request_update("a").publications] == ["IsRetainedPub"]


@pytest.mark.rule("REQ-12")
@pytest.mark.parametrize("options", [[], ["None"], ["None", "CorrelAsId"], ["CorrelAsId", "None"]])
def test_6_7_5_none_is_as_omitted_and_ignored_beside_others(world: Scenario, options: list[str]) -> None:
    world.publish("a", options=["RetainPub"])
    own = ["CorrelAsId"] if "CorrelAsId" in options else []
    world.register("a", options=["PubOnReqOnly", *own], correl_id=CORREL_ID)
    (sent,) = world.request_update("a", options=options, correl_id=CORREL_ID).publications
    assert (sent.mqmd.correl_id == CORREL_ID) is bool(own)


@pytest.mark.rule("REQ-2")
def test_6_7_5_3077_nothing_is_retained(world: Scenario) -> None:
    world.register("a")
    refused(world.request_update("a"), 3077, ("Topic", "a"))
    world.publish("a")
    refused(world.request_update("a"), 3077, ("Topic", "a"))


def test_field_3077_is_harmless_and_leaves_no_dead_letter(world: Scenario) -> None:
    world.register("a")
    assert world.request_update("a", request=False).puts == []


@pytest.mark.rule("REQ-2")
def test_6_7_5_3077_what_has_expired_is_not_retained(world: Scenario) -> None:
    world.register("a")
    world.publish("a", options=["RetainPub"], expiry=15)
    done(world.request_update("a"))
    assert world.request_update("a").answer.reason == 3077


def test_7_5_a_metatopic_has_nothing_retained(world: Scenario) -> None:
    refused(world.request_update("MQ/x"), 3077, ("Topic", "MQ/x"))


NOT_REGISTERED = [
    ("6.7.5-nothing", "b", (), (), (("Topic", "b"),)),
    ("6.7.5-wildcards-match-as-text", "a/b", (), (), (("Topic", "a/b"),)),
    ("6.7.5-other-queue", "a/#", (("QName", "OTHER.Q"),), (), (("Topic", "a/#"),)),
    ("6.7.5-other-filter", "a/#", (("Filter", "x = 1"),), (), (("Topic", "a/#"), ("Filter", "x = 1"))),
    ("6.7.5-CorrelId", "a/#", (), ("CorrelAsId",), (("Topic", "a/#"),)),
]


@pytest.mark.rule("REQ-3")
@pytest.mark.parametrize(
    ("topic", "tags", "options", "culprits"),
    [row[1:] for row in NOT_REGISTERED],
    ids=[row[0] for row in NOT_REGISTERED],
)
def test_6_7_5_3073_the_requester_must_have_registered(
    world: Scenario,
    topic: str,
    tags: tuple[tuple[str, str], ...],
    options: tuple[str, ...],
    culprits: tuple[tuple[str, str], ...],
) -> None:
    world.register("a/#")
    world.publish("a/b", options=["RetainPub"])
    refused(world.request_update(topic, options, tags, correl_id=CORREL_ID), 3073, *culprits)


@pytest.mark.rule("REQ-13")
def test_6_7_5_3150_a_filter_that_is_none(world: Scenario) -> None:
    refused(world.request_update("a", tags=[("Filter", "x =")]), 3150, ("Filter", "x ="))


@pytest.mark.rule("REQ-7")
def test_6_7_5_3080_correlasid_needs_a_correlid(world: Scenario) -> None:
    refused(world.request_update("a", ["CorrelAsId"]), 3080, ("RegOpt", "CorrelAsId"))


@pytest.mark.rule("REQ-9")
def test_6_7_5_3076_somewhere_to_send_it_to(world: Scenario) -> None:
    result = world.request_update("a", reply_to="")
    assert [letter.put.reason for letter in result.dead_letters] == [3076]


@pytest.mark.rule("REQ-6")
def test_6_7_5_the_filter_selects_among_what_is_retained(world: Scenario) -> None:
    stream = "SYSTEM.BROKER.DEFAULT.STREAM"
    for topic, colour in (("a/1", "red"), ("a/2", "blue")):
        text = f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{topic}</Topic></psc>"
        world.send(text, f"<usr><colour>{colour}</colour></usr>", queue=stream, request=False)
    tags = [("Filter", "colour = 'blue'")]
    world.register("a/+", options=["PubOnReqOnly"], tags=tags)
    assert world.request_update("a/+", tags=tags).topics == ["a/2"]


@pytest.mark.rule("REQ-10")
def test_6_7_5_by_name(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a", tags=[("SubName", "S")], reply_to="SUB.Q")
    assert world.request_update("a", tags=[("SubName", "S")], reply_to="OTHER.Q").queues == ["SUB.Q"]


@pytest.mark.rule("REQ-11")
def test_6_7_5_3153_a_matching_subscription_without_the_name(world: Scenario) -> None:
    world.register("a")
    refused(world.request_update("a", tags=[("SubName", "S")]), 3153, ("Topic", "a"), ("SubName", "S"))


@pytest.mark.rule("REQ-4")
def test_6_7_5_3081_authority_for_the_topic(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a")
    world.authority.topics = {("app1", Action.RESUME, "a")}
    refused(world.request_update("a"), 3081, ("Topic", "a"))


@pytest.mark.rule("REQ-13")
def test_6_7_5_3151_somebody_elses(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a", user="app1")
    refused(world.request_update("a", user="app2"), 3151, ("Topic", "a"))
