"""Delivery delay: a message waits on SYSTEM.DDELAY.LOCAL.QUEUE, and is put on its destination once, when it is due.

Rows of docs/conformance.md: LSN-44.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import DEAD_LETTER_QUEUE, DEFAULT_STREAM, DELAY_QUEUE, LocalQueue, QueueManager
from commands.broker.puts import Outgoing, PutKind
from commands.qmgr.mqi.handles import OpenQueues
from commands.qmgr.mqi.putting import DelayedMessages, delay_of, delayed
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.counters import Counters
from commands.qmgr.store.uncommitted import Uncommitted
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.errors import StoreError
from rfh2.mqi_constants import MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_SYNCPOINT
from rfh2.mqmd import Mqmd, read_mqmd
from rfh2.pcf_admin_names import MQOT_TOPIC
from streams.topic_objects import TopicObject
from tests.commands.listener.mqi_client import MqiClient
from tests.waiting import PATIENCE_MS

NOW = datetime(2026, 1, 2, tzinfo=UTC)
IN, OUT = MQOO_INPUT_SHARED, MQOO_OUTPUT
JMS: dict[str, Any] = {"format": "MQHRF2", "coded_char_set_id": 1208, "encoding": 273}


def body_of(delay: bytes, text: bytes = b"text") -> bytes:
    """A message as IBM's JMS client writes it for a producer with a delivery delay."""
    folder = b"<mqext><Dly>" + delay + b"</Dly><Dtm>1795527104127</Dtm></mqext>"
    folder += b" " * (-len(folder) % 4)
    numbers = (2, 40 + len(folder), 273, 1208)
    head = b"RFH " + b"".join(number.to_bytes(4, "big") for number in numbers) + b"MQSTR   "
    return head + b"".join(number.to_bytes(4, "big") for number in (0, 1208, len(folder))) + folder + text


@pytest.mark.rule("LSN-44")
@pytest.mark.parametrize(("text", "milliseconds"), [(b"0", 0), (b"2000", 2000), (b"-5", 0), (b"x", 0), (b"9" * 30, 0)])
def test_what_asks_for_a_delay(text: bytes, milliseconds: int) -> None:
    assert delay_of(read_mqmd(Mqmd(**JMS).encode()), body_of(text)) == milliseconds
    assert delay_of(read_mqmd(Mqmd(format="MQSTR").encode()), body_of(text)) == 0


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=clock) as store:
        yield store


def put(store: QueueManagerStore, name: str, after_s: float, queue: str = "Q", **fields: Any) -> Mqmd:
    described = Mqmd(version=2, **fields)
    outgoing = Outgoing(PutKind.PUBLICATION, "QM1", queue, described.encode(), name.encode())
    due_us = int((NOW.timestamp() + after_s) * 1_000_000)
    with store.unit_of_work() as unit:
        kept = delayed(outgoing, due_us, False)
        unit.put(kept.queue, kept.md, kept.body, user="alice")
    return described


def texts(store: QueueManagerStore, queue: str = "Q") -> list[bytes]:
    return [message.body for message in store.browse(queue)] if store.find_queue(queue) else []


@pytest.mark.rule("LSN-44")
def test_in_the_order_of_their_times_with_what_is_their_own(store: QueueManagerStore, clock: Clock) -> None:
    messages = DelayedMessages(OpenQueues())
    own = {
        "correl_id": b"c" * 24,
        "priority": 4,
        "persistence": 1,
        "group_id": b"g" * 24,
        "msg_flags": 8,
        "expiry": 900,
    }
    put(store, "third", 3)
    first = put(store, "first", 1, format="MQSTR", coded_char_set_id=1208, **own)
    assert messages.move(store) == ([], 1.0)
    put(store, "second", 2, priority=4)
    clock.seconds = 1
    assert messages.move(store) == (["Q"], 1.0)
    (got,) = store.browse("Q")
    kept = Mqmd.decode(got.md)
    made = {"user_identifier": "alice", "msg_id": kept.msg_id, "put_date": kept.put_date, "put_time": kept.put_time}
    assert (kept, got.user) == (replace(first, expiry=890, **made), "alice")
    clock.seconds = 5
    assert messages.move(store) == (["Q", "Q"], None)
    assert (texts(store), store.depth(DELAY_QUEUE)) == ([b"first", b"second", b"third"], 0)


@pytest.mark.rule("LSN-44")
def test_a_queue_that_does_not_take_it(store: QueueManagerStore, clock: Clock) -> None:
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("CLOSED", put_enabled=False))
    put(store, "dead", 1, "CLOSED")
    put(store, "discarded", 1, "CLOSED", report=0x0800_0000)
    clock.seconds = 1
    messages = DelayedMessages(OpenQueues())
    assert messages.move(store) == ([DEAD_LETTER_QUEUE], None)
    assert [body[172:] for body in texts(store, DEAD_LETTER_QUEUE)] == [b"dead"]
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue(DEAD_LETTER_QUEUE, put_enabled=False))
    put(store, "waits", 1, "CLOSED")
    assert messages.move(store) == ([], 10.0)
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("CLOSED"))
    clock.seconds = 11
    assert messages.move(store) == (["CLOSED"], None)


@pytest.mark.rule("LSN-44")
@pytest.mark.parametrize(("of", "call"), [(EmbeddedUnitOfWork, "put"), (Uncommitted, "remove"), (Counters, "write")])
def test_once_whatever_fails(
    store: QueueManagerStore, clock: Clock, monkeypatch: pytest.MonkeyPatch, of: type, call: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    put(store, "once", 1)
    clock.seconds = 1
    messages = DelayedMessages(OpenQueues())
    with monkeypatch.context() as patched:
        patched.setattr(of, call, fails)
        with pytest.raises((StoreError, sqlite3.OperationalError)):
            messages.move(store)
    assert (texts(store), store.depth(DELAY_QUEUE)) == ([], 1)
    assert messages.move(store) == (["Q"], None)
    assert (texts(store), store.depth(DELAY_QUEUE)) == ([b"once"], 0)


FAR: Callable[[bytes], bytes] = lambda text: body_of(b"900000000", text)  # noqa: E731


@pytest.mark.rule("LSN-44")
def test_programs_put_to_queues_and_topics(port: int, home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(TopicObject("T", topic_string="sport"))
    with MqiClient(port) as client:
        assert client.connect() == 0
        queue, topic = client.opened("Q", IN | OUT), client.opened("T", OUT, MQOT_TOPIC)
        assert client.put(queue, FAR(b"later"), **JMS)[0] == client.put(topic, FAR(b"goal"), **JMS)[0] == 0
        assert client.put(queue, body_of(b"1", b"soon"), **JMS)[0] == 0
        assert client.get(queue, wait_ms=PATIENCE_MS).body[-4:] == b"soon"
        # What is put in syncpoint is there when it is committed, and due by then.
        assert client.put(queue, body_of(b"1", b"unit"), MQPMO_SYNCPOINT, **JMS)[0] == 0
        assert client.get(queue).reason == 2033
        client.commit()
        assert client.get(queue, wait_ms=PATIENCE_MS).body[-4:] == b"unit"
        assert client.get(queue).reason == 2033
    with QueueManagerStore.open(home, "QM1") as store:
        assert store.depth(DELAY_QUEUE) == 2
        messages = DelayedMessages(OpenQueues())
        store.clock = lambda: datetime(2050, 1, 1, tzinfo=UTC)
        assert sorted(messages.move(store)[0]) == ["Q", DEFAULT_STREAM]
