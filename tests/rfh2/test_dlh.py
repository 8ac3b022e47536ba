"""MQDLH (wire formats, section 5): 172 bytes, the reason, and the description of what was dead-lettered."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from rfh2.ccsid import ByteOrder
from rfh2.dlh import Dlh, decode_dlh
from rfh2.errors import DecodeError, EncodeError


def dlh(order: str = "<", charset: str = "latin-1") -> bytes:
    def text(value: str, size: int) -> bytes:
        return value.ljust(size).encode(charset)

    return (
        text("DLH", 4)
        + struct.pack(order + "2i", 1, 2053)
        + text("SUB.Q", 48)
        + text("QM1", 48)
        + struct.pack(order + "2i", 546, 1208)
        + text("MQHRF2", 8)
        + struct.pack(order + "i", 26)
        + text("QM1", 28)
        + text("20090128", 8)
        + text("11435418", 8)
    )


@pytest.mark.parametrize(("ccsid", "charset"), [(819, "latin-1"), (500, "cp500"), (1047, "cp1047")])
@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
def test_field_by_field(order: str, name: ByteOrder, ccsid: int, charset: str) -> None:
    raw = dlh(order, charset)
    header = decode_dlh(b"front" + raw + b"behind", 5, ccsid)
    assert header == Dlh(
        *(2053, "SUB.Q", "QM1", 546, 1208, "MQHRF2", 26, "QM1", "20090128", "11435418"), order=name, charset=charset
    )
    assert (header.length, header.encode(), header.kind, header.own_format) == (172, raw, "MQDLH", "MQDEAD")


BAD = [
    pytest.param(b"", 0, "bad-struc-id", id="empty"),
    pytest.param(b"DLX " + dlh()[4:], 0, "bad-struc-id", id="struc-id"),
    pytest.param(dlh()[:4] + b"\2\0\0\0" + dlh()[8:], 4, "unknown-version", id="version-2"),
    pytest.param(dlh()[:171], 171, "short-header", id="one-byte-short"),
]


@pytest.mark.parametrize(("raw", "offset", "code"), BAD)
def test_what_is_no_dead_letter_header_is_refused_at_its_fault(raw: bytes, offset: int, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_dlh(raw, 0, 0)
    assert (caught.value.offset, caught.value.header, caught.value.code, caught.value.reason) == (
        *(offset, "MQDLH", code),
        2142,
    )


@pytest.mark.parametrize("change", [{"dest_q_name": "Q" * 49}, {"reason": 1 << 31}, {"put_appl_name": "€"}])
def test_a_value_that_does_not_fit_is_an_encode_error(change: dict[str, object]) -> None:
    with pytest.raises(EncodeError):
        replace(Dlh(2053), **change).encode()  # type: ignore[arg-type]
