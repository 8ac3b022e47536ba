"""Data conversion: what MQGET with MQGMO_CONVERT makes of a message (rfh2.conversion)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given, strategies as st

from rfh2 import (
    Dlh,
    Folder,
    Header,
    Mde,
    Message,
    Mqmd,
    Pcf,
    Rfh1,
    Rfh2,
    SteppedHeader,
    Xqh,
    decode,
    decode_pcf,
    encode,
)
from rfh2.ccsid import ByteOrder, byte_order, field_codec, is_ebcdic
from rfh2.conversion import Converted, convert
from rfh2.pcf import Cfbs, Cfgr, Cfil, Cfin, Cfin64, Cfsf, Cfsl, Cfst, UnknownParameter

NATIVE, REVERSED = 273, 546


def mqmd(fmt: str, ccsid: int = 1208, encoding: int = REVERSED) -> Mqmd:
    return Mqmd(format=fmt, coded_char_set_id=ccsid, encoding=encoding)


TEXTS = [
    ("utf8-to-latin", "Tor für", 1208, 819, NATIVE, 0),
    ("latin-to-ebcdic", "Tor für", 819, 273, NATIVE, 0),
    ("ebcdic-to-utf8", "Tor für", 500, 1208, REVERSED, 0),
    ("utf16-turned", "Tor", 1200, 1200, NATIVE, 0),
    ("to-utf16", "Tor für", 819, 13488, NATIVE, 0),
    ("to-greek", "βάσις", 1208, 813, REVERSED, 0),
    ("same-ccsid-other-encoding", "Tor", 819, 819, NATIVE, 0),
    ("a-character-that-the-target-lacks", "βάσις", 1208, 819, REVERSED, 2119),
    ("unknown-target", "Tor", 1208, 99999, REVERSED, 2115),
    ("target-that-stands-for-none", "Tor", 1208, -3, REVERSED, 2115),
]
CODECS = {1208: "utf-8", 819: "latin-1", 273: "cp273", 500: "cp500", 813: "iso8859-7"}


def text_bytes(text: str, ccsid: int, encoding: int) -> bytes:
    order = "le" if byte_order(encoding) == "little" else "be"
    return text.encode(CODECS.get(ccsid, f"utf-16-{order}"))


@pytest.mark.rule("LSN-31")
@pytest.mark.parametrize(
    ("text", "ccsid", "wanted", "encoding", "reason"), [t[1:] for t in TEXTS], ids=[t[0] for t in TEXTS]
)
def test_mqstr(text: str, ccsid: int, wanted: int, encoding: int, reason: int) -> None:
    described, data = mqmd("MQSTR", ccsid), text_bytes(text, ccsid, REVERSED)
    converted = convert(data, described, wanted, encoding)
    if reason:
        assert converted == Converted(described, data, reason)
    else:
        expected = replace(described, coded_char_set_id=wanted, encoding=encoding)
        assert converted == Converted(expected, text_bytes(text, wanted, encoding))


UNCONVERTED = [
    ("no-format", "", 1208, b"data", 819, NATIVE, 2110),
    ("a-program's-format", "MYFMT", 1208, b"data", 819, NATIVE, 2110),
    ("source-ccsid-unknown", "MQSTR", 99999, b"data", 819, NATIVE, 2111),
    ("source-ccsid-of-each-string", "MQSTR", -1, b"data", 819, NATIVE, 2111),
    ("bytes-that-are-not-in-their-ccsid", "MQSTR", 1208, b"\xff\xfe", 819, NATIVE, 2119),
    ("header-cut", "MQHRF2", 1208, b"RFH \2\0\0\0", 819, NATIVE, 2110),
    ("header-that-is-none", "MQDEAD", 1208, b"data" * 50, 819, NATIVE, 2110),
    ("header-to-utf-16", "MQHRF2", 1208, Rfh2().encode(), 1200, NATIVE, 2115),
    ("header-to-no-byte-order", "MQHRF2", 1208, Rfh2().encode(), 1208, 0, 2116),
    ("name-value-ccsid", "MQHRF2", 1208, Rfh2().encode()[:-4] + (819).to_bytes(4, "little"), 819, NATIVE, 2111),
    ("pcf-cut", "MQADMIN", 1208, Pcf(1).encode()[:-1], 819, NATIVE, 2110),
    ("pcf-of-unknown-type", "MQPCF", 1208, Pcf(1, (UnknownParameter(1, 99, b"data"),)).encode(), 819, NATIVE, 2110),
    ("header-not-converted-here", "MQIMS", 1208, SteppedHeader("MQIIH", bytes(52)).encode(), 819, NATIVE, 2110),
]


@pytest.mark.rule("LSN-30")
@pytest.mark.parametrize(
    ("fmt", "ccsid", "data", "wanted", "encoding", "reason"),
    [u[1:] for u in UNCONVERTED],
    ids=[u[0] for u in UNCONVERTED],
)
def test_what_cannot_be_converted_is_given_as_it_is(
    fmt: str, ccsid: int, data: bytes, wanted: int, encoding: int, reason: int
) -> None:
    described = mqmd(fmt, ccsid)
    assert convert(data, described, wanted, encoding) == Converted(described, data, reason)


@pytest.mark.parametrize(
    ("fmt", "data", "wanted", "encoding"),
    [
        ("MQSTR", b"Tor", 1208, REVERSED),
        ("", b"Tor", 1208, REVERSED),
        ("MQSTR", b"", 819, NATIVE),
        ("MQSTR", b"x", 0, REVERSED),
    ],
    ids=["as-it-is", "as-it-is-without-format", "no-data", "the-queue-manager's-ccsid"],
)
def test_nothing_to_convert(fmt: str, data: bytes, wanted: int, encoding: int) -> None:
    described = mqmd(fmt)
    assert convert(data, described, wanted, encoding) == Converted(described, data)


@pytest.mark.rule("LSN-31")
def test_the_newline_of_ebcdic_becomes_a_line_feed() -> None:
    assert convert(b"\xc1\x15\xc2\x25", mqmd("MQSTR", 500), 819, REVERSED).body == b"A\nB\n"


PSC = "<psc><Command>Publish</Command><Topic>Sport</Topic></psc>"
HEADERS: list[tuple[str, Callable[[str, int, int], Header]]] = [
    ("MQRFH2", lambda fmt, ccsid, enc: Rfh2((Folder.of(PSC),), enc, ccsid, fmt)),
    ("MQRFH2-utf16", lambda fmt, ccsid, enc: Rfh2((Folder.of(PSC, "utf-16-le"),), enc, ccsid, fmt, 0, 1200)),
    ("MQRFH", lambda fmt, ccsid, enc: Rfh1(b"MQPSCommand RegSub\0\0", enc, ccsid, fmt)),
    ("MQDLH", lambda fmt, ccsid, enc: Dlh(2085, "SPORT", "QM1", enc, ccsid, fmt, 6, "app", "20240103", "09441700")),
    ("MQMDE", lambda fmt, ccsid, enc: Mde(bytes(range(24)), 2, 3, 1, 4, enc, ccsid, fmt)),
    ("MQXQH", lambda fmt, ccsid, enc: Xqh(Mqmd(encoding=enc, coded_char_set_id=ccsid, format=fmt), "Q", "QM2")),
]


def meaning(header: Header) -> object:
    """What a header says, whatever it is written in, but for what it says of others."""
    if isinstance(header, Rfh2):
        return [folder.text for folder in header.folders]
    if isinstance(header, Rfh1):
        return header.pairs()
    if isinstance(header, Xqh):
        return header.remote_q_name, header.remote_qmgr_name, header.mqmd.put_date, header.mqmd.expiry
    if isinstance(header, Dlh):
        return header.reason, header.dest_q_name, header.dest_qmgr_name, header.put_appl_name, header.put_date
    assert isinstance(header, Mde)
    return header.group_id, header.msg_seq_number, header.offset, header.msg_flags, header.original_length


def written(header: Header, ccsid: int, encoding: int) -> Header:
    """*header* as a program writes it in *ccsid* and *encoding*."""
    order: ByteOrder = byte_order(encoding) or "little"
    charset = field_codec(ccsid, is_ebcdic(ccsid))
    if isinstance(header, Xqh):
        return replace(header, order=order, charset=charset, mqmd=replace(header.mqmd, order=order, charset=charset))
    if isinstance(header, Rfh1):
        data = header.data.decode().encode(charset)
        return replace(header, order=order, charset=charset, string_charset=charset, data=data)
    if isinstance(header, Rfh2) and header.name_value_ccsid == 1200:
        utf16 = Folder.of(PSC, "utf-16-le" if order == "little" else "utf-16-be")
        return replace(header, order=order, charset=charset, folders=(utf16,))
    return replace(header, order=order, charset=charset)  # type: ignore[type-var]


REPRESENTATIONS = [(1208, NATIVE), (819, NATIVE), (500, NATIVE), (500, REVERSED), (850, 785), (37, NATIVE)]


@pytest.mark.parametrize("make", [h[1] for h in HEADERS], ids=[h[0] for h in HEADERS])
@pytest.mark.parametrize(("ccsid", "encoding"), REPRESENTATIONS)
def test_a_header_and_the_text_behind_it(make: Callable[[str, int, int], Header], ccsid: int, encoding: int) -> None:
    header = make("MQSTR", 819, NATIVE)
    message = Message(mqmd(header.own_format), (header,), "für".encode("latin-1"))
    converted = convert(encode(message), message.mqmd, ccsid, encoding)
    assert (converted.reason, converted.mqmd.coded_char_set_id, converted.mqmd.encoding) == (0, ccsid, encoding)
    given_back = decode(converted.body, converted.mqmd)
    assert meaning(given_back.headers[0]) == meaning(header)
    assert (given_back.body_ccsid, given_back.body_encoding, given_back.body_text) == (ccsid, encoding, "für")
    assert (
        encode(Message(converted.mqmd, (written(make("MQSTR", ccsid, encoding), ccsid, encoding),), b""))
        == (converted.body[: given_back.body_offset])
    )


CHAINS = st.lists(st.sampled_from([h[1] for h in HEADERS]), min_size=1, max_size=4)


@pytest.mark.rule("LSN-30")
@given(CHAINS, st.sampled_from(REPRESENTATIONS), st.sampled_from(REPRESENTATIONS), st.text("AZaz09 ", max_size=9))
def test_there_and_back_gives_the_same_message(
    makes: list[Callable[[str, int, int], Header]], source: tuple[int, int], target: tuple[int, int], text: str
) -> None:
    headers: list[Header] = []
    fmt = "MQSTR"
    for make in reversed(makes):
        headers.insert(0, written(make(fmt, *source), *source))
        fmt = headers[0].own_format
    described = mqmd(fmt, *source)
    assume(text)
    body = encode(Message(described, tuple(headers), text.encode(field_codec(source[0], is_ebcdic(source[0])))))
    there = convert(body, described, *target)
    back = convert(there.body, there.mqmd, *source)
    assert (there.reason, back.reason) == (0, 0)
    assert (back.body, back.mqmd) == (body, described)


def test_data_of_no_format_behind_a_header_stays_and_is_no_error() -> None:
    header = Rfh2((Folder.of(PSC),), coded_char_set_id=-2, encoding=REVERSED)
    message = Message(mqmd("MQHRF2"), (header,), b"\xff\0data")
    converted = convert(encode(message), message.mqmd, 500, NATIVE)
    given_back = decode(converted.body, converted.mqmd)
    assert (converted.reason, converted.mqmd.coded_char_set_id) == (0, 500)
    assert (given_back.body, given_back.body_ccsid, given_back.body_encoding) == (b"\xff\0data", 1208, REVERSED)


@pytest.mark.parametrize(
    ("fmt", "data", "reason"), [("MYFMT", b"data", 2110), ("MQSTR", b"\xff", 2119), ("MQHRF2", b"RFH ", 2110)]
)
def test_what_stands_before_a_fault_is_converted_and_describes_the_rest(fmt: str, data: bytes, reason: int) -> None:
    dead = Dlh(2085, "SPORT", "QM1", REVERSED, 0, "MQHRF2")
    header = Rfh2((Folder.of(PSC),), REVERSED, -2, fmt)
    message = Message(mqmd("MQDEAD"), (dead, header), data)
    converted = convert(encode(message), message.mqmd, 500, NATIVE)
    assert (converted.reason, converted.mqmd.coded_char_set_id, converted.mqmd.encoding) == (reason, 500, NATIVE)
    first = decode(converted.body[: dead.length], converted.mqmd).headers[0]
    assert (first.coded_char_set_id, first.encoding) == (500, NATIVE)
    second = decode(converted.body[dead.length : -len(data)], mqmd("MQHRF2", 500, NATIVE)).headers[0]
    assert (second.format, second.coded_char_set_id, second.encoding) == (fmt, 1208, REVERSED)
    assert converted.body.endswith(data)


PARAMETERS = (
    Cfin(1, 7),
    Cfin64(2, 2**40),
    Cfil(3, (1, 2, 3)),
    Cfst.of(4, "für", 1208),
    Cfst(5, "für".encode("latin-1"), 819, "latin-1", b"\0"),
    Cfst.of(6, "plain", 0),
    Cfsl.of(7, ("für", "x"), 1208),
    Cfsf(8, 3, b"A*\0\0", 0, "utf-8"),
    Cfbs.of(9, b"\1\2\3"),
    Cfgr(10, (Cfst.of(11, "in", 0), Cfgr(12, (Cfin(13, 1),)))),
)


@pytest.mark.rule("LSN-31")
@pytest.mark.parametrize(("ccsid", "encoding"), REPRESENTATIONS)
@pytest.mark.parametrize("fmt", ["MQADMIN", "MQPCF", "MQEVENT"])
def test_pcf(fmt: str, ccsid: int, encoding: int) -> None:
    body = Pcf(1, PARAMETERS).encode()
    converted = convert(body, mqmd(fmt), ccsid, encoding)
    assert converted.reason == 0
    pcf = decode_pcf(converted.body, ccsid)
    assert pcf.order == byte_order(encoding)
    texts = [each.text for each in pcf.parameters if isinstance(each, (Cfst, Cfsf))]
    assert texts == ["für", "für", "plain", "A*"]
    assert [each.coded_char_set_id for each in pcf.parameters if isinstance(each, (Cfst, Cfsf))][2:] == [0, 0]
    (listed,) = [each for each in pcf.parameters if isinstance(each, Cfsl)]
    assert listed.texts == ("für", "x")
    group = pcf.parameters[-1]
    assert isinstance(group, Cfgr)
    assert isinstance(group.members[0], Cfst)
    assert group.members[0].text == "in"
    assert [each for each in pcf.parameters if isinstance(each, (Cfin, Cfin64, Cfil, Cfbs))] == [
        each for each in PARAMETERS if isinstance(each, (Cfin, Cfin64, Cfil, Cfbs))
    ]
    assert all(each.length % 4 == 0 for each in pcf.parameters)


def test_strings_that_name_their_ccsid_stay_where_the_message_has_the_ccsid_asked_for() -> None:
    """IBM's usage notes: strings are converted only if the descriptor's CodedCharSetId is another."""
    body = Pcf(1, (Cfst(5, "für".encode("latin-1"), 819, "latin-1", b"\0"),)).encode()
    (parameter,) = decode_pcf(convert(body, mqmd("MQADMIN"), 1208, NATIVE).body).parameters
    assert isinstance(parameter, Cfst)
    assert (parameter.coded_char_set_id, parameter.data) == (819, "für".encode("latin-1"))


def test_strings_of_a_message_with_an_embedded_ccsid_need_their_own() -> None:
    embedded = mqmd("MQADMIN", -1)
    good = Pcf(1, (Cfst.of(4, "für", 1208),)).encode()
    assert convert(good, embedded, 819, REVERSED).reason == 0
    bad = Pcf(1, (Cfst.of(4, "x", 0),)).encode()
    assert convert(bad, embedded, 819, REVERSED) == Converted(embedded, bad, 2111)


@given(
    st.binary(max_size=200), st.sampled_from(["MQSTR", "MQHRF2", "MQHRF", "MQADMIN", "MQDEAD", "MQXMIT", "MQHMDE", ""])
)
def test_any_bytes_are_given_one_way_or_the_other(data: bytes, fmt: str) -> None:
    converted = convert(data, mqmd(fmt), 500, NATIVE)
    assert converted.reason in (0, 2110, 2111, 2119)
    if converted.reason and converted.mqmd == mqmd(fmt):
        assert converted.body == data
