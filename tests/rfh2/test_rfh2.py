"""MQRFH2 (guide 6.6.1; wire formats 3.1): the fixed part, the pairs of length and data, and what is refused where."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rfh2.ccsid import ByteOrder
from rfh2.errors import DecodeError, EncodeError
from rfh2.folders import Folder
from rfh2.rfh2 import Rfh2, decode_rfh2

# The worked example of wire formats 3.3: little-endian, one psc folder padded with one blank.
EXAMPLE = bytes.fromhex(
    "52464820020000008000000022020000B80400004D5153545220202000000000B8040000580000003C7073633E3C436F"
    "6D6D616E643E5075626C6973683C2F436F6D6D616E643E3C5075624F70743E52657461696E5075623C2F5075624F7074"
    "3E3C546F7069633E53746F636B2F49424D3C2F546F7069633E3C2F7073633E20"
)


def rfh2(
    *folders: bytes, order: str = "<", charset: str = "ascii", nv_ccsid: int = 1208, length: int | None = None
) -> bytes:
    tail = b"".join(struct.pack(order + "i", len(folder)) + folder for folder in folders)
    return (
        "RFH ".encode(charset)
        + struct.pack(order + "4i", 2, 36 + len(tail) if length is None else length, 273, 819)
        + "MQSTR   ".encode(charset)
        + struct.pack(order + "2i", 0, nv_ccsid)
        + tail
    )


def test_the_worked_example() -> None:
    header = decode_rfh2(EXAMPLE + b"42.5", 0, 1208)
    assert (header.encoding, header.coded_char_set_id, header.format, header.flags) == (546, 1208, "MQSTR", 0)
    assert (header.name_value_ccsid, header.order, header.charset, header.length) == (1208, "little", "latin-1", 128)
    assert [(folder.name, folder.offset, len(folder.data)) for folder in header.folders] == [("psc", 40, 88)]
    assert header.folders[0].pairs() == [("Command", "Publish"), ("PubOpt", "RetainPub"), ("Topic", "Stock/IBM")]
    assert header.encode() == EXAMPLE


@pytest.mark.rule("HDR-5")
@pytest.mark.parametrize(("ccsid", "charset"), [(819, "latin-1"), (500, "cp500"), (37, "cp037"), (1047, "cp1047")])
@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
def test_the_fixed_part_is_in_the_preceding_headers_encoding_and_ccsid(
    order: str, name: ByteOrder, ccsid: int, charset: str
) -> None:
    raw = rfh2(b"<psc/>  ", order=order, charset=charset)
    header = decode_rfh2(b"front" + raw + b"behind", 5, ccsid)
    assert header == Rfh2((Folder(b"<psc/>  "),), 273, 819, "MQSTR", 0, 1208, name, charset)
    assert (header.encode(), header.length, header.folders[0].offset) == (raw, len(raw), 5 + 40)


@pytest.mark.rule("HDR-6")
@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("nv_ccsid", [1200, 13488, 17584])
def test_ucs2_folders_are_in_the_byte_order_of_the_header(order: str, nv_ccsid: int) -> None:
    text = "<psc><Topic>Straße €</Topic></psc>"
    data = text.encode("utf-16-be" if order == ">" else "utf-16-le")
    header = decode_rfh2(rfh2(data, order=order, nv_ccsid=nv_ccsid), 0, 819)
    assert header.folders[0].pairs() == [("Topic", "Straße €")]


def test_folders_are_found_by_name_and_the_first_wins() -> None:
    header = Rfh2(tuple(Folder.of(text) for text in ("<mcd/>", "<psc><a/></psc>", "<psc><b/></psc>")))
    assert header.folder("psc") == Folder.of("<psc><a/></psc>")
    assert header.folder("pscr") is None
    assert header.with_folders(()).folders == ()


@pytest.mark.rule("HDR-8")
def test_defaults_are_those_of_the_guide() -> None:
    raw = Rfh2().encode()
    assert struct.unpack("<4s4i8s2i", raw) == (b"RFH ", 2, 36, 546, -2, b" " * 8, 0, 1208)


ODD = [
    pytest.param(rfh2(), id="3.2-no-folders"),
    pytest.param(rfh2(b""), id="3.1-length-0"),
    pytest.param(rfh2(b"", b"", b""), id="twelve-nulls-are-three-empty-folders"),
    pytest.param(rfh2(b"<psc/>\0\0", b"<usr/>\0\0\0\0\0\0\0\0\0\0"), id="3.2-nulls"),
    pytest.param(rfh2(b"<psc/>"), id="3.1-length-not-a-multiple-of-4"),
    pytest.param(rfh2(b"<psc/>  ", b"<psc/>  "), id="the-same-folder-twice"),
    pytest.param(rfh2(b"<a/><b/>"), id="two-roots"),
    pytest.param(rfh2(b"<Format/>   "), id="a-folder-named-like-a-field"),
    pytest.param(rfh2(b"not xml at all", b"\xff\xfe\0"), id="folders-that-are-no-text"),
    pytest.param(rfh2(b"<psc/>  ").replace(b"MQSTR   ", b"MQSTR\0xy"), id="format-with-nulls-and-rubbish"),
]


@pytest.mark.parametrize("raw", ODD)
def test_odd_headers_come_back_byte_for_byte(raw: bytes) -> None:
    assert decode_rfh2(raw + b"body", 0, 819).encode() == raw


BAD = [
    pytest.param(b"", 0, "bad-struc-id", id="empty"),
    pytest.param(b"RFX " + rfh2()[4:], 0, "bad-struc-id", id="struc-id"),
    pytest.param(b"RFH \2\0\0", 7, "short-header", id="half-a-version"),
    pytest.param(b"RFH \3\0\0\0" + rfh2()[8:], 4, "unknown-version", id="version-3"),
    pytest.param(b"RFH \1\0\0\0" + rfh2()[8:], 4, "unknown-version", id="version-1-is-an-MQRFH"),
    pytest.param(b"RFH \2\0\0\0", 8, "short-header", id="nothing-behind-the-version"),
    pytest.param(rfh2()[:35], 35, "short-header", id="one-byte-short"),
    pytest.param(rfh2(length=35), 8, "bad-struc-length", id="8-length-35"),
    pytest.param(rfh2(length=20), 8, "bad-struc-length", id="8-length-20"),
    pytest.param(rfh2(length=-1), 8, "bad-struc-length", id="length-negative"),
    pytest.param(rfh2(length=37), 8, "bad-struc-length", id="length-one-too-many"),
    pytest.param(rfh2(length=5000), 8, "bad-struc-length", id="8-length-5000"),
    pytest.param(rfh2(nv_ccsid=819), 32, "bad-name-value-ccsid", id="3.1-name-value-ccsid"),
    pytest.param(rfh2()[:8] + b"\x27" + rfh2()[9:] + b"abc", 36, "stray-bytes", id="3.1-three-stray-bytes"),
    pytest.param(rfh2(b"<psc/>  ", length=49) + b"a", 48, "stray-bytes", id="one-stray-byte"),
    pytest.param(rfh2(b"<psc/>  ")[:36] + b"\x0f\x27\0\0<psc/>  ", 36, "bad-name-value-length", id="8-length-9999"),
    pytest.param(
        rfh2(b"<psc/>  ")[:36] + b"\xff\xff\xff\xff<psc/>  ", 36, "bad-name-value-length", id="8-length-minus-1"
    ),
    pytest.param(rfh2(b"<psc/>  ", length=44), 36, "bad-name-value-length", id="folder-runs-past-the-header"),
]


@pytest.mark.parametrize(("raw", "offset", "code"), BAD)
def test_what_is_no_mqrfh2_is_refused_at_its_fault(raw: bytes, offset: int, code: str) -> None:
    for front in (b"", b"front"):
        with pytest.raises(DecodeError) as caught:
            decode_rfh2(front + raw, len(front), 819)
        assert (caught.value.offset, caught.value.header, caught.value.code) == (len(front) + offset, "MQRFH2", code)
        assert caught.value.reason == (2111 if code == "bad-name-value-ccsid" else 2334)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"name_value_ccsid": 819}, id="name-value-ccsid"),
        pytest.param({"format": "NINECHARS"}, id="format-too-long"),
        pytest.param({"format": "€"}, id="format-not-in-the-code-page"),
        pytest.param({"flags": 1 << 31}, id="flags-too-big"),
    ],
)
def test_a_value_that_does_not_fit_is_an_encode_error(change: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        replace(Rfh2(), **change).encode()


@given(
    folders=st.lists(st.binary()),
    order=st.sampled_from([">", "<"]),
    charset=st.sampled_from(["ascii", "cp500"]),
    nv_ccsid=st.sampled_from([1208, 1200, 13488, 17584]),
    ccsid=st.sampled_from([0, -2, 37, 500, 819, 943, 1200, 1208]),
)
def test_any_bytes_in_the_folders_come_back(
    folders: list[bytes], order: str, charset: str, nv_ccsid: int, ccsid: int
) -> None:
    raw = rfh2(*folders, order=order, charset=charset, nv_ccsid=nv_ccsid)
    header = decode_rfh2(raw, 0, ccsid)
    assert header.encode() == raw
    assert [folder.data for folder in header.folders] == folders
