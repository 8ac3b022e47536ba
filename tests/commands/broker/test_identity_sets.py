"""Identity sets (guide 6.7.2, 6.7.4: SubIdentity, JoinShared, JoinExcl, LeaveOnly): the whole table."""

from __future__ import annotations

import pytest

from tests.commands.scenario import Answer, Result, Scenario, done, refused, warned

NAME = ("SubName", "S")


def join(world: Scenario, identity: str, option: str | None, *more: str) -> Result:
    """RegSub of the subscription S by one identity, with the same attributes each time."""
    options = [*([option] if option else []), *more]
    return world.register("a", options=options, tags=[NAME, ("SubIdentity", identity)])


def joined(before: list[tuple[str, str]]) -> Scenario:
    world = Scenario()
    world.register("a", options=["None"], tags=[NAME])
    for identity, option in before:
        done(join(world, identity, option))
    return world


SHARED, EXCL = "JoinShared", "JoinExcl"
JOINS: list[tuple[str, list[tuple[str, str]], str, str, int | None, tuple[str, ...], bool]] = [
    # id, before, who joins, how, reason, members after, held exclusively after
    ("empty-shared", [], "B", SHARED, None, ("B",), False),
    ("empty-excl", [], "B", EXCL, None, ("B",), True),
    ("own-shared", [("B", SHARED)], "B", SHARED, 3157, ("B",), False),
    ("own-excl", [("B", SHARED)], "B", EXCL, None, ("B",), True),
    ("own-lock-shared", [("B", EXCL)], "B", SHARED, None, ("B",), False),
    ("own-lock-excl", [("B", EXCL)], "B", EXCL, 3157, ("B",), True),
    ("other-shared", [("A", SHARED)], "B", SHARED, None, ("A", "B"), False),
    ("other-excl", [("A", SHARED)], "B", EXCL, 3155, ("A",), False),
    ("other-lock-shared", [("A", EXCL)], "B", SHARED, 3156, ("A",), True),
    ("other-lock-excl", [("A", EXCL)], "B", EXCL, 3156, ("A",), True),
    ("both-shared", [("A", SHARED), ("B", SHARED)], "B", SHARED, 3157, ("A", "B"), False),
    ("both-excl", [("A", SHARED), ("B", SHARED)], "B", EXCL, 3155, ("A", "B"), False),
]


@pytest.mark.rule("REG-11")
@pytest.mark.parametrize(
    ("before", "identity", "option", "reason", "members", "exclusive"),
    [row[1:] for row in JOINS],
    ids=[f"6.7.4-{row[0]}" for row in JOINS],
)
def test_6_7_4_joining(
    before: list[tuple[str, str]],
    identity: str,
    option: str,
    reason: int | None,
    members: tuple[str, ...],
    exclusive: bool,
) -> None:
    world = joined(before)
    result = join(world, identity, option)
    if reason is None:
        done(result)
    elif reason == 3157:
        warned(result, Answer(3157, (("SubIdentity", identity),)))
    else:
        refused(result, reason, ("SubIdentity", identity))
    subscription = world.subscription("S")
    assert (subscription.identities, subscription.exclusive) == (members, exclusive)


def test_6_7_4_a_new_subscription_may_be_joined_at_once(world: Scenario) -> None:
    done(join(world, "A", EXCL))
    assert (world.subscription("S").identities, world.subscription("S").exclusive) == (("A",), True)


@pytest.mark.parametrize("exists", [False, True], ids=["new", "registered"])
def test_6_7_7_3154_an_identity_that_neither_is_a_member_nor_joins(exists: bool) -> None:
    world = joined([]) if exists else Scenario()
    refused(join(world, "A", None), 3154, ("SubIdentity", "A"))


@pytest.mark.rule("REG-11")
def test_3157_is_a_warning_and_the_rest_of_the_command_is_done() -> None:
    """IBM MQ, reason code 3157: the command completed."""
    world = joined([("A", SHARED)])
    result = join(world, "A", SHARED, "Local", "FullResp")
    warned(result, Answer(3157, (("SubIdentity", "A"),)))
    assert ("Topic", "a") in result.response.attributes
    assert world.subscription("S").options.local


def test_3157_of_several_topics_says_which(world: Scenario) -> None:
    world.register("a", options=[SHARED], tags=[("SubIdentity", "A")])
    result = world.register("a", "b", options=[SHARED], tags=[("SubIdentity", "A")])
    warned(result, Answer(3157, (("Topic", "a"), ("SubIdentity", "A"))))
    assert len(world.subscriptions) == 2


# Altering


ALTERATIONS = [
    ("6.7.4-only-member", [("A", SHARED)], "A", None),
    ("6.7.4-one-of-two", [("A", SHARED), ("B", SHARED)], "A", 3155),
    ("6.7.4-own-lock", [("A", EXCL)], "A", None),
]


@pytest.mark.rule("REG-27")
@pytest.mark.parametrize(
    ("before", "identity", "reason"), [row[1:] for row in ALTERATIONS], ids=[row[0] for row in ALTERATIONS]
)
def test_6_7_4_altering_as_a_member(before: list[tuple[str, str]], identity: str, reason: int | None) -> None:
    world = joined(before)
    result = join(world, identity, None, "Local")
    if reason is None:
        done(result)
    else:
        refused(result, reason, ("SubIdentity", identity))
    assert world.subscription("S").options.local is (reason is None)


@pytest.mark.rule("REG-27")
def test_6_7_4_joining_others_and_altering_at_once_is_refused_and_nobody_joins() -> None:
    world = joined([("A", SHARED)])
    refused(join(world, "B", SHARED, "Local"), 3155, ("SubIdentity", "B"))
    assert world.subscription("S").identities == ("A",)


def test_a_member_among_others_may_renew_the_expiry_without_altering() -> None:
    world = joined([("A", SHARED), ("B", SHARED)])
    done(world.register("a", tags=[NAME, ("SubIdentity", "A")], expiry=600))
    assert world.subscription("S").expires_at is not None


def test_without_an_identity_a_shared_subscription_may_be_altered() -> None:
    world = joined([("A", SHARED), ("B", SHARED)])
    done(world.register("a", options=["Local"], tags=[NAME]))
    assert world.subscription("S").options.local


def test_without_an_identity_a_locked_subscription_may_not_be_altered() -> None:
    world = joined([("A", EXCL)])
    refused(world.register("a", options=["Local"], tags=[NAME]), 3156, ("SubIdentity", "A"))
    assert not world.subscription("S").options.local


@pytest.mark.rule("REG-14")
def test_6_7_4_noalter_joins_all_the_same() -> None:
    world = joined([("A", SHARED)])
    done(join(world, "B", SHARED, "NoAlter", "Local"))
    subscription = world.subscription("S")
    assert (subscription.identities, subscription.options.local) == (("A", "B"), False)


# Leaving


LEAVING: list[tuple[str, list[tuple[str, str]], str | None, list[str], tuple[str, ...] | None]] = [
    # id, before, who leaves, options, members after or None where the subscription is gone
    ("6.7.2-one-of-two", [("A", SHARED), ("B", SHARED)], "A", [], ("B",)),
    ("6.7.2-the-last-one", [("A", SHARED)], "A", [], None),
    ("6.7.2-the-last-one-LeaveOnly", [("A", SHARED)], "A", ["LeaveOnly"], ()),
    ("6.7.2-one-of-two-LeaveOnly", [("A", SHARED), ("B", SHARED)], "B", ["LeaveOnly"], ("A",)),
    ("6.7.2-the-holder-of-the-lock", [("A", EXCL)], "A", ["LeaveOnly"], ()),
    ("6.7.2-nobody-in-particular", [("A", SHARED), ("B", SHARED)], None, [], None),
]


@pytest.mark.rule("DEREG-9", "DEREG-17")
@pytest.mark.parametrize(
    ("before", "identity", "options", "members"), [row[1:] for row in LEAVING], ids=[row[0] for row in LEAVING]
)
def test_6_7_2_leaving(
    before: list[tuple[str, str]], identity: str | None, options: list[str], members: tuple[str, ...] | None
) -> None:
    world = joined(before)
    tags = [NAME, *([("SubIdentity", identity)] if identity else [])]
    done(world.deregister("a", options=options, tags=tags))
    if members is None:
        assert world.subscriptions == ()
    else:
        subscription = world.subscription("S")
        assert (subscription.identities, subscription.exclusive) == (members, False)


@pytest.mark.rule("DEREG-10")
@pytest.mark.parametrize("options", [[], ["LeaveOnly"]], ids=["6.7.2-SubIdentity", "6.7.2-LeaveOnly"])
def test_6_7_2_3154_who_is_no_member_cannot_leave(options: list[str]) -> None:
    world = joined([("A", SHARED)])
    refused(
        world.deregister("a", options=options, tags=[NAME, ("SubIdentity", "X")]),
        3154,
        ("Topic", "a"),
        ("SubIdentity", "X"),
    )
    assert world.subscription("S").identities == ("A",)


@pytest.mark.rule("DEREG-11")
def test_6_7_2_publications_flow_on_while_members_are_left() -> None:
    world = joined([("A", SHARED), ("B", SHARED)])
    world.deregister("a", tags=[NAME, ("SubIdentity", "A")])
    assert world.publish("a").queues == ["REPLY.Q"]


def test_joining_and_leaving_send_nothing_again() -> None:
    world = joined([])
    world.publish("a", options=["RetainPub"])
    for identity in ("A", "B"):
        assert join(world, identity, SHARED).publications == []
    assert world.deregister("a", tags=[NAME, ("SubIdentity", "A")]).publications == []


def test_leaving_some_of_several_subscriptions_is_a_warning_for_the_others(world: Scenario) -> None:
    for topic in ("a", "b"):
        world.register(topic, options=[SHARED], tags=[("SubIdentity", "A")])
    world.register("c")
    result = world.deregister("a", "c", "b", tags=[("SubIdentity", "A")])
    warned(result, Answer(3154, (("Topic", "c"), ("SubIdentity", "A"))))
    assert [subscription.topic_string for subscription in world.subscriptions] == ["c"]
