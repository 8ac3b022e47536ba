"""RegSub (guide 6.7.4): what a registration makes, and what registering again changes."""

from __future__ import annotations

import pytest

from commands.broker.authority import Action
from commands.broker.objects import LocalQueue, Objects, QueueManager
from rfh2.mqi_constants import MQCI_NONE
from streams.subscriptions import DeliveryPersistence, SubscriptionOptions, WildcardScheme
from streams.topic_objects import TopicObject
from tests.commands.scenario import CORREL_ID, KICK_OFF, Answer, Scenario, done, refused, warned

DEFAULTS = SubscriptionOptions()


@pytest.mark.rule("REG-4", "V7-7")
def test_6_7_4_a_registration_takes_its_defaults_from_the_descriptor(world: Scenario) -> None:
    done(world.register("Sport/#", reply_to="SUB.Q", correl_id=CORREL_ID))
    (made,) = world.subscriptions
    assert (made.topic_string, made.wildcard, made.dest_qmgr, made.dest_queue) == (
        "Sport/#",
        WildcardScheme.TOPIC,
        "QM1",
        "SUB.Q",
    )
    assert (made.correl_id, made.user, made.name, made.selector, made.options, made.expires_at) == (
        MQCI_NONE,
        "app1",
        None,
        None,
        DEFAULTS,
        None,
    )


NAMES = [
    ("6.7.4-QName-and-QMgrName", {"reply_to": "REPLY.Q"}, (("QName", "Q"), ("QMgrName", "QM2")), ("QM2", "Q")),
    ("6.7.4-ReplyToQMgr", {"reply_to": "SUB.Q", "reply_to_qmgr": "QM2"}, (), ("QM2", "SUB.Q")),
    ("6.7.4-ReplyToQMgr-blank", {"reply_to": "SUB.Q", "reply_to_qmgr": "   "}, (), ("QM1", "SUB.Q")),
    ("6.7.4-QName-beside-a-ReplyToQMgr", {"reply_to_qmgr": "QM2"}, (("QName", "Q"),), ("QM2", "Q")),
    (
        "field-names-end-at-the-first-null",
        {"reply_to": "SUB.Q\0rubbish", "reply_to_qmgr": "QM2\0\1\2"},
        (),
        ("QM2", "SUB.Q"),
    ),
    ("names-in-tags-may-be-padded", {}, (("QName", "Q   "), ("QMgrName", "QM2 ")), ("QM2", "Q")),
]


@pytest.mark.rule("DEREG-20", "REG-22")
@pytest.mark.parametrize(("settings", "tags", "queue"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_the_subscriber_queue(
    world: Scenario, settings: dict[str, str], tags: tuple[tuple[str, str], ...], queue: tuple[str, str]
) -> None:
    world.register("a", tags=tags, **settings)
    (made,) = world.subscriptions
    assert (made.dest_qmgr, made.dest_queue) == queue


NO_QUEUE = [
    ("6.7.4-3076-no-queue-at-all", "", (), 3076, ()),
    ("6.7.7-3076-no-name-of-a-queue", "SUB.Q", (("QName", "no name"),), 3076, (("QName", "no name"),)),
    ("6.7.7-3076-49-characters", "SUB.Q", (("QName", "Q" * 49),), 3076, (("QName", "Q" * 49),)),
    ("6.7.7-3074-no-name-of-a-qmgr", "SUB.Q", (("QMgrName", "no name"),), 3074, (("QMgrName", "no name"),)),
]


@pytest.mark.rule("REG-22")
@pytest.mark.parametrize(
    ("reply_to", "tags", "reason", "culprits"), [row[1:] for row in NO_QUEUE], ids=[row[0] for row in NO_QUEUE]
)
def test_a_subscriber_queue_that_cannot_be(
    world: Scenario,
    reply_to: str,
    tags: tuple[tuple[str, str], ...],
    reason: int,
    culprits: tuple[tuple[str, str], ...],
) -> None:
    result = world.register("a", tags=tags, reply_to=reply_to)
    assert world.subscriptions == ()
    if reply_to:
        refused(result, reason, *culprits)
    else:
        assert [d.put.reason for d in result.dead_letters] == [reason]


def test_6_7_7_a_strict_queue_manager_knows_its_queues() -> None:
    objects = Objects(QueueManager("QM1", strict=True))
    objects.put(LocalQueue("SUB.Q"))
    world = Scenario(objects=objects)
    done(world.register("a", reply_to="SUB.Q"))
    refused(world.register("a", tags=[("QName", "NOSUCH.Q")]), 3076, ("QName", "NOSUCH.Q"))
    refused(world.register("a", tags=[("QName", "Q"), ("QMgrName", "QM9")]), 3074, ("QMgrName", "QM9"))


@pytest.mark.rule("REG-1")
def test_6_7_4_several_topics_are_as_many_subscriptions(world: Scenario) -> None:
    done(world.register("a", "b/#", "a"))
    assert [made.topic_string for made in world.subscriptions] == ["a", "b/#"]


@pytest.mark.rule("REG-2")
def test_6_7_4_topics_without_authority_are_a_warning_each_and_the_rest_is_done() -> None:
    world = Scenario()
    world.authority.topics = {("app1", Action.SUBSCRIBE, "b"), ("app1", Action.SUBSCRIBE, "d")}
    result = world.register("a", "b", "c", "d")
    warned(result, Answer(3081, (("Topic", "b"),)), Answer(3081, (("Topic", "d"),)))
    assert [made.topic_string for made in world.subscriptions] == ["a", "c"]


@pytest.mark.rule("REG-2")
def test_6_7_4_no_topic_with_authority_is_an_error() -> None:
    world = Scenario()
    world.authority.topics = {("app1", Action.SUBSCRIBE, "a"), ("app1", Action.SUBSCRIBE, "b")}
    refused(world.register("a", "b"), 3081, ("Topic", "a"))


def test_6_7_6_one_error_and_nothing_is_registered(world: Scenario) -> None:
    refused(world.register("a", "x" * 10241, "c"), 3072, ("Topic", "x" * 10241))
    assert world.subscriptions == ()


def test_2_5_1_an_empty_topic_is_none(world: Scenario) -> None:
    refused(world.register(""), 3072, ("Topic", ""))


@pytest.mark.rule("REG-6")
def test_6_7_4_a_filter_has_to_be_one(world: Scenario) -> None:
    refused(world.register("a", tags=[("Filter", "x = = 1")]), 3150, ("Filter", "x = = 1"))


@pytest.mark.rule("REG-6")
def test_6_7_4_a_filter_lets_through_what_it_is_true_of(world: Scenario) -> None:
    world.register("a", tags=[("Filter", "colour = 'red'")])
    red, blue = ("<usr><colour>red</colour></usr>", "<usr><colour>blue</colour></usr>")
    text = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    stream = "SYSTEM.BROKER.DEFAULT.STREAM"
    assert world.send(text, red, queue=stream, request=False).queues == ["REPLY.Q"]
    assert world.send(text, blue, queue=stream, request=False).queues == []


@pytest.mark.rule("REG-8")
def test_6_7_4_correlasid_needs_a_correlid(world: Scenario) -> None:
    refused(world.register("a", options=["CorrelAsId"]), 3080, ("RegOpt", "CorrelAsId"))
    done(world.register("a", options=["CorrelAsId"], correl_id=CORREL_ID))
    assert world.subscriptions[0].correl_id == CORREL_ID


# Retained publications (2.3.2, 4.8.2, 6.7.4)


@pytest.mark.rule("PS-3", "REG-30")
def test_2_3_2_a_new_subscriber_receives_what_is_retained(world: Scenario) -> None:
    world.publish("a/b", options=["RetainPub"], data=b"1")
    world.publish("a/c", options=["RetainPub"], data=b"2")
    world.publish("a/c", data=b"3")
    result = world.register("a/#", reply_to="SUB.Q")
    assert [(p.topic, p.data) for p in result.publications] == [("a/b", b"1"), ("a/c", b"2")]
    assert [p.told("PubOpt") for p in result.publications] == [None, None]
    assert result.puts[-1].put.kind == "response"


@pytest.mark.rule("PUB-8", "REG-10")
def test_6_7_4_informifret_tells_old_from_new(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"], data=b"old")
    result = world.register("a", options=["InformIfRet"], reply_to="SUB.Q")
    assert [p.told("PubOpt") for p in result.publications] == ["IsRetainedPub"]
    live = world.publish("a", options=["RetainPub"], data=b"new")
    assert [p.told("PubOpt") for p in live.publications] == [None]


WITHOUT_RETAINED = ["NewPubsOnly", "PubOnReqOnly"]


@pytest.mark.rule("REG-13", "REG-30")
@pytest.mark.parametrize("option", WITHOUT_RETAINED)
def test_6_7_4_options_that_keep_retained_publications_back(world: Scenario, option: str) -> None:
    world.publish("a", options=["RetainPub"])
    assert world.register("a", options=[option]).publications == []


@pytest.mark.rule("REG-17")
def test_6_7_4_pubonreqonly_keeps_new_publications_back_too(world: Scenario) -> None:
    world.register("a", options=["PubOnReqOnly"])
    assert world.publish("a", options=["RetainPub"]).publications == []


def test_registering_again_sends_nothing_twice(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    assert len(world.register("a").publications) == 1
    assert world.register("a").publications == []


@pytest.mark.rule("REG-13")
def test_6_7_4_taking_newpubsonly_back_may_send_again(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a", options=["NewPubsOnly"])
    assert world.register("a").publications == []
    assert len(world.register("a", options=["None"]).publications) == 1


# Options


EACH = [
    ("Local", SubscriptionOptions(local=True)),
    ("NewPubsOnly", SubscriptionOptions(new_pubs_only=True)),
    ("PubOnReqOnly", SubscriptionOptions(pub_on_req_only=True)),
    ("InformIfRet", SubscriptionOptions(inform_if_ret=True)),
    ("VariableUserId", SubscriptionOptions(variable_user_id=True)),
    ("DupsOK", SubscriptionOptions(dups_ok=True)),
    ("Pers", SubscriptionOptions(persistence=DeliveryPersistence.PERSISTENT)),
    ("NonPers", SubscriptionOptions(persistence=DeliveryPersistence.NON_PERSISTENT)),
    ("PersAsPub", DEFAULTS),
    ("PersAsQueue", SubscriptionOptions(persistence=DeliveryPersistence.AS_QUEUE)),
    ("None", DEFAULTS),
]


@pytest.mark.rule("REG-16")
@pytest.mark.parametrize(("word", "options"), EACH, ids=[row[0] for row in EACH])
def test_6_7_4_each_option(world: Scenario, word: str, options: SubscriptionOptions) -> None:
    world.register("a", options=[word])
    assert world.subscriptions[0].options == options


LAST_WINS = [
    (["Pers", "NonPers"], DeliveryPersistence.NON_PERSISTENT),
    (["NonPers", "Pers"], DeliveryPersistence.PERSISTENT),
    (["NonPers", "PersAsQueue", "Local"], DeliveryPersistence.AS_QUEUE),
    (["Pers", "PersAsQueue", "PersAsPub"], DeliveryPersistence.AS_PUBLISHED),
]


@pytest.mark.rule("REG-16")
@pytest.mark.parametrize(("options", "persistence"), LAST_WINS, ids=["-".join(row[0]) for row in LAST_WINS])
def test_6_7_4_of_the_persistence_options_the_last_one_wins(
    world: Scenario, options: list[str], persistence: DeliveryPersistence
) -> None:
    world.register("a", options=options)
    assert world.subscriptions[0].options.persistence is persistence


@pytest.mark.rule("DEREG-18", "REG-15")
@pytest.mark.parametrize("options", [["None", "Local"], ["Local", "None"]], ids="-".join)
def test_6_7_4_none_beside_others_is_ignored(world: Scenario, options: list[str]) -> None:
    world.register("a", options=options)
    assert world.subscriptions[0].options == SubscriptionOptions(local=True)


# Registering again


AGAIN = [
    ("6.7.4-omitted-keeps", [], SubscriptionOptions(local=True, inform_if_ret=True)),
    ("6.7.4-None-resets", ["None"], DEFAULTS),
    ("6.7.4-others-replace", ["NewPubsOnly"], SubscriptionOptions(new_pubs_only=True)),
]


@pytest.mark.rule("REG-15", "REG-21")
@pytest.mark.parametrize(("options", "after"), [row[1:] for row in AGAIN], ids=[row[0] for row in AGAIN])
def test_options_of_a_re_registration(world: Scenario, options: list[str], after: SubscriptionOptions) -> None:
    world.register("a", options=["Local", "InformIfRet"])
    (before,) = world.subscriptions
    done(world.register("a", options=options))
    (again,) = world.subscriptions
    assert (again.sub_id, again.options) == (before.sub_id, after)


EXPIRIES = [("6.7.4-options-omitted", []), ("6.7.4-None", ["None"])]


@pytest.mark.rule("REG-15", "REG-21")
@pytest.mark.parametrize("options", [row[1] for row in EXPIRIES], ids=[row[0] for row in EXPIRIES])
def test_a_re_registration_renews_the_expiry(world: Scenario, options: list[str]) -> None:
    world.register("a", expiry=600)
    first = world.subscriptions[0].expires_at
    assert first is not None
    assert (first - KICK_OFF).total_seconds() == 61
    world.register("a", options=options, expiry=600)
    second = world.subscriptions[0].expires_at
    assert second is not None
    assert (second - first).total_seconds() == 1
    world.register("a", options=options)
    assert world.subscriptions[0].expires_at is None


@pytest.mark.rule("REG-31")
@pytest.mark.parametrize("expiry", [-1, 0, -2])
def test_what_is_no_expiry_is_unlimited(world: Scenario, expiry: int) -> None:
    world.register("a", expiry=expiry)
    assert world.subscriptions[0].expires_at is None
    assert len(world.publish("a", expiry=expiry).publications) == 1


@pytest.mark.rule("REG-31")
def test_6_7_4_an_expired_subscription_is_gone(world: Scenario) -> None:
    world.register("a", expiry=15)
    assert world.publish("a").queues == ["REPLY.Q"]
    assert world.publish("a").queues == []
    assert world.subscriptions == ()


@pytest.mark.rule("REG-28")
def test_6_7_4_user_data_is_replaced_when_it_is_given(world: Scenario) -> None:
    world.register("a", tags=[("SubUserData", "one")])
    world.register("a")
    assert world.subscriptions[0].user_data == "one"
    world.register("a", tags=[("SubUserData", "two")])
    assert world.subscriptions[0].user_data == "two"


def test_6_7_4_another_filter_is_another_subscription(world: Scenario) -> None:
    world.register("a", tags=[("Filter", "x = 1")])
    world.register("a", tags=[("Filter", "x = 2")])
    world.register("a")
    assert [made.selector for made in world.subscriptions] == ["x = 1", "x = 2", None]


@pytest.mark.rule("REG-14")
def test_6_7_4_noalter_changes_nothing_and_is_ignored_on_creation(world: Scenario) -> None:
    world.register("a", options=["NoAlter", "Local"], expiry=600)
    (before,) = world.subscriptions
    assert before.options == SubscriptionOptions(local=True)
    done(world.register("a", options=["NoAlter", "Pers"], tags=[("SubUserData", "new")]))
    assert world.subscriptions == (before,)


def test_6_7_4_noalter_sends_nothing_again(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    world.register("a", options=["NewPubsOnly"])
    assert world.register("a", options=["NoAlter"]).publications == []
    world.register("b")
    world.publish("b", options=["RetainPub"])
    assert world.register("b", options=["NoAlter"]).publications == []


def test_field_registering_again_after_a_crash_is_ok(world: Scenario) -> None:
    for _ in range(2):
        done(world.register("Sport/#", options=["CorrelAsId", "PubOnReqOnly"], correl_id=CORREL_ID))
    assert len(world.subscriptions) == 1


# FullResp


@pytest.mark.rule("REG-9")
def test_6_7_4_fullresp_returns_all_attributes(world: Scenario) -> None:
    result = world.register(
        "Sport/#",
        options=["FullResp", "CorrelAsId", "Local", "Pers", "JoinExcl"],
        tags=[
            ("Filter", "x = 1"),
            ("SubName", "S"),
            ("SubIdentity", "me"),
            ("SubUserData", "mine"),
            ("QName", "SUB.Q"),
        ],
        correl_id=CORREL_ID,
    )
    assert result.response.completion == "ok"
    assert result.response.attributes == [
        ("Topic", "Sport/#"),
        ("QMgrName", "QM1"),
        ("QName", "SUB.Q"),
        ("UserId", "app1"),
        ("RegOpt", "CorrelAsId"),
        ("RegOpt", "Local"),
        ("RegOpt", "Pers"),
        ("RegOpt", "JoinExcl"),
        ("Filter", "x = 1"),
        ("CorrelId", CORREL_ID.hex().upper()),
        ("SubName", "S"),
        ("SubUserData", "mine"),
        ("SubIdentity", "me"),
    ]


@pytest.mark.rule("REG-9")
def test_6_7_4_fullresp_of_a_re_registration_shows_what_became_of_it(world: Scenario) -> None:
    world.register("a", options=["Local"])
    result = world.register("a", options=["FullResp", "NonPers"])
    assert ("RegOpt", "NonPers") in result.response.attributes
    assert ("RegOpt", "Local") not in result.response.attributes


# Topics that cannot be subscribed to


DISABLED = [
    ("MQI-2503-SUB-DISABLED", TopicObject("T", "a", sub=False), 2503),
    ("MQI-2436-DURSUB-NO", TopicObject("T", "a", durable_subs=False), 2436),
]


@pytest.mark.parametrize(("topic_object", "reason"), [row[1:] for row in DISABLED], ids=[row[0] for row in DISABLED])
def test_a_topic_object_may_forbid_it(world: Scenario, topic_object: TopicObject, reason: int) -> None:
    world.objects.put(topic_object)
    refused(world.register("b", "a/c"), reason, ("Topic", "a/c"))
    assert world.subscriptions == ()


METATOPICS = ["MQ/QM1/StreamSupport", "$SYS/Broker/+/Status", "MQ/*"]


@pytest.mark.rule("V7-2")
@pytest.mark.parametrize("topic", METATOPICS)
def test_7_5_a_subscription_to_a_metatopic_is_ignored(world: Scenario, topic: str) -> None:
    done(world.register(topic))
    assert world.subscriptions == ()


@pytest.mark.rule("V7-2")
def test_7_5_a_metatopic_beside_others_keeps_nothing_from_them(world: Scenario) -> None:
    done(world.register("MQ/x", "a", "MQT/b"))
    assert [made.topic_string for made in world.subscriptions] == ["a", "MQT/b"]


def test_7_5_a_metatopic_is_done_where_another_topic_is_not_authorized(world: Scenario) -> None:
    world.authority.topics = {("app1", Action.SUBSCRIBE, "a")}
    warned(world.register("MQ/x", "a"), Answer(3081, (("Topic", "a"),)))


# What no guide foresees


def test_a_user_of_a_capture_may_have_a_long_name(world: Scenario) -> None:
    user = "CN=Łukasz,O=Exchange"
    done(world.register("a", user=user, user_identifier="lukasz"))
    (sent,) = world.publish("a").publications
    assert world.subscriptions[0].user == user
    assert sent.mqmd.user_identifier == "CN=?ukasz,O="
