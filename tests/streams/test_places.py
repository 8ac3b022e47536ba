"""Streams and subscription points as places in the topic space, and where they collide (guide 6.1, 6.5.4, 6.5.6)."""

from __future__ import annotations

import pytest

from streams.mapping import TopicPrefix, collisions, places
from streams.topic_objects import (
    DEFAULT_NAMELISTS,
    QUEUE_NAMELIST,
    SUB_POINT_NAMELIST,
    Namelist,
    TopicObject,
    TopicObjects,
    Wildcard,
)


def _objects(**strings: str) -> TopicObjects:
    """Objects with WILDCARD(BLOCK), by name; a name that ends in ``_open`` has PASSTHRU."""
    wildcards = {name: Wildcard.PASSTHRU if name.endswith("_open") else Wildcard.BLOCK for name in strings}
    return TopicObjects(
        TopicObject(name.removesuffix("_open"), string, wildcard=wildcards[name]) for name, string in strings.items()
    )


def _streams(*names: str) -> Namelist:
    return Namelist(QUEUE_NAMELIST, (*DEFAULT_NAMELISTS[0].names, *names))


def _points(*names: str) -> Namelist:
    return Namelist(SUB_POINT_NAMELIST, (*DEFAULT_NAMELISTS[1].names, *names))


def test_places_are_where_the_topic_objects_say() -> None:
    topics = _objects(Sport="xyz", Root="", STERLING="GBP")
    assert places(_streams("Sport", "Root", "Missing"), _points("STERLING", "Missing"), topics) == [
        TopicPrefix("stream", "Sport", "xyz"),
        TopicPrefix("subscription point", "GBP", "GBP"),
    ]
    assert places(None, None, topics) == []


# id, topic objects, streams, subscription points, findings
COLLISIONS = [
    ("6.5.4-as-it-should-be", {"Sport": "Sport", "USD": "USD"}, ["Sport"], ["USD"], []),
    ("6.1-no-topic-object", {}, ["Sport"], [], ["stream Sport has no topic object: its topics are at the root"]),
    (
        "6.1-no-topic-string",
        {"Sport": ""},
        ["Sport"],
        [],
        ["topic object Sport has no TOPICSTR: the stream's topics are at the root"],
    ),
    (
        "6.5.6-listed-in-vain",
        {"EUR": ""},
        [],
        ["EUR", "CHF"],
        [
            f"{name} in {SUB_POINT_NAMELIST} is not a topic object with a TOPICSTR: "
            "the subscription point does not exist"
            for name in ("EUR", "CHF")
        ],
    ),
    (
        "6.1-nested",
        {"Sport": "Sport", "Soccer": "Sport/Soccer", "Deep": "Sport/Soccer/a/b"},
        ["Deep", "Soccer", "Sport"],
        [],
        [
            "stream Deep (Sport/Soccer/a/b) lies in stream Soccer",
            "stream Deep (Sport/Soccer/a/b) lies in stream Sport",
            "stream Soccer (Sport/Soccer) lies in stream Sport",
        ],
    ),
    ("6.1-beside", {"Sport": "Sport", "Sports": "Sports"}, ["Sport", "Sports"], [], []),
    (
        "6.1-a-stream-and-a-subscription-point",
        {"USD": "USD"},
        ["USD"],
        ["USD"],
        ["subscription point USD and stream USD are both at USD"],
    ),
    (
        "6.5.4-not-blocked",
        {"Sport_open": "Sport"},
        ["Sport"],
        [],
        ["topic object Sport is not WILDCARD(BLOCK): # and * from outside reach its topics"],
    ),
]


@pytest.mark.parametrize(
    ("strings", "streams", "points", "expected"), [row[1:] for row in COLLISIONS], ids=[row[0] for row in COLLISIONS]
)
def test_collisions(strings: dict[str, str], streams: list[str], points: list[str], expected: list[str]) -> None:
    found = collisions(_streams(*streams), _points(*points), _objects(**strings))
    assert [finding.text for finding in found] == expected


def test_a_new_queue_manager_has_none() -> None:
    assert collisions(*DEFAULT_NAMELISTS, TopicObjects()) == []
