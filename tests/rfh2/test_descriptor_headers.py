"""MQMDE and MQXQH (wire formats, sections 0 and 5): the headers that carry a descriptor's fields."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from rfh2 import decode, encode
from rfh2.ccsid import ByteOrder
from rfh2.errors import DecodeError, EncodeError
from rfh2.folders import Folder
from rfh2.message import Message
from rfh2.mqmd import Mde, Mqmd, Xqh, decode_mde, decode_xqh, extended, joined, name_of
from rfh2.rfh2 import Rfh2

GROUP = bytes(range(24))


def mde(order: str = "<", charset: str = "ascii", length: int = 72, rest: bytes = b"") -> bytes:
    return (
        "MDE ".encode(charset)
        + struct.pack(order + "4i", 2, length, 273, 819)
        + "MQHRF2  ".encode(charset)
        + struct.pack(order + "i24s4i", 0, GROUP, 3, 4096, 8, -1)
        + rest
    )


def xqh(order: str = "<", charset: str = "ascii", mqmd: bytes | None = None) -> bytes:
    names = "REMOTE.Q".ljust(48) + "QM2".ljust(48)
    fixed = "XQH ".encode(charset) + struct.pack(order + "i", 1) + names.encode(charset)
    return fixed + (Mqmd(format="MQHRF2", coded_char_set_id=1208).encode() if mqmd is None else mqmd)


@pytest.mark.parametrize(("ccsid", "charset"), [(819, "latin-1"), (500, "cp500")])
@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
def test_mde_field_by_field(order: str, name: ByteOrder, ccsid: int, charset: str) -> None:
    raw = mde(order, charset)
    header = decode_mde(b"front" + raw + b"behind", 5, ccsid)
    assert header == Mde(GROUP, 3, 4096, 8, -1, 273, 819, "MQHRF2", 0, name, charset)
    assert (header.length, header.encode(), header.kind, header.own_format) == (72, raw, "MQMDE", "MQHMDE")


def test_an_mde_longer_than_its_fields_comes_back() -> None:
    raw = mde(length=76, rest=b"more")
    header = decode_mde(raw + b"behind", 0, 819)
    assert (header.rest, header.length, header.encode()) == (b"more", 76, raw)


@pytest.mark.parametrize(("ccsid", "charset"), [(819, "latin-1"), (500, "cp500")])
@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
def test_xqh_field_by_field(order: str, name: ByteOrder, ccsid: int, charset: str) -> None:
    raw = xqh(order, charset)
    header = decode_xqh(b"front" + raw + b"behind", 5, ccsid)
    assert header == Xqh(Mqmd(format="MQHRF2", coded_char_set_id=1208), "REMOTE.Q", "QM2", name, charset)
    assert (header.length, header.encode(), header.kind, header.own_format) == (428, raw, "MQXQH", "MQXMIT")
    assert (header.format, header.encoding, header.coded_char_set_id) == ("MQHRF2", 546, 1208)


def test_the_embedded_descriptor_describes_what_follows_and_the_outer_one_the_header_alone() -> None:
    inner = Mqmd(format="MQHMDE", encoding=546, coded_char_set_id=37, order="big", charset="cp500")
    headers = (
        Xqh(inner, "Q", "QM2"),
        Mde(GROUP, encoding=273, coded_char_set_id=1208, format="MQHRF2", order="little", charset="cp037"),
        Rfh2((Folder.of("<psc><Command>Publish</Command></psc>"),), 785, 500, "MQSTR", order="big"),
    )
    outer = Mqmd(format="MQXMIT", encoding=546, coded_char_set_id=819)
    raw = encode(Message(outer, headers, b"\xc8\x89"))
    message = decode(raw, outer)
    assert message.headers == headers
    assert (message.body_format, message.body_encoding, message.body_ccsid, message.body_text) == (
        "MQSTR",
        785,
        500,
        "Hi",
    )
    assert message.rfh2 == headers[2]
    assert encode(message) == raw


BAD = [
    pytest.param(decode_mde, mde()[:4] + b"\1\0\0\0" + mde()[8:], 4, "unknown-version", id="mde-version-1"),
    pytest.param(decode_mde, b"MD  " + mde()[4:], 0, "bad-struc-id", id="mde-struc-id"),
    pytest.param(decode_mde, mde()[:71], 71, "short-header", id="mde-one-byte-short"),
    pytest.param(decode_mde, mde(length=71), 8, "bad-struc-length", id="mde-length-71"),
    pytest.param(decode_mde, mde(length=73), 8, "bad-struc-length", id="mde-length-one-too-many"),
    pytest.param(decode_xqh, b"", 0, "bad-struc-id", id="xqh-empty"),
    pytest.param(decode_xqh, b"XQX " + xqh()[4:], 0, "bad-struc-id", id="xqh-struc-id"),
    pytest.param(decode_xqh, xqh()[:4] + b"\2\0\0\0" + xqh()[8:], 4, "unknown-version", id="xqh-version-2"),
    pytest.param(decode_xqh, xqh()[:427], 427, "short-header", id="xqh-one-byte-short"),
    pytest.param(decode_xqh, xqh(mqmd=bytes(324)), 104, "bad-struc-id", id="xqh-no-descriptor"),
    pytest.param(decode_xqh, xqh(mqmd=Mqmd(version=2).encode()), 108, "unknown-version", id="xqh-descriptor-version-2"),
]


@pytest.mark.parametrize(("decoder", "raw", "offset", "code"), BAD)
def test_what_is_no_such_header_is_refused_at_its_fault(decoder: Any, raw: bytes, offset: int, code: str) -> None:
    for front in (b"", b"front"):
        with pytest.raises(DecodeError) as caught:
            decoder(front + raw, len(front), 819)
        assert (caught.value.offset, caught.value.code, caught.value.reason) == (len(front) + offset, code, 2142)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(Mde(bytes(23)), id="mde-short-group-id"),
        pytest.param(Mde(msg_seq_number=1 << 31), id="mde-number-too-big"),
        pytest.param(Mde(format="NINECHARS"), id="mde-format-too-long"),
        pytest.param(Xqh(Mqmd(version=2)), id="xqh-descriptor-version-2"),
        pytest.param(Xqh(Mqmd(), "Q" * 49), id="xqh-name-too-long"),
        pytest.param(Xqh(replace(Mqmd(), msg_id=b"")), id="xqh-descriptor-that-does-not-encode"),
    ],
)
def test_a_value_that_does_not_fit_is_an_encode_error(header: Mde | Xqh) -> None:
    with pytest.raises(EncodeError):
        header.encode()


@pytest.mark.parametrize(
    ("fields", "length"),
    [({}, 0), ({"group_id": b"g" * 24, "msg_flags": 8}, 72), ({"msg_seq_number": 2, "order": "big"}, 72)],
)
def test_what_version_2_has_goes_behind_version_1_and_comes_back(fields: dict[str, Any], length: int) -> None:
    mqmd = Mqmd(version=2, format="MQSTR", encoding=273, coded_char_set_id=819, **fields)
    first, body = extended(mqmd, b"data")
    assert (first.version, len(body)) == (1, length + 4)
    back, data = joined(Mqmd.decode(first.encode()), body)
    assert (replace(back, version=2, format=name_of(back.format)), data) == (mqmd, b"data")
