"""The publish exit (guide 4.6.2, 7.5; structures 4.6.2.1 to 4.6.2.3): its calls, and what each answer does."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from commands.broker.exit_calls import PublishExitFailedError
from commands.broker.exit_values import (
    ExitAnswer,
    ExitMessage,
    ExitResponse,
    PublicationContext,
    PublishExitError,
    SubscriptionContext,
)
from commands.broker.outcome import Arrival
from commands.broker.puts import ExitFate
from commands.mqsc.broker import Broker
from rfh2.constants import MQRC_PUBLISH_EXIT_ERROR, MQRO_DISCARD_MSG
from rfh2.dlh import Dlh
from rfh2.mqi_constants import MQSO_ANY_USERID, MQSO_DURABLE, MQSO_WILDCARD_TOPIC
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQPSPROP_RFH2, MQSUBTYPE_ADMIN, MQSUBTYPE_API
from tests.commands.scenario import CORREL_ID, Received, Result, Scenario, psc, refused, rfh2_message

Call = tuple[ExitMessage, PublicationContext, SubscriptionContext]
SUPPRESS, FAILED = ExitResponse.SUPPRESS_FUNCTION, ExitResponse.FAILED
HERE = "QM1"


class Exit:
    """A publish exit that answers as it is told, and knows its calls."""

    def __init__(self, *answers: ExitAnswer | Exception | Callable[[Call], ExitAnswer]) -> None:
        self.answers, self.calls = list(answers), list[Call]()

    def publication(
        self, message: ExitMessage, publication: PublicationContext, subscription: SubscriptionContext
    ) -> ExitAnswer:
        call = (message, publication, subscription)
        self.calls.append(call)
        # The last answer stays.
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, ExitAnswer) else answer(call)


def _with_exit(world: Scenario, *answers: ExitAnswer | Exception | Callable[[Call], ExitAnswer]) -> Exit:
    exit_ = Exit(*answers)
    world.broker.publish_exit = exit_
    return exit_


def _state(broker: Broker) -> object:
    return broker.space.subscriptions(), broker.space.retained_publications()


# The call


@pytest.mark.rule("APP-5b")
def test_4_6_2_the_exit_gets_the_message_and_both_contexts(world: Scenario) -> None:
    exit_ = _with_exit(world, ExitAnswer())
    world.register(
        "Sport/#",
        reply_to="BOARD",
        options=["CorrelAsId", "VariableUserId"],
        tags=[("SubName", "S1"), ("Filter", "colour = 'red'")],
        correl_id=CORREL_ID,
    )
    result = world.send(
        psc("Publish", ("Topic", "Sport/Soccer")),
        "<usr><colour>red</colour><size dt='i4'>3</size></usr>",
        queue="SYSTEM.BROKER.DEFAULT.STREAM",
        data=b"2:1",
        request=False,
    )
    ((message, publication, subscription),) = exit_.calls
    (put,) = result.publications
    assert (message.md, message.body) == (bytes.fromhex(put.put.md_hex), bytes.fromhex(put.put.body_hex))
    assert message.mqmd.correl_id == CORREL_ID
    assert message.properties == {"colour": "red", "size": 3}
    assert publication == PublicationContext(pub_topic_string="Sport/Soccer")
    (registered,) = world.subscriptions
    assert subscription == SubscriptionContext(
        destination_qmgr_name=HERE,
        destination_q_name="BOARD",
        sub_type=MQSUBTYPE_API,
        sub_options=MQSO_DURABLE | MQSO_ANY_USERID | MQSO_WILDCARD_TOPIC,
        object_name="",
        object_string="Sport/#",
        sub_topic_string="Sport/#",
        sub_name="S1",
        sub_id=registered.sub_id,
        selection_string="colour = 'red'",
        sub_level=1,
        ps_properties=MQPSPROP_RFH2,
    )


@pytest.mark.rule("APP-5")
def test_4_6_2_it_is_called_for_each_subscriber() -> None:
    exit_ = Exit(ExitAnswer())
    setup = "DEFINE TOPIC(T) TOPICSTR('a')\nDEFINE SUB(A) TOPICOBJ(T) DEST(ADMINS)"
    world = Scenario()
    world.broker = Broker("QM1", setup, publish_exit=exit_)
    world.register("a", reply_to="B")
    assert world.publish("a").queues == ["ADMINS", "B"]
    assert [(each[2].destination_q_name, each[2].sub_type, each[2].object_name) for each in exit_.calls] == [
        ("ADMINS", MQSUBTYPE_ADMIN, "T"),
        ("B", MQSUBTYPE_API, ""),
    ]


RETAINED: list[tuple[str, Callable[[Scenario], Result]]] = [
    ("Subscribe", lambda world: world.register("a", reply_to="NEW")),
    ("Subscription Request", lambda world: world.request_update("a", reply_to="OLD")),
]


@pytest.mark.rule("APP-5")
@pytest.mark.parametrize("command", [row[1] for row in RETAINED], ids=[row[0] for row in RETAINED])
def test_4_6_2_it_is_called_for_retained_messages(world: Scenario, command: Callable[[Scenario], Result]) -> None:
    world.register("a", reply_to="OLD", options=["PubOnReqOnly"])
    world.publish("a", options=["RetainPub"])
    exit_ = _with_exit(world, ExitAnswer(destination_q_name="ELSEWHERE"))
    assert command(world).queues == ["ELSEWHERE"]
    assert len(exit_.calls) == 1


@pytest.mark.rule("APP-5")
def test_4_6_2_responses_are_no_publications(world: Scenario) -> None:
    exit_ = _with_exit(world, PublishExitError("it must not be called"))
    assert world.register("a").response.completion == "ok"
    assert world.publish("b", request=True).response.completion == "ok"
    assert exit_.calls == []


# MQXCC_OK


def _discarding(call: Call) -> bytes:
    return replace(call[0].mqmd, report=MQRO_DISCARD_MSG).encode()


CHANGES: list[tuple[str, Callable[[Call], ExitAnswer], Callable[[Received], object], object]] = [
    ("nothing", lambda _: ExitAnswer(), lambda got: (got.put.qmgr, got.queue, got.data), (HERE, "BOARD", b"data")),
    ("queue", lambda _: ExitAnswer(destination_q_name="B "), lambda got: (got.put.qmgr, got.queue), (HERE, "B")),
    (
        "queue manager",
        lambda _: ExitAnswer(destination_qmgr_name="QM2"),
        lambda got: (got.put.qmgr, got.queue),
        ("QM2", "BOARD"),
    ),
    (
        "blank queue manager",
        lambda _: ExitAnswer(destination_qmgr_name=" ", destination_q_name="B"),
        lambda got: (got.put.qmgr, got.queue),
        (HERE, "B"),
    ),
    (
        "descriptor",
        lambda call: ExitAnswer(md=replace(call[0].mqmd, priority=7, appl_identity_data="x").encode()),
        lambda got: (got.mqmd.priority, got.mqmd.appl_identity_data),
        (7, "x"),
    ),
    ("data", lambda call: ExitAnswer(body=call[0].body + b" and more"), lambda got: got.data, b"data and more"),
    ("shorter data", lambda call: ExitAnswer(body=call[0].body[:-2]), lambda got: got.data, b"da"),
    (
        "a property is set",
        lambda _: ExitAnswer(properties={"size": 5, "loud": True}),
        lambda got: got.folders[1:],
        ["<usr><colour>red</colour><size dt='i4'>5</size><loud dt='boolean'>1</loud></usr>"],
    ),
    (
        "a property is deleted",
        lambda _: ExitAnswer(properties={"colour": None, "none": None}),
        lambda got: got.folders[1:],
        ["<usr><size dt='i4'>3</size></usr>"],
    ),
    (
        "no MQRFH2 any more",
        lambda call: ExitAnswer(md=replace(call[0].mqmd, format="MQSTR").encode(), body=b"bare"),
        lambda got: (got.message.headers, got.data),
        ((), b"bare"),
    ),
    (
        "data that its Format does not describe",
        lambda _: ExitAnswer(body=b"no header"),
        lambda got: bytes.fromhex(got.put.body_hex),
        b"no header",
    ),
]


@pytest.mark.rule("APP-5c", "V7-8")
@pytest.mark.parametrize(("answer", "see", "expected"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_4_6_2_what_it_changes(
    world: Scenario,
    answer: Callable[[Call], ExitAnswer],
    see: Callable[[Received], object],
    expected: object,
) -> None:
    world.register("a", reply_to="BOARD")
    _with_exit(world, answer)
    result = world.send(
        psc("Publish", ("Topic", "a")),
        "<usr><colour>red</colour><size dt='i4'>3</size></usr>",
        queue="SYSTEM.BROKER.DEFAULT.STREAM",
        data=b"data",
        request=False,
    )
    (put,) = result.publications
    assert see(put) == expected


def test_4_6_2_where_it_was_sent_is_in_the_outcome(world: Scenario) -> None:
    world.register("a", reply_to="BOARD")
    _with_exit(world, ExitAnswer(destination_q_name="B"))
    (exited,) = world.publish("a").outcome.exited
    assert (exited.fate, exited.qmgr, exited.queue) == (ExitFate.DIVERTED, HERE, "B")


@pytest.mark.rule("APP-5c")
def test_4_6_2_properties_of_a_message_without_them(world: Scenario) -> None:
    world.register("a", reply_to="BOARD")
    _with_exit(world, ExitAnswer(properties={"colour": "<blue>"}))
    (put,) = world.publish("a").publications
    assert put.folders[1:] == ["<usr><colour>&lt;blue&gt;</colour></usr>"]


# MQXCC_SUPPRESS_FUNCTION


@pytest.mark.rule("APP-5d")
@pytest.mark.parametrize(("feedback", "reason"), [(0, 279), (70_000, 70_000)])
def test_4_6_2_1_what_it_suppresses_is_a_dead_letter(world: Scenario, feedback: int, reason: int) -> None:
    world.register("a", reply_to="A.Q")
    world.register("a", reply_to="B.Q")
    _with_exit(world, ExitAnswer(exit_response=SUPPRESS, feedback=feedback), ExitAnswer())
    result = world.publish("a", request=True)
    assert result.queues == ["B.Q"]
    (letter,) = result.dead_letters
    assert letter.queue == "SYSTEM.DEAD.LETTER.QUEUE"
    header = letter.message.headers[0]
    assert isinstance(header, Dlh)
    assert (header.reason, header.dest_q_name, header.dest_qmgr_name) == (reason, "A.Q", HERE)
    assert letter.message.body == b"data"
    assert result.response.completion == "ok"
    (exited,) = result.outcome.exited
    assert (exited.fate, exited.feedback, exited.queue) == (ExitFate.DEAD_LETTER, reason, letter.queue)
    # The counters of a subscription take the deliveries and the puts in the same order.
    assert [copies[0].subscription.dest_queue for copies in result.outcome.copies] == ["A.Q", "B.Q"]


@pytest.mark.rule("APP-5d")
def test_4_6_2_1_with_discard_it_is_put_nowhere(world: Scenario) -> None:
    world.register("a", reply_to="A.Q")
    world.register("a", reply_to="B.Q")
    _with_exit(world, lambda call: ExitAnswer(exit_response=SUPPRESS, md=_discarding(call)), ExitAnswer())
    result = world.publish("a")
    assert [(put.put.kind, put.queue) for put in result.puts] == [("publication", "B.Q")]
    assert [each.fate for each in result.outcome.exited] == [ExitFate.DISCARDED]
    assert [copies[0].subscription.dest_queue for copies in result.outcome.copies] == ["B.Q"]


# MQXCC_FAILED, and answers that are none


def _bad_md(_: Call) -> ExitAnswer:
    return ExitAnswer(md=b"no descriptor")


def _bad_name(_: Call) -> ExitAnswer:
    return ExitAnswer(destination_q_name="no name")


FAILURES: list[tuple[str, ExitAnswer | Exception | Callable[[Call], ExitAnswer], str]] = [
    ("failed", ExitAnswer(exit_response=FAILED), "it answered MQXCC_FAILED"),
    ("failed with a text", ExitAnswer(exit_response=FAILED, why="no table"), "no table"),
    ("no answer", PublishExitError("no answer in 5 s"), "no answer in 5 s"),
    ("a descriptor that is none", _bad_md, "the message that it answered is not valid: MQMD at byte 0"),
    ("a name that is none", _bad_name, "'no name' cannot be the name of a queue"),
    ("an empty name", ExitAnswer(destination_q_name=""), "'' cannot be the name of a queue"),
    ("a property without a name", ExitAnswer(properties={"": "x"}), "is not valid"),
    ("a property that is two", ExitAnswer(properties={"a><b": "x"}), "is not valid"),
    ("a property of nulls", ExitAnswer(properties={"a": "\0"}), "is not valid"),
    ("a property of 2^80", ExitAnswer(properties={"a": 2**80}), "is not valid"),
]


@pytest.mark.rule("APP-5e")
@pytest.mark.parametrize(("answer", "why"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_4_6_2_1_a_command_for_which_it_fails_does_nothing(
    world: Scenario, answer: ExitAnswer | Exception | Callable[[Call], ExitAnswer], why: str
) -> None:
    world.register("a", reply_to="A.Q")
    world.register("a", reply_to="B.Q")
    world.publish("a", options=["RetainPub"], data=b"before")
    before = _state(world.broker)
    _with_exit(world, ExitAnswer(), answer)
    result = world.publish("a", "b", options=["RetainPub"], request=True)
    refused(result, MQRC_PUBLISH_EXIT_ERROR, ("Topic", "a"))
    assert why in result.outcome.why
    assert (result.outcome.effects, result.outcome.copies, result.outcome.exited) == ((), (), ())
    assert _state(world.broker) == before


def test_4_6_2_1_the_trace_of_a_failed_command_reached_nobody(world: Scenario) -> None:
    """A linked topic tree takes from the trace what it gets: it gets nothing of a command that was not carried out."""
    world.register("a")
    _with_exit(world, ExitAnswer(exit_response=FAILED))
    md, body = rfh2_message([psc("Publish", ("Topic", "a"), ("PubOpt", "RetainPub"))], Mqmd(priority=0, persistence=0))
    queue = "SYSTEM.BROKER.DEFAULT.STREAM"
    arrival = Arrival(9, world.now, queue, md.encode(), body, "app1")
    outcome = world.broker.trace(arrival, explains=True)
    assert outcome.trace is not None
    assert (outcome.reason, outcome.trace.operations) == (MQRC_PUBLISH_EXIT_ERROR, ())
    assert [operation.topic_string for operation in outcome.trace.refused] == ["a"]


@pytest.mark.rule("APP-5e")
def test_4_6_2_1_a_failed_datagram_is_a_dead_letter(world: Scenario) -> None:
    world.register("a")
    _with_exit(world, ExitAnswer(exit_response=FAILED))
    (letter,) = world.publish("a").puts
    header = letter.message.headers[0]
    assert isinstance(header, Dlh)
    assert header.reason == MQRC_PUBLISH_EXIT_ERROR
    assert header.dest_q_name == "SYSTEM.BROKER.DEFAULT.STREAM"


def test_4_6_2_properties_need_an_mqrfh2(world: Scenario) -> None:
    world.broker = Broker("QM1", "DEFINE SUB(A) TOPICSTR('a') DEST(A.Q) PSPROP(NONE)")
    _with_exit(world, ExitAnswer(properties={"a": 1}))
    result = world.publish("a")
    assert "it set properties of a message that has no MQRFH2" in result.outcome.why


REGISTRATIONS: list[tuple[str, str, Callable[[Scenario], Result], int]] = [
    ("new", "v7", lambda world: world.register("#", reply_to="NEW"), 1),
    ("new", "v6", lambda world: world.register("#", reply_to="NEW"), 1),
    ("several", "v7", lambda world: world.register("a", "b", "c/#", reply_to="NEW"), 2),
    ("update", "v7", lambda world: world.request_update("a", reply_to="OLD"), 0),
    ("altered", "v7", lambda world: world.register("a", reply_to="NEWS", options=["None"]), 0),
]


@pytest.mark.rule("APP-5e")
@pytest.mark.parametrize(
    ("semantics", "command", "good"),
    [row[1:] for row in REGISTRATIONS],
    ids=[f"{what}-{semantics}" for what, semantics, _, _ in REGISTRATIONS],
)
def test_4_6_2_1_a_registration_for_which_it_fails_is_not_made(
    semantics: str, command: Callable[[Scenario], Result], good: int
) -> None:
    world = Scenario(semantics)
    world.register("a", reply_to="OLD")
    world.register("a", reply_to="NEWS", options=["NewPubsOnly"])
    for topic in ("a", "b", "c/d"):
        world.publish(topic, options=["RetainPub"])
    before = _state(world.broker)
    exit_ = _with_exit(world, *[ExitAnswer()] * good, ExitAnswer(exit_response=FAILED))
    result = command(world)
    assert result.answer.reason == MQRC_PUBLISH_EXIT_ERROR
    assert len(result.puts) == 1
    assert len(exit_.calls) == good + 1
    assert _state(world.broker) == before


def test_the_error_survives_pickling() -> None:
    error = PublishExitFailedError("a", "why")
    again = pickle.loads(pickle.dumps(error))
    assert (again.reason, again.topic, again.why) == (2557, "a", "why")
