"""What the tree has to send (``links.engine.filter_registry``): asked for once, and again when it has to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commands.links.engine.filter_registry import Interest
from streams.operations import SubscriptionAdded, SubscriptionAltered, SubscriptionRemoved
from streams.subscriptions import Subscription
from tests.commands.scenario import Scenario


def _subscription(topic: str, number: int = 1) -> Subscription:
    world = Scenario()
    world.register(topic, reply_to="S")
    (made,) = world.subscriptions
    return replace(made, sub_id=number.to_bytes(24, "big"))


@pytest.fixture
def interest() -> Interest[str]:
    return Interest(lambda subscription: subscription.topic_string)


def _registered(interest: Interest[str], subscription: Subscription) -> None:
    """As a RegSub does it, when the tree agrees."""
    if interest.ask(subscription.topic_string):
        interest.answered(subscription.topic_string, has=True)
    interest.note([SubscriptionAdded(subscription)])
    interest.committed()


def test_a_selection_is_asked_for_once_and_left_with_its_last_subscription(interest: Interest[str]) -> None:
    one, two = _subscription("a", 1), _subscription("a", 2)
    _registered(interest, one)
    assert not interest.ask("a"), "the tree has it already"
    _registered(interest, two)
    interest.note([SubscriptionRemoved(one)])
    interest.committed()
    assert interest.drop_unwanted(["a"]) == []
    interest.note([SubscriptionRemoved(two)])
    interest.committed()
    assert interest.drop_unwanted(["a"]) == ["a"]
    assert interest.ask("a"), "it has to be asked for again"


def test_a_command_that_is_backed_out_leaves_nothing(interest: Interest[str]) -> None:
    assert interest.ask("a")
    interest.answered("a", has=True)
    interest.note([SubscriptionAdded(_subscription("a"))])
    interest.follow([])
    interest.committed()
    assert interest.behind() == []
    assert interest.drop_unwanted(["a"]) == ["a"], "the tree sends what nobody wants"


def test_an_altered_subscription_counts_for_its_new_selection(interest: Interest[str]) -> None:
    before = _subscription("a")
    _registered(interest, before)
    after = replace(before, topic_string="b")
    interest.note([SubscriptionAltered(before, after)])
    interest.committed()
    assert interest.drop_unwanted(["a"]) == ["a"]
    assert interest.behind() == ["b"], "nobody has asked the tree for it"


def test_what_the_tree_refuses_is_asked_again_when_pardoned_or_connected_anew(interest: Interest[str]) -> None:
    interest.follow([_subscription("a")])
    assert interest.behind() == ["a"]
    for again in (interest.pardon, lambda: interest.connected(remembered=True)):
        interest.refuse("a")
        assert interest.behind() == []
        assert not interest.ask("a")
        again()
        assert interest.behind() == ["a"]
    assert not interest.pardon()


def test_a_tree_that_has_forgotten_is_asked_for_everything_again(interest: Interest[str]) -> None:
    _registered(interest, _subscription("a"))
    assert not interest.connected(remembered=True)
    assert interest.behind() == []
    assert interest.connected(remembered=False), "something was forgotten"
    assert interest.behind() == ["a"]


def test_what_is_settled_for_no_one_any_more_is_not_settled(interest: Interest[str]) -> None:
    assert not interest.settle("a")
    interest.follow([_subscription("a")])
    assert interest.settle("a")
    assert interest.behind() == []
