"""Coded character sets (wire formats, section 7): which codec, and that fixed fields never lose a byte."""

from __future__ import annotations

import codecs

import pytest

from rfh2 import ccsid
from rfh2.ccsid import byte_order, field_codec, is_ebcdic, name_value_codec, text_codec

EVERY_BYTE = bytes(range(256))
KNOWN = sorted(ccsid._CODECS)


@pytest.mark.parametrize(
    ("encoding", "order"),
    [
        pytest.param(273, "big", id="s1-273-unix"),
        pytest.param(546, "little", id="s1-546-x86"),
        pytest.param(785, "big", id="s1-785-zos"),
        pytest.param(1041, "big", id="s1-1041-tns"),
        pytest.param(529, "big", id="s1-529-mixed"),
        pytest.param(0x111 + 1, "little", id="s1-only-the-integer-nibble-counts"),
        pytest.param(0, None, id="s1-0-undefined"),
        pytest.param(0x110, None, id="s1-integer-part-undefined"),
        pytest.param(3, None, id="s1-integer-part-3"),
        pytest.param(-1, None, id="s1-as-published"),
    ],
)
def test_byte_order_is_the_integer_part_of_encoding(encoding: int, order: str | None) -> None:
    assert byte_order(encoding) == order


def test_every_known_ccsid_has_a_codec_that_python_has() -> None:
    for number in KNOWN:
        name = text_codec(number, 546)
        assert name is not None, number
        assert "A b/#1".encode(name).decode(name) == "A b/#1", number


@pytest.mark.parametrize(
    ("number", "text", "data"),
    [
        pytest.param(819, "é", b"\xe9", id="s7-819"),
        pytest.param(1208, "€", b"\xe2\x82\xac", id="s7-1208"),
        pytest.param(500, "A#", b"\xc1\x7b", id="s7-500"),
        pytest.param(1047, "[", b"\xad", id="s7-1047-from-the-ebcdic-package"),
        pytest.param(277, "#", b"\x4a", id="s7-277-number-sign-elsewhere"),
        pytest.param(1026, '"', b"\xfc", id="s7-1026-quote-elsewhere"),
        pytest.param(5348, "€", b"\x80", id="s7-5348-is-1252-with-euro"),
        pytest.param(943, "あ", b"\x82\xa0", id="s7-943"),
    ],
)
def test_text_in_a_code_page(number: int, text: str, data: bytes) -> None:
    name = text_codec(number, 546)
    assert name is not None
    assert (text.encode(name), data.decode(name)) == (data, text)


@pytest.mark.parametrize("number", [0, -2, 930, 939, 1399, 964, 4711])
def test_a_ccsid_without_an_exact_codec_has_none(number: int) -> None:
    assert text_codec(number, 546) is None


@pytest.mark.parametrize("number", [1200, 13488, 17584])
def test_utf16_takes_the_byte_order_of_the_encoding(number: int) -> None:
    assert [text_codec(number, 546), text_codec(number, 785)] == ["utf-16-le", "utf-16-be"]
    assert [name_value_codec(number, "little"), name_value_codec(number, "big")] == ["utf-16-le", "utf-16-be"]


@pytest.mark.parametrize("number", [0, -2, 37, 819, 1252, 1209])
def test_only_unicode_may_be_a_name_value_ccsid(number: int) -> None:
    assert name_value_codec(number, "little") is None


@pytest.mark.parametrize("ebcdic", [False, True], ids=["ascii", "ebcdic"])
def test_fixed_fields_keep_every_byte_whatever_the_ccsid(ebcdic: bool) -> None:
    for number in (*KNOWN, 1200, 13488, 17584, 0, -2, 930, 939, 4711):
        name = field_codec(number, ebcdic)
        text = EVERY_BYTE.decode(name)
        assert len(text) == 256, number
        assert text.encode(name) == EVERY_BYTE, number
        assert " ".encode(name) == (b"\x40" if ebcdic else b" "), number
        assert "RFH 2AZ9._/%".encode(name) == "RFH 2AZ9._/%".encode("cp500" if ebcdic else "ascii"), number


def test_the_struc_id_and_not_the_ccsid_says_whether_a_header_is_ebcdic() -> None:
    assert field_codec(37, False) == "latin-1"
    assert field_codec(819, True) == "cp500"
    assert field_codec(37, True) == "cp037"


def test_the_ebcdic_pages_are_the_ones_in_which_a_blank_is_x40() -> None:
    for number, name in ccsid._CODECS.items():
        assert is_ebcdic(number) is (codecs.encode(" ", name) == b"\x40"), number


@pytest.mark.rule("LSN-38")
@pytest.mark.parametrize(
    ("number", "byte", "character"),
    [(273, 0xBC, "\u00af"), (424, 0xB3, "\u2022"), (424, 0xBC, "\u203e"), (273, 0xC1, "A"), (424, 0xC1, "A")],
)
def test_code_pages_are_ibms_where_pythons_differ(number: int, byte: int, character: str) -> None:
    """Row LSN-38 of docs/conformance.md."""
    name = text_codec(number, 273)
    assert name is not None
    assert bytes((byte,)).decode(name) == character
    assert character.encode(name) == bytes((byte,))
