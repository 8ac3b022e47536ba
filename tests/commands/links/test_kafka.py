"""Kafka as the topic tree, with a real broker: what it gets, what it refuses, and what comes once whatever breaks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.config.settings import ConfigError, KafkaConfig, TopicsConfig
from commands.config.urls import parse_address
from commands.links.kafka.adapter import KafkaAdapter, KafkaSender
from commands.links.kafka.cluster import KafkaCluster, Routes, client_settings
from commands.qmgr.store import QueueManagerStore
from rfh2.errors import StoreError
from tests.certificates import make_certificates, needs_openssl
from tests.commands.links.kafka_server import KafkaNative, KafkaServer, kafka_server, needs_kafka
from tests.commands.links.test_mqtt import STREAM, Bridge
from tests.waiting import until

pytestmark = needs_kafka

DEAD, OUTGOING = "SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.QPUBSUB.OUTGOING"
RETAIN = "<PubOpt>RetainPub</PubOpt>"


@pytest.fixture
def topic(name: str) -> str:
    """Topics of its own for each test: they share a broker."""
    return name


def _wait_for_none_on(bridge: Bridge, queue: str) -> None:
    until(lambda: bridge.depth(STREAM) == bridge.depth(queue) == 0, f"{queue} to be empty")


def _cluster(server: KafkaServer, topic: str, bridge: str = "qpubsub-QM1") -> KafkaCluster:
    config = TopicsConfig(kafka=KafkaConfig(topic=topic))
    return KafkaCluster(parse_address(server.url, ""), config, Routes(config.kafka), bridge)


def test_properties_and_descriptor_are_headers_and_the_value_is_left_alone(
    tmp_path: Path, shared_kafka: KafkaServer, topic: str
) -> None:
    with Bridge(tmp_path, shared_kafka.url, kafka={"topic": topic}) as bridge:
        native = KafkaNative(shared_kafka.servers, topic, prefix=topic)
        stamps = "<usr><colour>red</colour><size dt='i4'>5</size></usr>"
        bridge.publish("Sport/Käse a.b", b"1 \xc3\xa4", RETAIN, stamps, expiry=600, priority=3)
        until(lambda: native.messages, "the publication")
        (message,) = native.messages
        assert (message.key, message.payload) == ("Sport/Käse a.b", b"1 \xc3\xa4")
        wanted = {"colour": "red", "size": "5", "mq.Format": "MQSTR", "mq.Priority": "3", "mq.Retain": "1"}
        assert wanted.items() <= message.headers.items()
        assert native.retained() == {"Sport/Käse a.b": b"1 \xc3\xa4"}
        native.close()


def test_a_route_leads_to_topics_of_native_programs_and_back(
    tmp_path: Path, shared_kafka: KafkaServer, topic: str
) -> None:
    route = {"pattern": "Orders/+", "topic": f"{topic}-orders", "key": "{2}", "native": "Orders/{key}"}
    with Bridge(tmp_path, shared_kafka.url, kafka={"topic": topic, "partitions": 2, "routes": [route]}) as bridge:
        bridge.register("Orders/+")
        native = KafkaNative(shared_kafka.servers, f"{topic}-orders", prefix=topic)
        bridge.publish("Orders/7", b"legacy")
        until(lambda: native.messages)
        assert [(each.key, each.at) for each in native.messages] == [("7", f"{topic}-orders")]
        native.produce(f"{topic}-orders", b"8", b"native", {"colour": "red"})
        native.produce(f"{topic}-orders", None, b"no key")
        until(lambda: bridge.depth("S") == 2 and bridge.depth(DEAD) == 1)
        (_, came) = bridge.browse("S")
        assert came.rfh2 is not None
        assert came.rfh2.folders[0].values()["Topic"] == "Orders/8"
        native.close()


def test_what_is_too_large_is_a_dead_letter_and_the_rest_goes_on(
    tmp_path: Path, shared_kafka: KafkaServer, topic: str
) -> None:
    with Bridge(tmp_path, shared_kafka.url, kafka={"topic": topic}) as bridge:
        bridge.publish("a", b"x" * 2_000_000)
        bridge.publish("a", b"small")
        until(lambda: bridge.depth(DEAD) == 1 and bridge.depth(OUTGOING) == bridge.depth(STREAM) == 0)
        assert [each.headers[0].reason for each in bridge.browse(DEAD)] == [2030]  # type: ignore[attr-defined]
        native = KafkaNative(shared_kafka.servers, topic, prefix=topic)
        until(lambda: native.payloads() == ["small"])
        native.close()


def test_a_subscriber_gets_what_natives_published_while_the_bridge_was_down(
    tmp_path: Path, shared_kafka: KafkaServer, topic: str
) -> None:
    native = KafkaNative(shared_kafka.servers, prefix=topic)
    with Bridge(tmp_path, shared_kafka.url, kafka={"topic": topic}) as bridge:
        native.publish("in/x", "before")
        bridge.register("in/#")
        native.publish("in/x", "1")
        until(lambda: bridge.depth("S") == 1)
    native.publish("in/x", "2")
    with Bridge(tmp_path, shared_kafka.url, kafka={"topic": topic}) as bridge:
        until(lambda: bridge.depth("S") == 2)
        assert bridge.data("S") == [b"1", b"2"]


# Once, whatever breaks


# docs/conformance.md: QM-18
@pytest.mark.rule("QM-18")
@pytest.mark.faults
def test_a_publication_that_is_sent_again_is_there_once(tmp_path: Path, topic: str) -> None:
    """As after a crash between the commit in Kafka and the end of the unit of work: the same queue is sent twice."""
    home, copy = tmp_path / "qmgrs", tmp_path / "copy"
    with kafka_server(tmp_path / "kafka") as server:
        with Bridge(home, server.url) as bridge:
            _wait_for_none_on(bridge, OUTGOING)
            server.stop()
            for n in range(20):
                bridge.publish("out", str(n).encode(), RETAIN)
            until(lambda: bridge.depth(OUTGOING) == 20, "publications that wait")
        shutil.copytree(home, copy)
        server.start()
        for place in (home, copy):
            # A smaller batch than the one that was committed must leave the rest of it out too.
            with Bridge(place, server.url, batch=500 if place == home else 7) as bridge:
                _wait_for_none_on(bridge, OUTGOING)
        native = KafkaNative(server.servers, "qpubsub")
        native.publish("out", "end")
        until(lambda: "end" in native.payloads())
        assert native.payloads() == [*(str(n) for n in range(20)), "end"]
        native.close()


@pytest.mark.faults
def test_commands_whose_position_is_committed_do_not_come_again(
    tmp_path: Path, shared_kafka: KafkaServer, topic: str
) -> None:
    """The file of filters is older than the queue of the position, as after a crash: the queue counts."""
    native = KafkaNative(shared_kafka.servers, prefix=topic)
    with Bridge(tmp_path / "qmgrs", shared_kafka.url, kafka={"topic": topic}) as bridge:
        bridge.register("in/#")
        before = (tmp_path / "qmgrs" / "QM1" / "kafka.json").read_bytes()
        for n in range(10):
            native.publish(f"in/{n}", str(n))
        until(lambda: bridge.depth("S") == 10)
    (tmp_path / "qmgrs" / "QM1" / "kafka.json").write_bytes(before)
    with Bridge(tmp_path / "qmgrs", shared_kafka.url, kafka={"topic": topic}) as bridge:
        native.publish("in/last", "last")
        until(lambda: b"last" in bridge.data("S"))
        assert sorted(bridge.data("S")) == sorted([*(b"%d" % n for n in range(10)), b"last"])


@pytest.mark.faults
def test_a_processor_that_was_taken_over_sends_nothing_more(shared_kafka: KafkaServer, topic: str) -> None:
    routes = Routes(KafkaConfig(topic=topic))
    earlier, later = (KafkaSender(_cluster(shared_kafka, topic), routes, epoch) for epoch in (4, 5))
    assert list(earlier.send(())) == []
    assert list(later.send(())) == []
    earlier._producer = None  # as after an error, which another one with its name causes
    with pytest.raises(StoreError, match="end one, or change client_id"):
        list(earlier.send(()))
    later._producer = None
    assert list(later.send(())) == [], "it takes the name back"


# What is told


@pytest.mark.faults
def test_a_broker_that_is_not_there_is_told_and_waited_for(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path / "kafka")
    with Bridge(tmp_path / "qmgrs", server.url, is_there=False) as bridge:
        bridge.publish("a", b"waits")
        until(lambda: bridge.link.state.connected is False, "the state to say so")
        assert server.url in bridge.link.trouble
        server.start()
        try:
            until(lambda: bridge.depth(OUTGOING) == 0 and bridge.link.state.connected, "the publication to go")
        finally:
            server.stop()


def _check(home: Path, *words: str) -> dict[str, dict[str, Any]]:
    if not home.exists():
        QueueManagerStore.create(home, QueueManager("QM1")).close()
    result = CliRunner().invoke(main, ["check", "-m", "QM1", "--home", str(home), "--json", *words])
    found = {row["subject"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert result.exit_code == int(not all(row["ok"] for row in found.values())), result.output
    return found


def test_check_tells_what_is_there_what_is_made_and_what_would_lose_something(
    tmp_path: Path, shared_kafka: KafkaServer, topic: str
) -> None:
    (tmp_path / "bridge.toml").write_text(f'[topics.kafka]\ntopic = "{topic}"\n')
    words = ("--topics", shared_kafka.url, "--config", str(tmp_path / "bridge.toml"))
    found = _check(tmp_path / "qmgrs", *words)
    assert found[f"topic {topic}"]["what"] == "not there; run makes it"
    wrong = Routes(KafkaConfig(topic=topic))
    wrong.publications, wrong.retained = (f"{topic}.retained",), f"{topic}.other"
    config = TopicsConfig(kafka=KafkaConfig(topic=topic))
    KafkaCluster(parse_address(shared_kafka.url, ""), config, wrong, "admin").make(f"{topic}.retained")
    _cluster(shared_kafka, topic).make_ready()
    found = _check(tmp_path / "qmgrs", *words)
    assert found[f"topic {topic}"]["what"] == "6 partitions, cleanup.policy delete"
    assert found[f"topic {topic}.state"]["what"] == "1 partition, cleanup.policy compact"
    assert not found[f"topic {topic}.retained"]["ok"]
    assert "cleanup.policy=compact" in found[f"topic {topic}.retained"]["mend"][0]
    assert found["size of a publication"]["what"].startswith("1048588 bytes")


def test_check_tells_that_no_broker_answers(tmp_path: Path) -> None:
    (tmp_path / "bridge.toml").write_text("[topics]\npatience_s = 1\n")
    words = ("--topics", "kafka://127.0.0.1:1", "--config", str(tmp_path / "bridge.toml"))
    row = _check(tmp_path / "qmgrs", *words)["connection to kafka://127.0.0.1:1"]
    assert not row["ok"]
    assert "Kafka at kafka://127.0.0.1:1" in row["what"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that speaks TLS, and wants a user: ``bridge`` with ``s3cret``. Its directory has ``ca.pem``."""
    there = make_certificates(tmp_path_factory.mktemp("guarded"))
    (there / "server.pem").write_text((there / "localhost.key").read_text() + (there / "localhost.pem").read_text())
    settings = (
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={there}/server.pem",
        "sasl.enabled.mechanisms=SCRAM-SHA-512",
        "listener.name.clients.scram-sha-512.sasl.jaas.config="
        "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    )
    server = KafkaServer(there, *settings, protocol="SASL_SSL", users={"bridge": "s3cret"})
    server.start()
    yield server
    server.stop()


def _who(guarded: KafkaServer, tmp_path: Path, password: str = "s3cret") -> dict[str, Any]:
    (tmp_path / "password").write_text(password)
    return {
        "user": "bridge",
        "password_file": tmp_path / "password",
        "ca_file": guarded.directory / "ca.pem",
        "kafka": {"sasl_mechanism": "SCRAM-SHA-512"},
    }


@needs_openssl
@pytest.mark.nightly
def test_tls_with_an_authority_of_ones_own_and_a_user(tmp_path: Path, guarded: KafkaServer) -> None:
    url = f"kafkas://localhost:{guarded.port}"
    with Bridge(tmp_path / "qmgrs", url, **_who(guarded, tmp_path)) as bridge:
        bridge.register("in/#")
        native = KafkaNative(guarded.servers, "qpubsub")
        native.publish("in/x", "in")
        bridge.publish("out", b"secret")
        until(lambda: bridge.depth("S") == 1 and "secret" in native.payloads(), "both")
        native.close()


UNTRUSTED = [
    ("a wrong password", {"password": "guess"}, {}, "uthentication failed"),
    ("an authority that is not trusted", {}, {"ca_file": None}, "certificate verify failed"),
]


@needs_openssl
@pytest.mark.nightly
@pytest.mark.parametrize(("given", "more", "told"), [row[1:] for row in UNTRUSTED], ids=[row[0] for row in UNTRUSTED])
def test_who_cannot_be_trusted_is_told(
    tmp_path: Path, guarded: KafkaServer, given: dict[str, str], more: dict[str, Any], told: str
) -> None:
    config = TopicsConfig(patience_s=3, **(_who(guarded, tmp_path, **given) | more))
    address = parse_address(f"kafkas://localhost:{guarded.port}", "--topics")
    cluster = KafkaCluster(address, config, Routes(config.kafka), "bridge")
    with pytest.raises(StoreError, match=told) as error:
        cluster.make_ready()
    assert "guess" not in str(error.value)


CONNECTIONS = [
    ("kafka://h:1", {}, {"security.protocol": "PLAINTEXT", "bootstrap.servers": "h:1"}),
    ("kafkas://h:1", {"ca_file": "ca.pem"}, {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}),
    (
        "kafkas://h:1",
        {"cert_file": "c.pem", "key_file": "k.pem"},
        {"ssl.certificate.location": "c.pem", "ssl.key.location": "k.pem"},
    ),
    (
        "kafkas://h:1",
        {"user": "bridge", "password_env": "SECRET", "kafka": {"sasl_mechanism": "SCRAM-SHA-512"}},
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "bridge",
            "sasl.password": "s3cret",
        },
    ),
]


@pytest.mark.parametrize(("url", "config", "wanted"), CONNECTIONS)
def test_what_the_client_is_told_of_trust_and_users(
    monkeypatch: pytest.MonkeyPatch, url: str, config: dict[str, Any], wanted: dict[str, str]
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    told = client_settings(parse_address(url, ""), TopicsConfig(**config), "qpubsub-QM1", {}, frozenset())
    assert wanted.items() <= told.items()
    assert told["client.id"] == "qpubsub-QM1"


REFUSED = [
    ({"client": {"isolation.level": "read_uncommitted"}}, "isolation.level is qpubsub's own"),
    ({"client": {"no.such.setting": 1}}, "no.such.setting"),
]


@pytest.mark.parametrize(("kafka", "why"), REFUSED, ids=[row[1] for row in REFUSED])
def test_settings_of_the_client_that_cannot_be(tmp_path: Path, kafka: dict[str, Any], why: str) -> None:
    config = TopicsConfig(kafka=KafkaConfig.model_validate(kafka))
    with pytest.raises(ConfigError) as told:
        KafkaAdapter(parse_address("kafka://localhost", ""), config, "QM1", tmp_path, None)
    assert why in str(told.value)
