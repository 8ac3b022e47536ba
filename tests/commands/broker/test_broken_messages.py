"""Broken messages (fixtures/broken): each has its problem code, its offset and its reason, wherever it is looked at."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from commands.broker.puts import PutKind
from commands.headers.registry import parse
from commands.mqsc.broker import Broker
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.constants import MQMT_REQUEST
from rfh2.dlh import Dlh
from rfh2.errors import DecodeError
from rfh2.message import decode
from rfh2.mqmd import Mqmd

FIXTURE = Path(__file__).parents[3] / "fixtures" / "broken" / "broken.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in FIXTURE.read_text().splitlines()]
MESSAGES = [line for line in LINES if line["expect"]["part"] != "record"]
IDS = [line["case"] for line in MESSAGES]


@pytest.mark.rule("HDR-6", "HDR-7")
@pytest.mark.parametrize("line", MESSAGES, ids=IDS)
def test_decoding_says_what_and_where(line: dict[str, Any]) -> None:
    expect = line["expect"]
    message = CapturedMessage.model_validate(line)
    with pytest.raises(DecodeError) as caught:
        parse(message.decode())
    error = caught.value
    assert (error.code, error.offset, error.reason) == (expect["code"], expect["offset"], expect["reason"])
    assert (error.header == "MQMD") is (expect["part"] == "mqmd")


@pytest.mark.parametrize("line", MESSAGES, ids=IDS)
def test_the_broker_keeps_it_as_a_dead_letter_byte_for_byte(line: dict[str, Any]) -> None:
    message = CapturedMessage.model_validate(line)
    (put,) = Broker("QM1").handle(message)
    assert (put.kind, put.reason) == (PutKind.DEADLETTER, line["expect"]["reason"])
    letter = decode(bytes.fromhex(put.body_hex)[:172], Mqmd(format="MQDEAD"))
    assert isinstance(letter.headers[0], Dlh)
    assert letter.headers[0].dest_q_name == message.queue
    assert bytes.fromhex(put.body_hex)[172:] == message.body


@pytest.mark.parametrize("line", [line for line in MESSAGES if line["expect"]["part"] == "body" and line["md_hex"]])
def test_a_request_is_kept_and_answered_with_the_reason(line: dict[str, Any]) -> None:
    asked = Mqmd.decode(bytes.fromhex(line["md_hex"]))
    md = Mqmd(format=asked.format, msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q").encode().hex()
    letter, put = Broker("QM1").handle(CapturedMessage.model_validate({**line, "md_hex": md}))
    assert (letter.kind, letter.reason) == (PutKind.DEADLETTER, line["expect"]["reason"])
    assert (put.kind, put.queue, put.reason) == (PutKind.RESPONSE, "REPLY.Q", line["expect"]["reason"])


def test_lines_that_are_no_message_are_problems_and_the_rest_is_read() -> None:
    records = list(read_captures(BytesIO(FIXTURE.read_bytes()), "jsonl"))
    assert len(records) == len(LINES)
    unread = [record.position for record in records if record.problem is not None]
    assert unread == [at for at, line in enumerate(LINES, 1) if line["expect"]["part"] == "record"]
    assert len(unread) == 3
