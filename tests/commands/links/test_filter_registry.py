"""The filters that a tree has to have (``engine.filter_registry``): asked for once, and again when it has to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commands.links.engine.filter_registry import FilterRegistry
from streams.operations import SubscriptionAdded, SubscriptionAltered, SubscriptionRemoved
from streams.subscriptions import Subscription
from tests.commands.scenario import Scenario


def _subscription(topic: str, number: int = 1) -> Subscription:
    world = Scenario()
    world.register(topic, reply_to="S")
    (made,) = world.subscriptions
    return replace(made, sub_id=number.to_bytes(24, "big"))


@pytest.fixture
def registry() -> FilterRegistry[str]:
    return FilterRegistry(lambda subscription: subscription.topic_string)


def _registered(registry: FilterRegistry[str], subscription: Subscription) -> None:
    """As a RegSub does it, when the tree agrees."""
    if registry.begin(subscription.topic_string):
        registry.answered(subscription.topic_string, has=True)
    registry.note([SubscriptionAdded(subscription)])
    registry.committed()


def test_a_filter_is_asked_for_once_and_left_with_its_last_subscription(registry: FilterRegistry[str]) -> None:
    one, two = _subscription("a", 1), _subscription("a", 2)
    _registered(registry, one)
    assert not registry.begin("a"), "the tree has it already"
    _registered(registry, two)
    registry.note([SubscriptionRemoved(one)])
    registry.committed()
    assert registry.drop_unwanted(["a"]) == []
    registry.note([SubscriptionRemoved(two)])
    registry.committed()
    assert registry.drop_unwanted(["a"]) == ["a"]
    assert registry.begin("a"), "it has to be asked for again"


def test_a_filter_that_only_another_instance_asked_for_goes_with_its_last_subscription(
    registry: FilterRegistry[str],
) -> None:
    one = _subscription("a")
    registry.load([one])
    registry.connected(remembered=True)
    registry.note([SubscriptionRemoved(one)])
    registry.committed()
    assert registry.drop_unwanted([]) == ["a"]
    assert registry.drop_unwanted([]) == ["a"], "the tree did not answer"
    registry.dropped("a")
    assert registry.drop_unwanted([]) == []


def test_a_command_that_is_backed_out_leaves_nothing(registry: FilterRegistry[str]) -> None:
    assert registry.begin("a")
    registry.answered("a", has=True)
    registry.note([SubscriptionAdded(_subscription("a"))])
    registry.load([])
    registry.committed()
    assert registry.unsynced() == []
    assert registry.drop_unwanted(["a"]) == ["a"], "the tree sends what nobody wants"


def test_an_altered_subscription_counts_for_its_new_filter(registry: FilterRegistry[str]) -> None:
    before = _subscription("a")
    _registered(registry, before)
    after = replace(before, topic_string="b")
    registry.note([SubscriptionAltered(before, after)])
    registry.committed()
    assert registry.drop_unwanted(["a"]) == ["a"]
    assert registry.unsynced() == ["b"], "nobody has asked the tree for it"


def test_what_the_tree_refuses_is_tried_again_after_a_while_or_when_connected_anew(
    registry: FilterRegistry[str],
) -> None:
    registry.load([_subscription("a")])
    assert registry.unsynced() == ["a"]
    for again in (registry.retry_rejected, lambda: registry.connected(remembered=True)):
        registry.reject("a")
        assert registry.unsynced() == []
        assert not registry.begin("a")
        again()
        assert registry.unsynced() == ["a"]
    assert not registry.retry_rejected()


def test_a_tree_that_has_forgotten_is_asked_for_everything_again(registry: FilterRegistry[str]) -> None:
    _registered(registry, _subscription("a"))
    assert not registry.connected(remembered=True)
    assert registry.unsynced() == []
    assert registry.connected(remembered=False), "something was forgotten"
    assert registry.unsynced() == ["a"]


def test_what_is_synced_for_no_one_any_more_is_not_synced(registry: FilterRegistry[str]) -> None:
    assert not registry.sync("a")
    registry.load([_subscription("a")])
    assert registry.sync("a")
    assert registry.unsynced() == []


def test_a_tree_that_may_have_forgotten_filters_is_asked_again_at_each_connection() -> None:
    registry = FilterRegistry[str](lambda subscription: subscription.topic_string, ["a", "b"], forgets=True)
    registry.load([_subscription("a")])
    assert registry.unconfirmed() == [], "there is no connection yet"
    registry.connected(remembered=True)
    assert registry.unconfirmed() == ["a"], "nobody wants b"
    registry.confirm(["a"], connection=0)
    assert registry.unconfirmed() == ["a"], "the answer was of the connection before"
    registry.confirm(["a"], connection=1)
    assert registry.unconfirmed() == []
    registry.connected(remembered=False)
    assert (registry.unconfirmed(), registry.unsynced()) == ([], ["a"]), "it has none, and says so"


def test_a_filter_that_is_refused_when_it_is_confirmed_is_tried_again_like_any_other() -> None:
    registry = FilterRegistry[str](lambda subscription: subscription.topic_string, ["a"], forgets=True)
    registry.load([_subscription("a")])
    registry.connected(remembered=True)
    registry.reject("a")
    registry.confirm(["a"], connection=1)
    assert (registry.unconfirmed(), registry.unsynced()) == ([], [])
    assert registry.retry_rejected()
    assert registry.unsynced() == ["a"]
