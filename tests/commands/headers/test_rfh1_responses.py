"""Responses to MQRFH commands (wire formats 2.6): groups of names, the command's string behind them, the descriptor."""

from __future__ import annotations

import pytest

from commands.broker.authority import Action
from rfh2.constants import MQMT_REQUEST, MQRO_NAN, MQRO_PAN, MQRO_PASS_CORREL_ID
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from tests.commands.headers.rfh1_pcf_table import Group, OlderScenario, nvs, pairs, rfh1_done, rfh1_groups, rfh1_refused
from tests.commands.scenario import CORREL_ID, MSG_ID, dlh_queue

OK = "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE"


@pytest.fixture
def world() -> OlderScenario:
    return OlderScenario()


@pytest.mark.rule("OLD-5")
def test_2_6_ok(world: OlderScenario) -> None:
    response = world.rfh1("MQPSCommand RegSub MQPSTopic a").response
    header = response.message.rfh1
    assert header is not None
    # No leading blank; a null at the end, within a multiple of four bytes; no data.
    assert header.data == OK.encode().ljust(56, b"\0")
    assert (response.mqmd.format, header.format, response.data) == ("MQHRF", "", b"")


@pytest.mark.rule("OLD-5")
def test_2_6_error_and_the_command_behind_it(world: OlderScenario) -> None:
    response = world.rfh1(" MQPSCommand RegSub  MQPSQName Q").response
    assert nvs(response) == "MQPSCompCode 2 MQPSReason 2339 MQPSReasonText MQRC_RFH_PARM_MISSING MQPSParmId MQPSTopic"
    assert response.data == b" MQPSCommand RegSub  MQPSQName Q\0\0\0\0"
    assert (response.message.body_format, response.message.body_ccsid) == ("MQSTR", 819)


@pytest.mark.rule("OLD-5")
def test_2_6_a_group_for_each_warning(world: OlderScenario) -> None:
    world.authority.topics = {("app1", Action.PUBLISH, "a b"), ("app1", Action.PUBLISH, "c")}
    result = world.rfh1('MQPSCommand Publish MQPSTopic "a b" MQPSTopic b MQPSTopic c')
    assert nvs(result.response) == (
        'MQPSCompCode 1 MQPSReason 3081 MQPSReasonText MQRCCF_NOT_AUTHORIZED MQPSTopic "a b" '
        "MQPSCompCode 1 MQPSReason 3081 MQPSReasonText MQRCCF_NOT_AUTHORIZED MQPSTopic c"
    )
    assert result.response.data.startswith(b"MQPSCommand Publish")
    assert result.response.put.completion == "warning"


@pytest.mark.rule("OLD-7")
def test_6_7_4_full_resp_names_the_attributes(world: OlderScenario) -> None:
    string = (
        "MQPSCommand RegSub MQPSTopic Soccer/* MQPSStreamName SPORT.STREAM MQPSQName SUB.Q MQPSSubName mine "
        "MQPSSubIdentity me MQPSSubUserData mine MQPSRegOpts FullResp MQPSRegOpts JoinShared "
        "MQPSRegOpts InclStreamName MQPSRegOpts DupsOK MQPSRegOpts Anon"
    )
    result = world.rfh1(string)
    (group,) = rfh1_groups(result.response)
    assert group == Group(
        0,
        0,
        "MQRC_NONE",
        (
            ("MQPSTopic", "Soccer/*"),
            ("MQPSStreamName", "SPORT.STREAM"),
            ("MQPSQMgrName", "QM1"),
            ("MQPSQName", "SUB.Q"),
            ("MQPSUserId", "app1"),
            ("MQPSRegOpts", "Anon"),
            ("MQPSRegOpts", "DupsOK"),
            ("MQPSRegOpts", "InclStreamName"),
            ("MQPSRegOpts", "PersAsPub"),
            ("MQPSRegOpts", "JoinShared"),
            ("MQPSSubName", "mine"),
            ("MQPSSubUserData", "mine"),
            ("MQPSSubIdentity", "me"),
        ),
    )


@pytest.mark.rule("OLD-16")
def test_6_7_10_descriptor(world: OlderScenario) -> None:
    response = world.rfh1(
        "MQPSCommand RegSub MQPSTopic a", order="big", report=MQRO_PASS_CORREL_ID, correl_id=CORREL_ID, expiry=600
    ).response
    md = response.mqmd
    assert (md.msg_type, md.correl_id, md.encoding, md.coded_char_set_id, md.expiry) == (2, CORREL_ID, 273, 819, 600)
    header = response.message.rfh1
    assert header is not None
    assert header.order == "big"
    assert world.rfh1("MQPSCommand RegSub MQPSTopic a").response.mqmd.correl_id == MSG_ID


@pytest.mark.rule("OLD-16")
def test_2_1_an_ebcdic_program_is_answered_in_ebcdic(world: OlderScenario) -> None:
    result = world.rfh1("MQPSCommand RegSub MQPSFoo x", charset="cp500", order="big", coded_char_set_id=500)
    body = bytes.fromhex(result.response.put.body_hex)
    assert body.startswith("RFH ".encode("cp500"))
    assert body[32:].decode("cp500").startswith("MQPSCompCode 2 MQPSReason 2337 MQPSReasonText MQRC_RFH_PARM_ERROR ")
    rfh1_refused(result, 2337, ("MQPSParmId", "MQPSFoo"), ("MQPSErrorPos", "19"))
    assert result.response.data.split("\0".encode("cp500"))[0].decode("cp500") == "MQPSCommand RegSub MQPSFoo x"


@pytest.mark.parametrize(
    ("report", "good", "bad"),
    [(0, 0, 0), (MQRO_PAN, 1, 0), (MQRO_NAN, 0, 1), (MQRO_PAN | MQRO_NAN, 1, 1)],
    ids=["none", "PAN", "NAN", "both"],
)
def test_6_7_8_a_datagram_is_answered_as_report_says(world: OlderScenario, report: int, good: int, bad: int) -> None:
    assert len(world.rfh1("MQPSCommand RegSub MQPSTopic a", request=False, report=report).responses) == good
    result = world.rfh1("MQPSCommand RegSub", request=False, report=report)
    assert (len(result.responses), len(result.dead_letters)) == (bad, 1 - bad)


def test_an_unanswered_string_error_is_a_dead_letter_with_its_reason(world: OlderScenario) -> None:
    (letter,) = world.rfh1('MQPSCommand RegSub MQPSTopic "a', request=False).dead_letters
    assert letter.put.reason == 2335
    assert dlh_queue(letter) == "SYSTEM.BROKER.CONTROL.QUEUE"


def test_2_6_a_header_that_cannot_be_read_is_answered_without_it(world: OlderScenario) -> None:
    """2334: StrucLength beyond the message. The command's string is not sent back."""
    request = Mqmd(format="MQHRF", msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q", priority=0, persistence=0)
    body = bytes.fromhex("5246482001000000ff0000002202000000000000") + b" " * 8 + bytes(4) + b"MQPS"
    result = world.put("SYSTEM.BROKER.CONTROL.QUEUE", request.encode(), body)
    assert [(received.put.kind.value, received.put.reason) for received in result.puts] == [
        ("deadletter", 2334),
        ("response", 2334),
    ]
    assert result.response.data == b""


def test_a_value_that_the_programs_code_page_lacks_is_told_with_question_marks(world: OlderScenario) -> None:
    name = "прогноз"
    world.register("a", tags=[("SubName", name)], user="app2")
    result = world.rfh1(f"MQPSCommand RegSub MQPSTopic a MQPSSubName {name}", codec="utf-8", coded_char_set_id=1208)
    rfh1_refused(result, 3078, ("MQPSSubName", name), ("MQPSUserId", "app2"))
    world.rfh1("MQPSCommand RegSub MQPSTopic b MQPSQName B")
    world.register("b", tags=[("QName", "B"), ("SubUserData", name)])
    response = world.rfh1("MQPSCommand RegSub MQPSTopic b MQPSQName B MQPSRegOpts FullResp").response
    assert ("MQPSSubUserData", "?" * 7) in pairs(response)


def test_the_response_is_decodable_as_it_stands(world: OlderScenario) -> None:
    put = world.rfh1("MQPSCommand RegSub MQPSTopic a").response.put
    message = decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex))
    assert [header.kind for header in message.headers] == ["MQRFH"]


def test_field_registering_again_is_ok(world: OlderScenario) -> None:
    for _ in range(2):
        rfh1_done(world.rfh1("MQPSCommand RegSub MQPSTopic a/*"))
    assert len(world.subscriptions) == 1


def test_unauthorized_alone_is_an_error(world: OlderScenario) -> None:
    world.authority.topics = {("app1", Action.PUBLISH, "a")}
    rfh1_refused(world.rfh1("MQPSCommand Publish MQPSTopic a"), 3081, ("MQPSTopic", "a"))
