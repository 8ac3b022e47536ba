"""Retained publications that an edge keeps and only lends to the topic space."""

from __future__ import annotations

from streams.operations import PublishToTopic, RetainedPublication
from streams.subscriptions import WildcardScheme
from streams.topic_objects import TopicObjects
from streams.topic_space import TopicSpace
from tests.streams.conftest import NOW, publication


def test_what_is_lent_is_found_and_forgotten() -> None:
    space = TopicSpace(TopicObjects())
    space.apply(PublishToTopic("a/b", publication("old"), retain=True), NOW)
    lent = RetainedPublication("a/c", publication("lent"))
    space.forget_retained()
    space.retain(lent)
    assert space.retained("a/#", WildcardScheme.TOPIC, NOW) == (lent,)
    space.forget_retained()
    assert space.retained_publications() == ()
