"""Each subscriber hears in its own format (guide 8.7; wire formats 2, 4.1, 5.1; guide 4.4, table 1, for properties).

MQRFH2, MQRFH and PCF publications are told as MQRFH2, MQRFH, PCF, message properties or nothing but their data; what
has no place in the format is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.forward import delivery_form
from commands.broker.objects import DEFAULT_STREAM
from commands.broker.puts import PutKind
from commands.headers.publication import Content, DeliveryForm, RenderedPublication
from commands.headers.registry import content_of, render
from rfh2.ccsid import ByteOrder, text_codec
from rfh2.constants import MQRC_RFH_STRING_ERROR
from rfh2.dlh import Dlh
from rfh2.folders import Folder
from rfh2.layouts import STEPPED_OVER, SteppedHeader
from rfh2.message import Message, decode, describing, encode
from rfh2.mqmd import Mde, Mqmd, Xqh
from rfh2.pcf import Cfbs, Cfin, Cfst, Eph, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import (
    MQBACF_MESSAGE_DATA,
    MQCA_Q_NAME,
    MQCACF_PUBLISH_TIMESTAMP,
    MQCACF_STREAM_NAME,
    MQCACF_STRING_DATA,
    MQCACF_TOPIC,
    MQIACF_INTEGER_DATA,
    MQIACF_PUBLICATION_OPTIONS,
    MQIACF_SEQUENCE_NUMBER,
)
from rfh2.rfh1 import Rfh1, write as name_value_string
from rfh2.rfh2 import Rfh2
from streams.operations import Delivery, Subscribe
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme
from tests.commands.headers.rfh1_pcf_table import (
    SPORT,
    OlderScenario,
    nvs,
    pairs,
    pcf_of,
    pcf_values,
    rfh1_done,
    string,
)
from tests.commands.scenario import Received, Result

RFH2, RFH1, PCF = PublicationFormat.RFH2, PublicationFormat.RFH1, PublicationFormat.PCF
PROPERTIES, NONE = PublicationFormat.PROPERTIES, PublicationFormat.NONE
TIME = "2009012811435418"
ORDERS: tuple[ByteOrder, ...] = ("little", "big")


@pytest.fixture
def world() -> OlderScenario:
    """Subscribers to everything: three through commands of each kind, two through DEFINE SUB."""
    world = OlderScenario()
    world.register("#", reply_to="RFH2.Q")
    world.rfh1("MQPSCommand RegSub MQPSTopic *", reply_to="RFH1.Q")
    world.pcf("RegSub", Cfst.of(MQCACF_TOPIC, "*"), reply_to="PCF.Q")
    define(world, "PROPERTIES.Q", PROPERTIES, user_data="mine")
    define(world, "NONE.Q", NONE)
    return world


def define(world: OlderScenario, queue: str, form: PublicationFormat, **settings: Any) -> None:
    """DEFINE SUB with a PSPROP."""
    subscription = Subscription(
        sub_id=queue.ljust(24).encode(),
        topic_string="#",
        dest_queue=queue,
        dest_qmgr="QM1",
        created=world.now,
        name=queue,
        wildcard=WildcardScheme.TOPIC,
        user="admin",
        format=form,
        admin=True,
        **settings,
    )
    world.broker.space.apply(Subscribe(subscription, send_retained=True), world.now)


def at(result: Result, queue: str) -> Received:
    """The publication for one queue."""
    (only,) = [received for received in result.publications if received.queue == queue]
    return only


def lost(result: Result, queue: str) -> list[str]:
    """What the subscriber of that queue was not told."""
    return [text.removeprefix(f"{queue}: ") for text in result.outcome.lost if text.startswith(f"{queue}: ")]


# An MQRFH publication


RFH1_PUBLICATION = (
    'MQPSCommand Publish MQPSPubOpts NoReg colour "light blue" MQPSTopic "IBM Stock Price" MQPSIntData 5 '
    f'MQPSPubTime {TIME} MQPSStringData "a ""b""" MQPSSeqNum 7 MQPSIntData 6 shape round'
)


@pytest.fixture
def from_rfh1(world: OlderScenario) -> Result:
    return world.rfh1(RFH1_PUBLICATION, data=b"42.5", order="big", coded_char_set_id=819, body_ccsid=850)


@pytest.mark.rule("OLD-14")
def test_mqrfh_as_mqrfh(from_rfh1: Result) -> None:
    got = at(from_rfh1, "RFH1.Q")
    assert nvs(got) == (
        f'MQPSCommand Publish MQPSTopic "IBM Stock Price" MQPSPubTime {TIME} MQPSSeqNum 7 MQPSIntData 5 '
        'MQPSStringData "a ""b""" MQPSIntData 6 colour "light blue" shape round  '  # blanks up to a multiple of four
    )
    assert (got.mqmd.format, got.mqmd.encoding, got.mqmd.coded_char_set_id) == ("MQHRF", 273, 819)
    assert (got.message.body_format, got.message.body_ccsid, got.data) == ("MQSTR", 850, b"42.5")
    assert lost(from_rfh1, "RFH1.Q") == []


@pytest.mark.rule("MB-8")
def test_mqrfh_as_mqrfh2(from_rfh1: Result) -> None:
    got = at(from_rfh1, "RFH2.Q")
    assert got.folders == [
        "<psc><Command>Publish</Command><Topic>IBM Stock Price</Topic>"
        f"<PubTime>{TIME}</PubTime><SeqNum>7</SeqNum></psc>",
        '<mqpse><Sid>MQPSIntData 5 MQPSStringData "a ""b""" MQPSIntData 6</Sid></mqpse>',
        "<usr><colour>light blue</colour><shape>round</shape></usr>",
    ]
    assert (got.mqmd.format, got.mqmd.encoding, got.mqmd.coded_char_set_id) == ("MQHRF2", 273, 819)
    assert (got.header.order, got.message.body_format, got.message.body_ccsid) == ("big", "MQSTR", 850)
    assert got.data == b"42.5"
    assert lost(from_rfh1, "RFH2.Q") == ["IntData and StringData have no psc tag: they are in mqpse.Sid"]


@pytest.mark.rule("MB-8")
def test_mqrfh_as_pcf(from_rfh1: Result) -> None:
    got = at(from_rfh1, "PCF.Q")
    pcf = pcf_of(got)
    assert (pcf.type, pcf.command, pcf.order, pcf.rest) == (1, 63, "big", b"")
    assert pcf_values(pcf) == [
        (MQCACF_TOPIC, "IBM Stock Price"),
        (MQCACF_PUBLISH_TIMESTAMP, TIME),
        (MQIACF_SEQUENCE_NUMBER, 7),
        (MQIACF_INTEGER_DATA, 5),
        (MQCACF_STRING_DATA, 'a "b"'),
        (MQIACF_INTEGER_DATA, 6),
        (MQCACF_STRING_DATA, "42.5"),
    ]
    assert (got.mqmd.format, got.message.headers) == ("MQPCF", ())
    assert lost(from_rfh1, "PCF.Q") == ["user pair colour", "user pair shape"]


@pytest.mark.rule("MB-11")
def test_mqrfh_as_properties(from_rfh1: Result) -> None:
    got = at(from_rfh1, "PROPERTIES.Q")
    assert got.folders == [
        '<mqps><Top>IBM Stock Price</Top><Sud>mine</Sud><Ret dt="boolean">0</Ret>'
        '<Pub dt="i4">0</Pub><Pbl dt="i4">9</Pbl></mqps>',
        f'<mqpse><Pts>{TIME}</Pts><Seq dt="i4">7</Seq>'
        '<Sid>MQPSIntData 5 MQPSStringData "a ""b""" MQPSIntData 6</Sid></mqpse>',
        "<usr><colour>light blue</colour><shape>round</shape></usr>",
    ]
    assert (got.message.body_format, got.message.body_ccsid, got.data) == ("MQSTR", 850, b"42.5")
    assert lost(from_rfh1, "PROPERTIES.Q") == []


def test_mqrfh_as_none_of_publish_subscribe(from_rfh1: Result) -> None:
    """User pairs are the program's data: they stay, as properties."""
    got = at(from_rfh1, "NONE.Q")
    assert got.folders == ["<usr><colour>light blue</colour><shape>round</shape></usr>"]
    assert got.data == b"42.5"
    assert lost(from_rfh1, "NONE.Q") == ["IntData", "StringData", "IntData"]


def test_mqrfh_without_user_pairs_as_none(world: OlderScenario) -> None:
    """Nothing but the data, described as the MQRFH described it."""
    result = world.rfh1("MQPSCommand Publish MQPSTopic a", data=b"42.5", body_ccsid=850, coded_char_set_id=819)
    got = at(result, "NONE.Q")
    assert (got.message.headers, got.data) == ((), b"42.5")
    assert (got.mqmd.format, got.mqmd.encoding, got.mqmd.coded_char_set_id) == ("MQSTR", 546, 850)


# An MQRFH2 publication


@pytest.fixture
def from_rfh2(world: OlderScenario) -> Result:
    return world.send(
        "<mcd><Msd>jms_text</Msd></mcd>",
        "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a b</Topic><SeqNum>7</SeqNum></psc>",
        "<usr><colour>light blue</colour><size dt='i4'>5</size><MQx>1</MQx><group><x>1</x></group></usr>",
        queue=DEFAULT_STREAM,
        data=b"data",
        request=False,
        coded_char_set_id=819,
    )


def test_mqrfh2_as_mqrfh2(from_rfh2: Result) -> None:
    got = at(from_rfh2, "RFH2.Q")
    assert got.folders == [
        "<psc><Command>Publish</Command><Topic>a b</Topic><SeqNum>7</SeqNum></psc>",
        "<mcd><Msd>jms_text</Msd></mcd>",
        "<usr><colour>light blue</colour><size dt='i4'>5</size><MQx>1</MQx><group><x>1</x></group></usr>",
    ]
    assert lost(from_rfh2, "RFH2.Q") == []


@pytest.mark.rule("MB-8")
def test_mqrfh2_as_mqrfh(from_rfh2: Result) -> None:
    got = at(from_rfh2, "RFH1.Q")
    assert nvs(got) == 'MQPSCommand Publish MQPSTopic "a b" MQPSSeqNum 7 colour "light blue" size 5'
    assert (got.mqmd.format, got.message.body_format, got.message.body_ccsid, got.data) == (
        "MQHRF",
        "MQSTR",
        1208,
        b"data",
    )
    assert lost(from_rfh2, "RFH1.Q") == ["folder mcd", "usr.MQx", "usr.group"]


@pytest.mark.rule("MB-10")
def test_mqrfh2_as_pcf(from_rfh2: Result) -> None:
    got = at(from_rfh2, "PCF.Q")
    assert pcf_values(pcf_of(got)) == [
        (MQCACF_TOPIC, "a b"),
        (MQIACF_SEQUENCE_NUMBER, 7),
        (MQCACF_STRING_DATA, "data"),
    ]
    assert pcf_of(got).rest == b""
    assert "folder mcd" in lost(from_rfh2, "PCF.Q")
    assert "user pair colour" in lost(from_rfh2, "PCF.Q")


@pytest.mark.rule("MB-11")
def test_mqrfh2_as_properties(from_rfh2: Result) -> None:
    """MQPMO_RETAIN is in MQPubOptions, for a program that publishes the message again (guide 4.6.1, table 2)."""
    got = at(from_rfh2, "PROPERTIES.Q")
    assert got.folders == [
        '<mqps><Top>a b</Top><Sud>mine</Sud><Ret dt="boolean">0</Ret>'
        f'<Pub dt="i4">{0x200000}</Pub><Pbl dt="i4">9</Pbl></mqps>',
        '<mqpse><Seq dt="i4">7</Seq></mqpse>',
        "<mcd><Msd>jms_text</Msd></mcd>",
        "<usr><colour>light blue</colour><size dt='i4'>5</size><MQx>1</MQx><group><x>1</x></group></usr>",
    ]


@pytest.mark.rule("MB-11")
def test_mqrfh2_as_none(from_rfh2: Result) -> None:
    got = at(from_rfh2, "NONE.Q")
    assert [Folder.of(text).name for text in got.folders] == ["mcd", "usr"]


def test_mqrfh2_with_psc_alone_as_none(world: OlderScenario) -> None:
    got = at(world.publish("a", data=b"data", coded_char_set_id=819), "NONE.Q")
    assert (got.message.headers, got.data, got.mqmd.format) == ((), b"data", "MQSTR")
    assert got.mqmd.coded_char_set_id == 1208


def test_properties_of_what_is_retained(world: OlderScenario) -> None:
    world.publish("a", options=["RetainPub"])
    (retained,) = world.broker.space.retained_publications()
    delivery = Delivery(world.subscription("PROPERTIES.Q"), "a", retained.publication, from_retained=True)
    told = render(content_of(retained.publication.message), delivery_form([delivery]))
    header = told.message.rfh2
    assert header is not None
    assert '<Ret dt="boolean">1</Ret>' in header.folders[0].text


# A PCF publication


@pytest.fixture
def from_pcf(world: OlderScenario) -> Result:
    parameters: list[Parameter] = [
        Cfst.of(MQCACF_TOPIC, "IBM Stock Price"),
        Cfin(MQIACF_PUBLICATION_OPTIONS, 8),
        Cfst.of(MQCACF_STRING_DATA, "x y"),
        Cfin(MQIACF_INTEGER_DATA, -5),
    ]
    return world.pcf("Publish", *parameters, request=False)


def test_pcf_as_pcf(from_pcf: Result) -> None:
    got = at(from_pcf, "PCF.Q")
    assert pcf_values(pcf_of(got)) == [
        (MQCACF_TOPIC, "IBM Stock Price"),
        (MQCACF_STRING_DATA, "x y"),
        (MQIACF_INTEGER_DATA, -5),
    ]
    assert lost(from_pcf, "PCF.Q") == []


def test_pcf_as_mqrfh(from_pcf: Result) -> None:
    got = at(from_pcf, "RFH1.Q")
    assert nvs(got) == 'MQPSCommand Publish MQPSTopic "IBM Stock Price" MQPSStringData "x y" MQPSIntData -5'
    assert (got.mqmd.format, got.message.body_format, got.data) == ("MQHRF", "", b"")
    assert lost(from_pcf, "RFH1.Q") == []


@pytest.mark.rule("MB-8")
def test_pcf_as_mqrfh2(from_pcf: Result) -> None:
    got = at(from_pcf, "RFH2.Q")
    assert got.topic == "IBM Stock Price"
    assert got.folders[1] == '<mqpse><Sid>MQPSStringData "x y" MQPSIntData -5</Sid></mqpse>'


# The data of a publication for a PCF subscriber: (id, Format, CodedCharSetId, Encoding, data, as text).
PCF_DATA = [
    ("ascii", "MQSTR", 819, 546, b"abcde", "abcde"),
    ("ebcdic", "MQSTR", 500, 273, "Zürich".encode("cp500"), "Zürich"),
    ("utf-16-reversed", "MQSTR", 1200, 546, "Zürich".encode("utf-16-le"), "Zürich"),
    ("utf-16-normal", "MQSTR", 1200, 273, "Zürich".encode("utf-16-be"), "Zürich"),
    ("half-a-character", "MQSTR", 1200, 273, b"\0a\0", None),
    ("inherited", "MQSTR", -2, 546, b"abc", "abc"),
    ("binary", "", 819, 546, b"\1\2\3", None),
    ("a-programs-own-format", "MINE", 819, 546, b"abc", None),
]


@pytest.mark.rule("OLD-20")
@pytest.mark.parametrize(
    ("fmt", "ccsid", "encoding", "data", "text"), [row[1:] for row in PCF_DATA], ids=[row[0] for row in PCF_DATA]
)
@pytest.mark.parametrize("order", ORDERS)
def test_data_of_an_mqrfh_is_a_parameter_in_pcf(
    fmt: str, ccsid: int, encoding: int, data: bytes, text: str | None, order: ByteOrder
) -> None:
    """OLD-20: text is MQCACF_STRING_DATA, other data MQBACF_MESSAGE_DATA; nothing stands behind the parameters."""
    header = Rfh1(b"MQPSCommand Publish MQPSTopic a ", encoding, ccsid, fmt, 0, order, "latin-1")
    described = Mqmd(format="MQHRF", coded_char_set_id=819, encoding=273 if order == "big" else 546)
    told = render(content_of(Message(described, (header,), data)), DeliveryForm(PCF, ("a",)))
    pcf = decode_pcf(told.message.body, 819)
    topic, last = pcf.parameters
    assert (topic.parameter, pcf.rest, len(told.message.body) % 4) == (MQCACF_TOPIC, b"", 0)
    if text is None:
        assert isinstance(last, Cfbs)
        assert (last.parameter, last.data) == (MQBACF_MESSAGE_DATA, data)
        assert told.lost == ("Format, Encoding and CodedCharSetId of the data",)
    else:
        assert isinstance(last, Cfst)
        assert (last.parameter, last.text) == (MQCACF_STRING_DATA, text)
        assert told.lost == ()


@pytest.mark.rule("OLD-20")
def test_headers_before_the_data_are_bytes_in_pcf(world: OlderScenario) -> None:
    inner = Rfh2((Folder.of("<usr><a>1</a></usr>"),), format="MQSTR")
    header = Rfh1(format="MQHRF2").with_pairs([("MQPSCommand", "Publish"), ("MQPSTopic", "a")])
    md = Mqmd(format="MQHRF", coded_char_set_id=819, priority=0, persistence=0)
    got = at(world.put(DEFAULT_STREAM, md.encode(), encode(Message(md, (header, inner), b"data"))), "PCF.Q")
    last = pcf_of(got).parameters[-1]
    assert isinstance(last, Cfbs)
    resolved = replace(inner, coded_char_set_id=819)  # MQCCSI_INHERIT, as the broker has it from there on
    assert (last.parameter, last.data) == (MQBACF_MESSAGE_DATA, resolved.encode() + b"data")


@pytest.mark.rule("OLD-20")
def test_what_a_pcf_publisher_puts_behind_the_parameters_stays_there(world: OlderScenario) -> None:
    got = at(world.pcf("Publish", Cfst.of(MQCACF_TOPIC, "a"), data=b"data"), "PCF.Q")
    assert (pcf_values(pcf_of(got)), pcf_of(got).rest) == ([(MQCACF_TOPIC, "a")], b"data")


@pytest.mark.rule("MB-11")
def test_psprop_compat_leaves_pcf_and_gives_everybody_else_an_mqrfh(world: OlderScenario) -> None:
    define(world, "COMPAT.Q", RFH1)
    assert at(world.pcf("Publish", Cfst.of(MQCACF_TOPIC, "a")), "COMPAT.Q").mqmd.format == "MQPCF"
    assert nvs(at(world.publish("a"), "COMPAT.Q")) == "MQPSCommand Publish MQPSTopic a"


# Publishers and subscribers


PUBLISHERS = [
    ("2.5-named", "MQPSQMgrName QM2 MQPSQName PUB.Q", [("MQPSQMgrName", "QM2"), ("MQPSQName", "PUB.Q")]),
    ("2.5-anonymous", "MQPSQName PUB.Q MQPSRegOpts Anon", []),
    ("7.2.5-direct-req", "MQPSRegOpts DirectReq", [("MQPSQName", "REPLY.Q")]),
    ("7.2.5-direct-req-named", "MQPSRegOpts DirectReq MQPSQName PUB.Q", [("MQPSQName", "PUB.Q")]),
    ("7.2.5-neither", "", []),
]


@pytest.mark.rule("OLD-11")
@pytest.mark.parametrize(("names", "told"), [row[1:] for row in PUBLISHERS], ids=[row[0] for row in PUBLISHERS])
def test_where_a_publisher_takes_requests(world: OlderScenario, names: str, told: list[tuple[str, str]]) -> None:
    got = at(world.rfh1(f"MQPSCommand Publish MQPSTopic a {names}"), "RFH1.Q")
    assert [pair for pair in pairs(got) if pair[0] in ("MQPSQMgrName", "MQPSQName")] == told


def test_a_publisher_in_pcf_too(world: OlderScenario) -> None:
    result = world.pcf("Publish", Cfst.of(MQCACF_TOPIC, "a"), Cfst.of(MQCA_Q_NAME, "PUB.Q"))
    assert pcf_values(pcf_of(at(result, "PCF.Q"))) == [(MQCACF_TOPIC, "a"), (MQCA_Q_NAME, "PUB.Q")]


def test_a_subscriber_hears_in_the_format_of_its_last_registration(world: OlderScenario) -> None:
    world.register("a", reply_to="MINE.Q")
    assert at(world.publish("a"), "MINE.Q").mqmd.format == "MQHRF2"
    world.rfh1("MQPSCommand RegSub MQPSTopic a", reply_to="MINE.Q")
    assert at(world.publish("a"), "MINE.Q").mqmd.format == "MQHRF"
    world.pcf("RegSub", Cfst.of(MQCACF_TOPIC, "a"), reply_to="MINE.Q")
    assert at(world.publish("a"), "MINE.Q").mqmd.format == "MQPCF"


def test_one_value_for_each_option_and_the_stream_by_name() -> None:
    world = OlderScenario()
    world.rfh1("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a", SPORT, b"x")
    options = "MQPSRegOpts InformIfRet MQPSRegOpts InclStreamName"
    result = world.rfh1(f"MQPSCommand RegSub MQPSTopic a MQPSStreamName {SPORT} {options}", reply_to="S.Q")
    assert nvs(at(result, "S.Q")) == (
        f"MQPSCommand Publish MQPSPubOpts IsRetainedPub MQPSStreamName {SPORT} MQPSTopic a"
    )
    flags = Cfin(1081, 0x100 + 0x80)
    result = world.pcf("RegSub", Cfst.of(MQCACF_TOPIC, "a"), Cfst.of(MQCACF_STREAM_NAME, SPORT), flags, reply_to="P.Q")
    assert pcf_values(pcf_of(at(result, "P.Q"))) == [
        (1082, 16),
        (MQCACF_STREAM_NAME, SPORT),
        (MQCACF_TOPIC, "a"),
        (MQCACF_STRING_DATA, "x"),
    ]


@pytest.mark.rule("MB-10")
def test_the_subscription_point_has_no_name_in_the_older_headers() -> None:
    content = content_of(rfh2_publication("<psc><Command>Publish</Command><Topic>a</Topic></psc>"))
    for form in (RFH1, PCF):
        assert render(content, DeliveryForm(form, ("a",), sub_point="USD")).lost[0] == "SubPoint USD"


# Code pages


def test_an_mqrfh_string_is_in_the_code_page_of_the_descriptor(world: OlderScenario) -> None:
    got = at(world.publish("Zürich", coded_char_set_id=819), "RFH1.Q")
    header = got.message.rfh1
    assert header is not None
    assert "Zürich".encode("latin-1") in header.data
    assert (got.mqmd.coded_char_set_id, dict(header.pairs())["MQPSTopic"]) == (819, "Zürich")


@pytest.mark.parametrize("ccsid", [819, 0, 1208])
def test_characters_that_the_descriptor_cannot_promise_make_it_say_1208(world: OlderScenario, ccsid: int) -> None:
    got = at(world.publish("東京", coded_char_set_id=ccsid, data=b"x"), "RFH1.Q")
    assert (got.mqmd.coded_char_set_id, dict(pairs(got))["MQPSTopic"]) == (1208, "東京")
    assert got.message.body_ccsid == 1208  # that of the data, as its publisher's MQRFH2 said


def test_the_data_keeps_its_own_code_page_when_the_header_changes_to_1208(world: OlderScenario) -> None:
    folder = "<psc><Command>Publish</Command><Topic>東京</Topic></psc>"
    header = Rfh2((Folder.of(folder),), coded_char_set_id=-2, format="MQSTR")
    md = Mqmd(format="MQHRF2", coded_char_set_id=850, priority=0, persistence=0)
    got = at(world.put(DEFAULT_STREAM, md.encode(), header.encode() + b"x"), "RFH1.Q")
    assert (got.mqmd.coded_char_set_id, got.message.body_ccsid) == (1208, 850)


def test_a_string_of_an_unknown_code_page_goes_out_byte_for_byte(world: OlderScenario) -> None:
    topic, ccsid = b"Z\x81rich", 99999  # in code page 850
    result = world.rfh1(b"MQPSCommand Publish MQPSTopic " + topic, DEFAULT_STREAM, coded_char_set_id=ccsid)
    header = at(result, "RFH1.Q").message.rfh1
    assert header is not None
    assert header.data.rstrip(b"\0") == b"MQPSCommand Publish MQPSTopic " + topic
    assert at(result, "RFH1.Q").mqmd.coded_char_set_id == ccsid


@pytest.mark.parametrize("ccsid", [0, -2])
def test_a_string_in_no_ccsid_that_anybody_names_goes_out_byte_for_byte(world: OlderScenario, ccsid: int) -> None:
    """The queue manager's CCSID is 1208 here; what is no UTF-8 was put where it is another one."""
    text = b"MQPSCommand Publish MQPSTopic Z\xfcrich"
    got = at(world.rfh1(text, DEFAULT_STREAM, coded_char_set_id=ccsid), "RFH1.Q")
    assert got.message.rfh1 is not None
    assert got.message.rfh1.data.rstrip(b"\0") == text
    assert (got.mqmd.coded_char_set_id, got.put.topic) == (819, "Zürich")


def test_a_string_that_is_not_in_its_ccsid_is_no_command(world: OlderScenario) -> None:
    result = world.rfh1(b"MQPSCommand Publish MQPSTopic Z\x81rich", DEFAULT_STREAM, coded_char_set_id=1208)
    assert [(put.kind, put.reason) for put in result.outcome.puts] == [(PutKind.RESPONSE, MQRC_RFH_STRING_ERROR)]


def test_an_ebcdic_publisher_is_heard_in_ebcdic(world: OlderScenario) -> None:
    result = world.rfh1("MQPSCommand Publish MQPSTopic a", charset="cp500", order="big", coded_char_set_id=500)
    for queue in ("RFH1.Q", "RFH2.Q"):
        assert bytes.fromhex(at(result, queue).put.body_hex).startswith("RFH ".encode("cp500"))
        assert at(result, queue).mqmd.coded_char_set_id == 500


def test_control_characters_that_xml_lacks_are_replaced_and_said(world: OlderScenario) -> None:
    result = world.rfh1("MQPSCommand Publish MQPSTopic a\x01b MQPSStringData \x02 colour \x03")
    assert at(result, "RFH2.Q").topic == "a\ufffdb"
    assert lost(result, "RFH2.Q") == [
        "user pair colour",
        "MQPSStringData",
        "Topic: characters that XML does not allow",
        "IntData and StringData have no psc tag: they are in mqpse.Sid",
    ]
    assert nvs(at(result, "RFH1.Q")) == "MQPSCommand Publish MQPSTopic a\x01b MQPSStringData \x02 colour \x03 "


def test_a_null_in_pcf_data_has_no_place_in_a_string(world: OlderScenario) -> None:
    parameters = (Cfst.of(MQCACF_TOPIC, "a"), Cfst(MQCACF_STRING_DATA, b"x\0y", 819, "latin-1", b"\0"))
    result = world.pcf("Publish", *parameters)
    assert nvs(at(result, "RFH1.Q")) == "MQPSCommand Publish MQPSTopic a"
    assert lost(result, "RFH1.Q") == ["MQPSStringData: its value holds a null"]


# Other headers, and no header of publish/subscribe at all


def test_a_header_before_the_mqrfh_announces_what_follows_it(world: OlderScenario) -> None:
    before = SteppedHeader("MQIIH", bytes(52), format="MQHRF")
    header = Rfh1(format="MQSTR").with_pairs([("MQPSCommand", "Publish"), ("MQPSTopic", "a")])
    md = Mqmd(format="MQIMS", coded_char_set_id=819, priority=0, persistence=0)
    body = encode(Message(md, (before, header), b"data"))
    result = world.put(DEFAULT_STREAM, md.encode(), body)
    for queue, kinds in (("RFH1.Q", ["MQIIH", "MQRFH"]), ("RFH2.Q", ["MQIIH", "MQRFH2"]), ("NONE.Q", ["MQIIH"])):
        got = at(result, queue)
        assert [header.kind for header in got.message.headers] == kinds
        assert (got.mqmd.format, got.message.body_format, got.data) == ("MQIMS", "MQSTR", b"data")
    got = at(result, "PCF.Q")
    assert (got.message.body_format, pcf_values(pcf_of(got))[-1]) == ("MQPCF", (MQCACF_STRING_DATA, "data"))


@pytest.mark.parametrize("form", [RFH2, RFH1, PROPERTIES])
def test_data_without_a_header_gets_one(form: PublicationFormat) -> None:
    """What a new program put to the topic (guide 7.7)."""
    md = Mqmd(format="MQSTR", encoding=273, coded_char_set_id=850)
    told = render(content_of(Message(md, (), b"data")), DeliveryForm(form, ("a",)))
    again = decode(encode(told.message), told.message.mqmd)
    assert (len(again.headers), again.body) == (1, b"data")
    assert (again.body_format, again.body_encoding, again.body_ccsid) == ("MQSTR", 273, 850)


def test_data_without_a_header_stays_so_for_none() -> None:
    message = Message(Mqmd(format="MQSTR", coded_char_set_id=850), (), b"data")
    assert render(content_of(message), DeliveryForm(NONE, ("a",))) == RenderedPublication(message)


# Laws


WORDS = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=8)
NAMES = st.from_regex(r"[A-LN-Za-z_][A-Za-z0-9_.-]{0,6}", fullmatch=True)
DATA = st.lists(
    st.one_of(
        st.tuples(st.just("MQPSIntData"), st.integers(-(2**31), 2**31 - 1).map(str)),
        st.tuples(st.just("MQPSStringData"), WORDS),
    ),
    max_size=4,
)


def rfh2_publication(*folders: str, data: bytes = b"") -> Message:
    md = Mqmd(format="MQHRF2", coded_char_set_id=819)
    return Message(md, (Rfh2(tuple(Folder.of(f) for f in folders), format="MQSTR"),), data)


def rfh1_publication(user: list[tuple[str, str]], data: list[tuple[str, str]], body: bytes) -> Message:
    header = Rfh1(coded_char_set_id=819, format="MQSTR", string_charset="latin-1")
    names = [("MQPSCommand", "Publish"), ("MQPSTopic", "a"), *data, *user]
    return Message(Mqmd(format="MQHRF", coded_char_set_id=819), (header.with_pairs(names),), body)


def retold(message: Message, *forms: PublicationFormat) -> Message:
    """*message* told on by one queue manager after the other, over the wire each time."""
    for form in forms:
        told = render(content_of(message), DeliveryForm(form, ("a",)))
        message = decode(encode(told.message), told.message.mqmd)
    return message


@pytest.mark.rule("MB-9")
@given(user=st.lists(st.tuples(NAMES, WORDS), max_size=4), data=DATA, body=st.binary(max_size=20))
def test_an_mqrfh_publication_comes_back_from_an_mqrfh2(
    user: list[tuple[str, str]], data: list[tuple[str, str]], body: bytes
) -> None:
    first = retold(rfh1_publication(user, data, body), RFH1)
    again = retold(first, RFH2, RFH1)
    assert first.rfh1 is not None
    assert again.rfh1 is not None
    assert again.rfh1.pairs() == first.rfh1.pairs()
    assert (again.body, again.body_format, again.body_ccsid) == (body, "MQSTR", 819)


@pytest.mark.rule("MB-9")
@given(data=DATA)
def test_data_comes_back_from_pcf(data: list[tuple[str, str]]) -> None:
    # PCF pads strings with nulls; blanks at the end stay.
    again = retold(rfh1_publication([], data, b""), PCF, RFH1)
    assert again.rfh1 is not None
    assert [pair for pair in again.rfh1.pairs() if pair[0].endswith("Data")] == data


@st.composite
def publications(draw: st.DrawFn) -> Message:
    """Any publication: in any header, with any names, values, folders, code pages, byte orders and other headers."""
    body = draw(st.binary(max_size=12))
    ccsid = draw(st.sampled_from([0, -2, 37, 500, 819, 850, 1208, 1200, 932, 99999]))
    big = draw(st.booleans())
    order, encoding = ("big", 273) if big else ("little", 546)
    inner = draw(st.sampled_from([0, -2, 819, 1208]))
    kind = draw(st.sampled_from(["rfh1", "rfh2", "pcf", "plain"]))
    text = st.text(max_size=6)
    md = Mqmd(encoding=encoding, coded_char_set_id=ccsid)
    if kind == "rfh1":
        names = draw(st.lists(st.tuples(text, text), max_size=4))
        joined = name_value_string([(n.replace("\0", ""), v.replace("\0", "")) for n, v in names])
        string = ("MQPSCommand Publish MQPSTopic a " + joined).encode(
            draw(st.sampled_from(["utf-8", "latin-1"])), "replace"
        )
        header = Rfh1(string, encoding, inner, "MQSTR", 0, order)  # type: ignore[arg-type]
        return decode(header.encode() + body, replace(md, format="MQHRF"))
    if kind == "rfh2":
        usr = draw(st.binary(max_size=24))
        folders = (Folder.of("<psc><Command>Publish</Command><Topic>a</Topic></psc>"), Folder(b"<usr>" + usr))
        header2 = Rfh2(folders, encoding, inner, "MQSTR", order=order)  # type: ignore[arg-type]
        return decode(header2.encode() + body, replace(md, format="MQHRF2"))
    if kind == "pcf":
        values = draw(st.lists(st.one_of(st.binary(max_size=6), st.integers(-(2**31), 2**31 - 1)), max_size=3))
        parameters: list[Parameter] = [Cfst.of(MQCACF_TOPIC, "a")]
        for value in values:
            data = value if isinstance(value, bytes) else b""
            parameters.append(
                Cfin(1080, value) if isinstance(value, int) else Cfst(3035, data, inner, tail=bytes(-len(data) % 4))
            )
        pcf = Pcf(63, tuple(parameters), order=order, rest=body)  # type: ignore[arg-type]
        return decode(pcf.encode(), replace(md, format="MQPCF"))
    return decode(body, replace(md, format="MQSTR"))


def _for_pcf(content: Content) -> bytes:
    """The data as a PCF parameter holds it: text in UTF-16, which a parameter cannot hold, is in UTF-8."""
    frame = content.frame
    codec = text_codec(frame.ccsid_behind, frame.encoding) or ""
    if frame.format != "MQSTR" or not codec.startswith("utf-16"):
        return frame.body
    try:
        return frame.body.decode(codec).encode()
    except UnicodeDecodeError:
        return frame.body


@pytest.mark.rule("MB-8")
@given(publications(), st.sampled_from(list(PublicationFormat)), st.text(min_size=1, max_size=5), st.booleans())
def test_any_publication_can_be_told_in_any_format(
    message: Message, form: PublicationFormat, topic: str, is_retained: bool
) -> None:
    topic = topic.replace("\0", "x")
    content: Content = content_of(message)
    told = render(content, DeliveryForm(form, (topic,), "USD", "S.STREAM", is_retained, user_data=topic))
    again = decode(encode(told.message), told.message.mqmd)
    if form is PCF and content.form is PCF:
        assert again.body.endswith(content.frame.body)
    elif form is PCF:
        data = decode_pcf(again.body, again.body_ccsid).parameters[-1]
        assert not content.frame.body or (isinstance(data, Cfst | Cfbs) and data.data.endswith(_for_pcf(content)))
    elif content.form is not PCF:
        assert again.body == message.body
    if form is RFH1:
        assert again.rfh1 is not None
        assert dict(again.rfh1.pairs())["MQPSTopic"] == topic


def test_a_registration_in_each_format_is_answered_in_it() -> None:
    world = OlderScenario()
    rfh1_done(world.rfh1("MQPSCommand RegSub MQPSTopic a"))
    assert world.pcf("RegSub", *string(MQCACF_TOPIC, "a")).response.mqmd.format == "MQPCF"
    assert world.register("a").response.mqmd.format == "MQHRF2"


def test_headers_that_come_again_are_told_as_the_first_time(world: OlderScenario) -> None:
    """What is kept of one publication says nothing about the next: data, code page, reply queue."""
    string = "MQPSCommand Publish MQPSTopic a MQPSRegOpts DirectReq"
    for data, ccsid, reply_to in (
        (b"1", 819, "ONE.Q"),
        (b"2", 819, "ONE.Q"),
        (b"3", 850, "ONE.Q"),
        (b"4", 850, "TWO.Q"),
    ):
        result = world.rfh1(string, data=data, coded_char_set_id=ccsid, reply_to=reply_to)
        got = at(result, "RFH1.Q")
        assert (got.data, got.mqmd.coded_char_set_id, dict(pairs(got))["MQPSQName"]) == (data, ccsid, reply_to)
        assert (at(result, "RFH2.Q").data, at(result, "RFH2.Q").mqmd.coded_char_set_id) == (data, ccsid)


def test_a_pcf_command_behind_properties_is_one(world: OlderScenario) -> None:
    """A newer program sets message properties: an MQRFH2 without psc comes before the PCF."""
    pcf = Pcf(63, (Cfst.of(MQCACF_TOPIC, "a"), Cfin(MQIACF_INTEGER_DATA, 5)))
    header = Rfh2((Folder.of("<usr><colour>blue</colour></usr>"),), format="MQPCF")
    md = Mqmd(format="MQHRF2", coded_char_set_id=819, priority=0, persistence=0)
    result = world.put(DEFAULT_STREAM, md.encode(), header.encode() + pcf.encode())
    got = at(result, "RFH1.Q")
    assert [each.kind for each in got.message.headers] == ["MQRFH2", "MQRFH"]
    assert nvs(got) == "MQPSCommand Publish MQPSTopic a MQPSIntData 5"


def other_headers(order: ByteOrder, charset: str) -> Iterator[Any]:
    """One of each kind but MQRFH and MQRFH2."""
    how: dict[str, Any] = {"order": order, "charset": charset}
    yield Dlh(2085, "DEAD.Q", "QM1", put_appl_name="amqrmppa", put_date="20090128", put_time="11435418", **how)
    yield Xqh(Mqmd(user_identifier="app1", reply_to_q="R", **how), "REMOTE.Q", "QM2", order, charset)
    yield Mde(bytes(range(24)), 3, 8, 1, 400, **how)
    yield Eph(Pcf(1, (Cfin(1, 2), Cfst.of(2, "abc")), order=order).encode(), **how)
    for kind in STEPPED_OVER:
        for version, size in kind.sizes.items():
            yield SteppedHeader(kind.name, bytes(size - 32), version, **how)


BEFORE = [
    pytest.param(header, order, id=f"{header.kind}-{getattr(header, 'version', 1)}-{order}")
    for order in ORDERS
    for header in other_headers(order, "iso8859_1")
]


@pytest.mark.parametrize("form", [RFH2, RFH1, PCF, PROPERTIES, NONE])
@pytest.mark.parametrize("published", ["MQRFH2", "MQRFH"])
@pytest.mark.parametrize(("before", "order"), BEFORE)
def test_6_6_a_header_before_the_command_announces_what_the_subscriber_is_told(
    before: Any, order: ByteOrder, published: str, form: PublicationFormat
) -> None:
    """Whatever stands before the command's header, an MQXQH above all, whose Format is its embedded descriptor's."""
    psc = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    holder = (
        Rfh2((Folder.of(psc),), format="MQSTR", order=order)
        if published == "MQRFH2"
        else Rfh1(b"MQPSCommand Publish MQPSTopic a ", format="MQSTR", order=order)
    )
    encoding = 546 if order == "little" else 273
    first = describing(before, {"format": holder.own_format, "encoding": encoding, "coded_char_set_id": 819})
    mqmd = Mqmd(format=before.own_format, encoding=encoding, coded_char_set_id=819, order=order)
    told = render(content_of(decode(encode(Message(mqmd, (first, holder), b"42")), mqmd)), DeliveryForm(form, ("a",)))

    again = decode(encode(told.message), told.message.mqmd)
    kinds = {RFH2: ["MQRFH2"], RFH1: ["MQRFH"], PCF: [], PROPERTIES: ["MQRFH2"], NONE: []}[form]
    assert [header.kind for header in again.headers] == [before.kind, *kinds]
    assert again.body_format == ("MQPCF" if form is PCF else "MQSTR")
    if form is PCF:
        told_values = pcf_values(decode_pcf(again.body, again.body_ccsid))
        assert told_values == [(MQCACF_TOPIC, "a"), (MQCACF_STRING_DATA, "42")]
    else:
        assert again.body == b"42"
