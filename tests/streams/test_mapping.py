"""Streams and subscription points as topics (guide 6.1, 6.2), and adding or deleting one (6.5.4 to 6.5.6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from streams.mapping import (
    PrefixFinding,
    StreamTopic,
    check_prefix_collisions,
    check_stream_addition,
    check_stream_deletion,
    check_sub_point_addition,
    is_stream_queue,
    stream_topic,
    sub_point_prefix,
)
from streams.patterns import add_pattern_prefix, parse_pattern, remove_pattern_prefix
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import (
    ADMIN_STREAM,
    DEFAULT_NAMELISTS,
    DEFAULT_STREAM,
    DEFAULT_SUB_POINT,
    QUEUE_NAMELIST,
    SUB_POINT_NAMELIST,
    Namelist,
    TopicObject,
    TopicObjects,
    Wildcard,
)
from streams.topic_strings import add_prefix

Make = Callable[..., Subscription]

QUEUES = Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, ADMIN_STREAM, "Sport", "Root"))
SUB_POINTS = Namelist(SUB_POINT_NAMELIST, (DEFAULT_SUB_POINT, "USD", "STERLING", "MISSING"))


def objects() -> TopicObjects:
    return TopicObjects(
        [
            TopicObject("Sport", "xyz", wildcard=Wildcard.BLOCK),
            TopicObject("Root", ""),
            TopicObject(DEFAULT_STREAM, DEFAULT_STREAM),
            TopicObject(DEFAULT_SUB_POINT, DEFAULT_SUB_POINT),
            TopicObject("USD", "USD", wildcard=Wildcard.BLOCK),
            TopicObject("STERLING", "GBP", wildcard=Wildcard.BLOCK),
            TopicObject("EUR", "EUR"),
        ]
    )


def codes(findings: list[PrefixFinding]) -> list[tuple[str, str]]:
    return [(finding.severity.value, finding.code) for finding in findings]


def test_the_namelists_that_every_queue_manager_has() -> None:
    """6.5.4, 6.5.6."""
    assert [(n.name, n.names) for n in DEFAULT_NAMELISTS] == [
        (QUEUE_NAMELIST, (DEFAULT_STREAM, ADMIN_STREAM)),
        (SUB_POINT_NAMELIST, (DEFAULT_SUB_POINT,)),
    ]


@pytest.mark.parametrize(
    ("queue", "is_stream"), [("Sport", True), (DEFAULT_STREAM, True), (ADMIN_STREAM, True), ("Q", False), ("", False)]
)
def test_stream_queues_are_those_in_the_namelist(queue: str, is_stream: bool) -> None:
    assert is_stream_queue(queue, QUEUES) is is_stream


STREAMS = [
    pytest.param("Sport", StreamTopic("Sport", "xyz"), id="6.1-figure-1"),
    pytest.param(DEFAULT_STREAM, StreamTopic(DEFAULT_STREAM, ""), id="6.1-default-whatever-its-object-says"),
    pytest.param("", StreamTopic(DEFAULT_STREAM, ""), id="6.1-no-stream-is-the-default"),
    pytest.param("Root", StreamTopic("Root", ""), id="6.1-empty-topic-string"),
    pytest.param("Music", StreamTopic("Music", "", object_missing=True), id="6.1-no-topic-object"),
]


@pytest.mark.parametrize(("stream", "expected"), STREAMS)
def test_where_a_stream_lies(stream: str, expected: StreamTopic) -> None:
    assert stream_topic(stream, objects()) == expected


SUB_POINT_PREFIXES = [
    pytest.param("USD", "USD", id="6.2-example"),
    pytest.param("GBP", "GBP", id="6.2-by-topic-string-not-by-name"),
    pytest.param("STERLING", None, id="6.2-name-alone-is-no-match"),
    pytest.param("EUR", None, id="6.2-not-in-the-namelist"),
    pytest.param("MISSING", None, id="6.2-listed-without-object"),
    pytest.param("usd", None, id="6.2-case-matters"),
    pytest.param(DEFAULT_SUB_POINT, None, id="6.2-default-cannot-be-named"),
    pytest.param("", "", id="6.2-empty-is-the-default"),
    pytest.param(None, "", id="6.2-none-is-the-default"),
]


@pytest.mark.parametrize(("sub_point", "prefix"), SUB_POINT_PREFIXES)
def test_where_a_subscription_point_lies(sub_point: str | None, prefix: str | None) -> None:
    assert sub_point_prefix(sub_point, SUB_POINTS, objects()) == prefix


@given(
    prefix=st.text(alphabet="a/*?%", max_size=5),
    text=st.text(alphabet="ab/*?", min_size=1, max_size=6),
    topic=st.text(alphabet="ab/", min_size=1, max_size=6),
)
def test_a_prefix_is_never_wild_under_the_character_scheme(prefix: str, text: str, topic: str) -> None:
    """6.1: below the prefix the pattern selects what it selected without."""
    scheme = WildcardScheme.CHAR
    placed = add_pattern_prefix(prefix, text, scheme)
    assert remove_pattern_prefix(prefix, placed, scheme) == text
    selected = parse_pattern(text, scheme).matches(topic)
    assert parse_pattern(placed, scheme).matches(add_prefix(prefix, topic)) is selected


@given(
    prefix=st.sampled_from(["", "xyz", "a/b"]),
    text=st.lists(st.sampled_from(["a", "b", "", "+", "#"]), min_size=1, max_size=4).map("/".join).filter(bool),
    topic=st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=4).map("/".join).filter(bool),
)
def test_a_prefix_under_the_topic_scheme(prefix: str, text: str, topic: str) -> None:
    scheme = WildcardScheme.TOPIC
    placed = add_pattern_prefix(prefix, text, scheme)
    assert remove_pattern_prefix(prefix, placed, scheme) == text
    selected = parse_pattern(text, scheme).matches(topic)
    assert parse_pattern(placed, scheme).matches(add_prefix(prefix, topic)) is selected


ADDITIONS = [
    pytest.param("Music", ["Music"], [("error", "no-topic-object")], id="6.5.4-step-2"),
    pytest.param("EUR", [], [("error", "no-queue"), ("warning", "not-blocked")], id="6.5.4-steps-1-and-3"),
    pytest.param("USD", ["USD"], [], id="6.5.4-ready-for-step-4"),
    pytest.param("Sport", ["Sport"], [("warning", "already-listed")], id="6.5.4-there-already"),
    pytest.param("Root", ["Root"], [("warning", "already-listed"), ("warning", "at-root")], id="6.1-at-the-root"),
]


@pytest.mark.rule("QM-10")
@pytest.mark.parametrize(("stream", "queues", "expected"), ADDITIONS)
def test_before_a_stream_is_added(stream: str, queues: list[str], expected: list[tuple[str, str]]) -> None:
    assert codes(check_stream_addition(stream, queues, QUEUES, objects())) == expected


@pytest.mark.rule("QM-10")
def test_before_a_stream_is_deleted(subscription: Make) -> None:
    """6.5.5."""
    on_stream = subscription(1, "xyz/Soccer", stream="Sport")
    below = subscription(2, "xyz/#")
    elsewhere = subscription(3, "xyzzy")
    assert codes(check_stream_deletion("Sport", [on_stream, below, elsewhere], 2, QUEUES, objects())) == [
        ("error", "subscriptions-left"),
        ("error", "messages-left"),
    ]
    assert check_stream_deletion("Sport", [elsewhere], 0, QUEUES, objects()) == []
    assert codes(check_stream_deletion("EUR", [], 0, QUEUES, objects())) == [("warning", "not-listed")]
    assert codes(check_stream_deletion(DEFAULT_STREAM, [], 0, QUEUES, objects())) == [("error", "default-stream")]


SUB_POINT_ADDITIONS = [
    pytest.param("USD", [("error", "already-defined")], id="6.5.6-before-you-begin-2"),
    pytest.param("EUR", [("warning", "topic-string-in-use"), ("warning", "not-blocked")], id="6.5.6-topic-string"),
    pytest.param("STERLING", [("warning", "object-name-in-use")], id="6.5.6-object-name"),
    pytest.param("CHF", [], id="6.5.6-free"),
]


@pytest.mark.rule("QM-11")
@pytest.mark.parametrize(("sub_point", "expected"), SUB_POINT_ADDITIONS)
def test_before_a_subscription_point_is_added(sub_point: str, expected: list[tuple[str, str]]) -> None:
    assert codes(check_sub_point_addition(sub_point, SUB_POINTS, objects())) == expected


def test_prefix_collisions(subscription: Make) -> None:
    """6.1: "as long as you keep the topic strings unique"."""
    crowd = TopicObjects(
        [
            TopicObject("OTHER.STREAM", "Sport", wildcard=Wildcard.BLOCK),
            TopicObject("BELOW", "Sport/Soccer/Results"),
            TopicObject("BESIDE", "Sports"),
        ]
    )
    subscriptions = [
        subscription(1, "Sport/Soccer/#", stream="Soccer"),
        subscription(2, "Sport/Soccer/#"),
        subscription(3, "Sport/#"),
    ]
    found = check_prefix_collisions(
        "Soccer", "Sport/Soccer", crowd, subscriptions, ["Sport/Soccer", "Sport/Soccer/a", "Sport/Tennis"]
    )
    assert codes(found) == [
        ("warning", "object-below"),
        ("warning", "prefix-nested"),
        ("warning", "subscriptions-below"),
        ("warning", "retained-below"),
    ]
    assert [f.text for f in found][2:] == [
        "1 other subscriptions lie below Sport/Soccer",
        "2 retained publications lie below Sport/Soccer",
    ]
    assert check_prefix_collisions("Root", "", crowd, subscriptions, ["a"]) == []
