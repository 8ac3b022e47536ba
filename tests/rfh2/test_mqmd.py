"""MQMD (wire formats, section 1): both versions, both byte orders, ASCII and EBCDIC, and what is refused where."""

from __future__ import annotations

import struct
from dataclasses import fields, replace
from typing import Any

import pytest

from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import MQMD2
from rfh2.mqmd import Mqmd, decode_mqmd, name_of


def v1(order: str = "<", charset: str = "latin-1") -> bytes:
    """An MQMD of version 1, written field by field from the table."""

    def text(value: str, size: int) -> bytes:
        return value.ljust(size).encode(charset)

    return (
        text("MD", 4)
        + struct.pack(order + "7i", 1, 0x08000041, 1, -1, 0, 785, 1208)
        + text("MQHRF2", 8)
        + struct.pack(order + "2i", 5, 1)
        + bytes(range(24))
        + bytes(range(24, 48))
        + struct.pack(order + "i", 2)
        + text("REPLY.Q", 48)
        + text("QM1", 48)
        + text("app1", 12)
        + bytes(range(32))
        + text("identity", 32)
        + struct.pack(order + "i", 6)
        + text("amqspub", 28)
        + text("20090128", 8)
        + text("11435418", 8)
        + text("or", 4)
    )


EXTENSION = (bytes(range(24)), 3, 4096, 8, -1)


@pytest.mark.parametrize("charset", ["latin-1", "cp500"])
@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
def test_version_1_field_by_field(order: str, name: str, charset: str) -> None:
    md = Mqmd.decode(v1(order, charset))
    assert (md.version, md.report, md.msg_type, md.expiry, md.feedback) == (1, 0x08000041, 1, -1, 0)
    assert (md.encoding, md.coded_char_set_id, md.format, md.priority, md.persistence) == (785, 1208, "MQHRF2", 5, 1)
    assert (md.msg_id, md.correl_id, md.backout_count) == (bytes(range(24)), bytes(range(24, 48)), 2)
    assert (md.reply_to_q, md.reply_to_qmgr, md.user_identifier) == ("REPLY.Q", "QM1", "app1")
    assert (md.accounting_token, md.appl_identity_data) == (bytes(range(32)), "identity")
    assert (md.put_appl_type, md.put_appl_name, md.put_date, md.put_time) == (6, "amqspub", "20090128", "11435418")
    assert (md.appl_origin_data, md.order, md.charset) == ("or", name, charset)
    assert (md.group_id, md.msg_seq_number, md.offset, md.msg_flags, md.original_length) == (bytes(24), 1, 0, 0, -1)
    assert md.encode() == v1(order, charset)


@pytest.mark.parametrize("order", [">", "<"])
def test_version_2_adds_forty_bytes(order: str) -> None:
    raw = bytearray(v1(order) + struct.pack(order + "24s4i", *EXTENSION))
    raw[4:8] = struct.pack(order + "i", 2)
    md, length = decode_mqmd(bytes(raw) + b"behind")
    assert (length, md.version) == (364, 2)
    assert (md.group_id, md.msg_seq_number, md.offset, md.msg_flags, md.original_length) == EXTENSION
    assert md.encode() == raw


def test_the_descriptor_may_stand_anywhere_in_the_data() -> None:
    assert decode_mqmd(b"front" + v1() + b"behind", 5) == (Mqmd.decode(v1()), 324)


def test_defaults_are_those_of_the_c_initialiser() -> None:
    raw = Mqmd().encode()
    assert len(raw) == 324
    assert raw[:4] == b"MD  "
    assert struct.unpack_from("<7i", raw, 4) == (1, 0, 8, -1, 0, 546, 0)
    assert struct.unpack_from("<2i", raw, 40) == (-1, 2)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        pytest.param("QUEUE", "QUEUE", id="plain"),
        pytest.param("QUEUE   ", "QUEUE", id="blanks"),
        pytest.param("QUEUE\0\0\0", "QUEUE", id="nulls"),
        pytest.param("QUEUE\0left over", "QUEUE", id="field-notes-anything-after-the-first-null"),
        pytest.param("QUEUE  \0", "QUEUE", id="blanks-before-the-null"),
        pytest.param("\0QUEUE", "", id="null-first"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_name_ends_at_its_first_null_or_its_trailing_blanks(field: str, name: str) -> None:
    assert name_of(field) == name


BAD = [
    pytest.param(b"", 0, "bad-struc-id", id="empty"),
    pytest.param(b"MD", 0, "bad-struc-id", id="half-a-struc-id"),
    pytest.param(b"MDE " + v1()[4:], 0, "bad-struc-id", id="another-struc-id"),
    pytest.param(v1()[:6], 4, "unknown-version", id="half-a-version"),
    pytest.param(v1()[:4] + b"\0\0\0\3" + v1()[8:], 4, "unknown-version", id="version-3"),
    pytest.param(v1()[:4] + bytes(4) + v1()[8:], 4, "unknown-version", id="version-0"),
    pytest.param(v1()[:323], 323, "short-header", id="one-byte-short"),
    pytest.param(v1()[:4] + b"\2\0\0\0" + v1()[8:], 324, "short-header", id="version-2-in-324-bytes"),
]


@pytest.mark.parametrize(("raw", "offset", "code"), BAD)
def test_what_is_no_descriptor_is_refused_at_its_fault(raw: bytes, offset: int, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Mqmd.decode(raw)
    assert (caught.value.offset, caught.value.header, caught.value.code) == (offset, "MQMD", code)
    with pytest.raises(DecodeError) as caught:
        decode_mqmd(b"front" + raw, 5)
    assert caught.value.offset == offset + 5


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"reply_to_q": "Q" * 49}, id="name-too-long"),
        pytest.param({"reply_to_q": "€"}, id="character-that-the-code-page-lacks"),
        pytest.param({"msg_id": bytes(23)}, id="short-msg-id"),
        pytest.param({"correl_id": bytes(25)}, id="long-correl-id"),
        pytest.param({"accounting_token": b""}, id="empty-accounting-token"),
        pytest.param({"version": 2, "group_id": bytes(1)}, id="short-group-id"),
        pytest.param({"expiry": 1 << 31}, id="number-too-big"),
        pytest.param({"version": 3}, id="version-3"),
    ],
)
def test_a_value_that_does_not_fit_is_an_encode_error_and_never_cut(change: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        replace(Mqmd(), **change).encode()


def test_every_field_of_ibms_is_a_field_here() -> None:
    def plain(name: str) -> str:
        return name.replace("_", "").lower()

    ours = {plain(field.name) for field in fields(Mqmd)} - {"order", "charset"}
    assert ours == {plain(name) for name in MQMD2.names} - {"strucid"}
