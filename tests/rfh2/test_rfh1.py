"""MQRFH version 1 (wire formats, section 2): the fixed part, the string and its code page, what is refused where."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rfh2 import decode, encode, rfh1 as wire_rfh1
from rfh2.ccsid import ByteOrder
from rfh2.errors import DecodeError, EncodeError
from rfh2.rfh1 import Rfh1, decode_rfh1

# The worked example of wire formats 2.7: big-endian, CCSID 819, doubled quotes, nulls to a multiple of four.
EXAMPLE = bytes.fromhex(
    "5246482000000001000000680000011100000333 4D51535452202020 00000000"
    "4D515053436F6D6D616E64205075626C697368204D5150535075624F70747320"
    "52657461696E507562204D515053546F70696320 2249424D20222251222220507269636522 000000"
)


def rfh1(string: bytes, order: str = "<", charset: str = "ascii", length: int | None = None) -> bytes:
    return (
        "RFH ".encode(charset)
        + struct.pack(order + "4i", 1, 32 + len(string) if length is None else length, 273, 819)
        + "MQSTR   ".encode(charset)
        + struct.pack(order + "i", 0)
        + string
    )


def test_the_worked_example() -> None:
    header = decode_rfh1(EXAMPLE + b"42.5", 0, 819)
    assert (header.encoding, header.coded_char_set_id, header.format, header.flags) == (273, 819, "MQSTR", 0)
    assert (header.order, header.charset, header.length, header.offset) == ("big", "latin-1", 104, 32)
    assert header.pairs() == [("MQPSCommand", "Publish"), ("MQPSPubOpts", "RetainPub"), ("MQPSTopic", 'IBM "Q" Price')]
    assert [position for *_, position in header.name_values()] == [0, 20, 42]
    assert header.encode() == EXAMPLE
    assert (header.kind, header.own_format) == ("MQRFH", "MQHRF")


@pytest.mark.parametrize(
    ("ccsid", "charset"), [(819, "latin-1"), (500, "cp500"), (37, "cp037"), (1047, "cp1047"), (1026, "cp1026")]
)
@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
def test_the_string_is_in_the_preceding_headers_ccsid(order: str, name: ByteOrder, ccsid: int, charset: str) -> None:
    string = ' MQPSCommand RegSub MQPSTopic "$SYS/# b"\0rest'.encode(charset)
    raw = rfh1(string, order, charset)
    header = decode_rfh1(b"front" + raw + b"behind", 5, ccsid)
    assert header == Rfh1(string, 273, 819, "MQSTR", 0, name, charset, charset)
    assert header.pairs() == [("MQPSCommand", "RegSub"), ("MQPSTopic", "$SYS/# b")]
    assert (header.encode(), header.length) == (raw, len(raw))


@pytest.mark.parametrize(
    ("ccsid", "string", "pairs"),
    [
        pytest.param(1208, "T Straße".encode(), [("T", "Straße")], id="1208"),
        pytest.param(943, "T あ b 1".encode("cp932"), [("T", "あ"), ("b", "1")], id="943"),
        pytest.param(1252, b"T \x80", [("T", "€")], id="1252"),
        pytest.param(0, b"T \xe9", [("T", "é")], id="field-notes-0-every-byte-a-character"),
        pytest.param(1200, b"T \xe9", [("T", "é")], id="utf-16-is-not-for-headers"),
        pytest.param(500, b"T \xe9", [("T", "é")], id="ebcdic-ccsid-but-ascii-struc-id"),
    ],
)
def test_code_pages_of_more_than_a_byte(ccsid: int, string: bytes, pairs: list[tuple[str, str]]) -> None:
    header = decode_rfh1(rfh1(string), 0, ccsid)
    assert header.pairs() == pairs
    assert header.with_pairs(pairs).data.rstrip(b"\0") == string
    assert header.encode() == rfh1(string)


@pytest.mark.parametrize("charset", ["ascii", "cp500"])
@pytest.mark.parametrize(
    "string",
    [
        pytest.param(" MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic t\0\0\0", id="2.7-AMQSPR1A"),
        pytest.param("MQPSCommand RegSub MQPSRegOpts  33 MQPSPubOpts  0 T tt  ", id="2.7-AMQSRESA-no-null"),
        pytest.param('MQPSCommand RegSub MQPSRegOpts Anon MQPSTopic "IBM Stock Price"', id="slides"),
        pytest.param("OPT_APP_GRP x OPT_MSG_TYPE y", id="2.2-other-vocabularies"),
        pytest.param("", id="empty"),
        pytest.param("odd", id="outside-the-grammar"),
    ],
)
def test_strings_of_the_field_come_back_byte_for_byte(string: str, charset: str) -> None:
    raw = rfh1(string.encode(charset), charset=charset)
    assert decode_rfh1(raw + b"body", 0, 500 if charset == "cp500" else 819).encode() == raw


@pytest.mark.parametrize("front", [b"", b"front"])
@pytest.mark.parametrize(
    ("ccsid", "string", "position", "code"),
    [
        pytest.param(819, b"A b C", 4, "bad-name-value-string", id="odd"),
        pytest.param(819, b'A b"', 3, "bad-name-value-string", id="quote"),
        pytest.param(1208, "A ß ß".encode(), 5, "bad-name-value-string", id="position-in-bytes"),
        pytest.param(1208, b"A b\xff", 3, "bad-character", id="not-of-its-ccsid"),
    ],
)
def test_errors_of_the_string_point_into_the_message(
    front: bytes, ccsid: int, string: bytes, position: int, code: str
) -> None:
    header = decode_rfh1(front + rfh1(string), len(front), ccsid)
    with pytest.raises(DecodeError) as caught:
        header.pairs()
    assert caught.value.offset - header.offset == position
    assert (caught.value.offset, caught.value.header) == (len(front) + 32 + position, "MQRFH")
    assert (caught.value.reason, caught.value.code) == (2335, code)


def test_positions_of_names_are_in_bytes() -> None:
    header = decode_rfh1(rfh1("ß ß Topic x".encode()), 0, 1208)
    assert [position for *_, position in header.name_values()] == [0, 6]


BAD = [
    pytest.param(b"", 0, "bad-struc-id", id="empty"),
    pytest.param(b"RFX " + rfh1(b"")[4:], 0, "bad-struc-id", id="struc-id"),
    pytest.param(b"RFH \2\0\0\0" + rfh1(b"")[8:], 4, "unknown-version", id="version-2-is-an-MQRFH2"),
    pytest.param(rfh1(b"")[:31], 31, "short-header", id="one-byte-short"),
    pytest.param(rfh1(b"", length=31), 8, "bad-struc-length", id="length-31"),
    pytest.param(rfh1(b"", length=33), 8, "bad-struc-length", id="length-one-too-many"),
    pytest.param(rfh1(b"", length=-1), 8, "bad-struc-length", id="length-negative"),
]


@pytest.mark.parametrize(("raw", "offset", "code"), BAD)
def test_what_is_no_mqrfh_is_refused_at_its_fault(raw: bytes, offset: int, code: str) -> None:
    for front in (b"", b"front"):
        with pytest.raises(DecodeError) as caught:
            decode_rfh1(front + raw, len(front), 819)
        assert (caught.value.offset, caught.value.header, caught.value.code) == (len(front) + offset, "MQRFH", code)


@pytest.mark.parametrize("change", [{"format": "NINECHARS"}, {"format": "€"}, {"flags": 1 << 31}])
def test_a_value_that_does_not_fit_is_an_encode_error(change: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        replace(Rfh1(), **change).encode()


@pytest.mark.parametrize("charset", ["latin-1", "cp500"])
def test_a_written_string_is_null_terminated_and_padded_to_four_bytes(charset: str) -> None:
    for length in range(8):
        header = Rfh1(charset=charset, string_charset=charset).with_pairs([("MQPSTopic", "x" * length + " y")])
        assert header.length % 4 == 0
        assert header.data.rstrip(b"\0").decode(charset) == f'MQPSTopic "{"x" * length} y"'
        assert 1 <= header.data.count(b"\0") <= 4
    with pytest.raises(EncodeError):
        Rfh1(string_charset=charset).with_pairs([("MQPSTopic", "€")])


@given(
    string=st.binary() | st.text('ab "\0', max_size=12).map(lambda text: text.encode()),
    order=st.sampled_from([">", "<"]),
    charset=st.sampled_from(["ascii", "cp500"]),
    ccsid=st.sampled_from([0, -2, 37, 367, 500, 819, 943, 1200, 1208]),
)
def test_any_bytes_in_the_string_come_back_and_give_pairs_or_a_decode_error(
    string: bytes, order: str, charset: str, ccsid: int
) -> None:
    raw = rfh1(string, order, charset)
    message = decode(raw)
    assert encode(message) == raw
    header = decode_rfh1(raw, 0, ccsid)
    assert header.encode() == raw
    found: list[object] = []
    for read in (header.pairs, lambda: [pair[:2] for pair in header.name_values()]):
        try:
            found.append(read())
        except DecodeError as error:
            found.append(error.offset)
    assert found[0] == found[1]
    assert isinstance(found[0], list) or 32 <= int(str(found[0])) <= len(raw)


def test_names_are_whole_tokens_of_the_header_file() -> None:
    assert len(wire_rfh1.NAMES) == 23
    assert {"MQPSReason", "MQPSReasonText", "MQPSSubUserData"} <= wire_rfh1.NAMES
    assert len(set(wire_rfh1.COMMANDS)) == 7
