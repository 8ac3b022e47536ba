"""``--semantics v6``: what version 6 did otherwise (guide 7.5, 8.5), row by row of the migration sources, section 13.

Each test puts the same to both versions. D07, D16, D18 to D20 in part, D22, D24 and D28 to D30 are no broker's decision
about a command, or need what a replay cannot see; docs/conformance.md says so of each.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, LocalQueue
from commands.explain.build import CommandSpec, command_message
from commands.mqsc.broker import Broker
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfst
from rfh2.pcf_names import MQCACF_TOPIC
from streams.topic_objects import QUEUE_NAMELIST, Namelist
from tests.commands.headers.rfh1_pcf_table import (
    SPORT,
    OlderScenario,
    nvs,
    pairs,
    pcf_of,
    pcf_values,
    rfh1_done,
    rfh1_groups,
)
from tests.commands.scenario import CORREL_ID, Result

OTHER = "OTHER.STREAM"


@pytest.fixture
def v7() -> OlderScenario:
    return OlderScenario()


@pytest.fixture
def v6() -> OlderScenario:
    return OlderScenario("v6")


def outcome(result: Result) -> tuple[str, int | None]:
    """Completion and reason."""
    assert result.outcome.completion is not None
    return result.outcome.completion.value, result.outcome.reason


# D01, D02, D03: guide 7.5, table 2

SCOPES = [
    ("both-local", ["Local"], ["Local"], 1, 1),
    ("D01-publication-local", ["Local"], [], 0, 1),
    ("D02-subscription-local", [], ["Local"], 0, 1),
    ("D03-both-global", [], [], 1, 1),
]


@pytest.mark.rule("D-01", "D-02", "D-03")
@pytest.mark.parametrize(
    ("publication", "subscription", "old", "new"), [row[1:] for row in SCOPES], ids=[row[0] for row in SCOPES]
)
def test_scope(
    v6: OlderScenario, v7: OlderScenario, publication: list[str], subscription: list[str], old: int, new: int
) -> None:
    for world, copies in ((v6, old), (v7, new)):
        world.register("a", options=subscription)
        assert len(world.publish("a", options=publication).publications) == copies


@pytest.mark.rule("D-01")
@pytest.mark.parametrize(("local", "old"), [(True, 0), (False, 1)])
def test_scope_of_what_is_retained_and_of_mqrfh(v6: OlderScenario, v7: OlderScenario, local: bool, old: int) -> None:
    scope = "MQPSRegOpts Local" if local else ""
    for world, copies in ((v6, old), (v7, 1)):
        world.rfh1(f"MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a {scope}")
        assert len(world.rfh1("MQPSCommand RegSub MQPSTopic a").publications) == copies


# D04, D05: metatopics


@pytest.mark.rule("D-04")
def test_d04_a_metatopic_is_registered_and_nothing_comes(v6: OlderScenario, v7: OlderScenario) -> None:
    """Nothing is published on metatopics here; but who registered can deregister, as he could."""
    topic = f'"MQ/S/{"QM1":48}/Subscribers/Topics"'
    for world, deregistered in ((v6, ("ok", None)), (v7, ("error", 3073))):
        rfh1_done(world.rfh1(f"MQPSCommand RegSub MQPSTopic {topic}"))
        assert outcome(world.rfh1(f"MQPSCommand ReqUpdate MQPSTopic {topic}")) == ("error", 3077)
        assert outcome(world.rfh1(f"MQPSCommand DeregSub MQPSTopic {topic}")) == deregistered


# D08, D09, D15: streams are topic spaces of their own


@pytest.fixture
def bare() -> Callable[[str], OlderScenario]:
    """A world with a second stream, which has no topic object, as version 6 had none."""

    def make(semantics: str) -> OlderScenario:
        world = OlderScenario(semantics)
        world.objects.put(Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, SPORT, OTHER)))
        return world

    return make


def rfh1_subscribe(world: OlderScenario, topic: str, stream: str = "", **settings: str) -> Result:
    name = f" MQPSStreamName {stream}" if stream else ""
    return world.rfh1(f"MQPSCommand RegSub MQPSTopic {topic}{name}", **settings)  # type: ignore[arg-type]


@pytest.mark.rule("D-08")
def test_d08_streams_are_apart_without_topic_objects(bare: Callable[[str], OlderScenario]) -> None:
    queues = {}
    for semantics in ("v6", "v7"):
        world = bare(semantics)
        rfh1_subscribe(world, "*", reply_to="DEFAULT.Q")
        rfh1_subscribe(world, "*", OTHER, reply_to="OTHER.Q")
        queues[semantics] = [
            world.rfh1("MQPSCommand Publish MQPSTopic a", queue).queues for queue in (DEFAULT_STREAM, OTHER)
        ]
    assert queues["v6"] == [["DEFAULT.Q"], ["OTHER.Q"]]
    # Without a topic object, and so without WILDCARD(BLOCK), version 7 has both at the root.
    assert queues["v7"] == [["DEFAULT.Q", "OTHER.Q"], ["DEFAULT.Q", "OTHER.Q"]]


@pytest.mark.rule("D-08")
def test_d08_retained_publications_are_apart_too(bare: Callable[[str], OlderScenario]) -> None:
    world = bare("v6")
    world.rfh1("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a", OTHER, b"other")
    world.rfh1("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a", DEFAULT_STREAM, b"default")
    assert [got.data for got in rfh1_subscribe(world, "*", OTHER).publications] == [b"other"]
    assert [got.data for got in rfh1_subscribe(world, "*").publications] == [b"default"]
    rfh1_done(world.rfh1("MQPSCommand DeletePub MQPSTopic *"))
    assert world.retained == [f"{OTHER}/a"]


@pytest.mark.rule("D-09")
def test_d09_a_topic_that_begins_like_a_streams_prefix(v6: OlderScenario, v7: OlderScenario) -> None:
    for world, queues in ((v6, ["STREAM.Q"]), (v7, ["STREAM.Q", "TOPIC.Q"])):
        rfh1_subscribe(world, "a", SPORT, reply_to="STREAM.Q")
        rfh1_subscribe(world, "Sport/a", reply_to="TOPIC.Q")
        assert world.rfh1("MQPSCommand Publish MQPSTopic a", SPORT).queues == queues


@pytest.mark.rule("D-15")
def test_d15_a_name_for_each_stream(v6: OlderScenario, v7: OlderScenario) -> None:
    for world, second in ((v6, ("ok", None)), (v7, ("error", 2510))):
        rfh1_done(world.rfh1("MQPSCommand RegSub MQPSTopic a MQPSSubName n"))
        result = world.rfh1(f"MQPSCommand RegSub MQPSTopic b MQPSSubName n MQPSStreamName {SPORT}")
        assert outcome(result) == second
    rfh1_done(v6.rfh1("MQPSCommand DeregSub MQPSTopic a MQPSSubName n"))
    assert [(made.name, made.stream) for made in v6.subscriptions] == [("n", SPORT)]


# D06: publisher registrations


@pytest.mark.rule("D-06")
def test_d06_registering_a_publisher_succeeds_in_both(v6: OlderScenario, v7: OlderScenario) -> None:
    for world in (v6, v7):
        rfh1_done(world.rfh1("MQPSCommand RegPub MQPSTopic a"))
        rfh1_done(world.rfh1("MQPSCommand DeregPub MQPSTopic a"))


# D10, D25: what re-registering a name alters


@pytest.mark.rule("D-10")
def test_d10_topic_filter_and_queue_of_a_named_subscription(v6: OlderScenario, v7: OlderScenario) -> None:
    for world, answer, topic, queue in (
        (v6, ("ok", None), "b", "NEW.Q"),
        (v7, ("error", 2510), "a", "OLD.Q"),
    ):
        world.register("a", tags=[("SubName", "n")], reply_to="OLD.Q")
        assert outcome(world.register("b", tags=[("SubName", "n")], reply_to="NEW.Q")) == answer
        (made,) = world.subscriptions
        assert (made.topic_string, made.dest_queue) == (topic, queue)
    for world, answer in ((v6, ("ok", None)), (v7, ("error", 2524))):
        (made,) = world.subscriptions
        tags = [("SubName", "n"), ("Filter", "x = 1")]
        assert outcome(world.register(made.topic_string, tags=tags)) == answer


@pytest.mark.rule("D-25")
def test_d25_a_name_is_not_renamed(v6: OlderScenario, v7: OlderScenario) -> None:
    """AddName is for subscriptions without a name; a second name is refused in both (guide 6.7.4)."""
    for world in (v6, v7):
        world.register("a", tags=[("SubName", "n")])
        for options in ([], ["AddName"]):
            assert outcome(world.register("a", tags=[("SubName", "m")], options=options)) == ("error", 3152)


# D11, D26: several topics, one subscriber


@pytest.mark.rule("D-11", "D-26")
def test_d11_one_message_names_all_topics_that_reached_the_subscriber(v6: OlderScenario, v7: OlderScenario) -> None:
    for world, topics in ((v6, [["a", "b"]]), (v7, [["a"], ["b"]])):
        world.register("a", "b")
        got = world.publish("a", "c", "b").publications
        assert [[value for tag, value in one.psc if tag == "Topic"] for one in got] == topics
        assert [one.put.topic for one in got] == [names[0] for names in topics]


@pytest.mark.rule("D-11")
def test_d11_in_mqrfh_and_pcf(v6: OlderScenario) -> None:
    v6.rfh1("MQPSCommand RegSub MQPSTopic ?", reply_to="RFH1.Q")
    v6.pcf("RegSub", Cfst.of(MQCACF_TOPIC, "?"), reply_to="PCF.Q")
    rfh1, pcf = v6.rfh1("MQPSCommand Publish MQPSTopic a MQPSTopic b").publications
    assert nvs(rfh1) == "MQPSCommand Publish MQPSTopic a MQPSTopic b"
    assert pcf_values(pcf_of(pcf)) == [(MQCACF_TOPIC, "a"), (MQCACF_TOPIC, "b")]


@pytest.mark.rule("D-12")
def test_d12_overlapping_subscriptions_of_one_subscriber(v6: OlderScenario, v7: OlderScenario) -> None:
    for world, copies in ((v6, 1), (v7, 3)):
        world.register("a/#", "a/b", "+/b")
        got = world.publish("a/b").publications
        assert len(got) == copies
        assert [value for tag, value in got[0].psc if tag == "Topic"] == ["a/b"]


@pytest.mark.rule("D-12")
def test_dups_ok_spares_version_6_the_trouble(v6: OlderScenario) -> None:
    v6.rfh1("MQPSCommand RegSub MQPSTopic a MQPSTopic a* MQPSRegOpts DupsOK")
    assert len(v6.rfh1("MQPSCommand Publish MQPSTopic a").publications) == 2


def test_subscribers_are_told_apart_by_queue_and_correl_id(v6: OlderScenario) -> None:
    v6.register("a", reply_to="A.Q")
    v6.register("b", reply_to="B.Q")
    v6.register("b", reply_to="A.Q", options=["CorrelAsId"], correl_id=CORREL_ID)
    got = v6.publish("a", "b").publications
    assert [(one.queue, one.topic) for one in got] == [("A.Q", "a"), ("B.Q", "b"), ("A.Q", "b")]


def test_what_is_retained_comes_message_by_message(v6: OlderScenario) -> None:
    for topic in ("a", "b"):
        v6.publish(topic, options=["RetainPub"], data=topic.encode())
    got = v6.register("#", "a").publications
    assert [(one.topic, one.data) for one in got] == [("a", b"a"), ("b", b"b")]


# D13, D27: the traditional identity and its user


@pytest.mark.rule("D-13", "D-27")
def test_d13_an_identity_belongs_to_one_user(v6: OlderScenario, v7: OlderScenario) -> None:
    for world, answer, left in ((v6, ("error", 3078), 1), (v7, ("ok", None), 2)):
        rfh1_done(rfh1_subscribe(world, "a", user="app2"))
        assert outcome(rfh1_subscribe(world, "b")) == answer
        assert len(world.subscriptions) == left
    rfh1_done(v6.rfh1("MQPSCommand DeregSub MQPSTopic a", user="app2"))
    rfh1_done(rfh1_subscribe(v6, "b"))  # the identity is free again


@pytest.mark.rule("D-13")
@pytest.mark.parametrize("word", ["DeregSub", "ReqUpdate"])
def test_d13_what_another_user_registered(v6: OlderScenario, v7: OlderScenario, word: str) -> None:
    for world, reason, owner in ((v6, 3078, (("MQPSUserId", "app2"),)), (v7, 3151, ())):
        rfh1_subscribe(world, "a", user="app2")
        (group,) = rfh1_groups(world.rfh1(f"MQPSCommand {word} MQPSTopic a").response)
        assert (group.comp_code, group.reason, group.details) == (2, reason, (("MQPSTopic", "a"), *owner))


@pytest.mark.rule("D-13")
def test_d13_variable_user_id_opens_it(v6: OlderScenario) -> None:
    v6.rfh1("MQPSCommand RegSub MQPSTopic a MQPSRegOpts VariableUserId", user="app2")
    rfh1_done(v6.rfh1("MQPSCommand DeregSub MQPSTopic a MQPSRegOpts VariableUserId"))


# D14: wildcards


@pytest.mark.rule("D-14")
def test_d14_mqrfh_wildcards_are_characters_in_both(v6: OlderScenario, v7: OlderScenario) -> None:
    for world in (v6, v7):
        rfh1_subscribe(world, "a#b+*")
        assert len(world.rfh1("MQPSCommand Publish MQPSTopic a#b+/c").publications) == 1
        assert not world.rfh1("MQPSCommand Publish MQPSTopic a/b/c").publications


# D20: DeregSub by identity and named subscriptions


@pytest.mark.rule("D-20")
@pytest.mark.parametrize("command", ["MQPSTopic a", "MQPSRegOpts DeregAll"])
def test_d20_a_name_does_not_save_a_subscription(v6: OlderScenario, v7: OlderScenario, command: str) -> None:
    for world, left in ((v6, 0), (v7, 1)):
        rfh1_done(world.rfh1("MQPSCommand RegSub MQPSTopic a MQPSSubName n"))
        world.rfh1(f"MQPSCommand DeregSub {command}")
        assert len(world.subscriptions) == left


# D21: subscription points


@pytest.mark.rule("D-21")
def test_d21_a_new_subscription_point_just_works(v6: OlderScenario, v7: OlderScenario) -> None:
    point = [("SubPoint", "USD")]
    assert outcome(v7.register("a", tags=point)) == ("error", 3072)
    assert outcome(v6.register("a", tags=point, reply_to="USD.Q")) == ("ok", None)
    v6.register("#", reply_to="DEFAULT.Q")
    assert v6.publish("a", tags=point).queues == ["USD.Q"]
    assert v6.publish("a").queues == ["DEFAULT.Q"]
    assert v6.publish("USD/a").queues == ["DEFAULT.Q"]


# D23: an MQRFH2 publisher's queue


@pytest.mark.rule("D-23")
def test_d23_an_mqrfh2_publisher_has_no_stream(v6: OlderScenario, v7: OlderScenario) -> None:
    """Field notes: the results service publishes to a stream queue, its MQRFH2 subscribers name none."""
    for world, topic in ((v6, "Soccer/Goal"), (v7, "Sport/Soccer/Goal")):
        world.register("Soccer/#", reply_to="PLAIN.Q")
        world.register("Sport/Soccer/#", reply_to="PREFIXED.Q")
        (got,) = world.publish("Soccer/Goal", queue=SPORT).publications
        assert (got.queue, got.put.topic) == (("PLAIN.Q" if world is v6 else "PREFIXED.Q"), topic)
        world.publish("Soccer/Goal", queue=SPORT, options=["RetainPub"])
        world.delete("Soccer/#", queue=SPORT)
        assert world.retained == []


# D31: formats


@pytest.mark.rule("D-31")
def test_d31_publications_are_converted_for_each_subscriber_in_both(v6: OlderScenario, v7: OlderScenario) -> None:
    for world in (v6, v7):
        rfh1_subscribe(world, "a", reply_to="RFH1.Q")
        world.register("a", reply_to="RFH2.Q")
        assert [got.mqmd.format for got in world.publish("a").publications] == ["MQHRF", "MQHRF2"]
        got, _ = world.rfh1("MQPSCommand Publish MQPSTopic a MQPSIntData 5").publications
        assert ("MQPSIntData", "5") in pairs(got)


# D32: identity sets


@pytest.mark.rule("D-32")
def test_d32_codes_of_identity_sets_are_kept(v6: OlderScenario, v7: OlderScenario) -> None:
    string = "MQPSCommand RegSub MQPSTopic a MQPSSubName n MQPSSubIdentity {} MQPSRegOpts {}"
    for world in (v6, v7):
        answers = [
            outcome(world.rfh1(string.format(who, option)))
            for who, option in (
                ("A", "JoinShared"),
                ("A", "JoinShared"),
                ("B", "JoinShared"),
                ("B", "JoinExcl"),
            )
        ]
        assert answers == [("ok", None), ("warning", 3157), ("ok", None), ("error", 3155)]


# D33: DeletePub and the scope of what is retained

DELETED = [
    ("local-by-local", "Local", "Local", [], []),
    ("global-by-local", "", "Local", ["a"], []),
    ("local-by-global", "Local", "", ["a"], []),
    ("global-by-global", "", "", [], []),
]


@pytest.mark.rule("D-33")
@pytest.mark.parametrize(
    ("published", "deleted", "old", "new"), [row[1:] for row in DELETED], ids=[row[0] for row in DELETED]
)
def test_6_7_1_d33_an_mqrfh_deletepub_took_what_has_its_scope(
    v6: OlderScenario, v7: OlderScenario, published: str, deleted: str, old: list[str], new: list[str]
) -> None:
    for world, left in ((v6, old), (v7, new)):
        options = "MQPSPubOpts RetainPub" + (f" MQPSRegOpts {published}" if published else "")
        world.rfh1(f"MQPSCommand Publish MQPSTopic a {options}", queue=DEFAULT_STREAM)
        scope = f" MQPSDelOpts {deleted}" if deleted else ""
        world.rfh1(f"MQPSCommand DeletePub MQPSTopic a{scope}", queue=DEFAULT_STREAM)
        assert world.retained == left


@pytest.mark.rule("D-33")
def test_6_7_1_d33_an_mqrfh2_deletepub_takes_both(v6: OlderScenario) -> None:
    for options in ([], ["Local"]):
        v6.publish("a", options=["RetainPub"])
        v6.delete("a", options=options)
        assert v6.retained == []


# D34: a queue was a stream without standing in a namelist


@pytest.mark.rule("D-34")
def test_6_5_4_d34_a_queue_that_is_defined_was_a_stream(v6: OlderScenario, v7: OlderScenario) -> None:
    for world in (v6, v7):
        world.objects.put(LocalQueue("SCORES"))
    registered = [
        world.rfh1("MQPSCommand RegSub MQPSTopic a MQPSStreamName SCORES MQPSQName S.Q", queue=CONTROL_QUEUE)
        for world in (v6, v7)
    ]
    published = [world.rfh1("MQPSCommand Publish MQPSTopic a", queue="SCORES") for world in (v6, v7)]
    assert [outcome(result) for result in registered] == [("ok", None), ("error", 3082)]
    assert [result.queues for result in published] == [["S.Q"], []]
    assert published[1].outcome.completion is None


@pytest.mark.parametrize("queue", ["NOWHERE", "SYSTEM.DEAD.LETTER.QUEUE", "QM2"])
def test_6_5_4_d34_other_queues_were_none(v6: OlderScenario, queue: str) -> None:
    v6.objects.put(LocalQueue("QM2", transmission=True))
    registered = v6.rfh1(f"MQPSCommand RegSub MQPSTopic a MQPSStreamName {queue}", queue=CONTROL_QUEUE)
    assert outcome(registered) == ("error", 3082)
    assert v6.rfh1("MQPSCommand Publish MQPSTopic a", queue=queue).outcome.completion is None


@pytest.mark.parametrize(
    ("md", "body"), [(Mqmd(format="MQSTR"), b"hello"), (Mqmd(format="MQHRF"), b"RFH nonsense")], ids=["data", "damaged"]
)
def test_6_5_4_d34_what_is_no_publication_makes_no_stream(v6: OlderScenario, md: Mqmd, body: bytes) -> None:
    v6.objects.put(LocalQueue("APP.Q"))
    result = v6.put("APP.Q", md.encode(), body)
    assert (result.puts, result.outcome.completion) == ([], None)


@pytest.mark.rule("D-34")
def test_6_5_4_d34_version_6_definitions_alone_set_a_session_up() -> None:
    """As IBM's own samples come: a script that defines the stream's queue, and programs that name it."""
    broker = Broker("QM1", "DEFINE QLOCAL(SCORES) DEFPSIST(YES)\nDEFINE QLOCAL(RESULTS)\n", "v6")
    stream = {"StreamName": "SCORES"}
    mqmd = Mqmd(reply_to_q="RESULTS", msg_type=1)
    wanted = [
        CommandSpec("RegPub", ("Sport/*",), tags=stream, rfh1=True, mqmd=mqmd),
        CommandSpec("RegSub", ("Sport/*",), tags=stream, rfh1=True, mqmd=mqmd),
        CommandSpec("Publish", ("Sport/Goal",), tags=stream, rfh1=True, data="1:0", queue="SCORES"),
        CommandSpec("DeletePub", ("Sport/Goal",), tags=stream, rfh1=True, queue="SCORES", mqmd=mqmd),
        CommandSpec("DeregSub", ("Sport/*",), tags=stream, rfh1=True, mqmd=mqmd),
    ]
    puts = [put for each in wanted for put in broker.handle(command_message(each))]
    assert [(put.kind, put.completion) for put in puts] == [
        ("response", "ok"),
        ("response", "ok"),
        ("publication", None),
        ("response", "ok"),
        ("response", "ok"),
    ]
