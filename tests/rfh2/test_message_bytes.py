"""Captured messages and puts as a program or a notebook sees them: one line, a small table, text."""

from __future__ import annotations

import pytest

from commands import Broker, Put, read_captures
from rfh2 import CapturedMessage, Message, Mqmd, decode
from rfh2.errors import DecodeError

CAPTURE = [
    record.message for record in read_captures("fixtures/results-service/capture.jsonl") if record.message is not None
]
UTF8 = Mqmd(format="MQSTR   ", coded_char_set_id=1208)


def message(body: bytes, mqmd: Mqmd | None = UTF8, queue: str = "Q") -> CapturedMessage:
    return CapturedMessage(
        seq=1, queue=queue, md_hex=None if mqmd is None else mqmd.encode().hex(), body_hex=body.hex()
    )


@pytest.mark.parametrize(
    ("captured", "line"),
    [
        (message(b"0 1"), "CapturedMessage(seq=1, queue=Q, 3 bytes)"),
        (message(b"", queue="Q\n<b>"), "CapturedMessage(seq=1, queue=Q\\n<b>, 0 bytes)"),
        (message(b"x" * 9000, queue="Q" * 9000), f"CapturedMessage(seq=1, queue={'Q' * 63}…, 9000 bytes)"),
        (
            message(b"RFH \0\0\0\2", Mqmd(format="MQHRF2  ")),
            "CapturedMessage(seq=1, queue=Q, problem=MQRFH2 at byte 8: ",
        ),
        (
            CAPTURE[3],
            "CapturedMessage(seq=4, time=2009-01-28T19:45:28Z, qmgr=QM1, queue=SYSTEM.BROKER.CONTROL.QUEUE, "
            "user=board, headers=MQRFH2, command=RegSub, topic=Sport/Soccer/State/LatestScore/#, 152 bytes)",
        ),
    ],
    ids=["data", "control-characters", "long", "damaged", "command"],
)
def test_a_message_is_one_line(captured: CapturedMessage, line: str) -> None:
    assert repr(captured).startswith(line)
    assert repr(captured) == str(captured)
    assert len(repr(captured).splitlines()) == 1
    assert len(repr(captured)) < 400


def test_a_put_is_one_line() -> None:
    broker = Broker("QM1")
    puts = [put for captured in CAPTURE for put in broker.handle(captured)]
    assert repr(puts[0]) == (
        "Put(seq=1, n=0, at_qmgr=QM1, kind=response, qmgr=QM1, queue=RESULTS.SERVICE, completion=ok, "
        "headers=MQRFH2, 80 bytes)"
    )
    assert all(put.body_hex not in repr(put) and "\n" not in repr(put) for put in puts)
    assert [put.reason for put in puts if "reason=3073" in repr(put)] == [3073]


@pytest.mark.parametrize(
    ("body", "mqmd", "text"),
    [
        ("grün".encode(), UTF8, "grün"),
        ("grün".encode("cp273"), Mqmd(coded_char_set_id=273), "grün"),
        ("grün".encode("utf-16-be"), Mqmd(coded_char_set_id=1200, encoding=273), "grün"),
        (b"gr\xfcn", UTF8, None),
        (b"abc", Mqmd(coded_char_set_id=99999), None),
        (b"a\x01b", Mqmd(coded_char_set_id=819), None),
        (b"a\x01b\0\0", Mqmd(format="MQSTR   ", coded_char_set_id=819), "a\x01b"),
        (b"RFH \0\0\0\2", Mqmd(format="MQHRF2  "), None),
    ],
    ids=["utf-8", "ebcdic", "utf-16", "does-not-fit", "unknown-ccsid", "control-characters", "mqstr", "damaged"],
)
def test_text_is_exact_or_none(body: bytes, mqmd: Mqmd, text: str | None) -> None:
    assert message(body, mqmd).text == text


def test_decoded_is_what_decode_gives_and_a_copy_has_its_own() -> None:
    captured = CAPTURE[3]
    assert captured.decoded == decode(captured.body, captured.md)
    assert captured.decoded is captured.decoded
    assert captured.model_copy(update={"body_hex": b"abc".hex(), "md_hex": None}).decoded == Message(Mqmd(), (), b"abc")
    with pytest.raises(DecodeError, match="MQRFH2 at byte 8"):
        _ = message(b"RFH \0\0\0\2", Mqmd(format="MQHRF2  ")).decoded


def test_reading_properties_changes_neither_equality_nor_json() -> None:
    one, other = CAPTURE[3], CapturedMessage.model_validate(dict(CAPTURE[3]))
    _ = one.text, one.decoded, repr(one)
    assert one == other
    assert one.model_dump_json() == other.model_dump_json()
    assert list(Put.model_fields)[:4] == ["seq", "n", "at_qmgr", "kind"]


def test_html_is_escaped_and_short() -> None:
    html = message(b"<script>" + b"x" * 100_000, queue="<b>")._repr_html_()
    assert "<tr><th>queue</th><td>&lt;b&gt;</td></tr>" in html
    assert "<script>" not in html
    assert len(html) < 1000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None,), "body must be bytes, the message data after the MQMD, not None"),
        (("text",), "not a str"),
        ((CAPTURE[0],), "of a CapturedMessage or a Put, take its property decoded"),
        ((b"", "MD  "), "mqmd must be the bytes of an MQMD, an rfh2.Mqmd or None, not a str"),
    ],
)
def test_decode_says_what_it_wants(arguments: tuple[bytes, None], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        decode(*arguments)
