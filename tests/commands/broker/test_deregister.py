"""DeregSub (guide 6.7.2): which subscriptions go, and what is said of those that are not there."""

from __future__ import annotations

import pytest

from tests.commands.scenario import CORREL_ID, Answer, Scenario, done, refused, warned


def left(world: Scenario) -> list[str]:
    """The topic strings that are still subscribed to."""
    return [subscription.topic_string for subscription in world.subscriptions]


@pytest.mark.rule("DEREG-2")
def test_6_7_2_a_subscription_goes_by_its_topic(world: Scenario) -> None:
    world.register("a/#", "b")
    done(world.deregister("a/#"))
    assert left(world) == ["b"]
    assert world.publish("a/x").publications == []


NOT_REGISTERED: list[tuple[str, str, tuple[tuple[str, str], ...], dict[str, str], tuple[tuple[str, str], ...]]] = [
    ("6.7.2-nothing", "c", (), {}, (("Topic", "c"),)),
    ("6.7.2-wildcards-match-as-text", "a/b", (), {}, (("Topic", "a/b"),)),
    ("6.7.2-other-queue", "a/#", (("QName", "OTHER.Q"),), {}, (("Topic", "a/#"),)),
    ("6.7.2-other-queue-manager", "a/#", (("QMgrName", "QM2"),), {}, (("Topic", "a/#"),)),
    (
        "6.7.2-filter-that-was-not-registered",
        "a/#",
        (("Filter", "x = 1"),),
        {},
        (("Topic", "a/#"), ("Filter", "x = 1")),
    ),
    ("6.7.2-unknown-name", "a", (("SubName", "S"), ("QName", "OTHER.Q")), {}, (("SubName", "S"),)),
]


@pytest.mark.rule("DEREG-7", "DEREG-20")
@pytest.mark.parametrize(
    ("topic", "tags", "settings", "culprits"),
    [row[1:] for row in NOT_REGISTERED],
    ids=[row[0] for row in NOT_REGISTERED],
)
def test_6_7_7_3073_what_is_not_registered(
    world: Scenario,
    topic: str,
    tags: tuple[tuple[str, str], ...],
    settings: dict[str, str],
    culprits: tuple[tuple[str, str], ...],
) -> None:
    world.register("a/#")
    refused(world.deregister(topic, tags=tags, **settings), 3073, *culprits)
    assert left(world) == ["a/#"]


@pytest.mark.rule("DEREG-13")
def test_6_7_2_correlid_is_part_of_the_identity(world: Scenario) -> None:
    world.register("a", options=["CorrelAsId"], correl_id=CORREL_ID)
    refused(world.deregister("a", correl_id=CORREL_ID), 3073, ("Topic", "a"))
    refused(world.deregister("a", options=["CorrelAsId"]), 3080, ("RegOpt", "CorrelAsId"))
    done(world.deregister("a", options=["CorrelAsId"], correl_id=CORREL_ID))
    assert left(world) == []


@pytest.mark.rule("DEREG-2", "DEREG-12")
def test_6_7_2_a_filter_has_to_be_named(world: Scenario) -> None:
    world.register("a", tags=[("Filter", "x = 1")])
    refused(world.deregister("a"), 3073, ("Topic", "a"))
    refused(world.deregister("a", tags=[("Filter", "x  = 1")]), 3073, ("Topic", "a"), ("Filter", "x  = 1"))
    done(world.deregister("a", tags=[("Filter", "x = 1")]))
    assert left(world) == []


def test_6_7_7_3150_a_filter_that_is_none(world: Scenario) -> None:
    world.register("a")
    refused(world.deregister("a", tags=[("Filter", "x = = 1")]), 3150, ("Filter", "x = = 1"))


@pytest.mark.rule("DEREG-12")
def test_6_7_2_several_filters(world: Scenario) -> None:
    for text in ("x = 1", "x = 2", "x = 3"):
        world.register("a", tags=[("Filter", text)])
    done(world.deregister("a", tags=[("Filter", "x = 1"), ("Filter", "x = 3")]))
    assert [subscription.selector for subscription in world.subscriptions] == ["x = 2"]


def test_6_7_2_combinations_of_topics_and_filters_have_a_limit(world: Scenario) -> None:
    world.register("a")
    topics, filters = [f"t{n}" for n in range(400)], [("Filter", f"x = {n}") for n in range(300)]
    refused(world.deregister(*topics, tags=filters), 3150)
    warned_of = world.deregister("a", *topics, tags=[("Filter", ""), *filters[:20]])
    assert len(warned_of.outcome.puts) == 1
    assert left(world) == []


def test_several_topics_of_unequal_fate_are_warnings_and_the_rest_is_done(world: Scenario) -> None:
    world.register("a", "b", "c")
    result = world.deregister("a", "x", "c", "y")
    warned(result, Answer(3073, (("Topic", "x"),)), Answer(3073, (("Topic", "y"),)))
    assert left(world) == ["b"]


def test_several_topics_all_in_vain_are_one_error(world: Scenario) -> None:
    refused(world.deregister("x", "y"), 3073, ("Topic", "x"))


# DeregAll


def crowd(world: Scenario) -> None:
    """One subscriber with subscriptions to a and b, with and without filters."""
    world.register("a")
    world.register("a", tags=[("Filter", "x = 1")])
    world.register("b", tags=[("Filter", "x = 1")])
    world.register("b", tags=[("Filter", "x = 2")])
    world.register("a", reply_to="OTHER.Q")


ALL = [
    ("everything", (), (), []),
    ("6.7.2-one-topic", ("a",), (), [("b", "x = 1"), ("b", "x = 2")]),
    ("6.7.2-one-filter", (), ("x = 1",), [("a", None), ("b", "x = 2")]),
    ("6.7.2-topic-and-filter", ("b",), ("x = 2",), [("a", None), ("a", "x = 1"), ("b", "x = 1")]),
    ("6.7.2-topics-and-filters", ("a", "b"), ("x = 1", "x = 2"), [("a", None)]),
]


@pytest.mark.rule("DEREG-3", "DEREG-25")
@pytest.mark.parametrize(("topics", "filters", "after"), [row[1:] for row in ALL], ids=[row[0] for row in ALL])
def test_6_7_2_deregall(
    world: Scenario, topics: tuple[str, ...], filters: tuple[str, ...], after: list[tuple[str, str | None]]
) -> None:
    crowd(world)
    done(world.deregister(*topics, options=["DeregAll"], tags=[("Filter", text) for text in filters]))
    own = [s for s in world.subscriptions if s.dest_queue == "REPLY.Q"]
    assert [(s.topic_string, s.selector) for s in own] == after
    assert [s.topic_string for s in world.subscriptions if s.dest_queue == "OTHER.Q"] == ["a"]


UNUSED = [
    ("6.7.7-3073-topic", ("a", "c"), (), Answer(3073, (("Topic", "c"),))),
    ("6.7.7-3073-filter", (), ("x = 1", "x = 9"), Answer(3073, (("Filter", "x = 9"),))),
]


@pytest.mark.parametrize(("topics", "filters", "answer"), [row[1:] for row in UNUSED], ids=[row[0] for row in UNUSED])
def test_6_7_2_deregall_with_something_that_was_not_used(
    world: Scenario, topics: tuple[str, ...], filters: tuple[str, ...], answer: Answer
) -> None:
    crowd(world)
    warned(world.deregister(*topics, options=["DeregAll"], tags=[("Filter", text) for text in filters]), answer)


def test_6_7_2_deregall_of_nothing_is_ok(world: Scenario) -> None:
    done(world.deregister(options=["DeregAll"]))


def test_6_7_2_without_deregall_each_combination_has_to_be_one(world: Scenario) -> None:
    crowd(world)
    result = world.deregister("a", "b", tags=[("Filter", "x = 1"), ("Filter", "x = 2")])
    warned(result, Answer(3073, (("Topic", "a"), ("Filter", "x = 2"))))
    own = [s for s in world.subscriptions if s.dest_queue == "REPLY.Q"]
    assert [(s.topic_string, s.selector) for s in own] == [("a", None)]


@pytest.mark.rule("DEREG-23")
def test_8_5_deregall_leaves_named_subscriptions(world: Scenario, old_world: Scenario) -> None:
    for each in (world, old_world):
        each.register("a")
        each.register("b", tags=[("SubName", "S")])
        done(each.deregister(options=["DeregAll"]))
    assert left(world) == ["b"]
    assert left(old_world) == []


# Users


@pytest.mark.rule("DEREG-5")
def test_6_7_2_only_who_registered_may_deregister(world: Scenario) -> None:
    world.register("a", user="app1")
    refused(world.deregister("a", user="app2"), 3151, ("Topic", "a"))
    assert left(world) == ["a"]


def test_6_7_2_a_foreign_subscription_among_own_ones_is_a_warning(world: Scenario) -> None:
    world.register("a", user="app1")
    world.register("b", user="app2")
    warned(world.deregister("a", "b", user="app2"), Answer(3151, (("Topic", "a"),)))
    assert left(world) == ["a"]


# FullResp


@pytest.mark.rule("DEREG-14")
def test_6_7_2_fullresp_returns_what_it_was(world: Scenario) -> None:
    world.register("a", options=["Local"], tags=[("SubUserData", "mine")])
    result = world.deregister("a", options=["FullResp"])
    assert result.response.completion == "ok"
    assert ("SubUserData", "mine") in result.response.attributes
    assert ("RegOpt", "Local") in result.response.attributes
    assert left(world) == []


@pytest.mark.rule("DEREG-14")
def test_6_7_2_fullresp_of_a_failure_has_no_attributes(world: Scenario) -> None:
    result = world.deregister("a", options=["FullResp"])
    refused(result, 3073, ("Topic", "a"))
    assert result.response.attributes == []


# Metatopics


def test_7_5_metatopics_were_never_registered(world: Scenario) -> None:
    done(world.register("MQ/x"))
    refused(world.deregister("MQ/x"), 3073, ("Topic", "MQ/x"))
