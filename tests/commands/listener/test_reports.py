"""Reports of a queue manager: COA, COD, expiration, exception.

Rows of docs/conformance.md: LSN-45.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import CONTROL_QUEUE, LocalQueue, QueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.sending import COA, COD, EXCEPTION, EXPIRATION, Kind, report_of
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import MQGMO_SYNCPOINT, MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_SYNCPOINT
from rfh2.mqmd import Mqmd
from tests.commands.listener.mqi_client import Message, MqiClient
from tests.commands.listener.test_delay import body_of
from tests.commands.network.live_world import LiveWorld
from tests.commands.network.test_live_network import sent_to_qm2
from tests.commands.network.world import at

IN, OUT = MQOO_INPUT_SHARED, MQOO_OUTPUT
DATA, FULL = 2, 4
LONG = bytes(range(150))
ORIGINAL = Mqmd(
    version=2,
    expiry=70,
    encoding=273,
    coded_char_set_id=1208,
    format="MQSTR",
    priority=3,
    persistence=1,
    msg_id=b"m" * 24,
    correl_id=b"c" * 24,
    backout_count=2,
    reply_to_q="REPLY",
    reply_to_qmgr="QM9",
    user_identifier="alice",
    accounting_token=b"a" * 32,
    appl_identity_data="data",
    put_appl_type=28,
    put_appl_name="program",
    put_date="20260101",
    put_time="10000000",
    appl_origin_data="orig",
    group_id=b"g" * 24,
    msg_seq_number=5,
    msg_flags=8,
)
REPORT: dict[str, Any] = {
    "report": 0,
    "msg_type": 4,
    "expiry": -1,
    "msg_id": bytes(24),
    "correl_id": b"m" * 24,
    "backout_count": 0,
    "reply_to_q": "",
    "reply_to_qmgr": "QM1",
    "put_appl_type": 7,
    "put_appl_name": "QM1",
    "put_date": "",
    "put_time": "",
    "appl_origin_data": "",
    "original_length": 150,
}
# What asks, the kind, what the report has that others have not, and its data.
ASKED: list[tuple[int, Kind, dict[str, Any], bytes]] = [
    (0x100, COA, {"feedback": 259}, b""),
    (0x300, COA, {"feedback": 259}, LONG[:100]),
    (0x700, COA, {"feedback": 259}, LONG),
    (0x3800, COD, {"feedback": 260}, LONG),
    (0x3800 | 0x40 | 0x80, COD, {"feedback": 260, "msg_id": b"m" * 24, "correl_id": b"c" * 24}, LONG),
    (0x800 | 0x4000 | 0x0800_0000, COD, {"feedback": 260, "expiry": 70, "report": 0x0800_0000}, b""),
    (0x0060_0000 | 0x4000, EXPIRATION, {"feedback": 258}, LONG[:100]),
    (0x0700_0000 | 0x0800_0000, EXCEPTION, {"feedback": 2053}, LONG),
]


@pytest.mark.rule("LSN-45")
@pytest.mark.parametrize(("asks", "kind", "fields", "data"), ASKED, ids=[hex(row[0]) for row in ASKED])
def test_the_descriptor_and_the_data_of_a_report(asks: int, kind: Kind, fields: dict[str, Any], data: bytes) -> None:
    made = report_of(kind, replace(ORIGINAL, report=asks), LONG, "QM1", 2053)
    assert (made.qmgr, made.queue, made.body) == ("QM9", "REPLY", data)
    assert made.mqmd == replace(ORIGINAL, **REPORT | fields)


@pytest.mark.rule("LSN-45")
def test_headers_come_before_the_hundred_bytes() -> None:
    body = body_of(b"0", LONG)
    described = replace(ORIGINAL, report=0x300, format="MQHRF2")
    assert report_of(COA, described, body, "QM1").body == body[:-50]


def of(message: Message) -> tuple[int, bytes]:
    return message.mqmd.feedback or message.reason, message.body


@pytest.mark.rule("LSN-45")
def test_confirmations_of_programs(port: int) -> None:
    both = {"report": 0x700 | 0x3800, "reply_to_q": "REPLY", "msg_id": b"m" * 24}
    with MqiClient(port) as client:
        assert client.connect() == 0
        queue, reply = client.opened("Q", IN | OUT), client.opened("REPLY", IN | OUT)
        client.put(queue, b"one", **both)
        arrived = client.get(reply)
        assert (arrived.mqmd.correl_id, arrived.mqmd.user_identifier, arrived.mqmd.put_appl_type) == (
            b"m" * 24,
            "alice",
            7,
        )
        assert [of(arrived), of(client.get(reply))] == [(259, b"one"), (2033, b"")]
        assert client.get(queue).body == b"one"
        assert of(client.get(reply)) == (260, b"one")
        # In the same unit of work as what they are about.
        client.put(queue, b"two", MQPMO_SYNCPOINT, **both)
        assert of(client.get(reply)) == (2033, b"")
        client.backout()
        assert [of(client.get(reply)), of(client.get(queue))] == [(2033, b"")] * 2
        client.put(queue, b"three", MQPMO_SYNCPOINT, **both)
        client.commit()
        assert of(client.get(reply)) == (259, b"three")
        client.get(queue, MQGMO_SYNCPOINT)
        client.backout()
        assert of(client.get(reply)) == (2033, b"")
        client.get(queue, MQGMO_SYNCPOINT)
        client.commit()
        assert of(client.get(reply)) == (260, b"three")


@pytest.mark.rule("LSN-45")
def test_expired_messages_and_what_the_broker_gets(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 2, tzinfo=UTC)]
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: now[0]) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("REPLY"))
            for order, asks in (("little", 0x00E0_0000), ("big", 0x00E0_0000), ("big", 0x2000)):
                md = Mqmd(order=order, report=asks, expiry=10, reply_to_q="REPLY").encode()  # type: ignore[arg-type]
                unit.put("Q", md, order.encode(), user="alice")
                unit.put(CONTROL_QUEUE, md, b"command", user="alice")
            unit.put(CONTROL_QUEUE, Mqmd(report=0x800, reply_to_q="REPLY").encode(), b"command", user="alice")
        now[0] += timedelta(minutes=1)
        processor = Processor(store, lambda: now[0])
        processor.drain()
        assert [Mqmd.decode(each.md).feedback for each in store.browse("REPLY")] == [260]
        processor.start()
        reports = [(Mqmd.decode(each.md).feedback, each.body) for each in store.browse("REPLY")]
        assert sorted(reports[1:]) == [(258, b"big"), (258, b"command"), (258, b"command"), (258, b"little")]
        assert store.depth(CONTROL_QUEUE) == 0


@pytest.mark.rule("LSN-45")
def test_what_another_queue_manager_reports(tmp_path: Path) -> None:
    ways = ("DEFINE QLOCAL(QM2) USAGE(XMITQ)\nDEFINE QLOCAL(REPLY)", "DEFINE QLOCAL(QM1) USAGE(XMITQ)")
    asks: dict[str, Any] = {"report": 0x700 | 0x0700_0000, "reply_to_q": "REPLY", "reply_to_qmgr": "QM1"}
    with LiveWorld(tmp_path, at("QM1", setup=ways[0]), at("QM2", setup=ways[1])) as world:
        world.mqsc("QM2", "DEFINE QLOCAL(CLOSED) PUT(DISABLED)")
        sent_to_qm2(world, "Q", "alice", b"arrives", **asks)
        sent_to_qm2(world, "CLOSED", "alice", b"refused", **asks)
        sent_to_qm2(world, "CLOSED", "alice", b"discarded", **asks | {"report": 0x0900_0000})
        reports = [(Mqmd.decode(each.md).feedback, each.body) for each in world.on("QM1", "REPLY")]
        assert reports == [(259, b"arrives"), (2051, b"refused"), (2051, b"")]
        assert len(world.on("QM2", "SYSTEM.DEAD.LETTER.QUEUE")) == 1
