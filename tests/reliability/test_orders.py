"""Whole segments in orders in which no program sends them: sixty sequences, and those that once broke something."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from rfh2.channel.segments import SegmentType
from rfh2.mqi_constants import MQOO_OUTPUT, MQPMO_ASYNC_RESPONSE, MQRC_ALREADY_CONNECTED, MQRC_HOBJ_ERROR
from tests.commands.links.mosquitto import needs_mosquitto
from tests.commands.listener.mqi_client import MqiClient
from tests.reliability import packets
from tests.reliability.orders import Desk, Letter, expected, sequence, tried

SEQUENCES = 60


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with Desk(tmp_path_factory.mktemp("orders")).open() as opened:
        yield opened


def test_nothing_is_left_of_sequences_that_no_program_sends_and_others_are_served(desk: Desk) -> None:
    ended = 0
    for n in range(SEQUENCES):
        word = sequence(random.Random(f"gate {n}"), desk.programs)
        assert tried(desk, word, patient=n % 3 > 0) == [], [str(each) for each in word]
        ended += expected(word)[1]
    assert SEQUENCES / 4 < ended < SEQUENCES * 3 / 4
    assert desk.is_served()
    assert (desk.left(), desk.faults) == ({}, [])


# Letters by their names; those of a program on a connection of its own.
BEGUN = "INITIAL_DATA, USERID, MQCONN, MQOPEN"
ORDERS = [
    # id, the segments, the calls that are answered, whether the connection is ended
    ("MQCONN before INITIAL_DATA", "MQCONN", "", True),
    ("a second INITIAL_DATA", f"{BEGUN}, INITIAL_DATA", "MQCONN, MQOPEN", True),
    ("a call before MQCONN", "INITIAL_DATA, USERID, MQOPEN", "", True),
    ("MQDISC before MQCONN", "INITIAL_DATA, MQDISC, USERID, MQCONN", "MQDISC, MQCONN", False),
    ("a second MQCONN", f"{BEGUN}, MQCONN, MQPUT, MQCMIT", "MQCONN, MQOPEN, MQCONN, MQPUT, MQCMIT", False),
    ("SPI within a put in parts", f"{BEGUN}, MQPUT begins, MQPUT goes on, SPI, MQPUT ends", "MQCONN, MQOPEN", True),
    ("a put within a put in parts", f"{BEGUN}, MQPUT begins, MQPUT begins", "MQCONN, MQOPEN", True),
    ("a put that goes on and did not begin", f"{BEGUN}, MQPUT goes on", "MQCONN, MQOPEN", True),
    ("a put in parts that does not end", f"{BEGUN}, MQPUT begins, MQPUT goes on", "MQCONN, MQOPEN", False),
    ("a get while one waits", f"{BEGUN}, waits, MQGET, MQPUT", "MQCONN, MQOPEN, MQGET, MQGET, MQPUT", False),
    ("a put without an answer, not open", "INITIAL_DATA, USERID, MQCONN, unanswered, MQSTAT", "MQCONN, MQSTAT", False),
]


@pytest.mark.rule("LSN-76")
@pytest.mark.parametrize(("written", "answered", "ends"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS])
def test_the_order_of_segments(desk: Desk, written: str, answered: str, ends: bool) -> None:
    named: dict[str, Letter] = {}
    for each in desk.programs[0]:
        named.setdefault("unanswered" if not each.answered else "waits" if not each.at_once else str(each), each)
    word = tuple(named[name] for name in written.split(", "))
    calls = [SegmentType[name] for name in answered.split(", ") if name]
    assert expected(word) == (calls, ends)
    assert tried(desk, word, patient=True) == []
    assert desk.left() == {}


@pytest.mark.rule("LSN-76")
def test_what_a_second_mqconn_and_a_put_without_an_answer_say(desk: Desk) -> None:
    with MqiClient(desk.port) as client:
        client.connect()
        handle = client.opened("GOOD", MQOO_OUTPUT)
        assert client.connect() == MQRC_ALREADY_CONNECTED
        client.put_unanswered(handle + 1, b"by a handle that is not open", MQPMO_ASYNC_RESPONSE)
        client.put_unanswered(handle, b"data", MQPMO_ASYNC_RESPONSE)
        assert client.status() == (0, MQRC_HOBJ_ERROR, 1, 1, "")
    assert desk.left() == {}


@needs_mosquitto
@pytest.mark.parametrize("seed", ["gate 1", "gate 2"])
def test_packets_that_no_broker_sends_lose_nothing(tmp_path: Path, seed: str) -> None:
    assert packets.tried(tmp_path, 25, seed) == []


@needs_mosquitto
def test_a_second_connack_ends_the_connection_so_that_what_came_before_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(packets, "PACKETS", {"CONNACK": packets.PACKETS["CONNACK"]})
    assert packets.tried(tmp_path, 1, "one") == []
    assert "cannot be read: ValueError('a second CONNACK')" in caplog.text
