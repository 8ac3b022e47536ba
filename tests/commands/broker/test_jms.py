"""What IBM's JMS clients need (guide 6.7.3, 6.7.4, 7.2): tags of their own, resuming by name, plain answers."""

from __future__ import annotations

import re

import pytest

from commands.broker.authority import Action
from commands.mqsc.broker import Broker
from commands.mqsc.execute import run_setup
from tests.commands.headers.rfh1_pcf_table import OlderScenario, pairs, rfh1_groups
from tests.commands.scenario import CORREL_ID, KICK_OFF, Answer, Result, Scenario, done, refused, warned

CONNECTION = ("UNIQUE_CONNECTION_ID", "414D5143514D31")
NAME = ("SubName", "JMS:QM1:client:prices")
RESUME = "360448"  # 262144 JoinExcl, 65536 FullResp, 32768 NoAlter
DURABLE = "1409025"  # the same, with 1048576 VariableUserId and 1 CorrelAsId
UNKNOWN = "JMS:SYS:Unknown"


def publish(world: Scenario, **settings: object) -> Result:
    return world.publish("a", tags=[CONNECTION, ("mine", "&lt;1&gt;")], **settings)  # type: ignore[arg-type]


def register_durable(world: Scenario, identity: str = "one", options: str = DURABLE, **settings: object) -> Result:
    tags = [NAME, ("QName", "SYSTEM.JMS.D.SUBSCRIBER.QUEUE"), ("SubIdentity", identity), ("SubUserData", "")]
    return world.register("prices/#", options=[options], tags=tags, correl_id=CORREL_ID, **settings)  # type: ignore[arg-type]


def resume(world: Scenario, identity: str = "one", **settings: object) -> Result:
    """How a client asks what a subscription is, of which it knows the name."""
    return world.register(UNKNOWN, options=[RESUME], tags=[NAME, ("SubIdentity", identity)], **settings)  # type: ignore[arg-type]


# Tags of Publish


@pytest.mark.rule("PUB-19")
def test_subscribers_get_the_tags_behind_those_of_psc(world: Scenario) -> None:
    world.register("a")
    (got,) = publish(world).publications
    assert got.psc == [("Command", "Publish"), ("Topic", "a"), CONNECTION, ("mine", "<1>")]


@pytest.mark.rule("PUB-19")
def test_what_is_retained_keeps_them(world: Scenario) -> None:
    publish(world, options=["RetainPub"])
    (got,) = world.register("a").publications
    assert got.told("UNIQUE_CONNECTION_ID") == CONNECTION[1]


@pytest.mark.rule("PUB-19")
def test_an_mqrfh_subscriber_gets_them_as_pairs() -> None:
    world = OlderScenario()
    world.rfh1("MQPSCommand RegSub MQPSTopic a")
    (got,) = publish(world).publications
    assert [pair for pair in pairs(got) if not pair[0].startswith("MQ")] == [CONNECTION, ("mine", "<1>")]


def test_subscribers_without_a_psc_folder_get_none_of_it() -> None:
    world = Scenario()
    world.broker = Broker("QM1", "DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(MSGPROP)")
    (got,) = publish(world).publications
    assert CONNECTION[0] not in "".join(got.folders)


@pytest.mark.rule("PUB-19")
def test_a_switch_has_them_refused() -> None:
    world = Scenario()
    world.broker = Broker("QM1", "ALTER QMGR CUSTOM('PSCTAGS(STRICT)')")
    refused(publish(world, request=True), 2337)
    done(world.publish("a", request=True))


# Resuming by name, with NoAlter


@pytest.mark.rule("REG-14")
def test_6_7_4_noalter_with_a_name_says_what_the_subscription_really_is(world: Scenario) -> None:
    register_durable(world)
    before = world.subscription(NAME[1])
    world.deregister("prices/#", options=["LeaveOnly"], tags=[NAME, ("SubIdentity", "one")])
    result = resume(world, reply_to="SYSTEM.JMS.REPORT.QUEUE")
    told = dict(pair for pair in result.response.attributes if pair[0] != "RegOpt")
    assert told == {
        "Topic": "prices/#",
        "QMgrName": "QM1",
        "QName": "SYSTEM.JMS.D.SUBSCRIBER.QUEUE",
        "UserId": "app1",
        "CorrelId": CORREL_ID.hex().upper(),
        "SubName": NAME[1],
        "SubUserData": "",
        "SubIdentity": "one",
    }
    assert world.subscription(NAME[1]) == before
    done(world.deregister(told["Topic"], tags=[NAME, ("SubIdentity", "one")]))
    assert world.subscriptions == ()


def test_what_does_not_exist_is_registered_on_the_topic_of_the_command(world: Scenario) -> None:
    """6.7.4, NoAlter: when a subscription is being created, this option is ignored."""
    assert ("Topic", UNKNOWN) in resume(world).response.attributes
    done(world.deregister(UNKNOWN, tags=[NAME, ("SubIdentity", "one")]))
    assert world.subscriptions == ()


def test_a_subscription_in_use_is_not_resumed(world: Scenario) -> None:
    register_durable(world)
    refused(resume(world, "two"), 3156, ("SubIdentity", "two"))


def test_who_holds_it_resumes_it_with_a_warning(world: Scenario) -> None:
    register_durable(world)
    result = resume(world)
    warned(result, Answer(3157, (("SubIdentity", "one"),)))
    assert ("Topic", "prices/#") in result.response.attributes


def test_authority_is_asked_for_the_topic_that_it_is_to_and_for_no_queue(world: Scenario) -> None:
    register_durable(world)
    world.authority.topics = {("app1", Action.SUBSCRIBE, UNKNOWN)}
    world.authority.queues = {("app1", "REPLY.Q")}
    assert resume(world).response.completion == "warning"
    world.authority.topics = {("app1", Action.RESUME, "prices")}
    refused(resume(world), 3081, ("Topic", UNKNOWN))


def test_sub_disabled_keeps_nobody_from_what_exists() -> None:
    world = Scenario()
    register_durable(world)
    disable = "DEFINE TOPIC(P) TOPICSTR('prices') SUB(DISABLED)"
    run_setup(disable, world.broker.objects, world.broker.space, KICK_OFF)
    assert resume(world).response.completion == "warning"
    refused(register_durable(world, options="0"), 2503, ("Topic", "prices/#"))


def test_another_user_resumes_what_has_variable_user_id(world: Scenario) -> None:
    register_durable(world)
    world.deregister("prices/#", options=["LeaveOnly"], tags=[NAME, ("SubIdentity", "one")])
    assert resume(world, "two", user="app2").response.completion == "ok"


def test_a_clone_joins_shared_once_the_first_has(world: Scenario) -> None:
    register_durable(world)
    shared = str(int(DURABLE) - 262144 + 131072)
    refused(register_durable(world, "two", shared), 3156, ("SubIdentity", "two"))
    assert register_durable(world, "one", shared).response.completion == "ok"
    assert register_durable(world, "two", shared).response.completion == "ok"
    assert world.subscription(NAME[1]).identities == ("one", "two")
    for identity in ("one", "two"):
        done(world.deregister("prices/#", options=["524288"], tags=[NAME, ("SubIdentity", identity)]))
    assert world.subscription(NAME[1]).identities == ()


# Answers: a client that looks for "<" and ">" reads them


def answers() -> list[tuple[str, Result]]:
    world = Scenario()
    found = [
        ("ok", world.register("t", options=["66561"], correl_id=CORREL_ID)),
        ("durable", register_durable(world)),
        ("warning", resume(world)),
        ("error", resume(world, "two")),
        ("filter", world.register("f", tags=[("Filter", "Root.MQRFH2.usr.x &lt; 3")])),
        ("full-filter", world.register("f", options=["65536"], tags=[("Filter", "Root.MQRFH2.usr.x &lt; 3")])),
        ("deregistered", world.deregister("prices/#", options=["65536"], tags=[NAME, ("SubIdentity", "one")])),
        ("owner", world.register("f", tags=[("SubName", "S")], user="app1")),
        ("owner-refused", world.register("f", tags=[("SubName", "S")], user="app2")),
    ]
    assert {result.response.completion for _, result in found} == {"ok", "warning", "error"}
    return found


@pytest.mark.parametrize(("name", "result"), answers(), ids=[name for name, _ in answers()])
def test_answers_are_plain_tags_with_completion_first(name: str, result: Result) -> None:
    pscr = result.response.folders[0]
    assert re.fullmatch(r"<pscr><Completion>(ok|warning|error)</Completion>.*</pscr>", pscr)
    # No attributes, no self-closed tags, no comments, no declarations, no white space between tags.
    tags = re.findall(r"<[^>]*>", pscr)
    assert all(re.fullmatch(r"</?[A-Za-z]+>", tag) for tag in tags)
    opened = [tag[1:-1] for tag in tags if not tag.startswith("</")]
    assert sorted(opened) == sorted(tag[2:-1] for tag in tags if tag.startswith("</"))


@pytest.mark.rule("RC-3078")
@pytest.mark.parametrize("semantics", ["v6", "v7"])
def test_3078_says_who_the_owner_is_in_each_header(semantics: str) -> None:
    world = OlderScenario(semantics)
    world.register("a", tags=[NAME], user="app2")
    refused(world.register("a", tags=[NAME]), 3078, NAME, ("UserId", "app2"))
    (group,) = rfh1_groups(world.rfh1(f"MQPSCommand RegSub MQPSTopic a MQPSSubName {NAME[1]}").response)
    assert (group.reason, group.details) == (3078, (("MQPSSubName", NAME[1]), ("MQPSUserId", "app2")))
