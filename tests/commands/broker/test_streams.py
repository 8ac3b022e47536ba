"""Streams (guide 6.1, 6.5.4, 7.5): the queue that a publication arrives on decides where its topic lies."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from commands import Broker
from commands.broker.context import Semantics
from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM, AliasQueue, LocalQueue
from rfh2 import CapturedMessage, Folder, Rfh2
from rfh2.constants import MQAT_BROKER
from rfh2.mqmd import Mqmd
from streams.topic_objects import QUEUE_NAMELIST, Namelist, TopicObject, Wildcard
from tests.commands.scenario import Scenario, done, psc, refused, rfh2_message


@pytest.fixture
def sport(world: Scenario) -> Scenario:
    """The stream Sport of guide 6.1, figure 1, whose topics lie below xyz; and two streams at the root."""
    for queue in ("Sport", "NO.OBJECT", "NO.STRING", "SYSTEM.FTE"):
        world.objects.put(LocalQueue(queue))
    world.objects.put(TopicObject("Sport", "xyz", wildcard=Wildcard.BLOCK))
    world.objects.put(TopicObject("NO.STRING", ""))
    world.objects.put(TopicObject("SYSTEM.FTE", "SYSTEM.FTE", wildcard=Wildcard.BLOCK))
    names = (DEFAULT_STREAM, ADMIN_STREAM, "Sport", "NO.OBJECT", "NO.STRING", "SYSTEM.FTE")
    world.objects.put(Namelist(QUEUE_NAMELIST, names))
    return world


PREFIXES = [
    ("6.1-default-stream", DEFAULT_STREAM, "Soccer/Results"),
    ("6.1-admin-stream", ADMIN_STREAM, "Soccer/Results"),
    ("6.1-prefix-of-the-topic-object", "Sport", "xyz/Soccer/Results"),
    ("6.1-no-topic-object", "NO.OBJECT", "Soccer/Results"),
    ("6.1-empty-topic-string", "NO.STRING", "Soccer/Results"),
    ("field-managed-file-transfer", "SYSTEM.FTE", "SYSTEM.FTE/Soccer/Results"),
]


@pytest.mark.rule("DEL-2", "STR-1", "STR-2")
@pytest.mark.parametrize(("queue", "topic"), [row[1:] for row in PREFIXES], ids=[row[0] for row in PREFIXES])
def test_6_1_where_a_publication_lies(sport: Scenario, queue: str, topic: str) -> None:
    sport.publish("Soccer/Results", queue=queue, options=["RetainPub"])
    assert sport.retained == [topic]
    done(sport.delete("Soccer/Results", queue=queue))
    assert sport.retained == []


@pytest.mark.rule("STR-1")
def test_6_1_streams_are_separate(sport: Scenario) -> None:
    sport.register("Soccer/Results", reply_to="DEFAULT.Q")
    sport.register("xyz/Soccer/Results", reply_to="SPORT.Q")
    assert sport.publish("Soccer/Results").queues == ["DEFAULT.Q"]
    assert sport.publish("Soccer/Results", queue="Sport").queues == ["SPORT.Q"]


def test_mqrfh2_subscriptions_name_no_stream_and_are_told_the_whole_topic(sport: Scenario) -> None:
    sport.register("xyz/Soccer/#")
    (got,) = sport.publish("Soccer/Results", queue="Sport").publications
    assert (got.topic, got.put.topic) == ("xyz/Soccer/Results", "xyz/Soccer/Results")


def test_field_managed_file_transfer(sport: Scenario) -> None:
    sport.publish("Log/agent1", queue="SYSTEM.FTE", options=["RetainPub"])
    assert sport.register("SYSTEM.FTE/Log/#").topics == ["SYSTEM.FTE/Log/agent1"]


@pytest.mark.rule("STR-3")
def test_6_5_4_wildcards_from_outside_are_blocked(sport: Scenario) -> None:
    sport.register("#")
    assert sport.publish("Soccer/Results", queue="Sport").publications == []
    assert len(sport.publish("Soccer/Results").publications) == 1


# Which queue takes which command (6.7.7, 3079)


@pytest.mark.parametrize("word", ["Publish", "DeletePub"])
def test_6_7_7_3079_not_on_the_control_queue(sport: Scenario, word: str) -> None:
    refused(sport.command(word, ("Topic", "a"), queue=CONTROL_QUEUE), 3079, ("Command", word))


@pytest.mark.rule("DEREG-1")
@pytest.mark.parametrize("queue", [DEFAULT_STREAM, "Sport"])
@pytest.mark.parametrize("word", ["RegSub", "DeregSub", "ReqUpdate"])
def test_6_7_7_3079_not_on_a_stream_queue(sport: Scenario, word: str, queue: str) -> None:
    refused(sport.command(word, ("Topic", "a"), queue=queue), 3079, ("Command", word))


@pytest.mark.rule("STR-4")
@pytest.mark.parametrize("word", ["RegSub", "Publish", "DeletePub"])
def test_6_5_4_a_command_on_a_queue_that_nobody_reads_stays_there(sport: Scenario, word: str) -> None:
    result = sport.command(word, ("Topic", "a"), queue="SOME.Q")
    assert (result.puts, result.outcome.completion) == ([], None)
    assert result.outcome.why == (
        "not processed: SOME.Q is not in SYSTEM.QPUBSUB.QUEUE.NAMELIST. "
        "If it is a stream queue, add it with ALTER NAMELIST"
    )


@pytest.mark.rule("STR-4")
def test_6_5_4_a_stream_has_to_stand_in_the_namelist(sport: Scenario) -> None:
    sport.objects.put(LocalQueue("Business"))
    sport.objects.put(TopicObject("Business", "Business"))
    sport.register("Business/a")
    before = sport.publish("a", queue="Business", request=True)
    sport.objects.put(Namelist(QUEUE_NAMELIST, ("Sport", "Business")))
    after = sport.publish("a", queue="Business", request=True)
    assert (before.puts, before.outcome.completion) == ([], None)
    assert [received.put.kind for received in after.puts] == ["publication", "response"]


def test_without_the_namelist_the_default_stream_alone_is_read(sport: Scenario) -> None:
    del sport.objects.namelists[QUEUE_NAMELIST]
    sport.register("a")
    assert sport.publish("a").outcome.completion == "ok"
    assert sport.publish("a", queue="Sport").outcome.completion is None


ELSEWHERE = [
    ("what-is-no-command", Mqmd(format="MQSTR"), b"hello"),
    ("what-cannot-be-read", Mqmd(format="MQHRF2"), b"RFH nonsense"),
    ("what-a-broker-put-there", *rfh2_message((psc("Publish", ("Topic", "a")),), Mqmd(put_appl_type=MQAT_BROKER))),
    ("a-response", *rfh2_message(("<pscr><Completion>ok</Completion></pscr>",), Mqmd())),
]


@pytest.mark.parametrize(("mqmd", "body"), [row[1:] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE])
def test_messages_on_other_queues_are_passed_over(sport: Scenario, mqmd: Mqmd, body: bytes) -> None:
    result = sport.put("SUB.Q", mqmd.encode(), body)
    assert result.puts == []
    assert result.outcome.completion is None


def test_field_what_a_broker_put_on_a_stream_queue_is_published(sport: Scenario) -> None:
    sport.register("a")
    assert sport.publish("a", put_appl_type=MQAT_BROKER).queues == ["REPLY.Q"]


def test_what_a_setup_defines_runs_out_from_the_first_message_on() -> None:
    broker = Broker("QM1", "DEFINE SUB(S) TOPICSTR('a') DEST(S.Q) EXPIRY(100)")
    body = Rfh2((Folder.of("<psc><Command>Publish</Command><Topic>a</Topic></psc>"),)).encode().hex()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    received = [
        len(
            broker.handle(
                CapturedMessage(seq=n, time=start + timedelta(seconds=s), queue=DEFAULT_STREAM, body_hex=body)
            )
        )
        for n, s in enumerate((0, 9, 11))
    ]
    assert received == [1, 1, 0]


# What the broker puts is not published again


@pytest.mark.rule("REG-22")
@pytest.mark.parametrize("queue", [DEFAULT_STREAM, ADMIN_STREAM, "Sport", "TO.SPORT", CONTROL_QUEUE, "TO.CONTROL"])
def test_3076_a_subscription_delivers_to_no_queue_that_the_broker_reads(sport: Scenario, queue: str) -> None:
    sport.objects.put(AliasQueue("TO.SPORT", "Sport"))
    sport.objects.put(AliasQueue("TO.CONTROL", CONTROL_QUEUE))
    refused(sport.register("a/#", tags=[("QName", queue)]), 3076, ("QName", queue))
    done(sport.register("a/#", reply_to="Q", tags=[("SubName", "S")]))
    refused(sport.register("a/#", tags=[("SubName", "S"), ("QName", queue)]), 3076, ("QName", queue))
    assert [made.dest_queue for made in sport.subscriptions] == ["Q"]
    done(sport.register("b", tags=[("QName", queue), ("QMgrName", "QM2")]))


@pytest.mark.parametrize("semantics", [Semantics.V7, Semantics.V6])
def test_what_it_put_itself_is_a_dead_letter_on_a_queue_that_became_a_stream(semantics: Semantics) -> None:
    """A namelist can be altered after the subscription was made."""
    world = Scenario(semantics=semantics)
    world.objects.put(LocalQueue("LATER"))
    done(world.register("a/#", tags=[("QName", "LATER")]))
    world.objects.put(Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, "LATER")))
    (put,) = (each.put for each in world.publish("a/b").publications)
    again = world.put("LATER", bytes.fromhex(put.md_hex), bytes.fromhex(put.body_hex))
    assert ([each.put.reason for each in again.dead_letters], again.publications) == ([3079], [])
    assert "not published again" in again.outcome.why


NOT_ITS_OWN = [
    ("another queue manager's", {"put_appl_name": "QM2"}),
    ("a program's", {"put_appl_type": 6}),
    ("a dead letter that was put back with its context", {"msg_id": b"M" * 24}),
    ("a request", {"reply_to_q": "REPLY"}),
]


@pytest.mark.parametrize("fields", [row[1] for row in NOT_ITS_OWN], ids=[row[0] for row in NOT_ITS_OWN])
def test_what_others_put_is_published(sport: Scenario, fields: dict[str, object]) -> None:
    done(sport.register("a/#", tags=[("QName", "Q")]))
    (put,) = (each.put for each in sport.publish("a/b").publications)
    mqmd = replace(Mqmd.decode(bytes.fromhex(put.md_hex)), **fields)
    assert sport.put(DEFAULT_STREAM, mqmd.encode(), bytes.fromhex(put.body_hex)).queues == ["Q"]
