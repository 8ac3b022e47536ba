"""What a program asks for and would not get is refused, with IBM's reason; what IBM's clients ask for is not.

Rows of docs/conformance.md: LSN-17.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.qmgr.mqi import refusals
from commands.qmgr.mqi.refusals import MqiError, Refusal, check_get, check_put
from commands.qmgr.store import QueueManagerStore
from rfh2.channel.layouts import MQOD
from rfh2.channel.segments import SegmentType
from rfh2.mqi_constants import (
    MQGMO_NO_SYNCPOINT,
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQPMO_NO_CONTEXT,
    MQPMO_NO_SYNCPOINT,
    MQPMO_PASS_ALL_CONTEXT,
    MQPMO_SYNCPOINT,
)
from rfh2.mqmd import Mqmd, read_mqmd
from rfh2.pcf_admin_names import MQOT_TOPIC
from streams.topic_objects import TopicObject
from tests.commands.listener.mqi_client import MqiClient

PAGE = Path(__file__).parents[3] / "docs" / "listener.md"
IN, OUT = MQOO_INPUT_SHARED, MQOO_OUTPUT
REPLY_TO: dict[str, Any] = {"reply_to_q": "REPLY"}


@pytest.fixture
def client(port: int) -> Iterator[MqiClient]:
    with MqiClient(port) as client:
        assert client.connect() == 0
        yield client


def reasons(rows: tuple[Refusal, ...], call: Callable[[int], int]) -> dict[str, int]:
    """What each bit of each row gives."""
    bits = [(row.option, 1 << n) for row in rows for n in range(32) if row.bits >> n & 1]
    return {f"{option} {bit:#x}": call(bit) for option, bit in bits}


def expected(rows: tuple[Refusal, ...]) -> dict[str, int]:
    return {f"{row.option} {1 << n:#x}": row.reason for row in rows for n in range(32) if row.bits >> n & 1}


@pytest.mark.rule("LSN-17")
def test_each_option_is_refused_and_nothing_is_put_or_got(client: MqiClient, home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(TopicObject("T", topic_string="sport"))
    queue, topic = client.opened("Q", IN | OUT), client.opened("T", OUT, MQOT_TOPIC)
    client.put(queue, b"here")
    rows = refusals
    for handle in (queue, topic):
        assert reasons(rows.OF_PUT, lambda bit, at=handle: client.put(at, b"x", bit)[0]) == expected(rows.OF_PUT)
    report = reasons(rows.OF_ANY_REPORT, lambda bit: client.put(queue, b"x", report=bit, **REPLY_TO)[0])
    assert report == expected(rows.OF_ANY_REPORT)
    report = reasons(rows.OF_REPORT, lambda bit: client.put(topic, b"x", report=bit, **REPLY_TO)[0])
    assert report == expected(rows.OF_REPORT)
    flags = reasons(rows.OF_FLAGS, lambda bit: client.put(queue, b"x", msg_flags=bit, offset=0)[0])
    assert flags == expected(rows.OF_FLAGS)
    assert reasons(rows.OF_GET, lambda bit: client.get(queue, bit).reason) == expected(rows.OF_GET)
    assert reasons(rows.OF_MATCH, lambda bit: client.get(queue, match=bit).reason) == expected(rows.OF_MATCH)
    two = client.structure(*(MQOD[2], "OD  ", 2), ObjectType=1, RecsPresent=2, ObjectName="", ObjectQMgrName="")
    assert client.call(SegmentType.MQOPEN, bytes(two) + client.long(OUT)).reason == 2298
    assert [client.get(queue).body, client.get(queue).reason] == [b"here", 2033]


GROUPED = {"msg_flags": 0x8, "group_id": b"gg".ljust(24, b"\0"), "msg_seq_number": 3}
# Options that IBM's classes for JMS 9.4.1 give by themselves, and what a message has that they put.
OF_JMS: list[tuple[str, Callable[[], None]]] = [
    ("receive", lambda: check_get(0x0200_3001, 0x3)),
    ("browser", lambda: check_get(0x0200_2024, 0x3)),
    ("connection consumer", lambda: check_get(0x0320_2055, 0x3)),
    ("server session", lambda: check_get(0x0200_3000, 0x20)),
    ("send", lambda: put(options=0x2_2044)),
    ("JMSXGroupID", lambda: put(**GROUPED)),
    ("JMSReplyTo", lambda: put(msg_type=1, reply_to_q="R.Q")),
    ("a report of its own queue manager", lambda: put(report=0x0100_0000, **REPLY_TO)),
    ("an application's type", lambda: put(msg_type=70_000)),
]


def put(options: int = 0, on_topic: bool = False, **fields: Any) -> None:
    check_put(read_mqmd(Mqmd(version=2, **fields).encode()), options, on_topic=on_topic)


@pytest.mark.rule("LSN-17")
@pytest.mark.parametrize("call", [row[1] for row in OF_JMS], ids=[row[0] for row in OF_JMS])
def test_what_ibms_clients_ask_for_is_not_refused(call: Callable[[], None]) -> None:
    call()


WRONG: list[tuple[str, Callable[[], None], int]] = [
    ("both kinds of syncpoint, put", lambda: put(options=MQPMO_SYNCPOINT | MQPMO_NO_SYNCPOINT), 2046),
    ("both kinds of syncpoint, get", lambda: check_get(MQGMO_SYNCPOINT | MQGMO_NO_SYNCPOINT, 0), 2046),
    ("an option of MQPUT that nobody knows", lambda: put(options=0x8), 2046),
    ("an option of MQGET that nobody knows", lambda: check_get(0x2000_0000, 0), 2046),
    ("two contexts", lambda: put(options=MQPMO_NO_CONTEXT | MQPMO_PASS_ALL_CONTEXT), 2046),
    ("a type of message", lambda: put(msg_type=600), 2029),
    ("a report that nobody knows", lambda: put(report=0x0008_0000), 2061),
    ("a request without ReplyToQ", lambda: put(msg_type=1), 2027),
    ("a report without ReplyToQ", lambda: put(report=0x100), 2027),
    ("a message of a group on a topic", lambda: put(on_topic=True, **GROUPED), 2562),
]


@pytest.mark.rule("LSN-17")
@pytest.mark.parametrize(("call", "reason"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_no_queue_manager_takes(call: Callable[[], None], reason: int) -> None:
    with pytest.raises(MqiError) as refused:
        call()
    assert refused.value.reason == reason


@pytest.mark.rule("LSN-17")
def test_the_page_names_each_refusal() -> None:
    section = PAGE.read_text().split("## What is refused\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (\d{4}) \| (.+?) \|$", section, re.MULTILINE)
    assert rows == [(row.option, str(row.reason), row.why) for row in refusals.ALL]


# All options of IBM MQ 9.4: the sum of the bits of each family (com.ibm.mq.constants.CMQC).
OF_IBM = {
    "MQOPEN": 0x007F_FFFF,
    "MQCLOSE": 0x2F,
    "MQPUT": 0x1CAF_FFE6,
    "MQMD Report": 0x0FE0_7FC7,
    "MQMD MsgFlags": 0x1F,
    "MQGET": 0x1FF7_FFFF,
    "MQGET MatchOptions": 0x3F,
    "MQSUB": 0x1C74_3BFF,
}


@pytest.mark.rule("LSN-47")
def test_each_option_of_ibm_mq_is_done_or_refused() -> None:
    assert {family: hex(refusals.known(family)) for family in OF_IBM} == {a: hex(b) for a, b in OF_IBM.items()}
