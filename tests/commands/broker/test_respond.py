"""Queue Manager Responses (guide 6.7.6, 6.7.8, 6.7.10): when there is one, what it says, how it is described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from commands.broker.authority import Action
from rfh2.constants import (
    MQAT_BROKER,
    MQFMT_RF_HEADER_2,
    MQMT_DATAGRAM,
    MQMT_REPLY,
    MQMT_REPORT,
    MQMT_REQUEST,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPRI_PRIORITY_AS_Q_DEF,
    MQRO_NAN,
    MQRO_PAN,
    MQRO_PASS_CORREL_ID,
    MQRO_PASS_MSG_ID,
)
from tests.commands.scenario import CORREL_ID, MSG_ID, Result, Scenario, psc

PAN_AND_NAN = MQRO_PAN | MQRO_NAN


def ok(world: Scenario, **settings: Any) -> Result:
    return world.register("a", **settings)


def warning(world: Scenario, **settings: Any) -> Result:
    world.authority.topics = {("app1", Action.SUBSCRIBE, "b")}
    return world.register("a", "b", **settings)


def error(world: Scenario, **settings: Any) -> Result:
    return world.register("", **settings)


DUE = [
    # MsgType, Report, who is answered
    ("6.7.8-request", MQMT_REQUEST, 0, {ok, warning, error}),
    ("6.7.8-request-PAN-is-not-significant", MQMT_REQUEST, MQRO_PAN, {ok, warning, error}),
    ("6.7.8-request-NAN-is-not-significant", MQMT_REQUEST, MQRO_NAN, {ok, warning, error}),
    ("6.7.8-datagram-PAN", MQMT_DATAGRAM, MQRO_PAN, {ok, warning}),
    ("6.7.8-datagram-NAN", MQMT_DATAGRAM, MQRO_NAN, {warning, error}),
    ("6.7.8-datagram-PAN-NAN", MQMT_DATAGRAM, PAN_AND_NAN, {ok, warning, error}),
    ("6.7.8-datagram-neither", MQMT_DATAGRAM, 0, set()),
    ("other-report-options-do-not-count", MQMT_DATAGRAM, MQRO_PASS_CORREL_ID | 0x01000000, set()),
    ("any-other-MsgType-is-as-a-datagram", MQMT_REPORT, MQRO_PAN, {ok, warning}),
]


@pytest.mark.rule("MDC-1", "MDC-2")
@pytest.mark.parametrize("command", [ok, warning, error], ids=["ok", "warning", "error"])
@pytest.mark.parametrize(("msg_type", "report", "answered"), [row[1:] for row in DUE], ids=[row[0] for row in DUE])
def test_6_7_8_when_a_response_is_due(
    world: Scenario,
    msg_type: int,
    report: int,
    answered: set[Callable[..., Result]],
    command: Callable[..., Result],
) -> None:
    result = command(world, msg_type=msg_type, report=report)
    assert bool(result.responses) is (command in answered)
    if result.responses:
        assert result.response.completion == command.__name__


def test_field_a_publication_that_worked_is_not_answered_where_only_nan_was_asked_for(world: Scenario) -> None:
    world.register("a")
    assert world.publish("a", report=MQRO_NAN).responses == []


def test_a_request_without_replytoq_is_processed_and_cannot_be_answered(world: Scenario) -> None:
    result = world.register("a", reply_to="", tags=[("QName", "SUB.Q")])
    assert result.puts == []
    assert len(world.subscriptions) == 1


# What it says


@pytest.mark.rule("RESP-1")
def test_6_7_6_ok(world: Scenario) -> None:
    assert ok(world).response.folders == ["<pscr><Completion>ok</Completion></pscr>"]


@pytest.mark.rule("RESP-5")
def test_6_7_6_an_error_is_followed_by_the_command(world: Scenario) -> None:
    result = world.register("a", tags=[("Filter", "x =")])
    assert result.response.folders == [
        "<pscr><Completion>error</Completion><Response><Reason>3150</Reason><Filter>x =</Filter></Response></pscr>",
        psc("RegSub", ("Topic", "a"), ("Filter", "x =")),
    ]


@pytest.mark.rule("RESP-3")
def test_6_7_6_a_warning_has_a_response_for_each_topic(world: Scenario) -> None:
    world.authority.topics = {("app1", Action.PUBLISH, "topic1"), ("app1", Action.PUBLISH, "topic2")}
    result = world.publish("topic1", "fine", "topic2", request=True)
    assert result.response.folders == [
        "<pscr><Completion>warning</Completion><Response><Reason>3081</Reason><Topic>topic1</Topic></Response>"
        "<Response><Reason>3081</Reason><Topic>topic2</Topic></Response></pscr>",
        psc("Publish", ("Topic", "topic1"), ("Topic", "fine"), ("Topic", "topic2")),
    ]


@pytest.mark.rule("RESP-2")
def test_6_7_6_several_errors_are_one_response_for_the_first(world: Scenario) -> None:
    result = world.deregister("x", "y")
    assert len(result.response.answers) == 1


@pytest.mark.rule("RESP-6")
def test_6_7_6_data_is_not_returned_nor_other_folders(world: Scenario) -> None:
    result = world.send(
        psc("Publish", ("Topic", "#")),
        "<usr><a>1</a></usr>",
        queue="SYSTEM.BROKER.DEFAULT.STREAM",
        data=b"data",
    )
    assert [folder.name for folder in result.response.header.folders] == ["pscr", "psc"]
    assert result.response.data == b""
    assert result.response.header.format == ""


@pytest.mark.rule("RESP-5")
def test_6_7_6_the_command_comes_back_as_it_was_byte_for_byte(world: Scenario) -> None:
    raw = b"<psc >\n <Command>RegSub</Command> <Topic>A & B</Topic><Colour/>\n</psc>\0\0\0 "
    result = world.send(raw)
    assert result.response.header.folders[1].data == raw


def test_field_the_reply_starts_with_pscr_compact(world: Scenario) -> None:
    for result in (ok(world), error(world)):
        data = result.response.header.folders[0].data
        assert data.startswith(b"<pscr><Completion>")
        assert b"> <" not in data
        assert len(data) % 4 == 0


@pytest.mark.rule("RESP-4")
def test_culprits_are_escaped(world: Scenario) -> None:
    result = world.deregister("A &amp; &lt;B>")
    assert result.answer.tags == (("Topic", "A & <B>"),)
    assert "<Topic>A &amp; &lt;B&gt;</Topic>" in result.response.folders[0]


# How it is described


IDENTIFIERS = [
    ("6.7.10-default", 0, None, MSG_ID),
    ("6.7.8-PASS_CORREL_ID", MQRO_PASS_CORREL_ID, None, CORREL_ID),
    ("6.7.10-PASS_MSG_ID", MQRO_PASS_MSG_ID, MSG_ID, MSG_ID),
    ("6.7.10-both", MQRO_PASS_MSG_ID | MQRO_PASS_CORREL_ID, MSG_ID, CORREL_ID),
]


@pytest.mark.rule("MDC-3", "MDR-2")
@pytest.mark.parametrize(
    ("report", "msg_id", "correl_id"), [r[1:] for r in IDENTIFIERS], ids=[r[0] for r in IDENTIFIERS]
)
def test_6_7_10_msgid_and_correlid(world: Scenario, report: int, msg_id: bytes | None, correl_id: bytes) -> None:
    reply = ok(world, report=report, correl_id=CORREL_ID).response.mqmd
    assert reply.correl_id == correl_id
    if msg_id is None:
        assert reply.msg_id not in (MSG_ID, bytes(24))
    else:
        assert reply.msg_id == msg_id


@pytest.mark.rule("MDR-1")
def test_6_7_10_every_field(world: Scenario) -> None:
    reply = ok(
        world,
        report=MQRO_PAN,
        expiry=600,
        priority=7,
        persistence=1,
        user_identifier="app1",
        accounting_token=b"token".ljust(32, b"\0"),
        appl_identity_data="identity",
        put_appl_type=6,
        put_appl_name="program",
        appl_origin_data="orig",
        feedback=5,
    ).response.mqmd
    assert reply.report == 0
    assert reply.msg_type == MQMT_REPLY
    assert reply.format == MQFMT_RF_HEADER_2
    assert (reply.priority, reply.persistence, reply.expiry) == (7, 1, 600)
    assert (reply.put_appl_type, reply.put_appl_name) == (MQAT_BROKER, "QM1")
    assert (reply.user_identifier, reply.accounting_token, reply.appl_identity_data) == (
        "app1",
        b"token".ljust(32, b"\0"),
        "identity",
    )
    assert (reply.put_date, reply.put_time, reply.appl_origin_data) == ("20090128", "11435518", "")
    assert (reply.reply_to_q, reply.reply_to_qmgr, reply.feedback) == ("", "", 0)


@pytest.mark.rule("MDR-1")
def test_6_7_10_putapplname_is_the_first_28_characters() -> None:
    world = Scenario(qmgr="A.QUEUE.MANAGER.WITH.QUITE.A.LONG.NAME")
    assert ok(world).response.mqmd.put_appl_name == "A.QUEUE.MANAGER.WITH.QUITE.A"


def test_priority_and_persistence_are_resolved_by_the_command_queue(world: Scenario) -> None:
    reply = ok(world, priority=MQPRI_PRIORITY_AS_Q_DEF, persistence=MQPER_PERSISTENCE_AS_Q_DEF).response.mqmd
    assert (reply.priority, reply.persistence) == (0, 0)


ADDRESSES = [
    ("6.7.8-ReplyToQ", {"reply_to": "REPLY.Q"}, ("QM1", "REPLY.Q")),
    ("6.7.8-ReplyToQMgr", {"reply_to_qmgr": "QM2"}, ("QM2", "REPLY.Q")),
    ("6.7.8-QName-is-not-where-responses-go", {"tags": [("QName", "SUB.Q")]}, ("QM1", "REPLY.Q")),
    ("field-cut-at-the-first-null", {"reply_to": "REPLY.Q\0SUB.Q"}, ("QM1", "REPLY.Q")),
]


@pytest.mark.rule("MDC-4")
@pytest.mark.parametrize(("settings", "address"), [row[1:] for row in ADDRESSES], ids=[row[0] for row in ADDRESSES])
def test_6_7_8_where_it_goes(world: Scenario, settings: dict[str, Any], address: tuple[str, str]) -> None:
    put = ok(world, **settings).response.put
    assert (put.qmgr, put.queue) == address


# In the sender's own encoding


WIRES = [
    ("little-endian", {"order": "little"}, {}),
    ("big-endian", {"order": "big"}, {}),
    ("6.6.1-UTF-16-little", {"nv_ccsid": 1200, "order": "little"}, {}),
    ("6.6.1-UTF-16-big", {"nv_ccsid": 1200, "order": "big"}, {}),
    ("6.6.1-13488", {"nv_ccsid": 13488, "order": "big"}, {}),
    ("6.6.1-17584", {"nv_ccsid": 17584, "order": "little"}, {}),
    ("6.6.1-EBCDIC-500", {"charset": "cp500", "order": "big"}, {"coded_char_set_id": 500}),
    ("6.6.1-EBCDIC-1047", {"charset": "cp1047", "order": "big"}, {"coded_char_set_id": 1047}),
    ("6.6.1-EBCDIC-and-UTF-16", {"charset": "cp500", "order": "big", "nv_ccsid": 1200}, {"coded_char_set_id": 500}),
    ("EBCDIC-descriptor-too", {"charset": "cp500", "order": "big"}, {"coded_char_set_id": 500, "charset": "cp500"}),
    ("big-endian-descriptor", {"order": "big"}, {"order": "big"}),
]


@pytest.mark.rule("HDR-5")
@pytest.mark.parametrize("command", [ok, error], ids=["ok", "error"])
@pytest.mark.parametrize(("wire", "settings"), [row[1:] for row in WIRES], ids=[row[0] for row in WIRES])
def test_a_response_speaks_as_the_command_did(
    world: Scenario, wire: dict[str, Any], settings: dict[str, Any], command: Callable[..., Result]
) -> None:
    received = command(world, wire=wire, **settings).response
    header = received.header
    assert received.completion == command.__name__
    assert header.order == wire.get("order", "little")
    assert header.name_value_ccsid == wire.get("nv_ccsid", 1208)
    assert header.charset == wire.get("charset", "latin-1")
    assert received.mqmd.coded_char_set_id == settings.get("coded_char_set_id", 1208)
    assert received.mqmd.encoding == (273 if header.order == "big" else 546)
    assert (received.mqmd.order, received.mqmd.charset) == (
        settings.get("order", "little"),
        settings.get("charset", "latin-1"),
    )


def test_a_descriptor_that_misstates_the_byte_order_does_not_mislead_the_reply(world: Scenario) -> None:
    described, body = _lying(order="big", encoding=546)
    reply = world.put("SYSTEM.BROKER.CONTROL.QUEUE", described, body).response
    assert (reply.header.order, reply.mqmd.encoding) == ("big", 273)


def _lying(order: str, encoding: int) -> tuple[bytes, bytes]:
    from dataclasses import replace

    from rfh2.mqmd import Mqmd
    from tests.commands.scenario import rfh2_message

    asked = Mqmd(msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q")
    described, body = rfh2_message((psc("RegSub", ("Topic", "a")),), asked, order=order)  # type: ignore[arg-type]
    return replace(described, encoding=encoding).encode(), body
