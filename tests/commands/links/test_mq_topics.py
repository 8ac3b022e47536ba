"""The link to IBM MQ's topic tree, on the stand-in: native programs publish and subscribe there by MQPUT and MQSUB."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager
from commands.config.settings import Config, QueuesConfig, TopicsConfig
from commands.config.urls import parse_address
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.tree import RETAIN
from commands.links.opening import Places
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.message import Message
from rfh2.mqi_constants import (
    MQCO_KEEP_SUB,
    MQOO_BROWSE,
    MQOO_INPUT_SHARED,
    MQSO_CREATE,
    MQSO_DURABLE,
    MQSO_WILDCARD_TOPIC,
)
from tests.commands.links.mqi.harness import CONTROL, DEAD, INCOMING, OUTGOING, STREAM
from tests.commands.links.mqi.listening import Running, queue_manager
from tests.waiting import PATIENCE_S, until

NATIVE = "NATIVE"


class World:
    """A bridge between IBM MQ's topic tree and legacy programs, whose queues are embedded or IBM MQ's too."""

    def __init__(self, home: Path, mq: Running, queues: str | None, qmgr: str = "QM1") -> None:
        self.home, self.mq, self.queues, self.qmgr = home, mq, queues, qmgr
        if not (home / qmgr).exists():
            QueueManagerStore.create(home, QueueManager(qmgr)).close()
        self.native = MqMessages(parse_address(mq.url, ""), QueuesConfig(context="default"), "native")
        self.legacy: Any = (
            QueueManagerStore.open(home, qmgr)
            if queues is None
            else MqMessages(parse_address(mq.url, ""), QueuesConfig(), "legacy")
        )
        self._stop = threading.Event()

    def places(self, **config: Any) -> Places:
        told = Config(topics=TopicsConfig(**config))
        return Places.of(self.home, self.qmgr, told, self.queues, self.mq.url, Durability.NORMAL)

    @contextmanager
    def running(self, **config: Any) -> Iterator[World]:
        places = self.places(**config)
        link = places.link(DEAD)
        assert link is not None
        self.link: Any = link
        self._stop.clear()
        thread = threading.Thread(target=self._run, args=(places, link))
        link.start()
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(PATIENCE_S)
            link.stop()

    def _run(self, places: Places, link: Any) -> None:
        with places.manager() as manager:
            self.processor = Processor(manager, lambda: datetime.now(UTC), link=link)
            self.processor.run(self._stop, idle_s=0.05)

    def close(self) -> None:
        self.native.close()
        self.legacy.close()

    # Legacy programs

    def put(self, queue: str, psc: str, data: bytes = b"", *folders: str, **mqmd: Any) -> None:
        settings = {"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd}
        header = Rfh2(tuple(Folder.of(f) for f in (f"<psc>{psc}</psc>", *folders)), 546, 1208, "MQSTR")
        with self.legacy.unit_of_work() as unit:
            unit.put(queue, Mqmd(**settings).encode(), header.encode() + data)

    def register(self, topic: str, queue: str = "S", options: str = "") -> None:
        before = len(self.browse("REPLY"))
        psc = f"<Command>RegSub</Command>{options}<Topic>{topic}</Topic><QName>{queue}</QName>"
        self.put(CONTROL, psc, msg_type=1, reply_to_q="REPLY")
        until(lambda: len(self.browse("REPLY")) > before, "the response")

    def publish(self, topic: str, data: bytes = b"data", options: str = "", *folders: str, **mqmd: Any) -> None:
        self.put(STREAM, f"<Command>Publish</Command>{options}<Topic>{topic}</Topic>", data, *folders, **mqmd)

    def browse(self, queue: str) -> list[Message]:
        with self.legacy.unit_of_work() as unit:
            return [decode(m.body, m.md) for m in unit.browse(queue)] if unit.find_queue(queue) else []

    def data(self, queue: str) -> list[bytes]:
        return [message.body for message in self.browse(queue)]

    # Native programs

    def native_publish(self, topic: str, data: bytes, retain: bool = False, **properties: str) -> None:
        usr = "<usr>" + "".join(f"<{name}>{value}</{name}>" for name, value in properties.items()) + "</usr>"
        header = Rfh2((Folder.of(usr),) if properties else (), 546, 1208, "MQSTR")
        md = Mqmd(version=2, format="MQHRF2", persistence=1, coded_char_set_id=1208)
        with self.native.unit_of_work():
            options = 2 | (RETAIN if retain else 0)
            self.native.connection.publish(topic, md.encode(), header.encode() + data, options)

    def native_subscribe(self, topic: str) -> None:
        with self.native.unit_of_work():
            connection = self.native.connection
            queue = connection.queue(NATIVE, MQOO_INPUT_SHARED | MQOO_BROWSE)
            options = MQSO_CREATE | MQSO_DURABLE | MQSO_WILDCARD_TOPIC
            made = connection.subscribe(topic, f"native {topic}", options, queue)
            connection.close_subscription(made, MQCO_KEEP_SUB)

    def natives(self) -> list[Message]:
        with self.native.unit_of_work() as unit:
            return [decode(m.body, m.md) for m in unit.browse(NATIVE)]


@pytest.fixture(params=["embedded queues", "IBM MQ queues"])
def world(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Iterator[World]:
    if (kind, request.param) == ("mq", "IBM MQ queues"):
        pytest.skip("the listener's queue manager has topics only where it reads the queues of commands itself")
    names = ("S", "T", "LATE", "REPLY", NATIVE)
    with queue_manager(kind, tmp_path / "mq", {name: {} for name in names}, psmode=2) as mq:
        made = World(tmp_path / "qmgrs", mq, mq.url if request.param == "IBM MQ queues" else None)
        yield made
        made.close()


def test_a_legacy_publication_reaches_native_subscribers(world: World) -> None:
    world.native_subscribe("Sport/#")
    with world.running():
        world.publish(
            "Sport/Soccer", b"1:0", "<PubOpt>RetainPub</PubOpt>", "<usr><colour>red</colour></usr>", priority=3
        )
        until(world.natives, "the publication")
    (message,) = world.natives()
    assert (message.body, message.body_format, message.mqmd.priority, message.mqmd.persistence) == (
        b"1:0",
        "MQSTR",
        3,
        1,
    )
    folders = {folder.name: folder.values() for folder in message.rfh2.folders}  # type: ignore[union-attr]
    assert folders["mqps"]["Top"] == "Sport/Soccer"
    assert folders["usr"]["colour"] == "red"
    assert world.mq.tell()["retained"] == ["Sport/Soccer"]


def test_a_native_publication_reaches_legacy_subscribers(world: World) -> None:
    with world.running():
        world.register("Sport/+")
        world.native_publish("Sport/Soccer", b"1:0", colour="red")
        until(lambda: world.data("S"), "the subscriber")
    (message,) = world.browse("S")
    folders = [folder.values() for folder in message.rfh2.folders]  # type: ignore[union-attr]
    assert folders == [{"Command": "Publish", "Topic": "Sport/Soccer"}, {"colour": "red"}]
    assert (message.body, message.body_format) == (b"1:0", "MQSTR")


def test_nothing_goes_round_in_a_circle_and_overlapping_selections_give_one_copy(world: World) -> None:
    world.native_subscribe("#")
    with world.running():
        world.register("a/#")
        world.register("a/+", "T")
        world.publish("a/b", b"legacy")
        world.native_publish("a/b", b"native")
        until(lambda: len(world.data("S")) == 2 and len(world.natives()) == 2)
        world.publish("a/z", b"last")
        until(lambda: len(world.data("S")) == 3 and len(world.natives()) == 3)
        assert sorted(world.data("S")) == sorted(world.data("T")) == [b"last", b"legacy", b"native"]
        assert sorted(message.body for message in world.natives()) == [b"last", b"legacy", b"native"]


# docs/networks.md: bridges that share a tree
def test_bridges_of_one_tree_exchange_publications(tmp_path: Path, kind: str) -> None:
    """Each with a queue of its own for what the tree sends it."""
    with queue_manager(
        kind, tmp_path / "mq", {name: {} for name in ("S", "REPLY", NATIVE, "INCOMING.2")}, psmode=2
    ) as mq:
        one, two = (World(tmp_path / name, mq, None, name) for name in ("QM1", "QM2"))
        with one.running(), two.running(in_queue="INCOMING.2"):
            one.publish("a/kept", b"kept", "<PubOpt>RetainPub</PubOpt>")
            until(lambda: mq.tell()["retained"] == ["a/kept"])
            for world in (one, two):
                world.register("a/#")
            until(lambda: one.data("S") == two.data("S") == [b"kept"])
            one.publish("a/x", b"from QM1")
            until(lambda: b"from QM1" in one.data("S") and b"from QM1" in two.data("S"))
            two.publish("a/x", b"from QM2")
            until(lambda: b"from QM2" in one.data("S") and b"from QM2" in two.data("S"))
            one.publish("a/x", b"last")
            until(lambda: one.data("S")[-1:] == two.data("S")[-1:] == [b"last"])
            assert one.data("S") == two.data("S") == [b"kept", b"from QM1", b"from QM2", b"last"]
        for world in (one, two):
            world.close()


def test_two_bridges_do_not_read_one_queue(tmp_path: Path, kind: str) -> None:
    """Each would get what is for the other one."""
    with queue_manager(kind, tmp_path / "mq", {name: {} for name in ("S", "REPLY", NATIVE)}, psmode=2) as mq:
        one, two = (World(tmp_path / name, mq, None, name) for name in ("QM1", "QM2"))
        with one.running():
            one.register("a/#")
            with two.running():
                until(lambda: two.link.state.trouble)
                trouble = two.link.state.trouble
                assert "QPUBSUB QM1 topic a/# of another bridge sends to SYSTEM.QPUBSUB.INCOMING" in trouble
                assert "[topics] in_queue" in trouble
            assert _named(one) == ["QPUBSUB QM1 topic a/#"]
        for world in (one, two):
            world.close()


def test_retained_native_publications_greet_a_subscriber_and_answer_req_update(world: World) -> None:
    world.native_publish("score/1", b"old", retain=True)
    world.native_publish("score/1", b"1:0", retain=True)
    with world.running():
        world.register("score/#")
        assert world.data("S") == [b"1:0"]
        world.register("score/+", "T", "<RegOpt>PubOnReqOnly</RegOpt>")
        world.native_publish("score/2", b"2:0", retain=True)
        until(lambda: len(world.data("S")) == 2)
        world.put(CONTROL, "<Command>ReqUpdate</Command><Topic>score/+</Topic><QName>T</QName>")
        until(lambda: len(world.data("T")) == 2)
    assert world.data("T") == [b"1:0", b"2:0"]
    assert world.mq.tell()["calls"]["R"] >= 3, "MQSUBRQ"


def test_clearing_on_either_side(world: World) -> None:
    world.native_publish("score/1", b"1:0", retain=True)
    world.native_publish("score/2", b"2:0", retain=True)
    with world.running():
        world.register("score/#")
        world.put(STREAM, "<Command>DeletePub</Command><Topic>score/1</Topic>")
        until(lambda: world.mq.tell()["retained"] == ["score/2"], "PCF Clear Topic String")
        _clear(world, "score/2")
        world.register("score/+", "LATE")
        assert world.data("LATE") == [], "what natives have cleared is looked up, for nobody tells"


def _clear(world: World, topic: str) -> None:
    from commands.links.ibmmq.tree import Tree

    tree = Tree(world.native, TopicsConfig(), world.qmgr)
    tree.clear(topic, local=True)


def test_subscriptions_are_named_found_again_and_removed(world: World) -> None:
    with world.running():
        world.register("a/#")
        world.register("b/*", "T")
        until(lambda: len(world.mq.tell()["subscriptions"]) == 2)
    names = sorted(s["name"] for s in world.mq.tell()["subscriptions"])
    assert names == ["QPUBSUB QM1 topic a/#", "QPUBSUB QM1 topic b/*"]
    world.native_publish("a/x", b"while the bridge was down")
    with world.running():
        until(lambda: world.data("S"), "what was published meanwhile")
        assert _named(world) == names
        world.put(CONTROL, "<Command>DeregSub</Command><Topic>b/*</Topic><QName>T</QName>")
        until(lambda: len(world.mq.tell()["subscriptions"]) == 1, "MQCO_REMOVE_SUB")
    assert world.data("S") == [b"while the bridge was down"]


def _named(world: World) -> list[str]:
    """The link's own subscriptions, without those of the moment by which it asks what is retained."""
    names = (subscription["name"] for subscription in world.mq.tell()["subscriptions"])
    return sorted(name for name in names if name.startswith("QPUBSUB"))


ODD: list[tuple[str, str]] = [
    ("no topic", "<mqps><Pub>1</Pub></mqps>"),
    ("a number without end", f"<mqps><Top>e/1</Top><Pub>{'9' * 5_000}</Pub></mqps>"),
    ("a sequence number that is none", "<mqps><Top>e/2</Top></mqps> <mqpse><Seq>x</Seq><Seq>y</Seq></mqpse>"),
    ("a topic too long for a command", f"<mqps><Top>e/{'x' * 11_000}</Top></mqps>"),
]


def test_absurd_native_messages_stop_nothing(world: World) -> None:
    with world.running():
        world.register("e/#")
        for _, folders in ODD:
            header = Rfh2((Folder.of(folders),), 546, 1208, "MQSTR")
            md = Mqmd(version=2, format="MQHRF2", persistence=1, coded_char_set_id=1208)
            with world.native.unit_of_work() as unit:
                unit.put(INCOMING, md.encode(), header.encode() + b"odd")
        world.native_publish("e/last", b"last")
        until(lambda: b"last" in world.data("S"), "what is behind them")
        assert world.link.fault == ""
        assert world.data("S") == [b"odd", b"odd", b"last"]
        elsewhere = world.mq.depth(DEAD) if world.queues is None else 0
        assert len(world.browse(DEAD)) + elsewhere == 2


def test_a_subscription_left_over_from_an_earlier_run_is_ended(world: World) -> None:
    with world.running():
        world.register("a/#")
        until(lambda: len(world.mq.tell()["subscriptions"]) == 1)
        until(lambda: world.link.is_idle)
    world.put(CONTROL, "<Command>DeregSub</Command><Topic>a/#</Topic><QName>S</QName>")
    places = Places.of(world.home, "QM1", Config(), world.queues, None, Durability.NORMAL)
    with places.manager() as manager:
        Processor(manager, lambda: datetime.now(UTC)).drain()
    assert len(world.mq.tell()["subscriptions"]) == 1
    with world.running():
        until(lambda: world.mq.tell()["subscriptions"] == [], "PCF Inquire Subscription, and the end of it")


KILLS: list[tuple[str, dict[str, Any]]] = [
    ("broken after MQCMIT", {"op": "M", "when": "after", "skip": 8}),
    ("broken before MQCMIT", {"op": "M", "when": "before", "skip": 9}),
    ("broken after MQGET", {"op": "G", "when": "after", "skip": 10, "times": 2}),
    ("broken after MQPUT", {"op": "P", "when": "after", "skip": 3}),
    ("broken before MQPUT1", {"op": "1", "when": "before", "skip": 4, "times": 2}),
]


@pytest.mark.faults
@pytest.mark.parametrize("fault", [fault for _, fault in KILLS], ids=[name for name, _ in KILLS])
def test_2009_broken_connections_lose_nothing(world: World, fault: dict[str, Any]) -> None:
    if world.queues is None and fault["op"] == "1":
        pytest.skip("with embedded queues nothing is put by MQPUT1")
    world.native_subscribe("out/#")
    count = 30
    with world.running(batch=7):
        world.register("in/#")
        world.mq.fault(app="qpubsub", **fault)
        for n in range(count):
            world.publish("out/x", f"{n:02}".encode())
            world.native_publish("in/x", f"{n:02}".encode())
        until(lambda: len(set(world.data("S"))) == count, "all native publications")
        until(lambda: len({m.body for m in world.natives()}) == count, "all legacy publications")
        assert world.mq.tell()["faults"] == [], "nothing broke"
    came, heard = world.data("S"), [m.body for m in world.natives()]
    wanted = [f"{n:02}".encode() for n in range(count)]
    assert list(dict.fromkeys(came)) == wanted
    assert list(dict.fromkeys(heard)) == wanted
    if world.queues is not None:
        assert (came, heard) == (wanted, wanted), "in one unit of work nothing comes twice"
    assert world.mq.depth(OUTGOING) == world.mq.depth(INCOMING) == 0
