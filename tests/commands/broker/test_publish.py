"""Publish (guide 6.7.3, 7.5, 8.5): who receives what, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from commands.broker.authority import Action
from streams.topic_objects import TopicObject
from tests.commands.scenario import CORREL_ID, Answer, Scenario, done, refused, warned


@pytest.mark.rule("PUB-1")
def test_6_7_3_subscribers_receive_it_in_the_order_of_their_registration(world: Scenario) -> None:
    world.register("Sport/#", reply_to="C.Q")
    world.register("Sport/Soccer", reply_to="A.Q")
    world.register("Sport/+", reply_to="B.Q")
    world.register("Sport/Tennis", reply_to="D.Q")
    result = world.publish("Sport/Soccer", data=b"2:1")
    assert result.queues == ["C.Q", "A.Q", "B.Q"]
    assert {p.data for p in result.publications} == {b"2:1"}
    assert [p.put.topic for p in result.publications] == ["Sport/Soccer"] * 3


@pytest.mark.rule("PUB-6")
def test_6_7_3_a_publication_that_nobody_wants_is_discarded(world: Scenario) -> None:
    result = world.publish("a", request=True)
    done(result)
    assert len(result.puts) == 1
    assert world.retained == []


@pytest.mark.rule("V7-5")
def test_7_5_two_matching_topics_are_two_copies(world: Scenario) -> None:
    world.register("a", "b")
    assert world.publish("a", "b").topics == ["a", "b"]


@pytest.mark.rule("V7-5")
def test_7_5_two_overlapping_subscriptions_are_two_copies(world: Scenario) -> None:
    world.register("a/#", "a/b")
    assert world.publish("a/b").topics == ["a/b", "a/b"]


@pytest.mark.rule("PUB-4")
@pytest.mark.parametrize("topic", ["a/#", "+/a", "#", "+"])
def test_6_7_3_no_wildcards(world: Scenario, topic: str) -> None:
    refused(world.publish("a", topic, request=True), 3072, ("Topic", topic))


@pytest.mark.rule("PUB-18")
@pytest.mark.parametrize("topic", ["a#", "b+/c", "%*?"])
def test_2_5_1_1_1_what_is_not_alone_in_its_level_is_not_wild(world: Scenario, topic: str) -> None:
    world.register(topic)
    assert world.publish(topic).topics == [topic]


def test_6_7_6_one_error_and_nothing_is_published(world: Scenario) -> None:
    world.register("#")
    result = world.publish("a", "", options=["RetainPub"], request=True)
    refused(result, 3072, ("Topic", ""))
    assert world.retained == []


# Retained (2.3.2)


@pytest.mark.rule("PS-2", "PUB-6")
def test_2_3_2_one_retained_publication_a_topic(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"], data=b"1")
    world.publish("a", options=["RetainPub"], data=b"2")
    assert world.retained == ["a"]
    assert [p.data for p in world.register("a").publications] == [b"2"]


@pytest.mark.rule("PS-1", "PUB-6")
def test_2_3_2_a_publication_without_the_option_leaves_it(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"], data=b"1")
    world.publish("a", data=b"2")
    assert [p.data for p in world.register("a").publications] == [b"1"]


def test_6_7_3_several_topics_are_retained_each(world: Scenario) -> None:
    world.publish("a", "b", options=["RetainPub"])
    assert world.retained == ["a", "b"]


# Authority


@pytest.mark.rule("PUB-2")
def test_6_7_3_topics_without_authority_are_a_warning_each(world: Scenario) -> None:
    world.register("#")
    world.authority.topics = {("app1", Action.PUBLISH, "b")}
    result = world.publish("a", "b", "c", request=True)
    warned(result, Answer(3081, (("Topic", "b"),)))
    assert result.topics == ["a", "c"]


@pytest.mark.rule("PUB-2")
def test_6_7_3_no_topic_with_authority_is_an_error(world: Scenario) -> None:
    world.authority.topics = {("app1", Action.PUBLISH, "a")}
    refused(world.publish("a", request=True), 3081, ("Topic", "a"))


def test_mqi_2051_a_topic_object_may_forbid_it(world: Scenario) -> None:
    world.register("#")
    world.objects.put(TopicObject("T", "a", pub=False))
    refused(world.publish("b", "a/c", request=True), 2051, ("Topic", "a/c"))


# Scope (7.5, table 2)


SCOPES = [
    ("7.5-QMGR-QMGR", ["Local"], ["Local"], True, True),
    ("7.5-QMGR-ALL", ["Local"], [], True, False),
    ("7.5-ALL-QMGR", [], ["Local"], True, False),
    ("7.5-ALL-ALL", [], [], True, True),
]


@pytest.mark.rule("DIS-5", "PUB-9", "REG-12", "V7-1")
@pytest.mark.parametrize(
    ("published", "subscribed", "in_v7", "in_v6"), [row[1:] for row in SCOPES], ids=[row[0] for row in SCOPES]
)
def test_7_5_scope(
    world: Scenario, old_world: Scenario, published: list[str], subscribed: list[str], in_v7: bool, in_v6: bool
) -> None:
    for each, expected in ((world, in_v7), (old_world, in_v6)):
        each.register("a", options=subscribed)
        assert bool(each.publish("a", options=published).publications) is expected


# OtherSubsOnly


OTHERS: list[tuple[str, list[str], dict[str, Any], list[str]]] = [
    # the publisher's queue is (QM1, CHAT.Q), with or without CorrelId; who receives
    ("6.7.3-without-CorrelAsId", ["OtherSubsOnly"], {"reply_to": "CHAT.Q"}, ["with-id", "other"]),
    (
        "6.7.3-CorrelId-without-CorrelAsId",
        ["OtherSubsOnly"],
        {"reply_to": "CHAT.Q", "correl_id": CORREL_ID},
        ["with-id", "other"],
    ),
    (
        "6.7.3-with-CorrelAsId",
        ["OtherSubsOnly", "CorrelAsId"],
        {"reply_to": "CHAT.Q", "correl_id": CORREL_ID},
        ["plain", "other"],
    ),
    ("6.7.3-QName", ["OtherSubsOnly"], {"tags": [("QName", "CHAT.Q")]}, ["with-id", "other"]),
    (
        "6.7.3-QMgrName-of-another",
        ["OtherSubsOnly"],
        {"tags": [("QName", "CHAT.Q"), ("QMgrName", "QM2")]},
        ["plain", "with-id", "other"],
    ),
    ("6.7.3-not-asked-for", [], {"reply_to": "CHAT.Q"}, ["plain", "with-id", "other"]),
]


@pytest.mark.rule("PUB-10", "PUB-16")
@pytest.mark.parametrize(
    ("options", "settings", "received"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS]
)
def test_6_7_3_othersubsonly(
    world: Scenario, options: list[str], settings: dict[str, Any], received: list[str]
) -> None:
    for name, queue, own in (("plain", "CHAT.Q", ()), ("with-id", "CHAT.Q", ("CorrelAsId",)), ("other", "OTHER.Q", ())):
        world.register("chat", tags=[("SubName", name)], reply_to=queue, options=own, correl_id=CORREL_ID)
    result = world.publish("chat", options=options, **settings)
    assert [p.put.sub_name for p in result.publications] == received


@pytest.mark.rule("PUB-15")
@pytest.mark.parametrize(
    ("options", "retained", "receivers"),
    [
        ([], [], ["REPLY.Q", "OTHER.Q"]),
        (["None"], [], ["REPLY.Q", "OTHER.Q"]),
        (["None", "RetainPub"], ["a"], ["REPLY.Q", "OTHER.Q"]),
        (["OtherSubsOnly", "None", "RetainPub"], ["a"], ["OTHER.Q"]),
    ],
    ids=["omitted", "None", "None-and-one", "None-among-two"],
)
def test_6_7_3_pubopt_repeats_and_none_is_as_omitted(
    world: Scenario, options: list[str], retained: list[str], receivers: list[str]
) -> None:
    for queue in ("REPLY.Q", "OTHER.Q"):
        world.register("a", reply_to=queue)
    result = world.publish("a", options=options, reply_to="REPLY.Q")
    assert [p.queue for p in result.publications] == receivers
    assert world.retained == retained


@pytest.mark.rule("PUB-11")
def test_6_7_3_othersubsonly_needs_a_queue(world: Scenario) -> None:
    result = world.publish("chat", options=["OtherSubsOnly"], reply_to="")
    assert [letter.put.reason for letter in result.dead_letters] == [3076]


@pytest.mark.rule("PUB-12")
def test_6_7_3_correlasid_needs_a_correlid(world: Scenario) -> None:
    refused(world.publish("a", options=["CorrelAsId"], request=True), 3080, ("PubOpt", "CorrelAsId"))


NAMES = [
    ("6.7.7-3074", ("QMgrName", "no name"), 3074),
    ("6.7.7-3076", ("QName", "no name"), 3076),
]


@pytest.mark.parametrize(("tag", "reason"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_a_name_that_is_none(world: Scenario, tag: tuple[str, str], reason: int) -> None:
    refused(world.publish("a", tags=[tag], request=True), reason, tag)


def test_a_strange_replytoq_keeps_nothing_from_subscribers(world: Scenario) -> None:
    world.register("a")
    assert world.publish("a", reply_to="no name", reply_to_qmgr="neither!").queues == ["REPLY.Q"]


def test_the_same_topic_twice_is_published_twice(world: Scenario) -> None:
    world.register("a")
    assert world.publish("a", "a").topics == ["a", "a"]
