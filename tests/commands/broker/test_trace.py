"""The trace of an arrival: its operations, whom each reached, whom it passed over and by which rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Arrival, Outcome, Trace
from commands.broker.puts import PutKind
from commands.explain.build import CommandSpec, command_message
from commands.mqsc.broker import Broker
from rfh2.mqmd import Mqmd
from streams.operations import PublishToTopic, RequestRetained, Rule, Subscribe

START = datetime(2026, 1, 2, 9, 0, tzinfo=UTC)


def _wanted(word: str, topic: str, *options: str, queue: str = "SUB", selector: str | None = None) -> CommandSpec:
    """A command about one topic, of a program whose queue is *queue*."""
    mqmd = Mqmd(reply_to_q=queue.ljust(48))
    return CommandSpec(word, (topic,), options, {"Filter": selector}, mqmd=mqmd, data="x")


class World:
    """A broker whose every message is traced."""

    def __init__(self, setup: str = "", semantics: str = "v7") -> None:
        self.broker = Broker("QM1", setup, semantics)
        self._seq = 0

    def do(self, wanted: CommandSpec) -> tuple[Outcome, Trace]:
        made = command_message(wanted)
        self._seq += 1
        queue = DEFAULT_STREAM if wanted.word in ("Publish", "DeletePub") else CONTROL_QUEUE
        now = START + timedelta(seconds=self._seq)
        outcome = self.broker.trace(Arrival(self._seq, now, queue, made.md, made.body, made.user), explains=True)
        assert outcome.trace is not None
        return outcome, outcome.trace


def _passed(trace: Trace) -> dict[str, str]:
    return {each.subscription.dest_queue: each.rule.value for traced in trace.operations for each in traced.passed_over}


PASSED_OVER: list[tuple[str, CommandSpec, Rule]] = [
    ("6.7.4-PubOnReqOnly", _wanted("RegSub", "a/#", "PubOnReqOnly"), Rule.REQUEST_ONLY),
    ("2.4.3-filter", _wanted("RegSub", "a/b", selector="Colour = 'red'"), Rule.FILTER),
    ("2.5.4-block", _wanted("RegSub", "#"), Rule.BLOCKED),
]


@pytest.mark.parametrize(("subscribe", "rule"), [case[1:] for case in PASSED_OVER], ids=[c[0] for c in PASSED_OVER])
def test_a_publication_says_whom_it_passed_over(subscribe: CommandSpec, rule: Rule) -> None:
    world = World("DEFINE TOPIC(A) TOPICSTR('a') WILDCARD(BLOCK)" if rule is Rule.BLOCKED else "")
    world.do(subscribe)
    outcome, trace = world.do(_wanted("Publish", "a/b"))
    assert _passed(trace) == {"SUB": rule.value}
    assert outcome.puts == ()
    assert trace.deliveries == ()


def test_a_publisher_that_wants_others_only_is_passed_over() -> None:
    world = World()
    world.do(_wanted("RegSub", "a", queue="MINE"))
    world.do(_wanted("RegSub", "a", queue="OTHER"))
    outcome, trace = world.do(_wanted("Publish", "a", "OtherSubsOnly", queue="MINE"))
    assert _passed(trace) == {"MINE": "own-publication"}
    assert [copies[0].subscription.dest_queue for copies in outcome.copies] == ["OTHER"]


@pytest.mark.parametrize(("option", "rule"), [("NewPubsOnly", "new-only"), ("PubOnReqOnly", "request-only")])
def test_a_subscription_says_what_is_retained_and_not_sent(option: str, rule: str) -> None:
    world = World()
    world.do(_wanted("Publish", "a", "RetainPub"))
    _, trace = world.do(_wanted("RegSub", "a", option))
    assert _passed(trace) == {"SUB": rule}


REFUSED = [
    ("disabled", "DEFINE TOPIC(A) TOPICSTR('a') PUB(DISABLED)", ("a/b",), ["a/b"]),
    ("nobody-may", "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) PRINCIPAL('u') AUTHADD(PUT)", ("a", "b"), ["a", "b"]),
    ("one-of-two", "DEFINE TOPIC(A) TOPICSTR('a') PUB(DISABLED)", ("b", "a"), ["b", "a"]),
    ("none", "", ("a",), []),
    ("wildcard", "", ("a/#",), ["a/#"]),
]


@pytest.mark.parametrize(("setup", "topics", "expected"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
def test_a_publish_that_is_refused_says_what_it_would_have_done(
    setup: str, topics: tuple[str, ...], expected: list[str]
) -> None:
    outcome, trace = World(setup).do(replace(_wanted("Publish", "a"), topics=topics))
    assert [operation.topic_string for operation in trace.refused] == expected
    assert outcome.copies == ()


def test_version_6_says_scope_before_other_rules() -> None:
    world = World(semantics="v6")
    world.do(_wanted("RegSub", "a", "Local", "PubOnReqOnly"))
    _, trace = world.do(_wanted("Publish", "a"))
    assert _passed(trace) == {"SUB": "scope"}


def test_version_6_keeps_scopes_apart() -> None:
    world = World(semantics="v6")
    world.do(_wanted("RegSub", "a", "Local"))
    _, trace = world.do(_wanted("Publish", "a"))
    assert _passed(trace) == {"SUB": "scope"}


def test_a_look_at_what_is_retained_says_what_there_was() -> None:
    world = World()
    for topic in ("a/1", "a/2", "b"):
        world.do(_wanted("Publish", topic, "RetainPub"))
    _, trace = world.do(_wanted("RegSub", "a/+"))
    (first,) = trace.operations
    assert isinstance(first.operation, Subscribe)
    assert first.look is not None
    assert first.look.found == ("a/1", "a/2")
    _, trace = world.do(_wanted("ReqUpdate", "a/+"))
    (asked,) = trace.operations
    assert isinstance(asked.operation, RequestRetained)
    assert asked.before is not None
    assert [each.topic_string for each in asked.deliveries] == ["a/1", "a/2"]
    _, trace = world.do(_wanted("DeletePub", "a/1"))
    assert trace.operations[0].cleared == ("a/1",)


def test_what_is_no_command_reaches_nothing() -> None:
    broker = Broker("QM1")
    passed_over = broker.trace(Arrival(1, START, "SOME.QUEUE", None, b"hello"))
    unread = broker.trace(Arrival(2, START, DEFAULT_STREAM, None, b"hello"))
    assert (passed_over.trace, unread.trace) == (Trace(), Trace(reached=True))
    assert broker.process(Arrival(3, START, "SOME.QUEUE", None, b"hello")).trace is None


_TOPICS = ("a", "a/b", "a/#", "+/b", "#", "b")


@st.composite
def _workloads(draw: st.DrawFn) -> list[CommandSpec]:
    verbs = st.sampled_from(["RegSub", "RegSub", "Publish", "Publish", "ReqUpdate", "DeregSub", "DeletePub"])
    made = []
    for verb in draw(st.lists(verbs, min_size=4, max_size=14)):
        queue = draw(st.sampled_from(["Q1", "Q2", "Q3"]))
        if verb in ("Publish", "DeletePub"):
            retained = ["RetainPub"] if verb == "Publish" and draw(st.booleans()) else []
            made.append(_wanted(verb, draw(st.sampled_from(["a", "a/b", "b"])), *retained, queue=queue))
        else:
            options = draw(st.sampled_from([(), ("NewPubsOnly",), ("PubOnReqOnly",)])) if verb == "RegSub" else ()
            made.append(_wanted(verb, draw(st.sampled_from(_TOPICS)), *options, queue=queue))
    return made


@given(_workloads(), st.sampled_from(["v7", "v6"]))
def test_tracing_changes_nothing_and_accounts_for_every_publication(
    workload: Sequence[CommandSpec], semantics: str
) -> None:
    setup = "DEFINE TOPIC(A) TOPICSTR('a') WILDCARD(BLOCK)"
    plain, traced, explaining = (Broker("QM1", setup, semantics) for _ in range(3))
    for seq, wanted in enumerate(workload, 1):
        made = command_message(wanted)
        queue = DEFAULT_STREAM if wanted.word in ("Publish", "DeletePub") else CONTROL_QUEUE
        arrival = Arrival(seq, START + timedelta(seconds=seq), queue, made.md, made.body, made.user)
        before = traced.space.subscriptions()
        outcome, with_trace = plain.process(arrival), traced.trace(arrival)
        assert replace(with_trace, trace=None) == outcome
        seen = explaining.trace(arrival, explains=True, forwards=False)
        assert (seen.effects, seen.reason) == (outcome.effects, outcome.reason)
        trace = seen.trace
        assert trace is not None
        publications = [put for put in outcome.puts if put.kind is PutKind.PUBLICATION]
        others = [(put.kind, put.queue, put.reason) for put in outcome.puts if put.kind is not PutKind.PUBLICATION]
        assert [(put.kind, put.queue, put.reason) for put in seen.puts] == others
        assert [copies[0].subscription.dest_queue for copies in seen.copies] == [put.queue for put in publications]
        for one in trace.operations:
            if isinstance(one.operation, PublishToTopic):
                given_to = {each.subscription.sub_id for each in one.deliveries}
                passed = {each.subscription.sub_id for each in one.passed_over}
                topic = one.operation.topic_string
                selecting = {s.sub_id for s in before if _selects(s.topic_string, topic)}
                assert given_to | passed == selecting
                assert not given_to & passed


def _selects(pattern: str, topic: str) -> bool:
    """MQRFH2's wildcards for the few patterns of this test, spelt out."""
    return (
        topic
        in {
            "a": ["a"],
            "a/b": ["a/b"],
            "b": ["b"],
            "a/#": ["a", "a/b"],
            "+/b": ["a/b"],
            "#": ["a", "a/b", "b"],
        }[pattern]
    )
