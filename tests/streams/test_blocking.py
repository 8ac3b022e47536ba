"""WILDCARD(BLOCK) (guide 2.5.4, "Controlling wildcard usage"): the guide's tables, and isolation of streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from streams.operations import Delivery, Publication, PublishToTopic, Subscribe
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObject, TopicObjects, Wildcard
from streams.topic_space import TopicSpace
from streams.topic_strings import NO_BLOCKS, BlockSet

Make = Callable[..., Subscription]
Publish = Callable[..., Publication]

# pub.bat, figure 12.
PUBLISHED = ["Sports", "Sports/Football", "Sports/Football/Arsenal", "Sports/Rugby", "Sports/Rugby/Leeds"]


def topics_tst() -> TopicObjects:
    """Figure 7: topics.tst."""
    objects = TopicObjects()
    objects.define(TopicObject("Sports", "Sports"))
    objects.define(TopicObject("Football", "Sports/Football", cluster="CL1", wildcard=Wildcard.BLOCK))
    objects.define(TopicObject("Arsenal", "Sports/Football/Arsenal"))
    objects.define(TopicObject("Rugby", "Sports/Rugby", cluster="CL1"))
    objects.define(TopicObject("Leeds", "Sports/Rugby/Leeds"))
    return objects


def received(space: TopicSpace, topics: list[str], publish: Publish, now: datetime) -> dict[str | None, list[str]]:
    got: dict[str | None, list[str]] = {s.name: [] for s in space.subscriptions()}
    for topic in topics:
        for effect in space.apply(PublishToTopic(topic, publish()), now):
            assert isinstance(effect, Delivery)
            got[effect.subscription.name].append(effect.topic_string)
    return got


def test_tables_1_and_2(subscription: Make, publication: Publish, now: datetime) -> None:
    """Publications received on QMA, before and after the subscriptions to cluster topics are added."""
    space = TopicSpace(topics_tst())
    for number, (name, topic) in enumerate(
        [("SPORTS", "Sports/#"), ("SARSENAL", "Sports/#/Arsenal"), ("SLEEDS", "Sports/#/Leeds")]
    ):
        space.apply(Subscribe(subscription(number, topic, name=name), send_retained=True), now)
    table_1 = {
        "SPORTS": ["Sports", "Sports/Rugby", "Sports/Rugby/Leeds"],
        "SARSENAL": [],
        "SLEEDS": ["Sports/Rugby/Leeds"],
    }
    assert received(space, PUBLISHED, publication, now) == table_1
    for number, (name, topic) in enumerate(
        [("FARSENAL", "Sports/Football/Arsenal"), ("FLEEDS", "Sports/Rugby/Leeds")], start=3
    ):
        space.apply(Subscribe(subscription(number, topic, name=name), send_retained=True), now)
    assert received(space, PUBLISHED, publication, now) == table_1 | {
        "FARSENAL": ["Sports/Football/Arsenal"],
        "FLEEDS": ["Sports/Rugby/Leeds"],
    }


def test_without_block_the_wildcards_reach_everything(subscription: Make, publication: Publish, now: datetime) -> None:
    """ "Setting PASSTHRU does not alter the behavior": the same subscriptions on a tree without BLOCK."""
    space = TopicSpace(TopicObjects())
    space.apply(Subscribe(subscription(0, "Sports/#", name="SPORTS"), send_retained=True), now)
    space.apply(Subscribe(subscription(1, "Sports/#/Arsenal", name="SARSENAL"), send_retained=True), now)
    assert received(space, PUBLISHED, publication, now) == {
        "SPORTS": PUBLISHED,
        "SARSENAL": ["Sports/Football/Arsenal"],
    }


T, C = WildcardScheme.TOPIC, WildcardScheme.CHAR
ISOLATED = [
    # "a subscription to * receives no publications. To receive all the Sports publications you must subscribe to
    # Sports/*, or Sports/#, and similarly for Business publications."
    pytest.param("#", T, ["Weather"], id="2.5.4-multi-level-outside"),
    pytest.param("*", C, ["Weather"], id="2.5.4-star-outside"),
    pytest.param("Sports/#", T, ["Sports", "Sports/a", "Sports/a/b"], id="2.5.4-multi-level-inside"),
    pytest.param("Sports/*", C, ["Sports/a", "Sports/a/b"], id="2.5.4-star-inside"),
    pytest.param("Sports*", C, [], id="2.5.4-star-that-is-not-whole-levels-inside"),
    pytest.param("+/a", T, [], id="2.5.4-single-level-outside"),
    pytest.param("Sports/+", T, ["Sports/a"], id="2.5.4-single-level-inside"),
    pytest.param("Sports/a", T, ["Sports/a"], id="2.5.4-no-wildcard"),
]


@pytest.mark.parametrize(("pattern", "scheme", "topics"), ISOLATED)
def test_streams_are_isolated(
    pattern: str, scheme: WildcardScheme, topics: list[str], subscription: Make, publication: Publish, now: datetime
) -> None:
    """2.5.4, "Wildcards and streams"."""
    objects = TopicObjects()
    objects.define(TopicObject("Sports", "Sports", wildcard=Wildcard.BLOCK))
    objects.define(TopicObject("Business", "Business", wildcard=Wildcard.BLOCK))
    space = TopicSpace(objects)
    space.apply(Subscribe(subscription(0, pattern, wildcard=scheme), send_retained=True), now)
    published = ["Weather", "Sports", "Sports/a", "Sports/a/b", "Business", "Business/a"]
    assert received(space, published, publication, now)[None] == topics


def test_a_subscription_keeps_the_blocks_it_was_made_under(
    subscription: Make, publication: Publish, now: datetime
) -> None:
    """2.5.4: "If you want to force the matching set of topics to be reevaluated ... you must restart"."""
    objects = topics_tst()
    space = TopicSpace(objects)
    space.apply(Subscribe(subscription(0, "Sports/#", name="BEFORE"), send_retained=True), now)
    objects.alter(replace(objects.require("Football"), wildcard=Wildcard.PASSTHRU))
    objects.alter(replace(objects.require("Rugby"), wildcard=Wildcard.BLOCK))
    space.apply(Subscribe(subscription(1, "Sports/#", name="AFTER"), send_retained=True), now)
    under_football, under_rugby = PUBLISHED[1:3], PUBLISHED[3:]
    assert received(space, PUBLISHED, publication, now) == {
        "BEFORE": ["Sports", *under_rugby],
        "AFTER": ["Sports", *under_football],
    }
    space.restore(space.subscriptions(), ())
    assert received(space, PUBLISHED, publication, now) == {
        "BEFORE": ["Sports", *under_football],
        "AFTER": ["Sports", *under_football],
    }
    objects.alter(replace(objects.require("Rugby"), wildcard=Wildcard.PASSTHRU))
    space.restore(space.subscriptions(), ())
    assert received(space, PUBLISHED, publication, now) == {"BEFORE": PUBLISHED, "AFTER": PUBLISHED}


def test_a_start_has_kept_subscriptions_heed_the_blocks_of_now(
    subscription: Make, publication: Publish, now: datetime
) -> None:
    """2.5.4; a topic space that takes over from a running one leaves what that one has as it is."""
    objects = topics_tst()
    running = TopicSpace(objects)
    running.apply(Subscribe(subscription(0, "Sports/#", name="RUNNING"), send_retained=True), now)
    objects.alter(replace(objects.require("Football"), wildcard=Wildcard.PASSTHRU))
    objects.alter(replace(objects.require("Rugby"), wildcard=Wildcard.BLOCK))
    kept = [*running.subscriptions(), subscription(1, "Sports/#", name="KEPT")]
    under_football, under_rugby = PUBLISHED[1:3], PUBLISHED[3:]
    now_blocked = ["Sports", *under_football]
    started = TopicSpace(objects)
    started.restore(kept, ())
    assert received(started, PUBLISHED, publication, now) == {"RUNNING": now_blocked, "KEPT": now_blocked}
    taken_over = TopicSpace(objects)
    taken_over.restore(kept, (), running)
    assert received(taken_over, PUBLISHED, publication, now) == {
        "RUNNING": ["Sports", *under_rugby],
        "KEPT": now_blocked,
    }


DEPTHS = [
    ("a", 1), ("a/x", 1), ("a/b", 1), ("a/b/c", 3), ("a/b/c/d", 3), ("ab", 0), ("b", 0), ("/a", 0), ("/x/y", 2),
]  # fmt: skip


@pytest.mark.parametrize(("topic_string", "depth"), DEPTHS)
def test_the_deepest_block_at_or_above(topic_string: str, depth: int) -> None:
    assert BlockSet(frozenset({"a", "a/b/c", "/x"})).depth(topic_string) == depth


def test_the_root_blocks_nothing() -> None:
    assert BlockSet(frozenset({""})).depth("a/b") == 0
    assert not NO_BLOCKS
