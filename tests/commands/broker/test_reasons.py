"""Every reason code of guide 6.7.7 that a command can cause: what provokes it, and the culprit in the response."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from commands.broker.authority import Action
from commands.broker.objects import CONTROL_QUEUE
from tests.commands.scenario import Answer, Result, Scenario, refused, warned

NAME = ("SubName", "S")
ME = ("SubIdentity", "me")
OWNER = ("UserId", "app2")


def command(word: str, *pairs: tuple[str, str]) -> Callable[[Scenario], Result]:
    queue = "SYSTEM.BROKER.DEFAULT.STREAM" if word in ("Publish", "DeletePub") else CONTROL_QUEUE
    return lambda world: world.command(word, *pairs, queue=queue)


def unauthorized(world: Scenario) -> Result:
    world.authority.topics = {("app1", Action.PUBLISH, "a")}
    return world.publish("a", request=True)


def nothing_retained(world: Scenario) -> Result:
    world.register("a")
    return world.request_update("a")


def of_another_user(world: Scenario) -> Result:
    world.register("a", user="app2")
    return world.deregister("a")


def name_of_another_user(world: Scenario) -> Result:
    world.register("a", tags=[NAME], user="app2")
    return world.register("a", tags=[NAME])


def under_another_name(world: Scenario) -> Result:
    world.register("a", tags=[NAME])
    return world.register("a", tags=[("SubName", "T")])


def without_a_name(world: Scenario) -> Result:
    world.register("a")
    return world.deregister("a", tags=[NAME])


def joined_by(option: str, world: Scenario) -> None:
    world.register("a", options=[option], tags=[NAME, ("SubIdentity", "other")])


def in_use(world: Scenario) -> Result:
    joined_by("JoinShared", world)
    return world.register("a", options=["JoinExcl"], tags=[NAME, ME])


def locked(world: Scenario) -> Result:
    joined_by("JoinExcl", world)
    return world.register("a", options=["JoinShared"], tags=[NAME, ME])


def already_joined(world: Scenario) -> Result:
    joined_by("JoinShared", world)
    return world.register("a", options=["JoinShared"], tags=[NAME, ("SubIdentity", "other")])


A = ("Topic", "a")
REASONS: list[tuple[int, Callable[[Scenario], Result], tuple[tuple[str, str], ...]]] = [
    (2336, command("Unpublish", A), (("Command", "Unpublish"),)),
    (2337, command("Publish", A, ("Filter", "x = 1")), (("Filter", "x = 1"),)),
    (2338, command("ReqUpdate", A, ("Topic", "b")), (("Topic", "b"),)),
    (2339, command("RegSub"), ()),
    (3072, command("Publish", ("Topic", "a/+")), (("Topic", "a/+"),)),
    (3073, command("DeregSub", A), (A,)),
    (3074, command("RegSub", A, ("QMgrName", "no name")), (("QMgrName", "no name"),)),
    (3076, command("RegSub", A, ("QName", "no name")), (("QName", "no name"),)),
    (3077, nothing_retained, (A,)),
    (3078, name_of_another_user, (NAME, OWNER)),
    (3079, lambda world: world.command("Publish", A), (("Command", "Publish"),)),
    (3080, command("RegSub", A, ("RegOpt", "CorrelAsId")), (("RegOpt", "CorrelAsId"),)),
    (3081, unauthorized, (A,)),
    (3083, command("DeregSub", A, ("RegOpt", "Local")), (("RegOpt", "Local"),)),
    (3084, command("Publish", A, ("PubOpt", "DeregAll")), (("PubOpt", "DeregAll"),)),
    (3087, command("DeletePub", A, ("DelOpt", "RetainPub")), (("DelOpt", "RetainPub"),)),
    (3150, command("RegSub", A, ("Filter", "x =")), (("Filter", "x ="),)),
    (3151, of_another_user, (A,)),
    (3152, under_another_name, (("SubName", "T"),)),
    (3153, without_a_name, (NAME,)),
    (3154, command("RegSub", A, NAME, ME), (ME,)),
    (3155, in_use, (ME,)),
    (3156, locked, (ME,)),
    (3157, already_joined, (("SubIdentity", "other"),)),
]


@pytest.mark.rule(
    "RESP-4",
    "RC-2336",
    "RC-2337",
    "RC-2338",
    "RC-2339",
    "RC-3072",
    "RC-3073",
    "RC-3074",
    "RC-3076",
    "RC-3077",
    "RC-3079",
    "RC-3080",
    "RC-3081",
    "RC-3083",
    "RC-3084",
    "RC-3087",
    "RC-3150",
    "RC-3151",
    "RC-3152",
    "RC-3153",
    "RC-3154",
    "RC-3155",
    "RC-3156",
    "RC-3157",
)
@pytest.mark.parametrize(("reason", "provoke", "culprits"), REASONS, ids=[f"6.7.7-{row[0]}" for row in REASONS])
def test_6_7_7(
    world: Scenario, reason: int, provoke: Callable[[Scenario], Result], culprits: tuple[tuple[str, str], ...]
) -> None:
    result = provoke(world)
    if reason == 3157:
        warned(result, Answer(reason, culprits))
    else:
        refused(result, reason, *culprits)


# 3008, an internal error, is the processor's to give: no command provokes it.
IN_THE_GUIDE = {
    *(2336, 2337, 2338, 2339, 3008, 3072, 3073, 3074, 3076, 3077, 3079, 3080, 3081, 3083, 3084, 3087),
    *range(3150, 3158),
}


@pytest.mark.rule("RC-all")
def test_6_7_7_no_reason_is_left_out() -> None:
    assert IN_THE_GUIDE - {3008} <= {reason for reason, _, _ in REASONS}
