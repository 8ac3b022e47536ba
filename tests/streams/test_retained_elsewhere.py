"""Retained publications that an edge keeps and only lends to the topic space."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from streams.operations import Publication, PublishToTopic, RetainedPublication
from streams.subscriptions import WildcardScheme
from streams.topic_objects import TopicObjects
from streams.topic_space import TopicSpace


def test_what_is_lent_is_found_and_forgotten(publication: Callable[..., Publication], now: datetime) -> None:
    space = TopicSpace(TopicObjects())
    space.apply(PublishToTopic("a/b", publication("old"), retain=True), now)
    lent = RetainedPublication("a/c", publication("lent"))
    space.forget_retained()
    space.retain(lent)
    assert space.retained("a/#", WildcardScheme.TOPIC, now) == (lent,)
    space.forget_retained()
    assert space.retained_publications() == ()
