"""Headers that are stepped over (wire formats, section 5): their prologue is read, the rest kept."""

from __future__ import annotations

import struct

import pytest

from rfh2.ccsid import ByteOrder
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import STEPPED_OVER, HeaderKind, SteppedHeader, decode_stepped
from rfh2.message import DECODERS

KINDS = [pytest.param(kind, version, id=f"{kind.name}-v{version}") for kind in STEPPED_OVER for version in kind.sizes]


def raw_header(
    kind: HeaderKind, version: int, rest: bytes, *, order: str = "<", charset: str = "ascii", grow: int = 0
) -> bytes:
    return (
        kind.struc_id.encode(charset)
        + struct.pack(order + "4i", version, 32 + len(rest) + grow, 785, 37)
        + "MQIMSVS ".encode(charset)
        + struct.pack(order + "i", 3)
        + rest
    )


def least(kind: HeaderKind, version: int) -> bytes:
    return bytes(i % 256 for i in range(kind.sizes[version] - 32))


@pytest.mark.parametrize(
    ("name", "fmt", "sizes"),
    [
        ("MQCIH", "MQCICS", {1: 164, 2: 180}),
        ("MQIIH", "MQIMS", {1: 84}),
        ("MQRMH", "MQHREF", {1: 108}),
        ("MQWIH", "MQHWIH", {1: 120}),
        ("MQDH", "MQHDIST", {1: 48}),
    ],
)
def test_the_kinds_are_those_of_section_5(name: str, fmt: str, sizes: dict[int, int]) -> None:
    assert [(kind.format, kind.sizes) for kind in STEPPED_OVER if kind.name == name] == [(fmt, sizes)]
    assert fmt in DECODERS


@pytest.mark.parametrize("charset", ["latin-1", "cp500"])
@pytest.mark.parametrize(("order", "name"), [(">", "big"), ("<", "little")])
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_the_prologue_is_read_and_the_rest_kept(
    kind: HeaderKind, version: int, order: str, name: ByteOrder, charset: str
) -> None:
    rest = least(kind, version) + b"more"
    raw = raw_header(kind, version, rest, order=order, charset=charset)
    header = decode_stepped(kind, b"front" + raw + b"behind", 5, 500 if charset == "cp500" else 819)
    assert header == SteppedHeader(kind.name, rest, version, 785, 37, "MQIMSVS", 3, name, charset)
    assert (header.length, header.own_format, header.encode()) == (len(raw), kind.format, raw)


@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_what_is_no_such_header_is_refused_at_its_fault(kind: HeaderKind, version: int) -> None:
    good = raw_header(kind, version, least(kind, version))
    bad = [
        (b"", 0, "bad-struc-id"),
        (b"RFH " + good[4:], 0, "bad-struc-id"),
        (good[:4] + b"\x09\0\0\0" + good[8:], 4, "unknown-version"),
        (good[:6], 4, "unknown-version"),
        (good[:-1], len(good) - 1, "short-header"),
        (raw_header(kind, version, least(kind, version), grow=1), 8, "bad-struc-length"),
        (raw_header(kind, version, least(kind, version), grow=-1), 8, "bad-struc-length"),
        (raw_header(kind, version, least(kind, version), grow=-1000), 8, "bad-struc-length"),
    ]
    for raw, offset, code in bad:
        for front in (b"", b"front"):
            with pytest.raises(DecodeError) as caught:
                decode_stepped(kind, front + raw, len(front), 819)
            assert (caught.value.offset, caught.value.header, caught.value.code) == (
                len(front) + offset,
                kind.name,
                code,
            )
            assert caught.value.reason == 2142


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(SteppedHeader("MQIIH", bytes(51)), id="too-short"),
        pytest.param(SteppedHeader("MQCIH", bytes(132), 2), id="too-short-for-its-version"),
        pytest.param(SteppedHeader("MQIIH", bytes(52), 7), id="no-such-version"),
        pytest.param(SteppedHeader("MQIIH", bytes(52), format="NINECHARS"), id="format-too-long"),
        pytest.param(SteppedHeader("MQIIH", bytes(52), flags=1 << 31), id="flags-too-big"),
    ],
)
def test_a_value_that_does_not_fit_is_an_encode_error(header: SteppedHeader) -> None:
    with pytest.raises(EncodeError):
        header.encode()
