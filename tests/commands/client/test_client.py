"""The client at a listener: what it puts is what it gets, with all that IBM MQ's calls offer.

Rows of docs/conformance.md: MQC-2, MQC-3.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager as Definition
from commands.client import queue_manager as client
from commands.client.errors import ConnectionLostError, MqError
from commands.client.places import Channel, channels_of, connection_list, place_of
from commands.client.queue_manager import Queue, QueueManager, connect
from commands.config.settings import ConfigError, QueuesConfig
from commands.config.urls import parse_mq_address
from commands.qmgr.store import QueueManagerStore
from rfh2 import pcf_admin_names as c
from rfh2.mqi_constants import MQOO_INPUT_SHARED, MQOO_OUTPUT
from rfh2.mqmd import Mqmd
from rfh2.pcf_names import MQCA_Q_NAME
from tests.commands.listener.conftest import certificate, listener_at
from tests.waiting import PATIENCE_S, until

__all__ = ["certificate"]

SIZES = [0, 1, 3, 4, 1_024, 32_700, 32_748, 32_749, 65_536, 1_000_000]


@pytest.mark.rule("MQC-2")
@pytest.mark.parametrize("size", SIZES)
def test_a_message_comes_as_it_was_put(qmgr: QueueManager, size: int) -> None:
    data = os.urandom(size)
    with qmgr.queue("Q") as queue:
        msg_id = queue.put(data, mqmd=Mqmd(version=2, correl_id=b"c" * 24, persistence=1))
        seen = list(queue.browse())
        got = queue.get()
        assert queue.get() is None
    assert got is not None
    assert [message.body for message in seen] == [got.body] == [data]
    assert (got.descriptor.msg_id, got.descriptor.correl_id, got.descriptor.persistence) == (msg_id, b"c" * 24, 1)


@pytest.mark.rule("MQC-2")
def test_a_message_is_chosen_by_its_identifiers(qmgr: QueueManager) -> None:
    with qmgr.queue("Q") as queue:
        ids = [queue.put(str(n), mqmd=Mqmd(version=2, correl_id=bytes([n]) * 24)) for n in range(4)]
        token = next(message.token for message in queue.browse() if message.text == "2")
        chosen = (queue.get(correl_id=b"\3" * 24), queue.get(msg_id=ids[1]), queue.get(token=token), queue.get())
        assert [message.text for message in chosen if message is not None] == ["3", "1", "2", "0"]
        assert queue.get(correl_id=b"x" * 24) is None


@pytest.mark.rule("MQC-2")
def test_a_wait_ends_with_a_message_or_with_its_time(qmgr: QueueManager) -> None:
    with qmgr.queue("Q") as queue:
        assert queue.get(0.05) is None
        with qmgr.another() as other:
            timer = threading.Timer(0.1, lambda: other.put("Q", "late"))
            timer.start()
            got = queue.get(-1)
            timer.join()
        assert got is not None
        assert got.text == "late"
        assert [message.text for message in queue.messages(0.05)] == []


def test_a_message_that_is_too_long_stays(qmgr: QueueManager) -> None:
    with qmgr.queue("Q") as queue:
        queue.put(bytes(100))
        with pytest.raises(MqError, match="2080"):
            queue.get(longest=10)
        cut = queue.get(longest=10, options=0x40)
    assert cut is not None
    assert (cut.reason, len(cut.body), cut.length) == (2079, 10, 100)


@pytest.mark.rule("MQC-2")
def test_properties_and_conversion(qmgr: QueueManager) -> None:
    given = {"Colour": "rot & blau", "Size": 42, "Weight": 1.5, "Sold": True}
    with qmgr.queue("Q") as queue:
        queue.put("Grüße", properties=given)
        queue.put("Grüße".encode("cp037"), mqmd=Mqmd(version=2, coded_char_set_id=37, format="MQSTR"))
        first, second = queue.get(), queue.get(convert=True)
    assert first is not None
    assert second is not None
    assert (first.properties, first.text, second.text) == (given, "Grüße", "Grüße")


@pytest.mark.rule("MQC-2")
def test_a_unit_of_work_is_all_or_nothing(qmgr: QueueManager) -> None:
    queue = qmgr.queue("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
    with qmgr.unit_of_work():
        queue.put("kept")
        qmgr.put("R", "kept too")
    with suppress(ZeroDivisionError), qmgr.unit_of_work():
        assert queue.get() is not None
        queue.put("not kept")
        raise ZeroDivisionError
    assert [message.text for message in queue.messages()] == ["kept"]
    with qmgr.another() as other:
        other.connection.put(other.queue("R").handle(MQOO_OUTPUT), Mqmd(version=2).encode(), b"lost", 2)
        other.connection.abandon()
    assert [message.body for message in qmgr.queue("R").messages()] == [b"kept too"]


def broken_in_a_unit_of_work(qmgr: QueueManager, queue: Queue) -> None:
    with qmgr.unit_of_work():
        queue.put("lost")
        qmgr.connection._line._transport._socket.shutdown(2)
        queue.put("lost too")


@pytest.mark.rule("MQC-2")
def test_attributes_dynamic_queues_and_pcf(qmgr: QueueManager) -> None:
    with qmgr.queue("SYSTEM.DEFAULT.MODEL.QUEUE", MQOO_INPUT_SHARED | MQOO_OUTPUT, dynamic="MINE.*") as queue:
        assert queue.name.startswith("MINE.")
        queue.put("x")
        found = queue.inquire([c.MQIA_CURRENT_Q_DEPTH, MQCA_Q_NAME, c.MQIA_Q_TYPE])
        assert found == {c.MQIA_CURRENT_Q_DEPTH: 1, MQCA_Q_NAME: queue.name, c.MQIA_Q_TYPE: 1}
    queue = qmgr.queue("Q")
    queue.set({c.MQIA_INHIBIT_PUT: 1})
    with pytest.raises(MqError, match=r"MQPUT to Q: reason 2051 \(PUT_INHIBITED\)"):
        queue.put("x")
    (row,) = qmgr.pcf(c.MQCMD_INQUIRE_Q, {MQCA_Q_NAME: "Q", c.MQIACF_Q_ATTRS: [c.MQIA_INHIBIT_PUT]})
    assert row[c.MQIA_INHIBIT_PUT] == 1
    with pytest.raises(MqError, match="PCF command"):
        qmgr.pcf(c.MQCMD_INQUIRE_Q, {MQCA_Q_NAME: "NO.SUCH"})


@pytest.mark.rule("MQC-2")
def test_subscriptions(qmgr: QueueManager) -> None:
    qmgr.publish("a/b", "retained", retain=True)
    with qmgr.subscribe("a/+", name="D", durable=True) as durable, qmgr.subscribe("a/#", selector="x = 1") as chosen:
        got = durable.get(10)
        assert got is not None
        assert got.text == "retained"
        qmgr.publish("a/c", "one", properties={"x": 1})
        got = chosen.get(10)
        assert got is not None
        assert (got.text, got.properties["x"]) == ("one", 1)
    qmgr.publish("a/d", "while it is away")
    with qmgr.subscribe("a/+", name="D", durable=True) as durable:
        assert [message.text for message in durable.messages(2)] == ["one", "while it is away"]
        durable.close(remove=True)


@pytest.mark.rule("MQC-3")
def test_threads_share_a_socket(home: Path) -> None:
    """Each has a conversation, and gets what is its own, whoever receives it."""
    with listener_at(home) as port, connect(f"mq://127.0.0.1:{port}/QM1?channel=C") as qmgr:
        got: dict[int, list[str]] = {}

        def work(n: int) -> None:
            with qmgr.another() as mine, mine.queue("Q") as queue:
                assert mine.connection.shares(qmgr.connection)
                for count in range(20):
                    queue.put(f"{n}-{count}" * 2_000, mqmd=Mqmd(version=2, correl_id=bytes([n]) * 24))
                found = [queue.get(5, correl_id=bytes([n]) * 24) for _ in range(20)]
                got[n] = [message.text[:4].rstrip("0123456789")[:2] for message in found if message is not None]

        threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert got == {n: [f"{n}-"] * 20 for n in range(1, 9)}


@pytest.mark.rule("MQC-3")
@pytest.mark.usefixtures("patient")
def test_an_idle_connection_answers_heartbeats(home: Path) -> None:
    with listener_at(home, heartbeat_s=1) as port:
        place = place_of(parse_mq_address(f"mq://127.0.0.1:{port}/QM1?channel=C", ""), QueuesConfig())
        with QueueManager(replace(place, heartbeat_s=1)) as qmgr:
            qmgr.put("Q", "before")
            until(lambda: qmgr.connection._line._flow.latest.kind == 0x09, "a heartbeat")
            qmgr.put("Q", "after")
            assert [message.text for message in qmgr.queue("Q").messages()] == ["before", "after"]


@pytest.mark.rule("MQC-3")
def test_tls(home: Path, certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with listener_at(home, tls=context) as port:
        url = f"mq://localhost:{port}/QM1?channel=C"
        with connect(url, config=QueuesConfig(ca_file=certificate[0])) as qmgr:
            qmgr.put("Q", "x" * 100_000)
            got = qmgr.queue("Q").get()
            assert got is not None
            assert len(got.text) == 100_000
        with pytest.raises(ConnectionLostError, match="certificate is not accepted"):
            connect(f"{url}&cipher=ANY_TLS12_OR_HIGHER")


@pytest.mark.rule("MQC-3")
def test_the_next_address_is_tried_and_a_break_is_mended(home: Path) -> None:
    with listener_at(home) as port:
        url = f"mq://127.0.0.1:1,127.0.0.1:{port}/QM1?channel=C"
        with connect(url, reconnect_s=20) as qmgr:
            queue = qmgr.queue("Q")
            queue.put("one")
            qmgr.connection._line._transport._socket.shutdown(2)
            assert [message.text for message in queue.browse()] == ["one"], "what changes nothing is done again"
            qmgr.connection._line._transport._socket.shutdown(2)
            with pytest.raises(MqError, match="2549"):
                queue.get()
            got = queue.get()
            assert got is None or got.text == "one"
            with pytest.raises(MqError, match="2003"):
                broken_in_a_unit_of_work(qmgr, queue)
            assert "lost" not in {message.text for message in queue.browse()}
    with pytest.raises(ConnectionLostError, match="2538"):
        connect(url)


def test_why_there_is_no_connection(home: Path) -> None:
    with listener_at(home) as port:
        with pytest.raises(MqError, match=r"MQCONNX: reason 2058.*another name"):
            connect(f"mq://127.0.0.1:{port}/QM9?channel=C")
        with connect(f"mq://127.0.0.1:{port}/*ANY?channel=C") as qmgr:
            assert qmgr.name == "QM1"


CCDT = {
    "channel": [
        {"name": "SRV", "type": "serverConnection"},
        {
            "name": "A",
            "type": "clientConnection",
            "clientConnection": {"connection": [{"host": "h1", "port": 1415}, {"host": "h2"}], "queueManager": "QM1"},
            "transmissionSecurity": {"cipherSpecification": "ANY_TLS12"},
            "connectionManagement": {"sharingConversations": 5, "heartbeatInterval": 60},
        },
        {"name": "B", "type": "clientConnection", "clientConnection": {"connection": [{"host": "h3", "port": 1}]}},
    ]
}


def test_a_ccdt_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert channels_of(CCDT, "x") == [
        Channel("A", (("h1", 1415), ("h2", 1414)), "QM1", "ANY_TLS12", 5, 60),
        Channel("B", (("h3", 1),)),
    ]
    path = tmp_path / "ccdt.json"
    path.write_text(json.dumps(CCDT))
    monkeypatch.setenv("MQCCDTURL", f"file://{path}")
    place = place_of(parse_mq_address("mq:///QM1", ""), QueuesConfig())
    assert (place.addresses, place.channel, place.sharing, place.tls is None) == (
        (("h1", 1415), ("h2", 1414)),
        "A",
        5,
        False,
    )
    assert place_of(parse_mq_address("mq:///OTHER", ""), QueuesConfig()).channel == "B"


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("mq://h/QM1", {}, "the channel is missing"),
    ("mq:///QM1", {}, "the host is missing"),
    ("mq:///QM1", {"ccdt": "/no/such"}, "no such file"),
    ("mq://h/QM1?channel=C", {"key_repository": "/k"}, "PEM"),
    ("mq://h/QM1?channel=C", {"ca_file": Path("/no/such")}, "no such file"),
]


@pytest.mark.parametrize(("url", "config", "why"), BAD, ids=[why for *_, why in BAD])
def test_places_that_are_none(url: str, config: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MQCCDTURL", "MQSERVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=why):
        place_of(parse_mq_address(url, ""), QueuesConfig(**config))


def test_mqserver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQCCDTURL", raising=False)
    monkeypatch.setenv("MQSERVER", "APP.SVRCONN/TCP/mq1(1415),mq2")
    place = place_of(parse_mq_address("mq:///QM1", ""), QueuesConfig())
    assert (place.channel, place.addresses) == ("APP.SVRCONN", (("mq1", 1415), ("mq2", 1414)))
    with pytest.raises(ConfigError, match=r"not HOST\(PORT\)"):
        connection_list("(1414)", "MQSERVER")


def test_the_examples_name_what_there_is() -> None:
    assert client.connect is connect
    with pytest.raises(ConfigError, match="has no queues"):
        connect("mqtt://h")


def test_a_queue_manager_of_another_name_has_its_own(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, Definition("OTHER")).close()
    with listener_at(tmp_path, qmgr="OTHER") as port, connect(f"mq://127.0.0.1:{port}/OTHER?channel=C") as qmgr:
        assert qmgr.name == "OTHER"
