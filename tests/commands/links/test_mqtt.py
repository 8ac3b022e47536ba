"""The link to an MQTT 5 broker, against mosquitto: native programs on one side, legacy programs on the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import DEAD_LETTER_QUEUE, QueueManager
from commands.config.settings import Config, TopicsConfig
from commands.links.opening import Places
from commands.mqsc.script import parse
from commands.qmgr.admin import StatementRunner
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import CapturedMessage, Folder, Mqmd, Rfh1, Rfh2, decode
from rfh2.message import Message
from tests.commands.links.mosquitto import Mosquitto, Native, mosquitto, needs_mosquitto
from tests.commands.results_service import EVENT, SCORES, capture
from tests.waiting import PATIENCE_S, until

pytestmark = needs_mosquitto

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"


class Bridge:
    """A queue manager whose topic space is linked to a broker, with its processor in a thread.

    is_there: whether to wait until the broker has what the bridge needs.
    """

    _is_there = True

    def __init__(self, home: Path, url: str, qmgr: str = "QM1", is_there: bool = True, **config: object) -> None:
        self.home, self.qmgr, self._is_there = home, qmgr, is_there
        if not (home / qmgr).exists():
            QueueManagerStore.create(home, QueueManager(qmgr)).close()
        self.store = QueueManagerStore.open(home, qmgr, durability=Durability.NORMAL)
        settings = Config(topics=TopicsConfig(patience_s=3, **config))  # type: ignore[arg-type]
        places = Places.of(home, qmgr, settings, None, url, Durability.NORMAL)
        self.link: Any = places.link(DEAD_LETTER_QUEUE)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Bridge:
        self.link.start()
        self._thread.start()
        assert self.link.wait_up(PATIENCE_S)
        until(lambda: self.link._keeper.counter.done or not self._is_there, "the link's first round")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        self.link.stop()
        self.store.close()

    def _run(self) -> None:
        with QueueManagerStore.open(self.home, self.qmgr, durability=Durability.NORMAL) as store:
            self.processor = Processor(store, lambda: datetime.now(UTC), link=self.link)
            self.processor.run(self._stop, idle_s=0.05)

    def put(self, queue: str, psc: str, data: bytes = b"", *folders: str, **mqmd: object) -> None:
        settings = {"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd}
        header = Rfh2(tuple(Folder.of(f) for f in (f"<psc>{psc}</psc>", *folders)), 546, 1208, "MQSTR")
        with self.store.unit_of_work() as unit:
            unit.put(queue, Mqmd(**settings).encode(), header.encode() + data)  # type: ignore[arg-type]

    def register(self, topic: str, queue: str = "S", options: str = "") -> None:
        psc = f"<Command>RegSub</Command>{options}<Topic>{topic}</Topic><QName>{queue}</QName>"
        self.put(CONTROL, psc, msg_type=1, reply_to_q="REPLY")
        until(lambda: self.depth("REPLY") > 0, "the response")
        with self.store.unit_of_work() as unit:
            reply = unit.get("REPLY")
        assert reply is not None
        assert b"<Completion>ok" in reply.body, reply.body

    def publish(self, topic: str, data: bytes = b"data", options: str = "", *folders: str, **mqmd: object) -> None:
        self.put(STREAM, f"<Command>Publish</Command>{options}<Topic>{topic}</Topic>", data, *folders, **mqmd)

    def request(self, topic: str, queue: str = "S") -> None:
        """ReqUpdate."""
        self.put(CONTROL, f"<Command>ReqUpdate</Command><Topic>{topic}</Topic><QName>{queue}</QName>")

    def mqsc(self, script: str) -> None:
        """Run MQSC, as an administrator does beside ``run``. Fails if a command does."""
        with QueueManagerStore.open(self.home, self.qmgr, durability=Durability.NORMAL) as store:
            done = StatementRunner(store, "admin", lambda _: (), lambda: datetime.now(UTC)).run(list(parse(script)))
        for statement, answer in done:
            assert answer.ok, (statement.text, answer.lines)

    def depth(self, queue: str) -> int:
        return self.store.depth(queue) if self.store.find_queue(queue) else 0

    def browse(self, queue: str) -> list[Message]:
        if not self.store.find_queue(queue):
            return []
        return [decode(m.body, m.md) for m in self.store.browse(queue)]

    def data(self, queue: str) -> list[bytes]:
        return [message.body for message in self.browse(queue)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "mosquitto") as running:
        yield running


@pytest.fixture
def bridge(tmp_path: Path, broker: Mosquitto) -> Iterator[Bridge]:
    with Bridge(tmp_path / "qmgrs", broker.url) as running:
        yield running


@pytest.fixture
def native(broker: Mosquitto) -> Iterator[Native]:
    client = Native(broker, "native", "#")
    yield client
    client.close()


# docs/conformance.md: QM-9
@pytest.mark.rule("QM-9")
def test_a_legacy_publication_reaches_native_subscribers(bridge: Bridge, native: Native) -> None:
    options = "<PubOpt>RetainPub</PubOpt>"
    stamps = "<usr><colour>red</colour><size dt='i4'>5</size></usr>"
    bridge.publish("Sport/Soccer", b"1 \xc3\xa4", options, stamps, expiry=600, priority=3)
    until(lambda: native.messages, "the publication")
    (message,) = native.messages
    properties = message.properties
    assert (message.topic, message.payload, message.qos) == ("Sport/Soccer", b"1 \xc3\xa4", 1)
    assert properties.ContentType == "text/plain; charset=utf-8"
    assert properties.PayloadFormatIndicator == 1
    assert 0 < properties.MessageExpiryInterval <= 60
    given = dict(properties.UserProperty)
    assert (given["colour"], given["size"], given["mq.Format"], given["mq.Priority"]) == ("red", "5", "MQSTR", "3")


def test_persistence_becomes_qos(bridge: Bridge, native: Native) -> None:
    bridge.publish("a", b"np", persistence=0)
    bridge.publish("a", b"p", persistence=1)
    until(lambda: len(native.messages) == 2)
    assert [(m.payload, m.qos) for m in native.messages] == [(b"np", 0), (b"p", 1)]


@pytest.mark.rule("QM-9")
def test_a_native_publication_reaches_legacy_subscribers_in_the_header_they_registered_with(
    bridge: Bridge, native: Native
) -> None:
    bridge.register("Sport/+")
    name_values = b"MQPSCommand RegSub MQPSTopic Sport/* MQPSQName OLD MQPSRegOpts PersAsPub"
    header = Rfh1(name_values + b"\0" * (-len(name_values) % 16), format="")
    with bridge.store.unit_of_work() as unit:
        unit.put(CONTROL, Mqmd(format="MQHRF", user_identifier="app").encode(), header.encode())
    until(lambda: bridge.depth(CONTROL) == 0)
    native.publish("Sport/Soccer", "1:0", UserProperty=[("colour", "red")], ContentType="text/plain")
    until(lambda: bridge.depth("S") == 1 and bridge.depth("OLD") == 1, "both subscribers")
    (new,), (old,) = bridge.browse("S"), bridge.browse("OLD")
    assert new.body == old.body == b"1:0"
    assert new.rfh2 is not None
    assert [f.values() for f in new.rfh2.folders] == [
        {"Command": "Publish", "Topic": "Sport/Soccer"},
        {"colour": "red"},
    ]
    assert (new.body_format, new.body_ccsid, new.mqmd.persistence) == ("MQSTR", 1208, 1)
    assert old.rfh1 is not None
    assert b"MQPSTopic Sport/Soccer" in old.rfh1.data


def test_the_results_service_with_native_programs_on_both_sides(bridge: Bridge, broker: Mosquitto) -> None:
    """Simulators, a results service and boards of both kinds, on the same topics."""
    board, events = Native(broker, "board", f"{SCORES}/#"), Native(broker, "events", f"{EVENT}/#")
    simulator, messages = Native(broker, "simulator"), capture()

    def put(some: Sequence[CapturedMessage]) -> None:
        with bridge.store.unit_of_work() as unit:
            for message in some:
                unit.put(message.queue, message.md, message.body, user=message.user)
        until(lambda: bridge.depth(CONTROL) == bridge.depth(STREAM) == 0, "the commands to be carried out")

    put(messages[:14])
    simulator.publish(f"{EVENT}/ScoreUpdate", "Newcastle", ContentType="text/plain")
    simulator.publish(f"{SCORES}/Celtic Rangers", "2 2", retain=True)
    until(lambda: b"2 2" in bridge.data("SCOREBOARD"), "the native score on the legacy board")
    put(messages[14:])
    until(lambda: len(board.messages) >= 8, "the native board")
    until(lambda: len(events.messages) >= 8, "the native events")
    late = Native(broker, "late", f"{SCORES}/#")
    until(lambda: late.messages, "the retained score")
    for client in (board, events, simulator, late):
        client.close()
    assert board.payloads(f"{SCORES}/Newcastle Southampton") == ["0 0", "1 0", "1 1", ""]
    assert board.payloads(f"{SCORES}/Celtic Rangers") == ["2 2"]
    assert events.payloads(f"{EVENT}/ScoreUpdate").count("Newcastle") == 2
    assert [(m.topic, m.payload) for m in late.messages] == [(f"{SCORES}/Celtic Rangers", b"2 2")]
    results = [(m.body, m.rfh2.folders[0].data) for m in bridge.browse("RESULTS.SERVICE") if m.rfh2 is not None]
    updates = [body for body, folder in results if b"ScoreUpdate" in folder]
    assert updates.count(b"Newcastle") == 2, "one from a queue, one from MQTT"
    asked = [body for body, folder in results if b"LatestScore/Celtic" in folder]
    assert asked == [b"2 2"], "what natives retain answers a ReqUpdate"
