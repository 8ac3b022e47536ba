"""DeletePub (guide 6.7.1): retained publications are forgotten."""

from __future__ import annotations

import pytest

from commands.broker.authority import Action
from commands.broker.objects import Objects, QueueManager
from streams.topic_objects import TopicObject, Wildcard
from tests.commands.scenario import Answer, Scenario, done, refused, warned


@pytest.fixture
def filled(world: Scenario) -> Scenario:
    """With retained publications to a, a/b, a/c and d, the last one local."""
    world.publish("a", "a/b", "a/c", options=["RetainPub"])
    world.publish("d", options=["RetainPub", "Local"])
    return world


CASES = [
    ("6.7.1-one-topic", ("a/b",), (), ["a", "a/c", "d"]),
    ("6.7.1-some-of-the-topics-of-one-publish", ("a", "a/c"), (), ["a/b", "d"]),
    ("6.7.1-wildcards", ("a/#",), (), ["d"]),
    ("6.7.1-single-level-wildcard", ("a/+",), (), ["a", "d"]),
    ("6.7.1-Local", ("a/b", "d"), ("Local",), ["a", "a/c"]),
    ("6.7.1-None", ("d",), ("None",), ["a", "a/b", "a/c"]),
    ("6.7.1-local-and-global-ones-alike", ("#",), (), []),
    ("6.7.1-nothing-there", ("x",), (), ["a", "a/b", "a/c", "d"]),
]


@pytest.mark.rule("DEL-1", "DEL-4", "DEL-5", "DEL-6", "DEL-7")
@pytest.mark.parametrize(("topics", "options", "left"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_6_7_1_retained_publications_go(
    filled: Scenario, topics: tuple[str, ...], options: tuple[str, ...], left: list[str]
) -> None:
    done(filled.delete(*topics, options=options))
    assert filled.retained == left


@pytest.mark.rule("DEL-3")
def test_6_7_1_topics_without_authority_are_named_and_the_rest_is_deleted(filled: Scenario) -> None:
    filled.authority.topics = {("app1", Action.PUBLISH, "a/b")}
    warned(filled.delete("a", "a/b", "a/c"), Answer(3081, (("Topic", "a/b"),)))
    assert filled.retained == ["a/b", "d"]


@pytest.mark.rule("DEL-3")
def test_6_7_1_no_topic_with_authority_is_an_error(filled: Scenario) -> None:
    filled.authority.topics = {("app1", Action.PUBLISH, "a/b")}
    refused(filled.delete("a/b"), 3081, ("Topic", "a/b"))


@pytest.mark.rule("DEL-8")
def test_6_7_6_one_error_and_nothing_is_deleted(filled: Scenario) -> None:
    refused(filled.delete("a", ""), 3072, ("Topic", ""))
    assert filled.retained == ["a", "a/b", "a/c", "d"]


def test_6_7_7_3087(filled: Scenario) -> None:
    refused(filled.delete("a", options=["Global"]), 3087, ("DelOpt", "Global"))


@pytest.mark.rule("STR-3")
def test_6_1_wildcards_stop_at_the_topic_space_of_a_stream() -> None:
    objects = Objects(QueueManager("QM1"))
    objects.put(TopicObject("Sport", "Sport", wildcard=Wildcard.BLOCK))
    world = Scenario(objects=objects)
    world.publish("a", "Sport/b", options=["RetainPub"])
    done(world.delete("#"))
    assert world.retained == ["Sport/b"]
