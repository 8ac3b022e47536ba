"""Administrative topic objects and inheritance (guide 2.5.4, 2.5.4.1)."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from rfh2.errors import CommandError
from streams import topic_objects
from streams.subscriptions import WildcardScheme
from streams.topic_objects import (
    BASE_TOPIC,
    MessageDelivery,
    PutResponse,
    Scope,
    TopicObject,
    TopicObjects,
    Wildcard,
)


def soccer() -> TopicObjects:
    """Figure 4 of 2.5.4, with an attribute given here and there."""
    objects = TopicObjects()
    objects.define(TopicObject("FOOTBALL.EUROPEAN", "Sport/Soccer", durable_subs=False))
    objects.define(TopicObject("FOOTBALL.TEAMX", "Sport/Soccer/TeamX", pub=False, cluster="CL1"))
    objects.define(TopicObject("TENNIS", "Sport/Tennis"))
    return objects


@pytest.mark.rule("PS-17")
def test_defaults_of_the_base_topic() -> None:
    """2.5.4.1, table 1."""
    resolved = TopicObjects().resolve("USA/Alabama")
    assert resolved.object_name == BASE_TOPIC
    assert (resolved.def_priority, resolved.def_put_response, resolved.def_persistence) == (0, PutResponse.SYNC, False)
    assert (resolved.pub, resolved.sub, resolved.durable_subs) == (True, True, True)
    assert (resolved.durable_model_queue, resolved.non_durable_model_queue) == (
        "SYSTEM.DURABLE.MODEL.QUEUE",
        "SYSTEM.NDURABLE.MODEL.QUEUE",
    )
    assert (resolved.npmsgdlv, resolved.pmsgdlv) == (MessageDelivery.ALLAVAIL, MessageDelivery.ALLDUR)
    assert (resolved.pub_scope, resolved.sub_scope, resolved.cluster) == (Scope.ALL, Scope.ALL, "")


def test_defaults_hold_where_the_base_topic_was_deleted() -> None:
    """2.5.4.1, last sentence."""
    objects = TopicObjects()
    before = objects.resolve("USA")
    objects.delete(BASE_TOPIC)
    assert objects.at("") is None
    assert objects.resolve("USA") == before


def test_the_base_topic_can_be_altered_and_what_it_leaves_open_is_the_default() -> None:
    objects = TopicObjects()
    objects.alter(TopicObject(BASE_TOPIC, "", def_persistence=True))
    resolved = objects.resolve("USA")
    assert (resolved.def_persistence, resolved.durable_subs) == (True, True)


INHERITED = [
    pytest.param("Sport/Soccer/TeamX/Results", "FOOTBALL.TEAMX", False, False, "CL1", id="2.5.4-from-two-above"),
    pytest.param("Sport/Soccer/TeamX", "FOOTBALL.TEAMX", False, False, "CL1", id="2.5.4-at-the-object"),
    pytest.param("Sport/Soccer/TeamY", "FOOTBALL.EUROPEAN", True, False, "", id="2.5.4-from-one-above"),
    pytest.param("Sport/Tennis/PlayerB/Results", "TENNIS", True, True, "", id="2.5.4-from-the-base"),
    pytest.param("Sport", BASE_TOPIC, True, True, "", id="2.5.4-no-object"),
    pytest.param("Sport/SoccerX", BASE_TOPIC, True, True, "", id="2.5.4-whole-levels"),
    pytest.param("/Sport/Soccer", BASE_TOPIC, True, True, "", id="2.5.4-another-root"),
]


@pytest.mark.parametrize(("topic_string", "name", "pub", "durable", "cluster"), INHERITED)
def test_inheritance(topic_string: str, name: str, pub: bool, durable: bool, cluster: str) -> None:
    resolved = soccer().resolve(topic_string)
    assert (resolved.object_name, resolved.pub, resolved.durable_subs, resolved.cluster) == (
        name,
        pub,
        durable,
        cluster,
    )


def test_a_change_is_seen_by_the_next_resolve() -> None:
    objects = soccer()
    assert objects.resolve("Sport/Soccer/TeamY").durable_subs is False
    objects.alter(replace(objects.require("FOOTBALL.EUROPEAN"), durable_subs=None))
    assert objects.resolve("Sport/Soccer/TeamY").durable_subs is True
    objects.define(TopicObject("SPORT", "Sport", durable_subs=False))
    assert objects.resolve("Sport/Soccer/TeamY").durable_subs is False
    objects.delete("SPORT")
    assert objects.resolve("Sport/Soccer/TeamY").durable_subs is True


SUBSCRIBED = [
    pytest.param("Sports/#/Leeds", WildcardScheme.TOPIC, BASE_TOPIC, id="2.5.4-guides-example"),
    pytest.param("Sports/Rugby/#", WildcardScheme.TOPIC, "Rugby", id="2.5.4-object-at-the-truncated-topic"),
    pytest.param("Sports/Rugby/Leeds/+", WildcardScheme.TOPIC, "Rugby", id="2.5.4-scan-left"),
    pytest.param("Sports/Rugby*", WildcardScheme.CHAR, BASE_TOPIC, id="2.5.4-part-of-a-level-is-no-level"),
    pytest.param("Sports/Rugby/L*", WildcardScheme.CHAR, "Rugby", id="2.5.4-whole-levels-before"),
    pytest.param("Sports/Rugby", WildcardScheme.CHAR, "Rugby", id="2.5.4-no-wildcard"),
    pytest.param("#", WildcardScheme.TOPIC, BASE_TOPIC, id="2.5.4-nothing-left"),
]


@pytest.mark.parametrize(("pattern", "scheme", "name"), SUBSCRIBED)
def test_the_topic_object_of_a_subscription(pattern: str, scheme: WildcardScheme, name: str) -> None:
    """2.5.4, "Wildcards and cluster topics": truncate to the first wildcard, scan left."""
    objects = TopicObjects()
    objects.define(TopicObject("Rugby", "Sports/Rugby"))
    assert objects.resolve_subscription(pattern, scheme).object_name == name


REFUSED = [
    pytest.param(TopicObject("TENNIS", "Sport/Golf"), 4001, id="name-taken"),
    pytest.param(TopicObject("TENNIS2", "Sport/Tennis"), 3300, id="topic-string-taken"),
    pytest.param(TopicObject("WILD", "Sport/#"), 3072, id="topic-string-wild"),
]


@pytest.mark.parametrize(("topic_object", "reason"), REFUSED)
def test_what_cannot_be_defined(topic_object: TopicObject, reason: int) -> None:
    objects = soccer()
    before = list(objects)
    with pytest.raises(CommandError) as caught:
        objects.define(topic_object)
    assert caught.value.reason == reason
    assert list(objects) == before


def test_altering_and_deleting_what_is_not_there_is_2085() -> None:
    objects = TopicObjects()
    with pytest.raises(CommandError) as altering:
        objects.alter(TopicObject("NONE", "a"))
    with pytest.raises(CommandError) as deleting:
        objects.delete("NONE")
    assert altering.value.reason == deleting.value.reason == 2085


def test_the_topic_string_of_an_object_cannot_be_altered() -> None:
    """2.5.4, note to figure 7: delete the topic first."""
    objects = soccer()
    with pytest.raises(CommandError):
        objects.alter(replace(objects.require("TENNIS"), topic_string="Sport/Squash"))
    objects.delete("TENNIS")
    objects.define(TopicObject("TENNIS", "Sport/Squash"))
    assert objects.at("Sport/Tennis") is None
    assert objects.nearest("Sport/Squash/Results") == objects.get("TENNIS")


def test_several_objects_may_have_no_topic_string() -> None:
    objects = TopicObjects()
    assert objects.require("SYSTEM.DEFAULT.TOPIC").topic_string == ""
    objects.define(TopicObject("STREAM.AT.ROOT", "", durable_subs=False))
    assert objects.at("") == objects.get(BASE_TOPIC)
    assert objects.resolve("a").durable_subs is True


def test_blocks_are_those_of_now() -> None:
    objects = soccer()
    assert not objects.blocks()
    objects.alter(replace(objects.require("TENNIS"), wildcard=Wildcard.BLOCK))
    assert objects.blocks().topic_strings == {"Sport/Tennis"}
    objects.delete("TENNIS")
    assert not objects.blocks()


def test_what_is_kept_of_resolved_topics_has_a_bound_in_bytes() -> None:
    objects = TopicObjects()
    tracemalloc.start()
    try:
        for number in range(6_000):
            topic = f"{'x' * 10_000}/{number}"
            assert objects.resolve(topic).topic_string == topic
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < topic_objects._MOST_RESOLVED_BYTES
