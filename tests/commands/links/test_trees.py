"""What holds for every tree but IBM MQ's, with a real server and native programs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from rfh2 import Mqmd, Rfh1
from tests.commands.links.kafka_server import KafkaNative, KafkaServer, needs_kafka
from tests.commands.links.mosquitto import Mosquitto, Native, needs_mosquitto
from tests.commands.links.nats_server import NatsNative, NatsServer, needs_nats
from tests.commands.links.test_mqtt import CONTROL, STREAM, Bridge
from tests.waiting import until


class Speaker(Protocol):
    """A native program that has subscribed to everything."""

    messages: list[Any]

    def publish(self, topic: str, payload: str, retain: bool = False) -> None: ...
    def payloads(self, topic: str | None = None) -> list[str]: ...
    def close(self) -> None: ...


class MqttTree:
    """Topics below a prefix at mosquitto."""

    def __init__(self, broker: Mosquitto, name: str) -> None:
        self._broker, self._name, self._prefix = broker, name, f"{name}/"

    def bridge(self, home: Path, qmgr: str = "QM1") -> Bridge:
        return Bridge(home, self._broker.url, qmgr, prefix=self._prefix, client_id=f"{self._name}-{qmgr}")

    def native(self, name: str = "native", topics: str = "#") -> Native:
        return Native(self._broker, name, topics, prefix=self._prefix)

    def retained(self) -> set[str]:
        """The topics on which something is retained."""
        fence = self.native("fence", "fence")
        fence.publish("zz-fence", "x", retain=True)
        late = self.native("late")
        until(lambda: "zz-fence" in [m.topic for m in late.messages])
        late.close()
        fence.close()
        return {m.topic for m in late.messages} - {"zz-fence"}


class NatsTree:
    """A stream and a bucket of nats-server."""

    def __init__(self, server: NatsServer, name: str) -> None:
        self._url, self._name = server.url, name

    def bridge(self, home: Path, qmgr: str = "QM1") -> Bridge:
        return Bridge(home, self._url, qmgr, prefix=f"{self._name}.", stream=self._name)

    def native(self) -> NatsNative:
        return NatsNative(self._url, ">", prefix=f"{self._name}.", stream=self._name)

    def retained(self) -> set[str]:
        late = NatsNative(self._url, prefix=f"{self._name}.", stream=self._name)
        topics = set(late.values())
        late.close()
        return topics


class KafkaTree:
    """Topics of Kafka's broker."""

    def __init__(self, server: KafkaServer, name: str) -> None:
        self._server, self._name = server, name

    def bridge(self, home: Path, qmgr: str = "QM1") -> Bridge:
        return Bridge(home, self._server.url, qmgr, kafka={"topic": self._name})

    def native(self) -> KafkaNative:
        return KafkaNative(self._server.servers, self._name, prefix=self._name)

    def retained(self) -> set[str]:
        return set(KafkaNative(self._server.servers, prefix=self._name).retained())


# A kind of tree, and the fixture of its server.
TREES = [
    pytest.param((MqttTree, "shared_mosquitto"), id="mqtt", marks=needs_mosquitto),
    pytest.param((NatsTree, "shared_nats"), id="nats", marks=needs_nats),
    pytest.param((KafkaTree, "shared_kafka"), id="kafka", marks=needs_kafka),
]
Tree = MqttTree | NatsTree | KafkaTree


@pytest.fixture(params=TREES)
def tree(request: pytest.FixtureRequest, name: str) -> Tree:
    kind, server = request.param
    made: Tree = kind(request.getfixturevalue(server), name)
    return made


@pytest.fixture
def bridge(tmp_path: Path, tree: Tree) -> Iterator[Bridge]:
    with tree.bridge(tmp_path / "qmgrs") as running:
        yield running


@pytest.fixture
def native(bridge: Bridge, tree: Tree) -> Iterator[Speaker]:
    client = tree.native()
    yield client
    client.close()


def _register_by_characters(bridge: Bridge, topic: str) -> None:
    name_values = f"MQPSCommand RegSub MQPSTopic {topic} MQPSQName OLD".encode()
    header = Rfh1(name_values + b"\0" * (-len(name_values) % 16), format="")
    with bridge.store.unit_of_work() as unit:
        unit.put(CONTROL, Mqmd(format="MQHRF", user_identifier="app").encode(), header.encode())
    until(lambda: bridge.depth(CONTROL) == 0)


def test_nothing_goes_round_in_a_circle(bridge: Bridge, native: Speaker) -> None:
    bridge.register("#")
    bridge.publish("legacy", b"from a queue")
    native.publish("native", "from the tree")
    until(lambda: bridge.depth("S") == 2 and len(native.messages) == 2)
    bridge.publish("last")
    until(lambda: bridge.depth("S") == 3 and len(native.messages) == 3)
    assert sorted(m.topic for m in native.messages) == ["last", "legacy", "native"]
    assert sorted(bridge.data("S")) == [b"data", b"from a queue", b"from the tree"]


# docs/networks.md: bridges that share a tree
def test_bridges_of_one_tree_exchange_publications(bridge: Bridge, tree: Tree, tmp_path: Path) -> None:
    with tree.bridge(tmp_path / "others", "QM2") as other:
        bridge.publish("a/kept", b"kept", "<PubOpt>RetainPub</PubOpt>")
        for each in (bridge, other):
            each.register("a/#")
        until(lambda: bridge.depth("S") == other.depth("S") == 1)
        bridge.publish("a/x", b"from QM1")
        until(lambda: bridge.depth("S") == other.depth("S") == 2)
        other.publish("a/x", b"from QM2")
        until(lambda: bridge.depth("S") == other.depth("S") == 3)
        assert bridge.data("S") == other.data("S") == [b"kept", b"from QM1", b"from QM2"]


OVERLAPPING = ["a/#", "a/+/c", "a/b/+", "#", "+/b/c"]


def test_overlapping_filters_give_one_copy_to_each_subscription(bridge: Bridge, native: Speaker) -> None:
    for n, topic_filter in enumerate(OVERLAPPING):
        bridge.register(topic_filter, f"S{n}")
    native.publish("a/b/c", "once")
    native.publish("end", "x")
    until(lambda: bridge.depth("S3") == 2)
    assert [bridge.depth(f"S{n}") for n in range(5)] == [1, 1, 1, 2, 1]


def test_2_5_1_1_character_wildcards_are_widened_and_filtered(bridge: Bridge, native: Speaker) -> None:
    _register_by_characters(bridge, "/aaa/bbb/c*d")
    for topic in ("/aaa/bbb/cd", "/aaa/bbb/x", "/aaa/bbb/c/d", "/aaa/ccc/cd"):
        native.publish(topic, topic)
    until(lambda: bridge.depth("OLD") >= 2)
    # Between topic strings Kafka has no order.
    assert sorted(bridge.data("OLD")) == [b"/aaa/bbb/c/d", b"/aaa/bbb/cd"]


def test_a_subscription_to_all_below_a_topic_has_the_topic_too(bridge: Bridge, native: Speaker) -> None:
    bridge.register("Sport/#")
    for topic in ("Sports", "Sport", "Sport/Soccer/Newcastle Southampton", "x/Sport", "Sport/"):
        native.publish(topic, topic)
    until(lambda: bridge.depth("S") >= 3)
    assert sorted(bridge.data("S")) == [b"Sport", b"Sport/", b"Sport/Soccer/Newcastle Southampton"]


def test_only_what_is_published_after_the_response_reaches_a_subscriber(bridge: Bridge, native: Speaker) -> None:
    bridge.register("other")
    native.publish("late/x", "before")
    bridge.register("late/#")
    native.publish("late/x", "after")
    until(lambda: bridge.depth("S") >= 1)
    assert bridge.data("S") == [b"after"]


def test_retained_native_publications_greet_a_new_subscriber(bridge: Bridge, native: Speaker) -> None:
    native.publish("score/1", "old", retain=True)
    native.publish("score/1", "1:0", retain=True)
    native.publish("score/2", "2:0", retain=True)
    bridge.register("score/#", options="<RegOpt>InformIfRet</RegOpt>")
    assert sorted(bridge.data("S")) == [b"1:0", b"2:0"]
    assert all(b"IsRetainedPub" in m.rfh2.folders[0].data for m in bridge.browse("S"))  # type: ignore[union-attr]


def test_req_update_finds_what_natives_have_retained(bridge: Bridge, native: Speaker) -> None:
    native.publish("score/1", "1:0", retain=True)
    bridge.register("score/#", options="<RegOpt>PubOnReqOnly</RegOpt>")
    native.publish("score/1", "1:1", retain=True)
    until(lambda: bridge.processor.tally.commands >= 2)
    psc = "<Command>ReqUpdate</Command><Topic>score/#</Topic><QName>S</QName>"
    bridge.put(CONTROL, psc)
    until(lambda: bridge.depth("S") == 1)
    assert bridge.data("S") == [b"1:1"]


def test_either_side_clears_what_is_retained(bridge: Bridge, tree: Tree, native: Speaker) -> None:
    bridge.register("score/#")
    native.publish("score/1", "1:0", retain=True)
    bridge.publish("score/2", b"2:0", "<PubOpt>RetainPub</PubOpt>")
    until(lambda: bridge.depth("S") == 2 and tree.retained() == {"score/1", "score/2"})
    native.publish("score/2", "", retain=True)
    bridge.put(STREAM, "<Command>DeletePub</Command><Topic>score/1</Topic>")
    until(lambda: tree.retained() == set(), "both to be cleared")
    until(lambda: bridge.processor.tally.commands >= 5, "the bridge to know")
    bridge.register("score/+", "LATE")
    assert bridge.data("LATE") == []
