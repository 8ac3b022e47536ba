"""PCF (wire formats 5.1): every type of parameter, groups, what is kept, what is refused where; and the MQEPH."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from rfh2 import pcf_names
from rfh2.ccsid import ByteOrder
from rfh2.errors import DecodeError, EncodeError
from rfh2.pcf import (
    MAX_DEPTH,
    MAX_EMPTY_STRINGS,
    Cfbf,
    Cfbs,
    Cfgr,
    Cfif,
    Cfil,
    Cfil64,
    Cfin,
    Cfin64,
    Cfsf,
    Cfsl,
    Cfst,
    Eph,
    Parameter,
    Pcf,
    UnknownParameter,
    decode_eph,
    decode_pcf,
)
from rfh2.pcf_names import MQCACF_TOPIC, MQCMD_PUBLISH, MQIACF_PUBLICATION_OPTIONS


def longs(*values: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}{len(values)}i", *values)


def cfh(count: int, order: str = "<", length: int = 36) -> bytes:
    return longs(1, length, 1, MQCMD_PUBLISH, 1, 1, 0, 0, count, order=order)


# One row a type: the parameter, and its bytes written from the table. {} is the byte order.
PARAMETERS: list[Any] = [
    pytest.param(Cfin(1082, 2), lambda o: longs(3, 16, 1082, 2, order=o), id="3-MQCFIN"),
    pytest.param(
        Cfst(3031, b"a/b", 819, "latin-1", b"\0"),
        lambda o: longs(4, 24, 3031, 819, 3, order=o) + b"a/b\0",
        id="4-MQCFST",
    ),
    pytest.param(Cfil(1, (7, -1)), lambda o: longs(5, 24, 1, 2, 7, -1, order=o), id="5-MQCFIL"),
    pytest.param(
        Cfsl(2, (b"one ", b"two "), 4, 819, "latin-1"),
        lambda o: longs(6, 32, 2, 819, 2, 4, order=o) + b"one two ",
        id="6-MQCFSL",
    ),
    pytest.param(Cfbs(7011, b"\1\2\3", b"\0"), lambda o: longs(9, 20, 7011, 3, order=o) + b"\1\2\3\0", id="9-MQCFBS"),
    pytest.param(Cfif(1, 2, 3), lambda o: longs(13, 20, 1, 2, 3, order=o), id="13-MQCFIF"),
    pytest.param(
        Cfsf(1, 18, b"abcd", 819, "latin-1"), lambda o: longs(14, 28, 1, 18, 819, 4, order=o) + b"abcd", id="14-MQCFSF"
    ),
    pytest.param(Cfbf(1, 2, b"abcd"), lambda o: longs(15, 24, 1, 2, 4, order=o) + b"abcd", id="15-MQCFBF"),
    pytest.param(
        Cfgr(8, (Cfin(1, 2), Cfgr(9, (Cfin(3, 4),)))),
        lambda o: longs(20, 16, 8, 2, 3, 16, 1, 2, 20, 16, 9, 1, 3, 16, 3, 4, order=o),
        id="20-MQCFGR",
    ),
    pytest.param(Cfin64(1, -5), lambda o: longs(23, 24, 1, 0, order=o) + struct.pack(o + "q", -5), id="23-MQCFIN64"),
    pytest.param(
        Cfil64(1, (1 << 40,)), lambda o: longs(25, 24, 1, 1, order=o) + struct.pack(o + "q", 1 << 40), id="25-MQCFIL64"
    ),
    pytest.param(UnknownParameter(1, 99, b"data"), lambda o: longs(99, 16, 1, order=o) + b"data", id="99-unknown"),
]


@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
@pytest.mark.parametrize(("parameter", "raw_of"), PARAMETERS)
def test_each_type_of_parameter(parameter: Parameter, raw_of: Any, order: str, name: ByteOrder) -> None:
    raw = cfh(2, order) + raw_of(order) + longs(3, 16, 1, 2, order=order)
    pcf = decode_pcf(raw)
    assert pcf == Pcf(MQCMD_PUBLISH, (parameter, Cfin(1, 2)), order=name)
    assert pcf.encode() == raw
    assert (pcf.length, parameter.length) == (len(raw), len(raw_of(order)))


def test_parameters_by_number() -> None:
    group = Cfgr(8, (Cfin(1, 9),))
    pcf = Pcf(MQCMD_PUBLISH, (group, Cfin(1, 2), Cfin(2, 3), Cfin(1, 4)))
    assert (pcf.first(1), pcf.first(3)) == (Cfin(1, 2), None)
    assert list(pcf.all(1)) == [Cfin(1, 2), Cfin(1, 4)]


def test_a_publication_as_a_program_makes_it() -> None:
    pcf = Pcf(MQCMD_PUBLISH, (Cfst.of(MQCACF_TOPIC, "Straße"), Cfin(MQIACF_PUBLICATION_OPTIONS, 2)), order="big")
    topic = decode_pcf(pcf.encode()).first(MQCACF_TOPIC)
    assert isinstance(topic, Cfst)
    assert (topic.text, topic.coded_char_set_id, topic.length % 4) == ("Straße", 1208, 0)
    assert Cfsl.of(3031, ("a", "bcd"), 37).texts == ("a", "bcd")
    assert Cfbs.of(7011, b"abc").length == 20
    with pytest.raises(EncodeError):
        Cfst.of(MQCACF_TOPIC, "€", 819)
    with pytest.raises(EncodeError):
        Cfst.of(MQCACF_TOPIC, "a", 4711)


@pytest.mark.parametrize(
    ("own", "inherited", "data", "text"),
    [
        pytest.param(819, 500, b"\xe9", "é", id="its-own"),
        pytest.param(0, 500, b"\xc1\x82", "Ab", id="5.1-0-is-that-in-force"),
        pytest.param(-2, 1208, b"\xc3\xa9", "é", id="inherited"),
        pytest.param(0, 0, b"Ab", "Ab", id="0-of-0-is-ascii"),
        pytest.param(1200, 0, b"A\0b\0", "Ab", id="utf-16-in-the-byte-order-of-the-message"),
        pytest.param(819, 0, b"Ab\0\0", "Ab", id="nulls-at-the-end"),
    ],
)
def test_the_text_of_a_string(own: int, inherited: int, data: bytes, text: str) -> None:
    raw = cfh(1) + longs(4, 20 + len(data), 1, own, len(data)) + data
    string = decode_pcf(raw, inherited).first(1)
    assert isinstance(string, Cfst)
    assert string.text == text
    raw = cfh(1) + longs(14, 24 + len(data), 1, 18, own, len(data)) + data
    string = decode_pcf(raw, inherited).first(1)
    assert isinstance(string, Cfsf)
    assert string.text == text
    raw = cfh(1) + longs(6, 24 + 2 * len(data), 1, own, 2, len(data)) + data * 2
    strings = decode_pcf(raw, inherited).first(1)
    assert isinstance(strings, Cfsl)
    assert strings.texts == (text, text)


@pytest.mark.parametrize(("ccsid", "at"), [(4711, 0), (1208, 1)], ids=["no-codec", "not-of-its-ccsid"])
def test_text_that_cannot_be_read_is_refused_where_it_stands(ccsid: int, at: int) -> None:
    raw = cfh(1) + longs(4, 24, 1, ccsid, 4) + b"a\xff\xff\xff"
    string = decode_pcf(raw, 0, 100).first(1)
    assert isinstance(string, Cfst)
    with pytest.raises(DecodeError) as caught:
        _ = string.text
    assert (caught.value.offset, caught.value.code) == (100 + 36 + 20 + at, "bad-character")
    assert decode_pcf(raw).encode() == raw


ODD = [
    pytest.param(cfh(0) + b"trailing", id="rest-behind-the-last-parameter"),
    pytest.param(cfh(1) + longs(3, 20, 1, 2) + b"more", id="MQCFIN-longer-than-its-fields"),
    pytest.param(cfh(1) + longs(4, 21, 1, 819, 1) + b"a", id="length-not-a-multiple-of-4"),
    pytest.param(cfh(1) + longs(4, 24, 1, 819, 1) + b"a\xff\xfe\xfd", id="padding-of-rubbish"),
    pytest.param(cfh(1) + longs(6, 24, 1, 819, 3, 0), id="three-strings-of-no-length"),
    pytest.param(cfh(1) + longs(6, 24, 1, 819, 0, 48), id="no-strings-of-some-length"),
    pytest.param(cfh(1) + longs(23, 24, 1, 77, 0, 5), id="MQCFIN64-reserved-not-0"),
    pytest.param(cfh(1) + longs(20, 20, 1, 0) + b"more", id="MQCFGR-longer-than-its-fields"),
]


@pytest.mark.parametrize("raw", ODD)
def test_odd_messages_come_back_byte_for_byte(raw: bytes) -> None:
    assert decode_pcf(raw).encode() == raw


NEST = longs(20, 16, 1, 1)
BAD = [
    pytest.param(b"", 0, "short-header", 3016, id="empty"),
    pytest.param(cfh(0)[:35], 35, "short-header", 3016, id="one-byte-short"),
    pytest.param(cfh(0, length=40), 4, "bad-struc-length", 3002, id="header-length"),
    pytest.param(cfh(-1), 32, "bad-parameter-count", 3006, id="count-negative"),
    pytest.param(cfh(1), 36, "bad-parameter-count", 3016, id="no-parameters"),
    pytest.param(cfh(2) + longs(3, 16, 1, 2), 52, "bad-parameter-count", 3016, id="one-parameter-too-few"),
    pytest.param(cfh(1) + longs(3, 16, 1), 40, "bad-struc-length", 3016, id="parameter-cut-short"),
    pytest.param(cfh(1) + longs(3, 11, 1, 2), 40, "bad-struc-length", 3016, id="parameter-length-11"),
    pytest.param(cfh(1) + longs(3, 12, 1, 2), 40, "bad-struc-length", 3016, id="parameter-shorter-than-its-fields"),
    pytest.param(cfh(1) + longs(3, -16, 1, 2), 40, "bad-struc-length", 3016, id="parameter-length-negative"),
    pytest.param(cfh(1) + longs(4, 24, 1, 819, 5) + b"abcd", 56, "bad-string-length", 3016, id="string-too-long"),
    pytest.param(cfh(1) + longs(4, 24, 1, 819, -1) + b"abcd", 56, "bad-string-length", 3016, id="string-negative"),
    pytest.param(cfh(1) + longs(5, 20, 1, 2, 3), 52, "bad-count", 3016, id="list-too-long"),
    pytest.param(cfh(1) + longs(25, 20, 1, 1, 3), 52, "bad-count", 3016, id="list-of-64-bits-too-long"),
    pytest.param(cfh(1) + longs(5, 20, 1, -1, 3), 52, "bad-count", 3016, id="list-negative"),
    pytest.param(cfh(1) + longs(6, 28, 1, 819, 2, 4) + b"abcd", 60, "bad-count", 3016, id="strings-too-many"),
    pytest.param(cfh(1) + longs(6, 28, 1, 819, 1, 5) + b"abcd", 60, "bad-count", 3016, id="strings-too-long"),
    pytest.param(cfh(1) + longs(6, 28, 1, 819, 0, -1) + b"abcd", 60, "bad-string-length", 3016, id="strings-negative"),
    pytest.param(
        cfh(1) + longs(6, 24, 1, 819, MAX_EMPTY_STRINGS + 1, 0),
        60,
        "bad-count",
        3016,
        id="endless-strings-of-no-length",
    ),
    pytest.param(cfh(1) + longs(9, 20, 1, 5) + b"abcd", 52, "bad-string-length", 3016, id="byte-string-too-long"),
    pytest.param(cfh(1) + longs(15, 24, 1, 2, 5) + b"abcd", 56, "bad-string-length", 3016, id="filter-too-long"),
    pytest.param(cfh(1) + longs(20, 12, 1, 1), 40, "bad-struc-length", 3016, id="group-shorter-than-its-fields"),
    pytest.param(cfh(1) + longs(20, 16, 1, -1), 48, "bad-parameter-count", 3016, id="group-count-negative"),
    pytest.param(cfh(1) + longs(20, 16, 1, 1), 52, "bad-parameter-count", 3016, id="group-without-its-member"),
    pytest.param(cfh(1) + NEST * (MAX_DEPTH + 1), 36 + 16 * MAX_DEPTH, "too-deep", 3016, id="groups-too-deep"),
]


@pytest.mark.parametrize(("raw", "offset", "code", "reason"), BAD)
def test_malformed_pcf_is_refused_at_its_fault(raw: bytes, offset: int, code: str, reason: int) -> None:
    for base in (0, 100):
        with pytest.raises(DecodeError) as caught:
            decode_pcf(raw, 0, base)
        assert (caught.value.offset - base, caught.value.code, caught.value.reason) == (offset, code, reason)


@pytest.mark.parametrize(
    "parameter",
    [Cfin(1, 1 << 31), Cfin64(1, 1 << 63), Cfil(1, (1 << 31,)), Cfil64(1, (1 << 63,)), Cfsl(1, (b"a",), 2)],
    ids=["MQCFIN", "MQCFIN64", "MQCFIL", "MQCFIL64", "MQCFSL"],
)
def test_a_value_that_does_not_fit_is_an_encode_error(parameter: Parameter) -> None:
    with pytest.raises(EncodeError):
        Pcf(MQCMD_PUBLISH, (parameter,)).encode()


LONGS = st.integers(-(2**31), 2**31 - 1)
LONGLONGS = st.integers(-(2**63), 2**63 - 1)
BYTES = st.binary(max_size=12)
FLAT: st.SearchStrategy[Parameter] = st.one_of(
    st.builds(Cfin, LONGS, LONGS, BYTES),
    st.builds(Cfin64, LONGS, LONGLONGS, LONGS, BYTES),
    st.builds(Cfil, LONGS, st.lists(LONGS, max_size=3).map(tuple), st.just(b"")),
    st.builds(Cfil64, LONGS, st.lists(LONGLONGS, max_size=3).map(tuple), st.just(b"")),
    st.builds(Cfst, LONGS, BYTES, st.just(0), st.just("ascii"), BYTES),
    st.builds(Cfsl, LONGS, st.lists(st.binary(min_size=3, max_size=3)).map(tuple), st.just(3), tail=BYTES),
    st.builds(Cfbs, LONGS, BYTES, BYTES),
    st.builds(Cfif, LONGS, LONGS, LONGS, BYTES),
    st.builds(Cfsf, LONGS, LONGS, BYTES, st.just(0), st.just("ascii"), BYTES),
    st.builds(Cfbf, LONGS, LONGS, BYTES, BYTES),
    st.builds(UnknownParameter, LONGS, st.integers(28, 99), BYTES),
)
NESTED: st.SearchStrategy[Parameter] = st.recursive(
    FLAT, lambda inner: st.builds(Cfgr, LONGS, st.lists(inner, max_size=3).map(tuple), BYTES), max_leaves=8
)
MESSAGES = st.builds(
    Pcf,
    LONGS,
    st.lists(NESTED, max_size=5).map(tuple),
    LONGS,
    order=st.sampled_from(["big", "little"]),
    rest=BYTES,
)


@given(MESSAGES)
def test_encode_and_decode_are_inverses(pcf: Pcf) -> None:
    raw = pcf.encode()
    assert len(raw) == pcf.length
    assert decode_pcf(raw) == pcf


@given(pcf=MESSAGES, data=st.data())
@example(pcf=Pcf(1), data=None)
def test_mutated_bytes_give_a_message_or_a_decode_error_inside_them(pcf: Pcf, data: st.DataObject | None) -> None:
    raw = bytearray(pcf.encode())
    if data is not None:
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from([0, 1, 4, 20, 127, 255]))
        del raw[data.draw(st.integers(0, len(raw))) :]
    offset, again = 0, bytes(raw)
    try:
        again = decode_pcf(bytes(raw)).encode()
    except DecodeError as error:
        offset = error.offset
    assert 0 <= offset <= len(raw)
    assert again == raw


def test_an_embedded_pcf_header_holds_pcf_and_describes_what_follows() -> None:
    pcf = Pcf(MQCMD_PUBLISH, (Cfst(3031, "a/ß".encode("cp500"), 0, "cp500"),), order="big")
    raw = "EPH ".encode("cp500") + longs(1, 32 + pcf.length, 546, 1208, order=">") + "MQSTR   ".encode("cp500")
    raw += longs(0, order=">") + pcf.encode()
    header = decode_eph(b"front" + raw + b"behind", 5, 500)
    assert (header.kind, header.own_format, header.length) == ("MQEPH", "MQHEPCF", len(raw))
    assert (header.encoding, header.coded_char_set_id, header.format) == (546, 1208, "MQSTR")
    assert header.pcf() == pcf
    assert header.encode() == raw


def test_an_embedded_pcf_header_keeps_what_is_no_pcf_until_somebody_asks() -> None:
    raw = b"EPH " + longs(1, 72, 546, 1208) + b"MQSTR   " + longs(0) + b"x" * 40
    header = decode_eph(b"front" + raw, 5, 819)
    assert header.encode() == raw
    with pytest.raises(DecodeError) as caught:
        header.pcf()
    assert caught.value.offset == 5 + 32 + 4
    with pytest.raises(DecodeError):
        decode_eph(raw[:67], 0, 819)
    with pytest.raises(EncodeError):
        Eph(b"x" * 35).encode()


@pytest.mark.parametrize(
    ("names", "number", "name"),
    [
        (pcf_names.PARAMETER_NAMES, 3031, "MQCACF_TOPIC"),
        (pcf_names.PARAMETER_NAMES, 7011, "MQBACF_CORREL_ID"),
        (pcf_names.PARAMETER_NAMES, 2094, "MQCA_TOPIC_STRING"),
        (pcf_names.COMMAND_NAMES, 63, "MQCMD_PUBLISH"),
        (pcf_names.TYPE_NAMES, 20, "MQCFT_GROUP"),
    ],
)
def test_names(names: dict[int, str], number: int, name: str) -> None:
    assert names[number] == name
