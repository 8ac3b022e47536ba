"""The record of a unit of work on IBM MQ: what is written is read back, and a publication is in it once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from commands.links.ibmmq.undelivered import RecordError, UnitRecord, read_record
from rfh2 import Mqmd, decode
from streams.operations import (
    Effect,
    Publication,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.subscriptions import Subscription

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SUBSCRIPTION = Subscription(b"\1" * 24, "a/#", "Q", "QM1", NOW)


def publication(body: bytes) -> Publication:
    return Publication(decode(body, Mqmd(persistence=1)), NOW, NOW + timedelta(hours=1), True)


def stored(topics: str, what: Publication) -> list[RetainedStored]:
    return [RetainedStored(RetainedPublication(topic, what)) for topic in topics]


ONE, OTHER = publication(b"1" * 10_000), publication(b"2" * 10_000)
RECORDS: list[tuple[str, list[Effect], int]] = [
    # what, the effects, how many publications are in the record
    ("nothing", [], 0),
    (
        "subscriptions",
        [
            SubscriptionAdded(SUBSCRIPTION),
            SubscriptionAltered(SUBSCRIPTION, SUBSCRIPTION),
            SubscriptionRemoved(SUBSCRIPTION),
        ],
        0,
    ),
    ("one on several topics", [*stored("abcd", ONE)], 1),
    ("two by turns", [*stored("ab", ONE), *stored("c", OTHER), RetainedCleared("a"), *stored("d", ONE)], 3),
]


@pytest.mark.parametrize(("effects", "publications"), [r[1:] for r in RECORDS], ids=[r[0] for r in RECORDS])
def test_a_record_is_read_as_it_was_written(effects: list[Effect], publications: int) -> None:
    messages = UnitRecord("store", 7, tuple(effects)).messages()

    assert read_record(messages) == read_record(messages[::-1]) == UnitRecord("store", 7, tuple(effects))
    assert len(messages) == max(len(effects), 1)
    assert sum(len(message) > 10_000 for message in messages) == publications


def test_topics_that_retain_one_publication_share_it_when_it_is_read() -> None:
    found = read_record(UnitRecord("store", 7, tuple(stored("abc", ONE))).messages())

    assert found is not None
    assert len({id(effect.retained.publication) for effect in found.effects if isinstance(effect, RetainedStored)}) == 1


def test_a_record_of_an_earlier_version_has_the_publication_with_each_topic() -> None:
    (first, second) = UnitRecord("store", 7, (*stored("a", ONE), *stored("b", OTHER))).messages()

    assert b'"with"' not in first + second
    assert read_record([first, second]) == UnitRecord("store", 7, (*stored("a", ONE), *stored("b", OTHER)))


def test_a_row_that_names_no_publication_is_no_record() -> None:
    text = json.dumps({"store": "s", "batch": 1, "of": 1, "index": 0, "stored": ["a"], "with": 5, "md": 0}).encode()
    with pytest.raises(RecordError):
        read_record([len(text).to_bytes(4, "big") + text])
