"""Broker as an embedding program sees it: what it refuses, and views of what it holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from commands import Broker, read_captures
from rfh2.captured import CapturedMessage
from rfh2.errors import CommandError
from streams.subscriptions import WildcardScheme

SETUP = """
DEFINE TOPIC(SPORT) TOPICSTR('Sport')
DEFINE TOPIC(CLOSED) TOPICSTR('Sport/Closed') WILDCARD(BLOCK)
DEFINE SUB(ALL) TOPICSTR('Sport/#') DEST(BOARD)
DEFINE SUB(ONE) TOPICSTR('Sport/Golf') DEST(GOLF) EXPIRY(600)
"""
START = datetime(2009, 1, 28, 19, tzinfo=UTC)


def at(minutes: int, seq: int) -> CapturedMessage:
    return CapturedMessage(seq=seq, time=START + timedelta(minutes=minutes), queue="ELSEWHERE", body_hex="")


@pytest.mark.parametrize("name", ["", "bad name!", "Q" * 49, "Größe"])
def test_a_name_that_mq_does_not_allow_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a queue manager: use 1 to 48"):
        Broker(name)
    assert Broker.of_capture(name).qmgr == name


def test_subscriptions() -> None:
    view = Broker("QM1", SETUP).subscriptions
    assert (len(view), [one.name for one in view]) == (2, ["ALL", "ONE"])
    assert [one.name for one in view.matching("Sport/Golf")] == ["ALL", "ONE"]
    assert [one.name for one in view.matching("Sport/Closed/x")] == []
    assert [one.name for one in view.of_queue("GOLF")] == ["ONE"]
    one = view.named("ONE")
    assert one in view
    assert (view.named("none"), "ONE" in view) == (None, False)


def test_what_has_expired_is_not_shown() -> None:
    broker = Broker("QM1", SETUP)
    view = broker.subscriptions
    broker.handle(at(0, 1))
    assert len(view) == 2
    broker.handle(at(2, 2))
    assert [one.name for one in view] == ["ALL"]
    assert "Sport/Golf" not in broker.topics


def test_retained_and_topics() -> None:
    broker = Broker("QM1", SETUP)
    for record in read_captures("fixtures/results-service/capture.jsonl"):
        if record.message is not None and record.message.seq < 15:
            broker.handle(record.message)
    liverpool = "Sport/Soccer/State/LatestScore/Liverpool ManUtd"
    retained = broker.retained
    assert next(iter(retained)) == liverpool
    assert len(retained) == 2
    assert retained[liverpool].message.body_text == "0 1"
    assert list(retained.matching("Sport/Soccer/State/#")) == list(retained)
    assert list(retained.matching("*ManUtd", WildcardScheme.CHAR)) == [liverpool]
    with pytest.raises(KeyError):
        retained["Sport"]
    with pytest.raises(CommandError):
        retained.matching("Sport%", WildcardScheme.CHAR)

    topics = broker.topics
    assert list(topics) == ["Sport", "Sport/Closed", *retained]
    state = topics[liverpool]
    assert (state.attributes.object_name, state.retained) == ("SPORT", retained[liverpool])
    assert {one.dest_queue for one in state.subscriptions} == {"BOARD", "RESULTS.SERVICE", "SCOREBOARD"}
    assert "Sport/Tennis" not in topics
    assert [one.name for one in topics.at("Sport/Tennis").subscriptions] == ["ALL"]
    assert repr(broker) == "<Broker QM1: subscriptions 4, topics 4, retained publications 2>"
