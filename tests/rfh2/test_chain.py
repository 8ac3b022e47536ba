"""Header chains (wire formats, section 0): each header describes the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rfh2.ccsid import ByteOrder
from rfh2.dlh import Dlh
from rfh2.errors import DecodeError
from rfh2.folders import Folder
from rfh2.layouts import SteppedHeader
from rfh2.message import MAX_HEADERS, Header, Message, decode_chain, sniffed
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2

PSC = Folder.of("<psc><Command>Publish</Command></psc>")


def kinds(data: bytes, fmt: str, ccsid: int = 819) -> tuple[list[str], int]:
    headers, at = decode_chain(data, fmt, ccsid)
    return [header.kind for header in headers], at


def test_no_known_format_no_headers() -> None:
    assert kinds(b"RFH \2\0\0\0", "MQSTR") == ([], 0)
    assert kinds(b"", "") == ([], 0)


@pytest.mark.parametrize(
    "fmt",
    ["MQHRF2", "MQHRF2  ", "MQHRF2\0\0", "MQHRF2\0x"],
    ids=["bare", "blanks", "s1-nulls", "field-notes-rubbish-behind-a-null"],
)
def test_a_format_is_its_name_without_padding(fmt: str) -> None:
    raw = Rfh2((PSC,), format="MQSTR").encode()
    assert kinds(raw + b"body", fmt) == (["MQRFH2"], len(raw))


@pytest.mark.rule("HDR-3")
def test_several_mqrfh2s_and_a_dead_letter_header() -> None:
    parts: list[Header] = [Dlh(2053, format="MQHRF2"), Rfh2((PSC,), format="MQHRF2"), Rfh2(format="MQSTR")]
    raw = b"".join(part.encode() for part in parts)
    assert kinds(raw + b"body", "MQDEAD") == (["MQDLH", "MQRFH2", "MQRFH2"], len(raw))
    assert decode_chain(raw + b"body", "MQDEAD", 819)[0] == tuple(parts)


def test_each_header_may_have_a_byte_order_and_a_code_page_of_its_own() -> None:
    parts: list[Header] = [
        Dlh(2053, encoding=785, coded_char_set_id=1047, format="MQHRF2", order="little"),
        Rfh2((PSC,), format="MQHRF2", encoding=546, coded_char_set_id=-2, order="big", charset="cp1047"),
        Rfh2((PSC,), format="MQHRF2", encoding=273, coded_char_set_id=0, order="little", charset="cp1047"),
        Rfh2((), format="MQSTR", coded_char_set_id=819, order="big", charset="cp1047"),
    ]
    headers, at = decode_chain(b"".join(part.encode() for part in parts) + b"body", "MQDEAD", 819)
    assert headers == tuple(parts)
    assert at == sum(part.length for part in parts)


def test_a_format_with_nothing_behind_it_is_an_empty_body() -> None:
    raw = Rfh2((PSC,), format="MQHRF2").encode()
    assert kinds(raw, "MQHRF2") == (["MQRFH2"], len(raw))


def test_a_descriptor_that_announces_a_header_needs_one() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_chain(b"", "MQHRF2", 819)
    assert caught.value.offset == 0


def test_an_error_in_a_later_header_points_into_the_message() -> None:
    first = Rfh2((PSC,), format="MQHRF2").encode()
    with pytest.raises(DecodeError) as caught:
        decode_chain(first + b"body", "MQHRF2", 819)
    assert caught.value.offset == len(first)


def test_more_headers_than_any_message_has_are_left_to_the_body() -> None:
    one = Rfh2(format="MQHRF2").encode()
    headers, at = decode_chain(one * (MAX_HEADERS + 5), "MQHRF2", 819)
    assert (len(headers), at) == (MAX_HEADERS, MAX_HEADERS * len(one))


@pytest.mark.parametrize("ebcdic", [False, True], ids=["ascii", "ebcdic"])
@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("header", [Rfh2(), Dlh(2053)], ids=["MQRFH2", "MQDLH"])
def test_a_lost_descriptor_is_told_from_the_first_header(header: Header, order: ByteOrder, ebcdic: bool) -> None:
    charset = "cp500" if ebcdic else "latin-1"
    data = replace(header, order=order, charset=charset).encode()  # type: ignore[type-var]
    assert sniffed(data) == (header.own_format, 273 if order == "big" else 546, 500 if ebcdic else 0)


@pytest.mark.parametrize("data", [b"", b"RFH", b"hello", b"<psc>", bytes(40)])
def test_data_without_a_header_tells_nothing(data: bytes) -> None:
    assert sniffed(data) is None


@pytest.mark.rule("LSN-35")
@pytest.mark.parametrize(
    ("kind", "encoding", "ccsid", "expected"),
    [
        ("MQIIH", 273, 500, (546, 1208)),
        ("MQCIH", 273, 500, (273, 500)),
        ("MQCIH", 0, 0, (546, 1208)),
        ("MQWIH", 273, 500, (273, 500)),
    ],
)
def test_what_follows_a_header_with_reserved_fields_is_written_as_the_header(
    kind: str, encoding: int, ccsid: int, expected: tuple[int, int]
) -> None:
    """Encoding and CodedCharSetId of an MQIIH are reserved (IBM's documentation of conversion); 0 in an MQCIH is."""
    header = SteppedHeader(kind, bytes(132), encoding=encoding, coded_char_set_id=ccsid, format="MQSTR")
    message = Message(Mqmd(format=header.own_format, encoding=546, coded_char_set_id=1208), (header,), b"x")
    assert (message.body_encoding, message.body_ccsid) == expected
    behind = Message(message.mqmd, (header, Dlh(1, encoding=0, format="MQSTR")))
    assert behind.body_ccsid == expected[1]
