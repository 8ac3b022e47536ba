"""Who is who (guide 6.7.2, 6.7.4, 6.7.5, 7.5, 8.5): subscription names, traditional identity, and user ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands.scenario import CORREL_ID, Result, Scenario, done, refused

NAME = ("SubName", "S")
OWNER = ("UserId", "app1")
VARIABLE = ["VariableUserId"]


# Names (6.7.4, SubName)


@pytest.mark.rule("DEREG-21")
def test_6_7_4_a_name_instead_of_queue_and_correlid(world: Scenario) -> None:
    done(world.register("a", tags=[NAME], reply_to="SUB.Q"))
    done(world.register("a", tags=[NAME], reply_to="SUB.Q"))
    assert len(world.subscriptions) == 1
    assert [p.put.sub_name for p in world.publish("a").publications] == ["S"]
    done(world.deregister("a", tags=[NAME], reply_to="OTHER.Q"))
    assert len(world.subscriptions) == 0


def test_6_7_4_one_name_is_not_for_several_topics(world: Scenario) -> None:
    refused(world.register("a", "b", tags=[NAME]), 3153, NAME)


MOVES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, str, bytes]]] = [
    ("6.7.4-ReplyToQ", {}, {"reply_to": "NEW.Q"}, ("QM1", "NEW.Q", bytes(24))),
    ("6.7.4-QName", {}, {"tags": [NAME, ("QName", "NEW.Q")]}, ("QM1", "NEW.Q", bytes(24))),
    ("6.7.4-QMgrName", {}, {"tags": [NAME, ("QMgrName", "QM2")]}, ("QM2", "SUB.Q", bytes(24))),
    ("6.7.4-QMgrName-alone", {}, {"tags": [NAME, ("QMgrName", "QM2")], "reply_to": ""}, ("QM2", "SUB.Q", bytes(24))),
    ("6.7.4-neither-stays", {}, {"reply_to": ""}, ("QM1", "SUB.Q", bytes(24))),
    ("4.2.3-CorrelId", {}, {"options": ["CorrelAsId"], "correl_id": CORREL_ID}, ("QM1", "SUB.Q", CORREL_ID)),
    (
        "6.7.4-options-omitted-keep-it",
        {"options": ["CorrelAsId"], "correl_id": CORREL_ID},
        {"correl_id": b"X" * 24},
        ("QM1", "SUB.Q", CORREL_ID),
    ),
    (
        "6.7.4-None-resets-it",
        {"options": ["CorrelAsId"], "correl_id": CORREL_ID},
        {"options": ["None"]},
        ("QM1", "SUB.Q", bytes(24)),
    ),
]


@pytest.mark.rule("REG-23")
@pytest.mark.parametrize(("first", "again", "identity"), [row[1:] for row in MOVES], ids=[row[0] for row in MOVES])
def test_a_named_subscription_moves(
    world: Scenario, first: dict[str, Any], again: dict[str, Any], identity: tuple[str, str, bytes]
) -> None:
    world.register("a", **{"tags": [NAME], "reply_to": "SUB.Q", **first})
    result = world.register("a", **{"tags": [NAME], "reply_to": "SUB.Q", **again})
    assert result.outcome.completion == "ok"
    assert world.subscription("S").traditional_identity == identity
    assert len(world.subscriptions) == 1


TWINS = [
    ("6.7.4-unnamed", ()),
    ("6.7.4-named", (("SubName", "T"),)),
]


@pytest.mark.rule("REG-25")
@pytest.mark.parametrize("tags", [row[1] for row in TWINS], ids=[row[0] for row in TWINS])
def test_6_7_4_3152_it_must_not_become_another(world: Scenario, tags: tuple[tuple[str, str], ...]) -> None:
    world.register("a", tags=tags, reply_to="OTHER.Q")
    world.register("a", tags=[NAME], reply_to="SUB.Q")
    refused(world.register("a", tags=[NAME, ("QName", "OTHER.Q")]), 3152, NAME)
    assert world.subscription("S").dest_queue == "SUB.Q"


@pytest.mark.rule("REG-24")
def test_6_7_4_3152_a_matching_subscription_without_a_name(world: Scenario) -> None:
    world.register("a")
    refused(world.register("a", tags=[NAME]), 3152, NAME)


@pytest.mark.rule("REG-25")
def test_6_7_4_3152_a_matching_subscription_with_another_name(world: Scenario) -> None:
    world.register("a", tags=[("SubName", "T")])
    refused(world.register("a", tags=[NAME]), 3152, NAME)


@pytest.mark.rule("REG-7")
def test_6_7_4_addname_names_what_has_no_name(world: Scenario) -> None:
    world.register("a")
    (before,) = world.subscriptions
    done(world.register("a", options=["AddName"], tags=[NAME]))
    assert world.subscription("S").sub_id == before.sub_id


def test_6_7_4_addname_makes_a_subscription_where_there_is_none(world: Scenario) -> None:
    done(world.register("a", options=["AddName"], tags=[NAME]))
    assert world.subscription("S").topic_string == "a"


@pytest.mark.rule("V7-4")
def test_8_5_a_name_cannot_be_replaced_by_another(world: Scenario) -> None:
    world.register("a", tags=[NAME])
    refused(world.register("a", options=["AddName"], tags=[("SubName", "T")]), 3152, ("SubName", "T"))


ALTERED = [
    ("7.5-topic", [("Filter", "x = 1")], "b", 2510, ("Topic", "b"), ("b", "x = 1")),
    ("8.5-filter", [("Filter", "x = 2")], "a", 2524, ("Filter", "x = 2"), ("a", "x = 2")),
]


@pytest.mark.rule("V7-4")
@pytest.mark.parametrize(
    ("tags", "topic", "reason", "culprit", "in_v6"), [row[1:] for row in ALTERED], ids=[row[0] for row in ALTERED]
)
def test_7_5_topic_and_filter_of_a_named_subscription(
    world: Scenario,
    old_world: Scenario,
    tags: list[tuple[str, str]],
    topic: str,
    reason: int,
    culprit: tuple[str, str],
    in_v6: tuple[str, str],
) -> None:
    for each in (world, old_world):
        each.register("a", tags=[NAME, ("Filter", "x = 1")])
    refused(world.register(topic, tags=[NAME, *tags]), reason, culprit)
    done(old_world.register(topic, tags=[NAME, *tags]))
    for each, state in ((world, ("a", "x = 1")), (old_world, in_v6)):
        assert (each.subscription("S").topic_string, each.subscription("S").selector) == state


@pytest.mark.rule("REG-23")
def test_6_7_4_a_filter_that_is_not_given_stays(world: Scenario) -> None:
    world.register("a", tags=[NAME, ("Filter", "x = 1")])
    done(world.register("a", tags=[NAME]))
    assert world.subscription("S").selector == "x = 1"


# Traditional identity and names (6.7.2, 6.7.5, 8.5)


def register_named(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a", tags=[NAME])


@pytest.mark.rule("DEREG-23")
def test_8_5_a_named_subscription_by_traditional_identity_alone(world: Scenario, old_world: Scenario) -> None:
    for each in (world, old_world):
        register_named(each)
    refused(world.request_update("a"), 3073, ("Topic", "a"))
    assert len(old_world.request_update("a").publications) == 1
    refused(world.deregister("a"), 3073, ("Topic", "a"))
    done(old_world.deregister("a"))
    assert (len(world.subscriptions), len(old_world.subscriptions)) == (1, 0)


def test_7_5_registering_without_the_name_is_another_subscription(world: Scenario) -> None:
    world.register("a", tags=[NAME])
    done(world.register("a"))
    assert [subscription.name for subscription in world.subscriptions] == ["S", None]


def test_registering_both_twins_again_is_harmless(world: Scenario) -> None:
    world.register("a", tags=[NAME])
    for _ in range(2):
        done(world.register("a"))
        done(world.register("a", tags=[NAME]))
    assert len(world.subscriptions) == 2


@pytest.mark.rule("DEREG-22")
def test_6_7_2_3153_a_matching_subscription_without_the_name(world: Scenario) -> None:
    world.register("a")
    refused(world.deregister("a", tags=[NAME]), 3153, NAME)
    assert len(world.subscriptions) == 1


@pytest.mark.rule("DEREG-22")
def test_6_7_2_3153_whichever_topic_matches(world: Scenario) -> None:
    world.register("b")
    refused(world.deregister("a", "b", tags=[NAME]), 3153, NAME)


# Users


@pytest.mark.rule("V7-6", "V7-9")
def test_7_5_another_user_may_have_the_same_identity(world: Scenario, old_world: Scenario) -> None:
    for each in (world, old_world):
        each.register("a", user="app1")
    done(world.register("a", user="app2"))
    assert [subscription.user for subscription in world.subscriptions] == ["app1", "app2"]
    assert world.publish("a").queues == ["REPLY.Q", "REPLY.Q"]
    refused(old_world.register("a", user="app2"), 3078, OWNER)
    refused(old_world.register("b", user="app2"), 3078, OWNER)


@pytest.mark.rule("V7-6")
def test_7_5_version_6_ties_an_identity_to_its_user_until_that_user_lets_others_in(old_world: Scenario) -> None:
    old_world.register("a", user="app1")
    done(old_world.register("a", user="app1"))
    done(old_world.register("b", user="app1"))
    refused(old_world.register("c", user="app2"), 3078, OWNER)
    for topic in ("a", "b"):
        done(old_world.register(topic, options=VARIABLE, user="app1"))
    done(old_world.register("c", user="app2"))
    done(old_world.register("a", options=VARIABLE, user="app2"))
    assert [(s.topic_string, s.user) for s in old_world.subscriptions] == [("a", "app2"), ("b", "app1"), ("c", "app2")]


@pytest.mark.rule("V7-6")
def test_7_5_each_user_deregisters_what_is_his(world: Scenario) -> None:
    for user in ("app1", "app2"):
        world.register("a", user=user)
    done(world.deregister("a", user="app2"))
    assert [subscription.user for subscription in world.subscriptions] == ["app1"]


def by_name(word: str, world: Scenario) -> Result:
    return world.command(word, ("Topic", "a"), NAME, user="app2")


@pytest.mark.rule("DEREG-21", "REQ-10")
@pytest.mark.parametrize("word", ["RegSub", "DeregSub", "ReqUpdate"])
def test_6_7_2_3078_the_name_of_another_users_subscription(world: Scenario, word: str) -> None:
    register_named(world)
    result = by_name(word, world)
    assert result.answer.reason == 3078
    assert NAME in result.answer.tags
    assert world.subscription("S").user == "app1"


# VariableUserId


def register_variable(world: Scenario, *tags: tuple[str, str]) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a", options=VARIABLE, tags=tags, user="app1")


@pytest.mark.rule("DEREG-21", "REG-18")
@pytest.mark.parametrize("word", ["RegSub", "DeregSub", "ReqUpdate"])
def test_6_7_4_variableuserid_lets_anybody_in_by_name(world: Scenario, word: str) -> None:
    register_variable(world, NAME)
    assert by_name(word, world).outcome.completion == "ok"


@pytest.mark.rule("REQ-10")
@pytest.mark.parametrize("word", ["RegSub", "DeregSub", "ReqUpdate"])
def test_6_7_5_3081_who_may_not_put_to_the_queue_is_not_let_in(world: Scenario, word: str) -> None:
    register_variable(world, NAME)
    world.authority.queues = {("app2", "REPLY.Q")}
    result = by_name(word, world)
    assert result.answer.reason == 3081
    assert NAME in result.answer.tags


@pytest.mark.rule("DEREG-19", "REQ-8")
def test_6_7_2_variableuserid_has_to_be_said_without_a_name(world: Scenario) -> None:
    register_variable(world)
    refused(world.deregister("a", user="app2"), 3151, ("Topic", "a"))
    refused(world.request_update("a", user="app2"), 3151, ("Topic", "a"))
    assert len(world.request_update("a", VARIABLE, user="app2").publications) == 1
    done(world.deregister("a", options=VARIABLE, user="app2"))
    assert world.subscriptions == ()


def test_6_7_2_suitable_authority_is_needed_without_a_name_too(world: Scenario) -> None:
    register_variable(world)
    world.authority.queues = {("app2", "REPLY.Q")}
    refused(world.deregister("a", options=VARIABLE, user="app2"), 3081, ("Topic", "a"))


@pytest.mark.rule("SEC-8", "REG-18")
def test_6_7_4_variableuserid_of_another_user_alters_and_takes_over(world: Scenario) -> None:
    register_variable(world)
    done(world.register("a", options=["VariableUserId", "Local"], user="app2"))
    (only,) = world.subscriptions
    assert (only.user, only.options.local, only.options.variable_user_id) == ("app2", True, True)


def register_beside_a_variable_one(world: Scenario) -> None:
    register_variable(world)
    world.register("a", user="app2")
    assert [s.user for s in world.subscriptions] == ["app1", "app2"]


WHICH = [
    ("said", VARIABLE, "app2", ["app2"]),
    ("not-said", [], "app2", ["app1"]),
    ("its-own-user-need-not-say-it", [], "app1", ["app2"]),
    ("all-that-he-may-change", ["DeregAll", *VARIABLE], "app2", []),
]


@pytest.mark.rule("DEREG-29")
@pytest.mark.parametrize(("options", "user", "left"), [row[1:] for row in WHICH], ids=[row[0] for row in WHICH])
def test_6_7_2_variableuserid_says_which_of_two_is_meant(
    world: Scenario, options: list[str], user: str, left: list[str]
) -> None:
    register_beside_a_variable_one(world)
    done(world.deregister("a", options=options, user=user))
    assert [s.user for s in world.subscriptions] == left


@pytest.mark.parametrize(("user", "left"), [("app1", ["app2"]), ("app2", ["app1"])])
def test_6_7_2_where_both_of_two_are_variable_the_senders_own_is_meant(
    world: Scenario, user: str, left: list[str]
) -> None:
    register_beside_a_variable_one(world)
    world.register("a", options=VARIABLE, user="app2")
    assert [(s.user, s.options.variable_user_id) for s in world.subscriptions] == [("app1", True), ("app2", True)]
    done(world.deregister("a", options=VARIABLE, user=user))
    assert [s.user for s in world.subscriptions] == left


def test_6_7_4_who_registers_again_alters_his_own_of_two(world: Scenario) -> None:
    register_beside_a_variable_one(world)
    done(world.register("a", options=["VariableUserId", "Local"], user="app2"))
    assert [(s.user, s.options.local) for s in world.subscriptions] == [("app1", False), ("app2", True)]


@pytest.mark.rule("REG-20")
def test_6_7_4_the_option_goes_when_it_is_not_said_again_and_the_user_is_fixed(world: Scenario) -> None:
    register_variable(world, NAME)
    done(world.register("a", options=["Local"], tags=[NAME], user="app2"))
    assert (world.subscription("S").user, world.subscription("S").options.variable_user_id) == ("app2", False)
    assert by_name("RegSub", world).outcome.completion == "ok"
    refused(world.register("a", tags=[NAME], user="app1"), 3078, NAME, ("UserId", "app2"))


@pytest.mark.rule("REG-19")
def test_6_7_4_only_its_own_user_may_add_the_option(world: Scenario) -> None:
    world.register("a", tags=[NAME], user="app1")
    refused(world.register("a", options=VARIABLE, tags=[NAME], user="app2"), 3078, NAME, OWNER)
    done(world.register("a", options=VARIABLE, tags=[NAME], user="app1"))
    assert world.subscription("S").options.variable_user_id


# Who the user is


USERS = [
    ("the-capture-says", "app1", "other", "app1"),
    ("field-the-descriptor-says", None, "app1", "app1"),
    ("field-it-ends-at-the-first-null", None, "app1\0rubbish", "app1"),
]


@pytest.mark.parametrize(("user", "identifier", "is_user"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
def test_the_user_of_a_command(world: Scenario, user: str | None, identifier: str, is_user: str) -> None:
    world.register("a", user=user, user_identifier=identifier)
    assert world.subscriptions[0].user == is_user
