"""The topic space: operations in, effects out (guide 2.3, 2.4, 4.6.1, 4.8, 6.7, 7.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rfh2.errors import CommandError
from rfh2.mqi_constants import MQCI_NONE
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Delivery,
    Effect,
    Operation,
    Publication,
    PublishToTopic,
    RequestRetained,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    Rule,
    Subscribe,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
    Unsubscribe,
)
from streams.subscriptions import Subscription, SubscriptionOptions, WildcardScheme
from streams.topic_objects import Scope, TopicObject, TopicObjects, Wildcard
from streams.topic_space import TopicSpace

Make = Callable[..., Subscription]
Publish = Callable[..., Publication]

T, C = WildcardScheme.TOPIC, WildcardScheme.CHAR


@pytest.fixture
def space() -> TopicSpace:
    return TopicSpace(TopicObjects())


def subscribe(space: TopicSpace, now: datetime, *subscriptions: Subscription) -> None:
    for each in subscriptions:
        assert space.apply(Subscribe(each, send_retained=False), now) == [SubscriptionAdded(each)]


def receivers(effects: Iterable[Effect]) -> list[int]:
    return [int.from_bytes(e.subscription.sub_id, "big") for e in effects if isinstance(e, Delivery)]


def state(space: TopicSpace) -> object:
    return (space.subscriptions(), space.retained_publications())


# Subscribing, altering, unsubscribing


def test_a_subscription_is_found_by_all_its_names(space: TopicSpace, subscription: Make, now: datetime) -> None:
    one = subscription(2, "a", name="ONE", dest_queue="Q", correl_id=b"c" * 24)
    other = subscription(1, "b/#", dest_queue="Q", correl_id=b"c" * 24)
    subscribe(space, now, one, other)
    assert space.subscription(one.sub_id) == one
    assert space.by_name("ONE") == one
    assert space.by_name("TWO") is None
    assert space.by_identity(("QM1", "Q", b"c" * 24)) == (other, one)
    assert space.by_identity(("QM1", "Q", MQCI_NONE)) == ()
    assert space.subscriptions() == (other, one)
    assert space.apply(Unsubscribe(one), now) == [SubscriptionRemoved(one)]
    assert space.subscription(one.sub_id) is None
    assert space.by_name("ONE") is None
    assert space.by_identity(one.traditional_identity) == (other,)


def test_altering_keeps_the_sub_id_and_moves_everything_else(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    before = subscription(1, "a/#", name="BEFORE", dest_queue="Q1")
    after = subscription(1, "b*", name="AFTER", dest_queue="Q2", wildcard=C)
    subscribe(space, now, before)
    assert space.apply(AlterSubscription(after, send_retained=False), now) == [SubscriptionAltered(before, after)]
    assert (space.by_name("BEFORE"), space.by_name("AFTER")) == (None, after)
    assert space.by_identity(before.traditional_identity) == ()
    assert space.by_identity(after.traditional_identity) == (after,)
    assert receivers(space.apply(PublishToTopic("a/b", publication()), now)) == []
    assert receivers(space.apply(PublishToTopic("b/a", publication()), now)) == [1]


def test_deliveries_carry_the_subscription_as_altered(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """A value in a kept answer must not outlive an alteration that leaves the topic string alone."""
    before = subscription(1, "a", dest_queue="Q1")
    after = replace(before, dest_queue="Q2")
    subscribe(space, now, before)
    assert space.match("a", now) == (before,)
    space.apply(AlterSubscription(after, send_retained=False), now)
    sent = publication()
    assert space.apply(PublishToTopic("a", sent), now) == [Delivery(after, "a", sent)]


def refused(subscription: Make) -> list[tuple[str, Operation, int]]:
    named = subscription(1, "a", name="ONE")
    return [
        ("name-taken", Subscribe(subscription(2, "b", name="ONE"), False), 3152),
        ("name-taken-by-alter", AlterSubscription(subscription(9, "z", name="ONE"), False), 3152),
        ("alter-what-is-not-there", AlterSubscription(subscription(3, "a"), False), 3073),
        ("alter-to-no-pattern", AlterSubscription(replace(named, topic_string="%x", wildcard=C), False), 3072),
        ("unsubscribe-what-is-not-there", Unsubscribe(subscription(3, "a")), 3073),
        ("request-for-what-is-not-there", RequestRetained(subscription(3, "a")), 3073),
        ("subscribe-to-nothing", Subscribe(subscription(4, ""), False), 3072),
        ("subscribe-to-no-pattern", Subscribe(subscription(4, "100%", wildcard=C), False), 3072),
        ("publish-to-a-wildcard", PublishToTopic("a/+", Publication(None, named.created), retain=True), 3072),  # type: ignore[arg-type]
        ("publish-to-nothing", PublishToTopic("", Publication(None, named.created), retain=True), 3072),  # type: ignore[arg-type]
        ("clear-no-pattern", ClearRetained("%", C), 3072),
    ]


@pytest.mark.parametrize("case", range(11))
def test_a_refused_operation_changes_nothing(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime, case: int
) -> None:
    subscribe(space, now, subscription(1, "a", name="ONE"), subscription(9, "a/#", name="NINE"))
    space.apply(PublishToTopic("a", publication("kept"), retain=True), now)
    before = state(space)
    _, operation, reason = refused(subscription)[case]
    with pytest.raises(CommandError) as caught:
        space.apply(operation, now)
    assert caught.value.reason == reason
    assert state(space) == before
    assert receivers(space.apply(PublishToTopic("a", publication()), now)) == [1, 9]
    assert receivers(space.apply(RequestRetained(subscription(9, "a/#")), now)) == [9]


def test_a_sub_id_in_use_is_an_error_of_the_caller(space: TopicSpace, subscription: Make, now: datetime) -> None:
    subscribe(space, now, subscription(1, "a"))
    with pytest.raises(ValueError, match="sub_id"):
        space.apply(Subscribe(subscription(1, "b"), send_retained=False), now)
    assert [s.topic_string for s in space.subscriptions()] == ["a"]


# Publishing


def test_matching_subscriptions_get_it_in_order_of_registration(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """2.4: also where one queue has several subscriptions that overlap, each gets a copy."""
    patterns = [("a/b", T), ("#", T), ("a/*", C), ("x", T), ("a/+", T)]
    subscribe(space, now, *(subscription(5 - n, p, wildcard=w, dest_queue="Q") for n, (p, w) in enumerate(patterns)))
    sent = publication()
    effects = space.apply(PublishToTopic("a/b", sent), now)
    assert receivers(effects) == [1, 3, 4, 5]
    assert effects == [Delivery(space.match("a/b", now)[n], "a/b", sent) for n in range(4)]


NOT_TO = [
    pytest.param(("QM1", "Q1", None), [3], id="any-correlation-identifier"),
    pytest.param(("QM1", "Q1", b"1" * 24), [2, 3], id="with-correlation-identifier"),
    pytest.param(("QM2", "Q1", None), [1, 2, 3], id="another-queue-manager"),
    pytest.param(None, [1, 2, 3], id="everyone"),
]


@pytest.mark.parametrize(("not_to", "expected"), NOT_TO)
def test_others_only(
    space: TopicSpace,
    subscription: Make,
    publication: Publish,
    now: datetime,
    not_to: tuple[str, str, bytes | None] | None,
    expected: list[int],
) -> None:
    """6.7.3, OtherSubsOnly; MQPMO_NOT_OWN_SUBS."""
    subscribe(
        space,
        now,
        subscription(1, "a", dest_queue="Q1", correl_id=b"1" * 24),
        subscription(2, "a", dest_queue="Q1", correl_id=b"2" * 24),
        subscription(3, "a", dest_queue="Q2"),
    )
    assert receivers(space.apply(PublishToTopic("a", publication(), not_to=not_to), now)) == expected


@pytest.mark.rule("APP-8")
def test_on_request_only_gets_no_publication_until_it_asks(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """4.8.2, MQSO_PUBLICATIONS_ON_REQUEST."""
    quiet = subscription(1, "a/#", options=SubscriptionOptions(pub_on_req_only=True))
    sent = publication()
    space.apply(PublishToTopic("a/b", sent, retain=True), now)
    assert space.apply(Subscribe(quiet, send_retained=True), now) == [SubscriptionAdded(quiet)]
    assert receivers(space.apply(PublishToTopic("a/c", publication()), now)) == []
    assert space.apply(RequestRetained(quiet), now) == [Delivery(quiet, "a/b", sent, from_retained=True)]


def test_a_selector_is_asked_only_where_there_is_one(subscription: Make, publication: Publish, now: datetime) -> None:
    asked: list[tuple[str | None, str]] = []

    def select(subscription: Subscription, publication: Publication, topic_string: str) -> bool:
        asked.append((subscription.selector, topic_string))
        return subscription.selector == "TRUE"

    space = TopicSpace(TopicObjects(), select)
    subscribe(space, now, *(subscription(n, "a/#", selector=s) for n, s in enumerate([None, "TRUE", "FALSE"])))
    assert receivers(space.apply(PublishToTopic("a/b", publication(), retain=True), now)) == [0, 1]
    assert asked == [("TRUE", "a/b"), ("FALSE", "a/b")]
    assert [receivers(space.apply(RequestRetained(s), now)) for s in space.subscriptions()] == [[0], [1], []]


SCOPES = [
    # semantics, publication local, subscription local, delivered to a subscriber on the publisher's queue manager
    ("v6", True, True, True),
    ("v6", False, True, False),
    ("v6", True, False, False),
    ("v6", False, False, True),
    ("v7", True, True, True),
    ("v7", False, True, True),
    ("v7", True, False, True),
    ("v7", False, False, True),
]


@pytest.mark.rule("DIS-5")
@pytest.mark.parametrize(("semantics", "published_local", "subscribed_local", "delivered"), SCOPES)
def test_scope(
    semantics: str,
    published_local: bool,
    subscribed_local: bool,
    delivered: bool,
    subscription: Make,
    publication: Publish,
    now: datetime,
) -> None:
    """7.5, table 2."""
    space = TopicSpace(TopicObjects(), semantics=semantics)
    subscribe(space, now, subscription(1, "a", options=SubscriptionOptions(local=subscribed_local)))
    sent = publication(local=published_local)
    assert bool(receivers(space.apply(PublishToTopic("a", sent, retain=True), now))) is delivered
    again = subscription(2, "a", options=SubscriptionOptions(local=subscribed_local))
    assert bool(receivers(space.apply(Subscribe(again, send_retained=True), now))) is delivered


@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize("by", ["Local", "SUBSCOPE(QMGR)", "scope ALL"])
@pytest.mark.parametrize("foreign", [True, False])
def test_3_3_2_what_was_published_elsewhere_is_not_for_a_subscription_of_scope_qmgr(
    by: str, foreign: bool, subscription: Make, publication: Publish, now: datetime
) -> None:
    """As it is published, as it is retained, and as an explanation says it."""
    topics = TopicObjects()
    topics.define(TopicObject("A", "a", sub_scope=Scope.QMGR if by == "SUBSCOPE(QMGR)" else None))
    space = TopicSpace(topics, is_foreign=lambda _: foreign)
    options = SubscriptionOptions(local=by == "Local")
    operation = PublishToTopic("a", publication(), retain=True)
    delivered = by == "scope ALL" or not foreign
    subscribe(space, now, subscription(1, "a", options=options))
    assert bool(receivers(space.apply(operation, now))) is delivered
    again = subscription(2, "a", options=options)
    assert bool(receivers(space.apply(Subscribe(again, send_retained=True), now))) is delivered
    rules = [] if delivered else [Rule.SCOPE]
    assert [each.rule for each in space.passed_over_retained(again, now, asked=False)] == rules
    assert {each.rule for each in space.passed_over(operation, now)} == set(rules)


def test_there_are_two_semantics() -> None:
    with pytest.raises(ValueError, match="v8"):
        TopicSpace(TopicObjects(), semantics="v8")


# Subscription levels


LEVELS = [
    # levels of the subscriptions, PubLevel, who gets it
    pytest.param([1, 1], 9, [0, 1], id="4.6.1-default"),
    pytest.param([1, 9, 9, 5], 9, [1, 2], id="4.6.1-only-level-9"),
    pytest.param([1, 5, 3], 9, [1], id="4.6.1-highest-there-is"),
    pytest.param([1, 5, 3], 4, [2], id="4.6.1-published-again-below-the-interceptor"),
    pytest.param([1, 5, 3], 2, [0], id="4.6.1-final-recipient"),
    pytest.param([0, 1], 9, [1], id="4.6.1-catchall-not-needed"),
    pytest.param([0], 9, [0], id="4.6.1-catchall"),
    pytest.param([0, 1], 0, [0], id="4.6.1-published-at-0"),
    pytest.param([1], 0, [], id="4.6.1-all-above"),
]


@pytest.mark.parametrize(("levels", "pub_level", "expected"), LEVELS)
def test_subscription_levels(
    space: TopicSpace,
    subscription: Make,
    publication: Publish,
    now: datetime,
    levels: list[int],
    pub_level: int,
    expected: list[int],
) -> None:
    subscribe(space, now, *(subscription(n, "a", sub_level=level) for n, level in enumerate(levels)))
    assert receivers(space.apply(PublishToTopic("a", publication(), pub_level=pub_level), now)) == expected


def test_what_an_interceptor_takes_is_retained_only_when_published_again(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """4.6.1, "Retained publications"."""
    interceptor, last = subscription(1, "a", sub_level=2), subscription(2, "a")
    subscribe(space, now, interceptor, last)
    sent = publication()
    assert space.apply(PublishToTopic("a", sent, retain=True), now) == [Delivery(interceptor, "a", sent)]
    assert space.apply(PublishToTopic("a", sent, retain=True, pub_level=1), now) == [
        RetainedStored(RetainedPublication("a", sent)),
        Delivery(last, "a", sent),
    ]
    assert space.apply(RequestRetained(interceptor), now) == []
    assert receivers(space.apply(Subscribe(subscription(3, "a", sub_level=2), send_retained=True), now)) == []


def test_an_interceptor_that_would_not_get_it_does_not_hold_it_up(
    subscription: Make, publication: Publish, now: datetime
) -> None:
    """Nothing may be lost to a subscription that its selector, or the publisher, keeps the publication from."""
    space = TopicSpace(TopicObjects(), lambda *_: False)
    subscribe(
        space,
        now,
        subscription(1, "a", sub_level=9, selector="x = 1"),
        subscription(2, "a", sub_level=8, dest_queue="OWN"),
        subscription(3, "a", sub_level=7, options=SubscriptionOptions(pub_on_req_only=True)),
        subscription(4, "a"),
    )
    assert receivers(space.apply(PublishToTopic("a", publication(), not_to=("QM1", "OWN", None)), now)) == [4]


# Grouping


def grouped(subscription: Make, number: int, topic_string: str, **values: Any) -> Subscription:
    return subscription(number, topic_string, **{"grouped": True, "dest_queue": "Q", "correl_id": b"g" * 24} | values)


def test_of_a_group_the_closest_gets_it(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """4.8.3: the longest matching topic string before encountering any wildcards."""
    subscribe(
        space,
        now,
        grouped(subscription, 1, "#"),
        grouped(subscription, 2, "a/*", wildcard=C),
        grouped(subscription, 3, "a/+/c"),
        grouped(subscription, 4, "a/b/#"),
        grouped(subscription, 5, "a/b/c"),
        grouped(subscription, 6, "a/b/c", dest_queue="OTHER"),
        grouped(subscription, 7, "a/b/c", correl_id=b"h" * 24),
        subscription(8, "#", dest_queue="Q", correl_id=b"g" * 24),
    )
    published = {t: receivers(space.apply(PublishToTopic(t, publication()), now)) for t in ["a/b/c", "a/b", "a/x", "x"]}
    assert published == {"a/b/c": [5, 6, 7, 8], "a/b": [4, 8], "a/x": [2, 8], "x": [1, 8]}


def test_of_equally_close_ones_the_eldest_gets_it(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    subscribe(space, now, grouped(subscription, 2, "a/+"), grouped(subscription, 1, "a/#"))
    assert receivers(space.apply(PublishToTopic("a/b", publication()), now)) == [1]


def test_a_group_whose_closest_is_the_publishers_own_gets_nothing(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """4.8.3: "If it does, no publication is delivered to the queue"."""
    subscribe(space, now, grouped(subscription, 1, "a/b"), grouped(subscription, 2, "a/#"), subscription(3, "a/b"))
    not_to = ("QM1", "Q", None)
    assert receivers(space.apply(PublishToTopic("a/b", publication(), not_to=not_to), now)) == [3]


def test_grouped_without_a_correlation_identifier_of_its_own_is_not_grouped(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """4.8.3, condition 4: the copies are not the same message, so none may be left out."""
    subscribe(
        space,
        now,
        grouped(subscription, 1, "a/b", correl_id=MQCI_NONE),
        grouped(subscription, 2, "a/#", correl_id=MQCI_NONE),
    )
    assert receivers(space.apply(PublishToTopic("a/b", publication()), now)) == [1, 2]


# Retained publications


def test_retained_is_stored_before_it_is_delivered_and_reaches_later_subscribers(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """2.3.2."""
    first, later = subscription(1, "a/b"), subscription(2, "a/*", wildcard=C)
    sent = publication("1")
    subscribe(space, now, first)
    assert space.apply(PublishToTopic("a/b", sent, retain=True), now) == [
        RetainedStored(RetainedPublication("a/b", sent)),
        Delivery(first, "a/b", sent),
    ]
    assert space.apply(Subscribe(later, send_retained=True), now) == [
        SubscriptionAdded(later),
        Delivery(later, "a/b", sent, from_retained=True),
    ]
    assert space.apply(AlterSubscription(later, send_retained=True), now) == [
        SubscriptionAltered(later, later),
        Delivery(later, "a/b", sent, from_retained=True),
    ]
    not_retained = publication("2")
    space.apply(PublishToTopic("a/b", not_retained), now)
    assert space.retained("a/#", T, now) == (RetainedPublication("a/b", sent),)


@pytest.mark.rule("APP-8")
def test_new_publications_only_gets_none_that_was_retained(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    """4.8.2, MQSO_NEW_PUBLICATIONS_ONLY; a request is another matter."""
    space.apply(PublishToTopic("a", publication(), retain=True), now)
    new = subscription(1, "a", options=SubscriptionOptions(new_pubs_only=True))
    assert space.apply(Subscribe(new, send_retained=True), now) == [SubscriptionAdded(new)]
    assert receivers(space.apply(RequestRetained(new), now)) == [1]


def test_a_request_that_nothing_answers_has_no_effect(space: TopicSpace, subscription: Make, now: datetime) -> None:
    """The command layer answers 3077."""
    subscribe(space, now, subscription(1, "a"))
    assert space.apply(RequestRetained(subscription(1, "a")), now) == []


CLEARED = [
    pytest.param("a/b", T, ["a/b"], id="6.7.1-one"),
    pytest.param("a/+", T, ["a/b", "a/c"], id="6.7.1-topic-wildcard"),
    pytest.param("*c", C, ["a/c", "b/c"], id="6.7.1-char-wildcard"),
    pytest.param("#", T, ["a/b", "a/c", "b/c"], id="6.7.1-all-but-blocked"),
    pytest.param("blocked/#", T, ["blocked/c"], id="6.7.1-inside-the-block"),
    pytest.param("x", T, [], id="6.7.1-none"),
]


@pytest.mark.parametrize(("topic_string", "scheme", "cleared"), CLEARED)
def test_clearing(
    topic_string: str, scheme: WildcardScheme, cleared: list[str], publication: Publish, now: datetime
) -> None:
    """Local or not, whoever published: all on this queue manager."""
    objects = TopicObjects()
    objects.define(TopicObject("BLOCKED", "blocked", wildcard=Wildcard.BLOCK))
    space = TopicSpace(objects)
    topics = ["a/b", "b/c", "a/c", "blocked/c"]
    for number, topic in enumerate(topics):
        space.apply(PublishToTopic(topic, publication(local=number % 2 == 0), retain=True), now)
    effects = space.apply(ClearRetained(topic_string, scheme, local=True), now)
    assert effects == [RetainedCleared(topic) for topic in cleared]
    assert [r.topic_string for r in space.retained_publications()] == sorted(set(topics) - set(cleared))


def test_blocks_hold_for_retained_publications_as_for_others(
    subscription: Make, publication: Publish, now: datetime
) -> None:
    """2.5.4, kept from when the subscription was made."""
    objects = TopicObjects()
    objects.define(TopicObject("BLOCKED", "a/b", wildcard=Wildcard.BLOCK))
    space = TopicSpace(objects)
    for topic in ["a", "a/b/c"]:
        space.apply(PublishToTopic(topic, publication(), retain=True), now)
    blocked, inside = subscription(1, "a/#"), subscription(2, "a/b/#")
    for each, expected in [(blocked, ["a"]), (inside, ["a/b/c"])]:
        effects = space.apply(Subscribe(each, send_retained=True), now)
        assert [e.topic_string for e in effects if isinstance(e, Delivery)] == expected
    objects.delete("BLOCKED")
    assert [e.topic_string for e in space.apply(RequestRetained(blocked), now) if isinstance(e, Delivery)] == ["a"]
    renewed = replace(blocked, user="again")
    space.apply(AlterSubscription(renewed, send_retained=False), now)
    assert len(space.apply(RequestRetained(blocked), now)) == 1
    space.restore(space.subscriptions(), space.retained_publications())
    assert len(space.apply(RequestRetained(blocked), now)) == 2


# Expiry and restart


@pytest.mark.rule("PS-5")
def test_an_expired_subscription_gets_nothing_and_goes_when_asked(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    later = now + timedelta(seconds=10)
    short, long = subscription(1, "a/#", name="SHORT", expires_at=later), subscription(2, "a/#")
    subscribe(space, now, short, long)
    space.apply(PublishToTopic("a", publication(expires_at=later), retain=True), now)
    just_before = later - timedelta(microseconds=1)
    assert receivers(space.apply(PublishToTopic("a/b", publication()), just_before)) == [1, 2]
    assert space.expire(just_before) == []
    assert receivers(space.apply(PublishToTopic("a/b", publication()), later)) == [2]
    assert space.retained("#", T, later) == ()
    assert space.expire(later) == [SubscriptionRemoved(short), RetainedCleared("a")]
    assert (space.by_name("SHORT"), space.subscriptions()) == (None, (long,))
    assert space.expire(later) == []


def test_registering_again_renews_the_expiry(space: TopicSpace, subscription: Make, now: datetime) -> None:
    """6.7.4, Expiry; also when it becomes unlimited."""
    times = [now + timedelta(seconds=s) for s in (1, 2, 3)]
    first = subscription(1, "a", expires_at=times[0])
    subscribe(space, now, first)
    space.apply(AlterSubscription(replace(first, expires_at=times[2]), send_retained=False), now)
    assert space.expire(times[1]) == []
    space.apply(AlterSubscription(replace(first, expires_at=None), send_retained=False), now)
    assert space.expire(times[2]) == []
    assert len(space.subscriptions()) == 1


def test_renewing_again_and_again_does_not_grow(space: TopicSpace, subscription: Make, now: datetime) -> None:
    one = subscription(1, "a", expires_at=now)
    subscribe(space, now, one)
    for second in range(1000):
        one = replace(one, expires_at=now + timedelta(seconds=second))
        space.apply(AlterSubscription(one, send_retained=False), now)
    assert len(space._expiries) < 100
    assert space.expire(now + timedelta(seconds=998)) == []
    assert space.expire(now + timedelta(seconds=999)) == [SubscriptionRemoved(one)]


@pytest.mark.rule("PS-5")
def test_a_restart_restores_what_was_kept(
    space: TopicSpace, subscription: Make, publication: Publish, now: datetime
) -> None:
    later = now + timedelta(seconds=1)
    subscribe(space, now, subscription(2, "a/#", expires_at=later), subscription(1, "a*", name="ONE", wildcard=C))
    space.apply(PublishToTopic("a/b", publication("kept"), retain=True), now)
    again = TopicSpace(TopicObjects())
    again.restore(space.subscriptions(), space.retained_publications())
    assert state(again) == state(space)
    assert again.match("a/b", now) == space.match("a/b", now)
    assert again.expire(later) == space.expire(later)


def test_what_contradicts_itself_is_not_restored(space: TopicSpace, subscription: Make, now: datetime) -> None:
    twice = [subscription(1, "a", name="ONE"), subscription(2, "b", name="ONE")]
    with pytest.raises(CommandError) as caught:
        space.restore(twice, ())
    assert caught.value.reason == 3152
    assert space.subscriptions() == ()


# The whole, against a model


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("subscribe"), st.sampled_from(["a", "a/b", "a/#", "+/b", "#", "*", "a*"]), st.integers(0, 5)),
        st.tuples(st.just("alter"), st.sampled_from(["a", "a/#", "*b"]), st.integers(0, 5)),
        st.tuples(st.just("unsubscribe"), st.just(""), st.integers(0, 5)),
        st.tuples(st.just("publish"), st.sampled_from(["a", "a/b", "b"]), st.integers(0, 3)),
        st.tuples(st.just("clear"), st.sampled_from(["a", "a/#", "*b"]), st.integers(0, 0)),
        st.tuples(st.just("expire"), st.just(""), st.integers(0, 3)),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_it_does_what_a_plain_model_does(
    selects: Callable[[str, WildcardScheme, str], bool],
    subscription: Make,
    publication: Publish,
    now: datetime,
    steps: list[tuple[str, str, int]],
) -> None:
    """A dict of subscriptions and a dict of retained publications, gone through one by one."""
    space = TopicSpace(TopicObjects())
    subscriptions: dict[int, Subscription] = {}
    kept: dict[str, Publication] = {}
    clock = now

    def scheme(pattern: str) -> WildcardScheme:
        return C if "*" in pattern else T

    def alive(expires_at: datetime | None) -> bool:
        return expires_at is None or expires_at > clock

    def retained_for(pattern: str) -> list[str]:
        return sorted(t for t, p in kept.items() if alive(p.expires_at) and selects(pattern, scheme(pattern), t))

    for step, text, number in steps:
        expires_at = clock + timedelta(seconds=number) if number else None
        if step == "subscribe" and number not in subscriptions:
            new = subscription(number, text, wildcard=scheme(text), expires_at=expires_at)
            subscriptions[number] = new
            effects = space.apply(Subscribe(new, send_retained=True), clock)
            assert effects == [
                SubscriptionAdded(new),
                *(Delivery(new, t, kept[t], from_retained=True) for t in retained_for(text)),
            ]
        elif step == "alter" and number in subscriptions:
            old = subscriptions[number]
            new = subscriptions[number] = replace(old, topic_string=text, wildcard=scheme(text), expires_at=expires_at)
            assert space.apply(AlterSubscription(new, send_retained=False), clock) == [SubscriptionAltered(old, new)]
        elif step == "unsubscribe" and number in subscriptions:
            old = subscriptions.pop(number)
            assert space.apply(Unsubscribe(old), clock) == [SubscriptionRemoved(old)]
        elif step == "publish":
            sent = publication(str(number), expires_at=expires_at)
            effects = space.apply(PublishToTopic(text, sent, retain=number != 3), clock)
            expected: list[Effect] = []
            if number != 3:
                kept[text] = sent
                expected.append(RetainedStored(RetainedPublication(text, sent)))
            for _, each in sorted(subscriptions.items()):
                if alive(each.expires_at) and selects(each.topic_string, each.wildcard, text):
                    expected.append(Delivery(each, text, sent))
            assert effects == expected
        elif step == "clear":
            cleared = retained_for(text)
            for topic in cleared:
                del kept[topic]
            assert space.apply(ClearRetained(text, scheme(text)), clock) == [RetainedCleared(t) for t in cleared]
        elif step == "expire":
            clock += timedelta(seconds=number)
            gone = space.expire(clock)
            dead = {n for n, s in subscriptions.items() if not alive(s.expires_at)}
            faded = {t for t, p in kept.items() if not alive(p.expires_at)}
            assert {e.subscription.sub_id for e in gone if isinstance(e, SubscriptionRemoved)} == {
                subscriptions[n].sub_id for n in dead
            }
            assert {e.topic_string for e in gone if isinstance(e, RetainedCleared)} == faded
            subscriptions = {n: s for n, s in subscriptions.items() if n not in dead}
            kept = {t: p for t, p in kept.items() if t not in faded}
    assert space.subscriptions() == tuple(s for _, s in sorted(subscriptions.items()))
    assert space.retained_publications() == tuple(RetainedPublication(t, p) for t, p in sorted(kept.items()))


# What a subscription would get

ANOTHER: list[tuple[str, str, dict[str, Any], Rule | None]] = [
    ("reached", "a/b", {}, None),
    ("by a wildcard", "a/#", {}, None),
    ("blocked", "blocked/#", {}, Rule.BLOCKED),
    ("on request", "a/b", {"options": SubscriptionOptions(pub_on_req_only=True)}, Rule.REQUEST_ONLY),
    ("filter", "a/b", {"selector": "no"}, Rule.FILTER),
    ("lower level", "a/b", {"sub_level": 0}, Rule.LEVEL),
    ("own", "a/b", {"dest_queue": "MINE"}, Rule.OWN_PUBLICATION),
]


@pytest.mark.parametrize(("topic", "values", "rule"), [case[1:] for case in ANOTHER], ids=[case[0] for case in ANOTHER])
def test_the_rule_for_a_subscription_that_is_not_there_is_that_of_one_that_is(
    topic: str, values: dict[str, Any], rule: Rule | None, subscription: Make, publication: Publish, now: datetime
) -> None:
    objects = TopicObjects()
    objects.define(TopicObject("BLOCK", "blocked/x", wildcard=Wildcard.BLOCK))
    space = TopicSpace(objects, lambda one, _publication, _topic: one.selector != "no")
    subscribe(space, now, subscription(1, "a/#"))
    another = subscription(2, topic, **values)
    published = "blocked/x/y" if topic.startswith("blocked") else "a/b"
    operation = PublishToTopic(published, publication(), not_to=("QM1", "MINE", None))
    assert space.rule_for(another, operation, now) is rule
    subscribe(space, now, another)
    passed = {one.subscription.sub_id: one.rule for one in space.passed_over(operation, now)}
    assert passed.get(another.sub_id) is rule
    reached = [e.subscription.sub_id for e in space.apply(operation, now) if isinstance(e, Delivery)]
    assert (another.sub_id in reached) is (rule is None)
