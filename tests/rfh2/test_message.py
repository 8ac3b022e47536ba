"""Messages: body attributes from the last header, everything else from the first (guide 6.6), and real captures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rfh2 import DecodeError, Dlh, Folder, Message, Mqmd, Rfh2, decode, encode

IBM = Path(__file__).parents[2] / "fixtures" / "captures" / "ibm"
PSC = Folder.of("<psc><Command>Publish</Command></psc>")
OTHER = Folder.of("<psc><Command>RegSub</Command></psc>")
MD = Mqmd(encoding=273, coded_char_set_id=850, format="MQHRF2")


def test_a_message_without_headers() -> None:
    message = decode(b"hello", replace(MD, format="MQSTR"))
    assert (message.headers, message.body, message.body_offset, message.rfh2) == ((), b"hello", 0, None)
    assert (message.body_format, message.body_encoding, message.body_ccsid) == ("MQSTR", 273, 850)
    assert message.body_text == "hello"


@pytest.mark.rule("HDR-1")
def test_the_body_is_described_by_the_last_header_and_the_command_is_in_the_first() -> None:
    headers = (
        Dlh(2053, encoding=273, coded_char_set_id=819, format="MQHRF2"),
        Rfh2((PSC,), encoding=546, coded_char_set_id=1208, format="MQHRF2"),
        Rfh2((OTHER,), encoding=785, coded_char_set_id=500, format="MQSTR"),
    )
    raw = encode(Message(MD, headers, b"\xc8\x89"))
    message = decode(raw, replace(MD, coded_char_set_id=819, format="MQDEAD"))
    assert message.headers == headers
    assert message.rfh2 == headers[1]
    assert (message.body_format, message.body_encoding, message.body_ccsid) == ("MQSTR", 785, 500)
    assert (message.body_text, message.body_offset) == ("Hi", sum(header.length for header in headers))


@pytest.mark.parametrize("inherits", [-2, 0])
def test_a_ccsid_that_is_inherited_is_that_of_what_precedes(inherits: int) -> None:
    headers = (Rfh2(coded_char_set_id=1252, format="MQHRF2"), Rfh2(coded_char_set_id=inherits, format="MQSTR"))
    assert decode(encode(Message(MD, headers, b"\x80")), MD).body_text == "€"
    assert decode(encode(Message(MD, headers[1:], b"\x80")), MD).body_ccsid == 850


@pytest.mark.parametrize(
    ("ccsid", "body", "text"),
    [
        pytest.param(0, b"42.5", "42.5", id="field-notes-0-though-plain-ascii"),
        pytest.param(0, b"\xe9", None, id="0-beyond-ascii-is-not-guessed"),
        pytest.param(4711, b"42.5", None, id="unknown"),
        pytest.param(1208, b"\xff", None, id="not-of-its-ccsid"),
        pytest.param(819, b"IBM\0", "IBM", id="2.7-null-terminated"),
        pytest.param(1200, b"\0A", "A", id="utf-16"),
    ],
)
def test_the_text_of_a_body(ccsid: int, body: bytes, text: str | None) -> None:
    assert Message(Mqmd(encoding=273, coded_char_set_id=ccsid), (), body).body_text == text


@pytest.mark.parametrize("charset", ["latin-1", "cp500"])
@pytest.mark.parametrize(("order", "encoding"), [("big", 273), ("little", 546)])
def test_without_a_descriptor_the_first_header_tells(order: str, encoding: int, charset: str) -> None:
    raw = Rfh2((PSC,), order=order, charset=charset, format="MQSTR").encode() + b"x"  # type: ignore[arg-type]
    message = decode(raw)
    assert message.rfh2 is not None
    assert (message.mqmd.format, message.mqmd.encoding, message.body) == ("MQHRF2", encoding, b"x")
    assert encode(message) == raw
    assert decode(b"hello").headers == ()


def test_the_descriptor_may_be_bytes_or_decoded() -> None:
    raw = Rfh2((PSC,), format="MQSTR").encode()
    assert decode(raw, MD.encode()) == decode(raw, MD)
    with pytest.raises(DecodeError, match="MQMD"):
        decode(raw, b"MD  ")


@pytest.mark.parametrize(
    ("file", "lengths", "folders", "body_offset"),
    [
        ("single_rfh2.dat", [284], [["psc", "testFolder", "mcd"]], 284),
        ("multiple_rfh2.dat", [252, 284], [["psc", "testFolder"], ["psc", "testFolder", "mcd"]], 536),
    ],
)
def test_messages_from_programs_that_we_did_not_write(
    file: str, lengths: list[int], folders: list[list[str]], body_offset: int
) -> None:
    raw = (IBM / file).read_bytes()
    message = decode(raw)
    assert [header.length for header in message.headers] == lengths
    assert [
        [folder.name for folder in header.folders] for header in message.headers if isinstance(header, Rfh2)
    ] == folders
    assert message.rfh2 is not None
    psc = message.rfh2.folder("psc")
    assert psc is not None
    assert psc.values() == {
        "Command": "RegSub",
        "Topic": "$topictree/topiccat/topic",
        "QMgrName": "DebugQM",
        "QName": "PUBOUT",
        "RegOpt": "PersAsPub",
    }
    assert message.body_offset == body_offset
    assert message.body_text == "<testData><testVar>testValue</testVar></testData>"
    assert (message.body_format, message.body_encoding, message.body_ccsid) == ("MQSTR", 273, 1208)
    assert encode(message) == raw
