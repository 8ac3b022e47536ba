"""Subscription points (guide 6.2, 6.5.6): a topic space each, below the topic string of the point's topic object."""

from __future__ import annotations

import pytest

from commands.broker.authority import Action
from streams.topic_objects import DEFAULT_SUB_POINT, SUB_POINT_NAMELIST, Namelist, TopicObject, Wildcard
from tests.commands.scenario import Answer, Scenario, done, refused, warned

USD = ("SubPoint", "USD")
GBP = ("SubPoint", "GBP")
SPOT = "NYSE/IBM/SPOT"


@pytest.fixture
def exchange(world: Scenario) -> Scenario:
    """The points USD and GBP of guide 6.2; the object of the second has another name, as migmbbrk makes it."""
    world.objects.put(TopicObject("USD", "USD", wildcard=Wildcard.BLOCK))
    world.objects.put(TopicObject("SUBPOINT.2", "GBP", wildcard=Wildcard.BLOCK))
    world.objects.put(Namelist(SUB_POINT_NAMELIST, (DEFAULT_SUB_POINT, "USD", "SUBPOINT.2")))
    return world


@pytest.mark.rule("REG-5", "SP-1", "MB-5")
def test_6_2_a_publication_reaches_its_own_point_alone(exchange: Scenario) -> None:
    exchange.register(SPOT, tags=[USD], reply_to="USD.Q")
    exchange.register(SPOT, tags=[GBP], reply_to="GBP.Q")
    exchange.register(SPOT, reply_to="PLAIN.Q")
    assert exchange.publish(SPOT, tags=[USD]).queues == ["USD.Q"]
    assert exchange.publish(SPOT, tags=[GBP]).queues == ["GBP.Q"]
    assert exchange.publish(SPOT).queues == ["PLAIN.Q"]


@pytest.mark.rule("REG-1", "SP-1")
def test_6_2_the_topic_lies_below_the_point(exchange: Scenario) -> None:
    exchange.register(SPOT, tags=[USD])
    exchange.publish(SPOT, tags=[USD], options=["RetainPub"])
    assert [subscription.topic_string for subscription in exchange.subscriptions] == ["USD/NYSE/IBM/SPOT"]
    assert exchange.retained == ["USD/NYSE/IBM/SPOT"]


def test_the_subscriber_is_told_topic_and_point_apart(exchange: Scenario) -> None:
    exchange.register(SPOT, tags=[USD])
    (got,) = exchange.publish(SPOT, tags=[USD]).publications
    assert got.psc == [("Command", "Publish"), ("Topic", SPOT), USD]
    assert got.put.topic == "USD/NYSE/IBM/SPOT"


@pytest.mark.rule("SP-2")
def test_6_2_who_subscribes_to_the_whole_topic_string_receives_it_too(exchange: Scenario) -> None:
    exchange.register("USD/NYSE/#")
    (got,) = exchange.publish(SPOT, tags=[USD]).publications
    assert got.psc == [("Command", "Publish"), ("Topic", "USD/NYSE/IBM/SPOT")]


@pytest.mark.rule("SP-3")
def test_6_5_6_wildcards_from_outside_are_blocked(exchange: Scenario) -> None:
    exchange.register("#", reply_to="PLAIN.Q")
    exchange.register("#", tags=[USD], reply_to="USD.Q")
    assert exchange.publish(SPOT, tags=[USD]).queues == ["USD.Q"]


@pytest.mark.rule("DEREG-8", "PUB-5", "REG-5", "MB-4")
@pytest.mark.parametrize("point", ["EUR", "usd", "SUBPOINT.2", DEFAULT_SUB_POINT])
def test_6_2_3072_the_name_has_to_match_a_point(exchange: Scenario, point: str) -> None:
    tag = ("SubPoint", point)
    refused(exchange.register(SPOT, tags=[tag]), 3072, tag)
    refused(exchange.publish(SPOT, tags=[tag], request=True), 3072, tag)
    refused(exchange.deregister(SPOT, tags=[tag]), 3072, tag)
    refused(exchange.request_update(SPOT, tags=[tag]), 3072, tag)


@pytest.mark.rule("DEREG-2")
def test_6_7_2_without_deregall_an_omitted_point_is_the_default_one(exchange: Scenario) -> None:
    exchange.register(SPOT, tags=[USD])
    refused(exchange.deregister(SPOT), 3073, ("Topic", SPOT))
    refused(exchange.deregister(SPOT, tags=[GBP]), 3073, ("Topic", SPOT), GBP)
    done(exchange.deregister(SPOT, tags=[USD]))
    assert exchange.subscriptions == ()


@pytest.mark.rule("DEREG-3", "DEREG-25")
def test_6_7_2_deregall_with_a_point_is_that_point_whatever_the_topics(exchange: Scenario) -> None:
    exchange.register("a", "b", tags=[USD])
    exchange.register("a", tags=[GBP])
    exchange.register("a")
    done(exchange.deregister(options=["DeregAll"], tags=[USD]))
    assert [subscription.topic_string for subscription in exchange.subscriptions] == ["GBP/a", "a"]


@pytest.mark.rule("DEREG-4")
def test_6_7_2_deregall_without_a_point_is_all_points(exchange: Scenario) -> None:
    for tags in ([USD], [GBP], []):
        exchange.register("a", "b", tags=tags)
    done(exchange.deregister("a", options=["DeregAll"]))
    assert [subscription.topic_string for subscription in exchange.subscriptions] == ["USD/b", "GBP/b", "b"]


def test_6_7_7_3073_deregall_with_a_point_of_no_use(exchange: Scenario) -> None:
    exchange.register("a")
    refused(exchange.deregister(options=["DeregAll"], tags=[USD]), 3073, USD)


@pytest.mark.rule("REQ-3")
def test_6_7_5_a_request_is_for_one_point(exchange: Scenario) -> None:
    exchange.publish(SPOT, tags=[USD], options=["RetainPub"], data=b"dollars")
    exchange.publish(SPOT, options=["RetainPub"], data=b"default")
    exchange.register(SPOT, tags=[USD])
    assert [p.data for p in exchange.request_update(SPOT, tags=[USD]).publications] == [b"dollars"]
    refused(exchange.request_update(SPOT), 3073, ("Topic", SPOT))


def test_warnings_speak_of_topics_as_the_command_did(exchange: Scenario) -> None:
    exchange.authority.topics = {("app1", Action.SUBSCRIBE, "USD/b")}
    warned(exchange.register("a", "b", tags=[USD]), Answer(3081, (("Topic", "b"),)))


def test_fullresp_names_the_point(exchange: Scenario) -> None:
    attributes = exchange.register(SPOT, options=["FullResp"], tags=[USD]).response.attributes
    assert ("Topic", SPOT) in attributes
    assert USD in attributes


def test_2_5_1_the_whole_topic_string_may_have_10240_characters(exchange: Scenario) -> None:
    fits, too_long = "t" * (10240 - 4), "t" * (10240 - 3)
    done(exchange.publish(fits, tags=[USD], request=True))
    result = exchange.publish("a", too_long, tags=[USD], options=["RetainPub"], request=True)
    refused(result, 3072, ("Topic", too_long))
    refused(exchange.register("a", too_long, tags=[USD]), 3072, ("Topic", too_long))
    assert exchange.retained == []


def test_6_2_a_topic_that_is_the_prefix_itself_is_told_whole(exchange: Scenario) -> None:
    """``#`` on subscription point USD matches topic USD too; no subscriber is told a topic without characters."""
    exchange.register("#", tags=[USD])
    assert exchange.publish("USD").topics == ["USD"]
    assert exchange.publish("USD/a").topics == ["a"]
