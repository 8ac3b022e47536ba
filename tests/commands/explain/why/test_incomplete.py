"""What a capture lacks: an MQMD, or whole messages. Then ``why`` says what it would say of all, or "unknown"."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commands.broker.objects import CONTROL_QUEUE
from commands.explain.build import CommandSpec, command_message
from commands.explain.problems import is_assumed_queue
from commands.explain.why import Asked, Reason, Verdict
from commands.explain.why.verdict import PLACES
from commands.replay.network.why import LocalWhy
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from tests.commands.explain.why.test_property import CURES, Step, World, is_cured, others, publications, registrations

NEAR: Final = {Reason.WILDCARD_SCHEME, Reason.CASE, Reason.BLANK, Reason.SLASH, *PLACES}
"""The reasons that a publication and a RegSub give by themselves."""


OF_THE_COMMAND: Final = {Reason.DEAD_LETTER, Reason.REFUSED, Reason.PUBLISH_DISABLED}
"""The reasons that a Publish gives by itself."""


def command(seq: int, word: str, topic: str, *options: str, has_md: bool = True, **more: Any) -> CapturedMessage:
    """One command; more: tags, and ``on``, the queue, or fields of the MQMD."""
    tags = {name: more.pop(name) for name in ("QName", "Filter", "SubName") if name in more}
    spec = CommandSpec(word, (topic,), options, tags, queue=more.pop("on", ""), mqmd=Mqmd(**more))
    made = command_message(spec).model_copy(update={"seq": seq})
    return made if has_md else made.model_copy(update={"md_hex": None})


def answers(*messages: CapturedMessage, asked: Asked | None = None, unread: int = 0, setup: str = "") -> list[Verdict]:
    why = LocalWhy(setup, asked=asked)
    why.unread = unread
    return list(why.answers(messages))


LACKS_MD: list[tuple[str, list[CapturedMessage], dict[int | None, str]]] = [
    (
        "the-wildcard-is-the-cause",
        [command(1, "RegSub", "a/*", "CorrelAsId", has_md=False, QName="Q1"), command(2, "Publish", "a/b")],
        {2: "wildcard-scheme"},
    ),
    (
        "a-queue-that-the-command-does-not-name",
        [command(1, "RegSub", "a/b", has_md=False), command(2, "Publish", "a/b", has_md=False)],
        {2: "delivered"},
    ),
    (
        "a-deregsub-may-have-ended-it",
        [
            command(1, "RegSub", "a/b", "CorrelAsId", reply_to_q="Q1", correl_id=b"1" * 24),
            command(2, "DeregSub", "a/b", "CorrelAsId", has_md=False),
            command(3, "Publish", "a/b"),
        ],
        {3: "unknown"},
    ),
    (
        "a-deregsub-of-an-unknown-one",
        [
            command(1, "RegSub", "a/b", "CorrelAsId", has_md=False),
            command(2, "DeregSub", "a/b", "CorrelAsId", reply_to_q="Q1", correl_id=b"1" * 24),
            command(3, "Publish", "a/b"),
        ],
        {3: "unknown"},
    ),
    (
        "a-deregsub-of-another-topic",
        [
            command(1, "RegSub", "a/b", reply_to_q="Q1"),
            command(2, "DeregSub", "c", has_md=False),
            command(3, "Publish", "a/b"),
        ],
        {3: "delivered"},
    ),
    (
        "the-publisher-may-be-the-subscriber",
        [
            command(1, "RegSub", "a/b", reply_to_q="Q1"),
            command(2, "Publish", "a/b", "OtherSubsOnly", has_md=False),
        ],
        {2: "unknown"},
    ),
    (
        "a-filter-on-the-mqmd",
        [
            command(1, "RegSub", "a/b", reply_to_q="Q1", Filter="JMSPriority > 5"),
            command(2, "Publish", "a/b", has_md=False),
        ],
        {2: "unknown"},
    ),
    (
        "another-user-may-own-the-name",
        [
            command(1, "RegSub", "a/b", reply_to_q="Q1", SubName="S", user_identifier="app"),
            command(2, "RegSub", "a/b", has_md=False, QName="Q2", SubName="S"),
            command(3, "Publish", "a/c"),
        ],
        {None: "unknown"},
    ),
    (
        "a-fault-of-the-command-itself",
        [command(1, "RegSub", "a/b", has_md=False, QName="Q1", Filter="a ="), command(2, "Publish", "a/b")],
        {2: "refused"},
    ),
]


@pytest.mark.parametrize(("messages", "expected"), [row[1:] for row in LACKS_MD], ids=[row[0] for row in LACKS_MD])
def test_commands_without_an_mqmd(messages: list[CapturedMessage], expected: dict[int | None, str]) -> None:
    said = {verdict.seq: verdict.reason.value for verdict in answers(*messages)}
    assert {seq: said[seq] for seq in expected} == expected


def test_what_is_assumed_is_said() -> None:
    lacking = command(1, "RegSub", "a/b", "CorrelAsId", has_md=False, QName="Q1")
    (verdict,) = answers(lacking, command(2, "Publish", "a/b"))
    assert verdict.delivered
    assert verdict.detail == "RegSub 1 has no MQMD in the capture: its CorrelId, user and expiry are unknown"


def test_authority_is_not_asked_for_a_user_that_is_unknown() -> None:
    setup = "SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) PRINCIPAL('app') AUTHADD(PUB,SUB)\n"
    lacking = command(1, "RegSub", "a/b", has_md=False, QName="Q1"), command(2, "Publish", "a/b", has_md=False)
    assert [verdict.reason for verdict in answers(*lacking, setup=setup)] == [Reason.DELIVERED]


def test_a_publish_that_was_refused_is_named_with_whom_it_would_have_missed() -> None:
    published = command(2, "Publish", "a/b", on=CONTROL_QUEUE)
    registered = command(1, "RegSub", "a/*", reply_to_q="Q1")
    (verdict,) = answers(registered, published)
    assert (verdict.seq, verdict.topic, verdict.queue, verdict.delivered) == (2, "a/b", "Q1", False)
    assert "Publish 2 was refused: reason 3079" in verdict.detail
    assert "the subscription says 'a/*'" in verdict.detail


def test_a_publish_on_a_queue_that_no_broker_reads_is_named_too() -> None:
    registered, published = command(1, "RegSub", "A/B", reply_to_q="Q1"), command(2, "Publish", "a/b", on="APP.QUEUE")
    (verdict,) = answers(registered, published)
    assert (verdict.seq, verdict.reason) == (2, Reason.STREAM)
    assert "case differs" in verdict.detail


def test_a_publish_that_was_refused_was_there() -> None:
    published = command(2, "Publish", "a/b", on=CONTROL_QUEUE)
    registered = command(1, "RegSub", "x/y", reply_to_q="Q1")
    (verdict,) = answers(registered, published)
    assert verdict.detail == "nothing was published: message 2 on 'a/b' was not carried out"
    (verdict,) = answers(registered)
    assert verdict.detail == "nothing was published in the capture"


REGISTERED: Final = command(2, "RegSub", "a/b", reply_to_q="Q1")
UNREAD: list[tuple[str, list[CapturedMessage], Asked, str]] = [
    ("no-subscription", [command(3, "Publish", "a/b")], Asked("Q1"), "no subscription was registered in the capture"),
    ("no-publication", [REGISTERED], Asked("Q1", "a/b"), "could not be read"),
    ("nothing-for-it", [REGISTERED, command(3, "Publish", "c")], Asked(), "could not be read"),
]


@pytest.mark.parametrize(("messages", "asked", "says"), [row[1:] for row in UNREAD], ids=[row[0] for row in UNREAD])
def test_what_is_absent_is_unknown_where_a_record_could_not_be_read(
    messages: list[CapturedMessage], asked: Asked, says: str
) -> None:
    (verdict,) = answers(*messages, asked=asked)
    assert verdict.reason is Reason.NO_MATCH
    (verdict,) = answers(*messages, asked=asked, unread=1)
    assert verdict.reason is Reason.UNKNOWN
    assert says in verdict.detail
    assert "1 record of the capture could not be read" in verdict.detail


@st.composite
def incomplete(draw: st.DrawFn) -> tuple[World, dict[int, str]]:
    """A world in which no RegSub changes an earlier one, and what its capture lacks of each message by its seq."""
    steps = draw(st.lists(publications, max_size=2)) + draw(
        st.lists(registrations, min_size=1, max_size=5, unique_by=lambda step: (step.number, step.topic))
    )
    steps += draw(st.lists(publications | publications | others, min_size=1, max_size=6))
    for word in draw(st.lists(st.sampled_from(["DeregSub", "ReqUpdate"]), max_size=2)):
        about = draw(st.sampled_from([step for step in steps if step.word == "RegSub"]))
        steps.append(replace(about, word=word, options=tuple(o for o in about.options if o == "CorrelAsId")))
        steps.append(draw(publications))
    identified = draw(st.sampled_from([(), ("CorrelAsId",)]))
    names = draw(st.booleans())
    steps = [step if step.word == "Publish" else _identified(step, identified, names) for step in steps]
    lacks = st.sampled_from(["nothing", "nothing", "MQMD", "message"])
    lost = {seq: draw(lacks) for seq in range(1, len(steps) + 1)}
    return World(tuple(steps), "v7", draw(st.booleans()), draw(st.booleans())), lost


def _identified(step: Step, options: tuple[str, ...], names: bool) -> Step:
    return replace(step, options=(*step.options, *options), names_queue=names)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(incomplete())
def test_whatever_a_capture_lacks_no_reason_is_false(given_world: tuple[World, dict[int, str]]) -> None:
    world, lacks = given_world
    why, found = LocalWhy(world.setup, world.semantics), []
    for message in world.messages:
        if lacks[message.seq] == "message":
            why.unread += 1
            continue
        lacking = lacks[message.seq] == "MQMD"
        update = {"md_hex": None, "user": None} if lacking else {}
        found += why.take(message.model_copy(update=update))
    found += why.end()
    reasons: dict[tuple[int | None, str], set[Reason]] = defaultdict(set)
    for verdict in world.answers():
        reasons[verdict.seq, verdict.queue].add(verdict.reason)
    for verdict in found:
        if verdict.delivered or verdict.reason is Reason.UNKNOWN or not verdict.queue:
            continue
        if is_assumed_queue(verdict.queue):
            number = world.steps[int(verdict.queue.rpartition(".")[2]) - 1].number
            verdict = replace(verdict, queue=f"Q{number}")  # noqa: PLW2901
        there = reasons[verdict.seq, verdict.queue]
        if verdict.reason in there or (Reason.DELIVERED in there and verdict.reason in NEAR):
            continue
        if verdict.reason in OF_THE_COMMAND and verdict.detail.startswith(("Publish", "topic object")):
            continue
        if verdict.reason is Reason.REFUSED and any(
            verdict.reason in said for (_, queue), said in reasons.items() if queue == verdict.queue
        ):
            continue
        assert verdict.reason in CURES, (verdict, verdict.detail, there)
        assert is_cured(world, verdict), (verdict, verdict.detail, there)
