"""MQPSStreamName (guide 6.1, 7.2): where in the topic space MQRFH programs are, and who hears whom."""

from __future__ import annotations

import pytest

from commands.broker.objects import DEFAULT_STREAM
from streams.operations import Subscribe
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme
from streams.topic_objects import TopicObject
from tests.commands.headers.rfh1_pcf_table import SPORT, OlderScenario, nvs, pairs, rfh1_done, rfh1_refused

OTHER = "NO.SUCH.STREAM"


@pytest.fixture
def world() -> OlderScenario:
    return OlderScenario()


def subscribe(world: OlderScenario, topic: str, stream: str | None = None, options: str = "", **settings: str) -> None:
    name = f" MQPSStreamName {stream}" if stream else ""
    rfh1_done(world.rfh1(f"MQPSCommand RegSub MQPSTopic {topic}{name}{options}", **settings))  # type: ignore[arg-type]


@pytest.mark.rule("STR-6")
def test_6_1_a_subscription_lies_below_its_streams_topic_string(world: OlderScenario) -> None:
    subscribe(world, "Soccer/*", SPORT)
    (made,) = world.subscriptions
    assert (made.topic_string, made.prefix, made.stream) == ("Sport/Soccer/*", "Sport", SPORT)
    (got,) = world.rfh1("MQPSCommand Publish MQPSTopic Soccer/Goal", SPORT).publications
    assert (got.put.topic, nvs(got)) == ("Sport/Soccer/Goal", "MQPSCommand Publish MQPSTopic Soccer/Goal")


@pytest.mark.rule("STR-6")
@pytest.mark.parametrize("stream", [None, DEFAULT_STREAM, '""'], ids=["omitted", "named", "empty"])
def test_6_1_the_default_stream_is_the_root(world: OlderScenario, stream: str | None) -> None:
    subscribe(world, "Soccer/*", stream)
    (made,) = world.subscriptions
    assert (made.topic_string, made.prefix, made.stream) == ("Soccer/*", "", None)


def test_streams_do_not_hear_each_other(world: OlderScenario) -> None:
    subscribe(world, "*", reply_to="DEFAULT.Q")
    subscribe(world, "*", SPORT, reply_to="SPORT.Q")
    assert world.rfh1("MQPSCommand Publish MQPSTopic a").queues == ["DEFAULT.Q"]
    assert world.rfh1("MQPSCommand Publish MQPSTopic a", SPORT).queues == ["SPORT.Q"]


@pytest.mark.rule("OLD-10")
def test_7_2_6_incl_stream_name_tells_the_stream(world: OlderScenario) -> None:
    subscribe(world, "a", SPORT, " MQPSRegOpts InclStreamName", reply_to="A.Q")
    subscribe(world, "a", None, " MQPSRegOpts InclStreamName", reply_to="B.Q")
    (got,) = world.rfh1("MQPSCommand Publish MQPSTopic a", SPORT).publications
    assert nvs(got) == f"MQPSCommand Publish MQPSStreamName {SPORT} MQPSTopic a"
    (got,) = world.rfh1("MQPSCommand Publish MQPSTopic a").publications
    assert nvs(got) == f"MQPSCommand Publish MQPSStreamName {DEFAULT_STREAM} MQPSTopic a"


COMMANDS = ["RegSub", "DeregSub", "ReqUpdate"]


@pytest.mark.rule("STR-7")
@pytest.mark.parametrize("word", COMMANDS)
def test_3071_a_name_that_cannot_be_a_streams(world: OlderScenario, word: str) -> None:
    for name in ("NOT-A-NAME", "X" * 49):
        result = world.rfh1(f"MQPSCommand {word} MQPSTopic a MQPSStreamName {name}")
        rfh1_refused(result, 3071, ("MQPSStreamName", name))


@pytest.mark.rule("STR-7")
@pytest.mark.parametrize("word", COMMANDS)
def test_3082_a_stream_that_there_is_not(world: OlderScenario, word: str) -> None:
    result = world.rfh1(f"MQPSCommand {word} MQPSTopic a MQPSStreamName {OTHER}")
    rfh1_refused(result, 3082, ("MQPSStreamName", OTHER))


@pytest.mark.rule("STR-7")
@pytest.mark.parametrize("word", ["Publish", "DeletePub"])
def test_3075_a_publisher_that_names_another_stream_than_its_queue(world: OlderScenario, word: str) -> None:
    for name, queue in ((SPORT, DEFAULT_STREAM), (DEFAULT_STREAM, SPORT), (OTHER, SPORT)):
        result = world.rfh1(f"MQPSCommand {word} MQPSTopic a MQPSStreamName {name}", queue)
        rfh1_refused(result, 3075, ("MQPSStreamName", name))
    rfh1_done(world.rfh1(f"MQPSCommand {word} MQPSTopic a MQPSStreamName {SPORT}", SPORT))


@pytest.mark.parametrize("word", ["Publish", "DeletePub"])
def test_3071_for_publishers_too(world: OlderScenario, word: str) -> None:
    result = world.rfh1(f'MQPSCommand {word} MQPSTopic a MQPSStreamName "A B"', SPORT)
    rfh1_refused(result, 3071, ("MQPSStreamName", "A B"))


@pytest.mark.rule("OLD-13")
def test_deregistering_means_the_stream_that_it_names(world: OlderScenario) -> None:
    subscribe(world, "a")
    subscribe(world, "a", SPORT)
    rfh1_done(world.rfh1(f"MQPSCommand DeregSub MQPSTopic a MQPSStreamName {SPORT}"))
    assert [made.stream for made in world.subscriptions] == [None]
    rfh1_refused(world.rfh1(f"MQPSCommand DeregSub MQPSTopic a MQPSStreamName {SPORT}"), 3073, ("MQPSTopic", "a"))


def test_dereg_all_means_all_topics_of_one_stream(world: OlderScenario) -> None:
    for stream in (None, SPORT):
        for topic in ("a", "b/*"):
            subscribe(world, topic, stream)
    rfh1_done(world.rfh1("MQPSCommand DeregSub MQPSRegOpts DeregAll"))
    assert [(made.stream, made.topic_string) for made in world.subscriptions] == [
        (SPORT, "Sport/a"),
        (SPORT, "Sport/b/*"),
    ]


@pytest.mark.rule("OLD-13")
def test_request_update_on_a_stream(world: OlderScenario) -> None:
    world.rfh1("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a", SPORT, b"1")
    world.rfh1("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a", None, b"2")
    options = " MQPSRegOpts PubOnReqOnly MQPSRegOpts InformIfRet"
    subscribe(world, "?", SPORT, options)
    (got,) = world.rfh1(f"MQPSCommand ReqUpdate MQPSTopic ? MQPSStreamName {SPORT}").publications
    assert (got.data, nvs(got)) == (b"1", "MQPSCommand Publish MQPSPubOpts IsRetainedPub MQPSTopic a")


@pytest.mark.rule("OLD-13")
def test_delete_pub_on_a_stream_with_character_wildcards(world: OlderScenario) -> None:
    for topic in ("Soccer/A", "Soccer/B", "Rugby/A"):
        world.rfh1(f"MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic {topic}", SPORT, b"x")
    rfh1_done(world.rfh1("MQPSCommand DeletePub MQPSTopic Soc*/?", SPORT))
    assert world.retained == ["Sport/Rugby/A"]


def test_a_prefix_is_no_pattern(world: OlderScenario) -> None:
    """A topic string of a stream's object may hold the characters that are wild in an MQRFH topic."""
    world.objects.delete("topic", SPORT)
    world.objects.put(TopicObject(name=SPORT, topic_string="Sp*rt%"))
    subscribe(world, "a?", SPORT)
    (got,) = world.rfh1("MQPSCommand Publish MQPSTopic ab", SPORT).publications
    assert (got.put.topic, dict(pairs(got))["MQPSTopic"]) == ("Sp*rt%/ab", "ab")
    assert not world.publish("Spurt%/ab").publications
    rfh1_done(world.rfh1(f"MQPSCommand DeregSub MQPSTopic a? MQPSStreamName {SPORT}"))
    assert not world.subscriptions


# 2.5: wildcards of MQRFH are characters'.
MATCHES = [
    ("star-crosses-levels", "Sport/*", "Sport/Soccer/Goal", True),
    ("star-within-a-level", "Sp*/G", "Spare/Parts/G", True),
    ("question-mark-is-one-character", "Sp?re", "Spare", True),
    ("question-mark-may-be-a-separator", "A?B", "A/B", True),
    ("question-mark-is-not-none", "Sport?", "Sport", False),
    ("percent-escapes", "100%%", "100%", True),
    ("percent-star-is-a-star", "a%*", "ab", False),
    ("hash-is-a-character", "Sport/#", "Sport/Soccer", False),
    ("plus-is-a-character", "Sport/+", "Sport/Soccer", False),
]


@pytest.mark.rule("OLD-12", "V7-7")
@pytest.mark.parametrize(
    ("pattern", "topic", "matches"), [row[1:] for row in MATCHES], ids=["2.5.1.1.2-" + row[0] for row in MATCHES]
)
def test_wildcards(world: OlderScenario, pattern: str, topic: str, matches: bool) -> None:
    subscribe(world, pattern)
    assert bool(world.rfh1(f"MQPSCommand Publish MQPSTopic {topic}").publications) is matches


def test_a_pattern_is_another_topic_where_the_schemes_differ(world: OlderScenario) -> None:
    """``A/*`` is wild in an MQRFH and literal in an MQRFH2: two subscriptions, each deregistered in its own header."""
    subscribe(world, "A/*")
    world.register("A/*", reply_to="REPLY.Q")
    assert len(world.subscriptions) == 2
    subscribe(world, "B")
    world.register("B", reply_to="REPLY.Q")
    assert len(world.subscriptions) == 3
    rfh1_done(world.rfh1("MQPSCommand DeregSub MQPSTopic A/*"))
    assert [made.wildcard for made in world.subscriptions if made.topic_string == "A/*"] == ["topic"]


@pytest.mark.parametrize("word", ["RegSub", "DeregSub"])
def test_7_5_metatopics_of_a_stream_are_ignored(world: OlderScenario, word: str) -> None:
    topic = f'"MQ/S/{"QM1":48}/Subscribers/Topics"'
    result = world.rfh1(f"MQPSCommand {word} MQPSTopic {topic} MQPSStreamName {SPORT}")
    if word == "RegSub":
        rfh1_done(result)
    else:
        rfh1_refused(result, 3073, ("MQPSTopic", topic.strip('"')))
    assert not world.subscriptions


@pytest.mark.rule("OLD-19")
def test_7_6_1_a_name_that_migration_gave_its_stream_is_found_by_the_old_one(world: OlderScenario) -> None:
    """Version 6 had names for each stream: ``n`` of SPORT.STREAM is ``n:SPORT.STREAM`` after migration."""
    migrated = Subscription(
        sub_id=bytes(24),
        topic_string="Sport/a",
        dest_queue="OLD.Q",
        dest_qmgr="QM1",
        created=world.now,
        name=f"n:{SPORT}",
        wildcard=WildcardScheme.CHAR,
        prefix="Sport",
        stream=SPORT,
        user="app1",
        format=PublicationFormat.RFH1,
    )
    world.broker.space.apply(Subscribe(migrated, send_retained=False), world.now)
    rfh1_done(world.rfh1("MQPSCommand RegSub MQPSTopic a MQPSSubName n", reply_to="DEFAULT.Q"))
    names = f"MQPSTopic a MQPSSubName n MQPSStreamName {SPORT}"
    again = world.rfh1(f"MQPSCommand RegSub {names} MQPSRegOpts FullResp", reply_to="NEW.Q").response
    assert ("MQPSSubName", "n") in pairs(again)
    assert [(s.name, s.dest_queue) for s in world.subscriptions] == [(f"n:{SPORT}", "NEW.Q"), ("n", "DEFAULT.Q")]
    rfh1_done(world.rfh1(f"MQPSCommand DeregSub {names}"))
    assert [s.name for s in world.subscriptions] == ["n"]
