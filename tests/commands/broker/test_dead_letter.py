"""Dead letters: what cannot be processed and may not be answered is kept, behind an MQDLH that says why."""

from __future__ import annotations

from typing import Any

import pytest

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from rfh2.constants import MQAT_BROKER, MQFMT_DEAD_LETTER_HEADER, MQFMT_RF_HEADER_2, MQMT_REQUEST, MQRO_DISCARD_MSG
from rfh2.dlh import Dlh
from rfh2.mqmd import Mqmd
from streams.topic_objects import QUEUE_NAMELIST, Namelist
from tests.commands.scenario import CORREL_ID, MSG_ID, Received, Scenario, dlh_queue, psc, rfh2_message


def letter_of(world: Scenario, **settings: Any) -> Received:
    """The dead letter that a publication to nowhere becomes."""
    (only,) = world.publish("", **settings).puts
    assert only.put.kind == "deadletter"
    return only


def test_an_error_that_nobody_wants_to_hear_of_is_a_dead_letter(world: Scenario) -> None:
    letter = letter_of(world, msg_id=MSG_ID, correl_id=CORREL_ID, expiry=600, report=0)
    assert (letter.queue, letter.put.completion, letter.put.reason) == ("SYSTEM.DEAD.LETTER.QUEUE", "error", 3072)
    header = letter.message.headers[0]
    assert isinstance(header, Dlh)
    assert (header.reason, header.dest_q_name, header.dest_qmgr_name) == (3072, DEFAULT_STREAM, "QM1")
    assert (header.put_appl_type, header.put_appl_name, header.put_date, header.put_time) == (
        MQAT_BROKER,
        "QM1",
        "20090128",
        "11435518",
    )
    assert (header.format, header.encoding, header.coded_char_set_id) == (MQFMT_RF_HEADER_2, 546, 1208)
    mqmd = letter.mqmd
    assert (mqmd.format, mqmd.msg_id, mqmd.correl_id, mqmd.expiry) == (MQFMT_DEAD_LETTER_HEADER, MSG_ID, CORREL_ID, 600)
    assert (mqmd.reply_to_q, mqmd.user_identifier, mqmd.put_appl_type) == ("REPLY.Q", "app1", MQAT_BROKER)


def test_the_message_behind_the_mqdlh_is_as_it_was_byte_for_byte(world: Scenario) -> None:
    described, body = rfh2_message((b"<psc><Command>Publish\0\0\0", b"<usr/> "), Mqmd(), b"data")
    (letter,) = world.put(DEFAULT_STREAM, described.encode(), body).dead_letters
    assert bytes.fromhex(letter.put.body_hex)[172:] == body


def test_an_error_that_is_answered_is_no_dead_letter(world: Scenario) -> None:
    assert world.publish("", request=True).dead_letters == []


def test_a_request_that_names_no_replytoq_is_a_dead_letter(world: Scenario) -> None:
    assert letter_of(world, request=True, reply_to="").put.reason == 3072


def test_discard_msg_is_respected(world: Scenario) -> None:
    assert world.publish("", report=MQRO_DISCARD_MSG).puts == []


def test_a_warning_that_nobody_wants_to_hear_of_leaves_nothing(world: Scenario) -> None:
    world.register("a")
    assert world.deregister("a", "b", request=False).puts == []


# What cannot be read at all


def unreadable(world: Scenario, **settings: Any) -> list[Received]:
    """What becomes of a header that is cut off."""
    md = Mqmd(format=MQFMT_RF_HEADER_2, coded_char_set_id=819, **settings).encode()
    return world.put(CONTROL_QUEUE, md, b"RFH \2\0\0\0$\0").puts


def test_an_unreadable_message_is_a_dead_letter(world: Scenario) -> None:
    (letter,) = unreadable(world)
    assert (letter.put.kind, letter.put.reason) == ("deadletter", 2334)
    assert bytes.fromhex(letter.put.body_hex)[172:] == b"RFH \2\0\0\0$\0"


def test_an_unreadable_request_is_kept_and_answered(world: Scenario) -> None:
    letter, reply = unreadable(world, msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q", msg_id=MSG_ID)
    assert (letter.put.kind, letter.put.reason) == ("deadletter", 2334)
    assert (reply.put.kind, reply.queue, reply.completion) == ("response", "REPLY.Q", "error")
    assert [answer.reason for answer in reply.answers] == [2334]
    assert reply.mqmd.correl_id == MSG_ID
    assert len(reply.header.folders) == 1


SENDERS = [
    ("little", 546, 819, "little", "latin-1"),
    ("big", 273, 819, "big", "latin-1"),
    ("z/OS", 785, 500, "big", "cp500"),
]


@pytest.mark.parametrize(
    ("encoding", "ccsid", "order", "charset"), [row[1:] for row in SENDERS], ids=[row[0] for row in SENDERS]
)
def test_the_reply_to_an_unreadable_request_is_in_its_senders_encoding(
    world: Scenario, encoding: int, ccsid: int, order: str, charset: str
) -> None:
    md = Mqmd(msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q", format="MQHRF2", encoding=encoding, coded_char_set_id=ccsid)
    _letter, reply = world.put(CONTROL_QUEUE, md.encode(), b"nonsense").puts
    assert (reply.header.order, reply.header.charset) == (order, charset)
    assert (reply.mqmd.encoding, reply.mqmd.coded_char_set_id) == (encoding, ccsid)


def test_a_descriptor_that_cannot_be_read_is_a_dead_letter_with_another(world: Scenario) -> None:
    _, body = rfh2_message((psc("RegSub", ("Topic", "a")),), Mqmd())
    (letter,) = world.put(CONTROL_QUEUE, b"XX  " + bytes(320), body).puts
    assert (letter.put.kind, letter.put.reason) == ("deadletter", 2142)
    assert bytes.fromhex(letter.put.body_hex)[172:] == body


def test_what_is_no_command_on_a_command_queue_is_a_dead_letter(world: Scenario) -> None:
    (letter,) = world.put(DEFAULT_STREAM, Mqmd(format="MQSTR").encode(), b"hello").puts
    assert (letter.put.kind, letter.put.reason) == ("deadletter", 2110)


# The MQDLH is in the characters that the descriptor announces


CHARACTERS = [
    ("ascii", {"coded_char_set_id": 819}, (819, 819)),
    ("utf-8", {"coded_char_set_id": 1208}, (1208, 1208)),
    ("unknown", {"coded_char_set_id": 0}, (1208, 1208)),
    ("ascii-descriptor-of-EBCDIC-data", {"coded_char_set_id": 500}, (819, 500)),
    ("ascii-descriptor-of-UTF-16-data", {"coded_char_set_id": 1200}, (819, 1200)),
    ("EBCDIC-descriptor", {"coded_char_set_id": 500, "charset": "cp500"}, (500, 500)),
    ("EBCDIC-descriptor-of-ascii-data", {"coded_char_set_id": 819, "charset": "cp500"}, (500, 819)),
]


@pytest.mark.parametrize(("settings", "ccsids"), [row[1:] for row in CHARACTERS], ids=[row[0] for row in CHARACTERS])
def test_the_mqdlh_is_in_the_ccsid_of_the_descriptor(
    world: Scenario, settings: dict[str, Any], ccsids: tuple[int, int]
) -> None:
    (letter,) = world.put(DEFAULT_STREAM, Mqmd(format="MQSTR", **settings).encode(), b"hello").puts
    assert (letter.mqmd.coded_char_set_id, letter.message.headers[0].coded_char_set_id) == ccsids
    assert dlh_queue(letter) == DEFAULT_STREAM


def test_a_queue_of_a_capture_may_have_an_impossible_name(world: Scenario) -> None:
    queue = "Łąka " * 20
    world.objects.put(Namelist(QUEUE_NAMELIST, (queue,)))
    (letter,) = world.register("a", queue=queue, request=False).puts
    assert letter.put.reason == 3079
    assert dlh_queue(letter) == "??ka ??ka ??ka ??ka ??ka ??ka ??ka ??ka ??ka ??k"
