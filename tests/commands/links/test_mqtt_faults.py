"""What an MQTT broker may do to the bridge: refuse, forget, be away, be less than MQTT 5 can be. Nothing goes unsaid.

mosquitto does it where it can; what needs a broker of another make is shown with one that is made up.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import parse_address
from commands.links.engine.properties import publishing
from commands.links.engine.pumps import OutboundPump
from commands.links.mqtt.adapter import MqttAdapter, Snapshots
from commands.links.mqtt.client import MqttClient
from commands.links.mqtt.packets import Granted, MqttPublication
from commands.links.mqtt.sender import MqttSender
from commands.qmgr.store.port import StoredMessage
from rfh2 import Mqmd, decode
from streams.operations import Publication, PublishToTopic
from tests.certificates import make_certificates, needs_openssl
from tests.commands.links.mosquitto import Mosquitto, Native, free_port, mosquitto, needs_mosquitto
from tests.commands.links.proxy import proxy
from tests.commands.links.test_mqtt import CONTROL, STREAM, Bridge
from tests.commands.scenario import KICK_OFF, rfh2_message
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.faults

DEAD = "SYSTEM.DEAD.LETTER.QUEUE"
OUTGOING = "SYSTEM.QPUBSUB.OUTGOING"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "mosquitto") as running:
        yield running


def _said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


def _client(url: str, **config: Any) -> MqttClient:
    return MqttClient(
        parse_address(url, "--topics"), TopicsConfig(**config), "trial", lambda _received: None, clean=True
    )


def _trouble(url: str, **config: Any) -> str:
    client = _client(url, **config)
    client.start()
    try:
        assert not client.wait_tried(5)
        return client.trouble
    finally:
        client.stop()


# No connection: the reason is told


@needs_mosquitto
def test_what_is_wrong_with_the_address_is_told(broker: Mosquitto) -> None:
    nobody = free_port()
    where = f"mqtt://127.0.0.1:{nobody}"
    assert _trouble(where) == f"the MQTT broker at {where} does not answer: Connection refused"
    assert "does not answer: " in _trouble("mqtt://no-such-host.invalid:1")
    secure = broker.url.replace("mqtt", "mqtts", 1)
    told = _trouble(secure)
    assert told.startswith(f"the MQTT broker at {secure} does not answer: the server there does not use TLS")
    assert told.endswith("try mqtt://")


def test_what_is_no_mqtt_broker_is_told(tmp_path: Path) -> None:
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def hang_up() -> None:
            connection, _ = listening.accept()
            connection.recv(1)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        told = _trouble(f"mqtt://127.0.0.1:{listening.getsockname()[1]}")
        thread.join()
    assert told.endswith("hangs up instead of answering: it is not an MQTT 5 broker, or wants TLS")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls(tmp_path: Path, certificates: Path) -> Iterator[Callable[..., str]]:
    """Starts a broker that wants TLS; the URL of it."""
    brokers: list[Mosquitto] = []

    def start(*settings: str) -> str:
        files = (f"cafile {certificates}/ca.pem", f"certfile {certificates}/localhost.pem")
        broker = Mosquitto(tmp_path / "tls", *files, f"keyfile {certificates}/localhost.key", *settings)
        brokers.append(broker)
        broker.start()
        return f"mqtts://localhost:{broker.port}"

    yield start
    for broker in brokers:
        broker.stop()


@needs_mosquitto
@needs_openssl
def test_tls_with_an_authority_of_ones_own(tmp_path: Path, tls: Callable[..., str], certificates: Path) -> None:
    url = tls()
    with Bridge(tmp_path / "qmgrs", url, ca_file=certificates / "ca.pem") as bridge:
        bridge.publish("a", b"secret")
        until(lambda: bridge.processor.tally.linked == 1 and bridge.depth(OUTGOING) == 0, "the broker to have it")
    told = _trouble(url)
    assert "its certificate is not trusted (" in told
    assert told.endswith("see ca_file")
    other = url.replace("localhost", "127.0.0.1")
    assert "IP address mismatch" in _trouble(other, ca_file=certificates / "ca.pem")
    plain = url.replace("mqtts", "mqtt", 1)
    assert "it is not an MQTT 5 broker, or wants TLS" in _trouble(plain)


@needs_mosquitto
@needs_openssl
def test_tls_with_a_certificate_of_the_bridges(tls: Callable[..., str], certificates: Path) -> None:
    url = tls("require_certificate true")
    authority = {"ca_file": certificates / "ca.pem"}
    files = {"cert_file": certificates / "bridge.pem", "key_file": certificates / "bridge.key"}
    client = _client(url, **authority, **files)
    client.start()
    assert client.wait_up(5)
    client.stop()
    assert "at " + url in _trouble(url, **authority)


def test_tls_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.pem: no such file"):
        _client("mqtts://localhost", ca_file=tmp_path / "missing.pem")


# Rights


def _users(directory: Path, password: str, *rules: str) -> tuple[str, ...]:
    (directory / "users").write_text("")
    (directory / "users").chmod(0o600)
    for user in ("bridge", "native"):
        words = ["mosquitto_passwd", "-b", str(directory / "users"), user, password]
        subprocess.run(words, check=True, capture_output=True)
    (directory / "acl").write_text("\n".join(rules) + "\n")
    return "allow_anonymous false", f"password_file {directory}/users", f"acl_file {directory}/acl"


@needs_mosquitto
@pytest.mark.parametrize("given", ["file", pytest.param("env", marks=pytest.mark.nightly)])
def test_user_and_password_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    settings = _users(tmp_path, "s3cret", "user bridge", "topic readwrite #")
    (tmp_path / "password").write_text("s3cret\n")
    monkeypatch.setenv("BRIDGE_PASSWORD", "s3cret")
    where: dict[str, Any] = {
        "file": {"password_file": tmp_path / "password"},
        "env": {"password_env": "BRIDGE_PASSWORD"},
    }
    with (
        mosquitto(tmp_path / "mosquitto", *settings) as broker,
        Bridge(tmp_path / "qmgrs", broker.url, user="bridge", **where[given]) as bridge,
    ):
        bridge.register("#")
        bridge.publish("a")
        until(lambda: bridge.depth("S") == 1 and bridge.depth(OUTGOING) == 0)


@needs_mosquitto
def test_a_wrong_password_is_told_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("guess")
    with mosquitto(tmp_path / "mosquitto", *_users(tmp_path, "s3cret", "user bridge")) as broker:
        told = _trouble(broker.url, user="bridge", password_file=tmp_path / "wrong")
    assert told == f"the MQTT broker at {broker.url} refuses the connection: Not authorized"


@needs_mosquitto
def test_what_access_rules_forbid_is_a_dead_letter_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = ("user bridge", "topic readwrite mine/#", "topic write mine", "topic readwrite qpubsub/#")
    settings = _users(tmp_path, "s3cret", *rules)
    (tmp_path / "password").write_text("s3cret")
    who: dict[str, Any] = {"user": "bridge", "password_file": tmp_path / "password"}
    with (
        mosquitto(tmp_path / "mosquitto", *settings) as broker,
        Bridge(tmp_path / "qmgrs", broker.url, **who) as bridge,
    ):
        bridge.publish("yours/a", b"forbidden")
        bridge.publish("mine/a", b"allowed")
        until(lambda: bridge.depth(DEAD) == 1 and bridge.depth(OUTGOING) == 0, "the dead letter")
        (dead,) = bridge.browse(DEAD)
        header = dead.headers[0]
        assert (header.reason, header.dest_q_name) == (2035, OUTGOING)  # type: ignore[attr-defined]
        assert dead.body == b"forbidden"
        assert _said(caplog, "refuses a publication on yours/a: Not authorized (0x87)") == 1


# Away, and back


@needs_mosquitto
def test_a_broker_that_is_away_at_regsub_greets_later(tmp_path: Path, broker: Mosquitto) -> None:
    speaker = Native(broker, "speaker")
    speaker.publish("score/1", "1:0", retain=True)
    speaker.close()
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        broker.stop()
        until(lambda: bridge.link.trouble)
        bridge.register("score/#")
        bridge.publish("score/2", b"from here")
        until(lambda: bridge.depth("S") == 1)
        assert bridge.data("S") == [b"from here"], "legacy programs need no broker"
        broker.start()
        until(lambda: bridge.depth("S") == 2, "what natives had retained")
        assert bridge.data("S")[1] == b"1:0"
        listener = Native(broker, "listener", "score/#")
        again = Native(broker, "again")
        again.publish("score/3", "later")
        until(lambda: bridge.depth("S") == 3 and len(listener.messages) >= 2)
        listener.close()
        again.close()


@needs_mosquitto
@pytest.mark.parametrize(
    "forgets", ["restarted without persistence", pytest.param("session expired", marks=pytest.mark.nightly)]
)
def test_a_broker_that_forgot_the_session_is_told_of_and_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, forgets: str
) -> None:
    caplog.set_level(logging.WARNING, "qpubsub.mqtt")
    forgetful = forgets == "restarted without persistence"
    settings = ("persistence false",) if forgetful else ()
    config = {} if forgetful else {"session_expiry_s": 1}
    with mosquitto(tmp_path / "mosquitto", *settings) as broker:
        with Bridge(tmp_path / "qmgrs", broker.url, **config) as bridge:
            bridge.register("in/#")
            if forgetful:
                broker.stop()
                broker.start()
                until(lambda: _said(caplog, "has forgotten the session of this bridge"), "the warning")
                _hears(bridge, broker)
        if not forgetful:
            until(
                lambda: "Expiring client qpubsub-QM1 " in (broker.directory / "log").read_text(),
                "the session to expire",
            )
            with Bridge(tmp_path / "qmgrs", broker.url, **config) as bridge:
                until(lambda: _said(caplog, "has forgotten the session of this bridge"), "the warning")
                _hears(bridge, broker)


def _hears(bridge: Bridge, broker: Mosquitto) -> None:
    until(lambda: bridge.link.is_idle, "the filters to be subscribed to again")
    native = Native(broker, "native")
    native.publish("in/x", "heard")
    until(lambda: bridge.data("S") == [b"heard"], "the publication")
    native.close()


@needs_mosquitto
def test_a_broker_that_forgot_a_subscription_alone_is_asked_again(tmp_path: Path, broker: Mosquitto) -> None:
    """mosquitto writes its sessions every half hour: killed, it has those of then, with the filters of then."""
    with proxy(broker.port) as between, Bridge(tmp_path / "qmgrs", f"mqtt://127.0.0.1:{between.port}") as bridge:
        bridge.register("early/#")
        broker.save()
        bridge.register("late/#")
        between.target = free_port()  # where nobody listens
        broker.stop(signal.SIGKILL)
        broker.start()
        native = Native(broker, "native")
        native.publish("late/retained", "retained meanwhile", retain=True)
        between.target = broker.port
        until(lambda: bridge.data("S"), "what was retained meanwhile")
        for topic in ("early/a", "late/a"):
            native.publish(topic, topic)
        native.close()
        until(lambda: len(bridge.data("S")) == 3, "what comes now")
        assert bridge.data("S") == [b"retained meanwhile", b"early/a", b"late/a"]


@needs_mosquitto
def test_a_broker_that_has_a_filter_again_that_it_had_let_go_sends_nothing_twice(
    tmp_path: Path, broker: Mosquitto
) -> None:
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        for topic, queue in (("a/#", "WIDE"), ("a/+", "S"), ("done", "S")):
            bridge.register(topic, queue)
        broker.save()
        bridge.put(CONTROL, "<Command>DeregSub</Command><Topic>a/#</Topic><QName>WIDE</QName>")
        until(lambda: bridge.link.adapter.held() == ("a/+", "done"), "the filter to go")
        assert bridge.link.settle(threading.Event())
        registry = bridge.link._registry
        before = registry.connections
        broker.stop(signal.SIGKILL)
        broker.start()
        until(lambda: registry.connections > before, "the bridge")
        with registry.lock:  # the connection is all there
            pass
        until(lambda: bridge.link.adapter.held() == ("a/+", "done"), "the filter to go again")
        assert bridge.link.settle(threading.Event())
        native, before = Native(broker, "native"), bridge.link.received
        for topic in ("a/x", "a/x/y", "done"):
            native.publish(topic, topic)
        native.close()
        until(lambda: b"done" in bridge.data("S"), "what comes now")
        assert bridge.data("S") == [b"a/x", b"done"]
        assert bridge.link.received - before == 2, "a/x/y, which nobody wants, came too"


@needs_mosquitto
def test_what_many_filters_select_is_asked_for_at_once_and_comes_once(broker: Mosquitto) -> None:
    native = Native(broker, "native")
    for n in range(30):
        native.publish(f"a/{n}", str(n), retain=True)
    native.publish("b/c", "b", retain=True)
    native.publish("a/3", "", retain=True)
    snapshots = Snapshots(parse_address(broker.url, "--topics"), TopicsConfig(), "trial")
    try:
        found = snapshots.take("a/#", "a/+", *(f"a/{n}" for n in range(30)), "b/#", "nothing/here")
        assert {p.topic: p.payload for p in found} == {
            **{f"a/{n}": str(n).encode() for n in range(30) if n != 3},
            "b/c": b"b",
        }
        assert len(found) == 30
        native.publish("b/c", "later", retain=True)
        assert [(p.topic, p.payload) for p in snapshots.take("b/c")] == [("b/c", b"later")]
    finally:
        snapshots.stop()
        native.close()


def test_what_is_published_while_a_snapshot_is_taken_is_not_taken_for_retained() -> None:
    snapshots = Snapshots(parse_address("mqtt://localhost", "--topics"), TopicsConfig(), "trial")
    fence = MqttPublication(snapshots._fences[0], b"1")
    kept, live, other = MqttPublication("a", b"1", retain=True), MqttPublication("a", b"2"), MqttPublication("b", b"3")
    for packet in (kept, live, other, fence):
        snapshots._came.put(packet)
    assert snapshots._until(fence.payload, snapshots._client.connection) == [kept]


# Retained publications that expire


@needs_mosquitto
def test_a_retained_publication_expires_on_both_sides(tmp_path: Path, broker: Mosquitto) -> None:
    native = Native(broker, "native")
    native.publish("in/brief", "brief", retain=True, MessageExpiryInterval=2)
    native.publish("in/long", "long", retain=True, MessageExpiryInterval=600)
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        bridge.register("in/#")
        came = {m.body: m.mqmd.expiry for m in bridge.browse("S")}
        assert came.keys() == {b"brief", b"long"}
        assert 0 < came[b"brief"] <= 20
        assert 5900 < came[b"long"] <= 6000
        bridge.publish("out/brief", b"brief", "<PubOpt>RetainPub</PubOpt>", expiry=15)
        bridge.publish("out/long", b"long", "<PubOpt>RetainPub</PubOpt>", expiry=6000)
        until(lambda: bridge.processor.tally.linked == 2 and bridge.depth(OUTGOING) == 0)
        time.sleep(2.1)
        late = Native(broker, "late", "out/#")
        until(lambda: late.messages)
        bridge.register("in/+", "LATE")
        assert bridge.data("LATE") == [b"long"]
        bridge.register("out/+", "OUT")
        assert bridge.data("OUT") == [b"long"]
    assert [(m.payload, 590 < m.properties.MessageExpiryInterval <= 600) for m in late.messages] == [(b"long", True)]
    late.close()
    native.close()


# What MQTT cannot carry


@needs_mosquitto
def test_topics_that_mqtt_cannot_carry_are_told_once_and_stay_among_legacy_programs(
    tmp_path: Path, broker: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    native = Native(broker, "native", "#")
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        bridge.register("odd/#")
        bridge.register("a+b/x", "ODD")
        assert _said(caplog, "topic a+b/x: no MQTT topic can be selected by it") == 1
        for _ in range(2):
            bridge.publish("odd/c++/x", b"odd")
        bridge.publish("$mine/x", b"dollar")
        bridge.publish("odd/even", b"even")
        until(lambda: native.messages and bridge.depth("S") == 3)
    assert bridge_data(tmp_path, "S") == [b"odd", b"odd", b"even"]
    assert native.payloads() == ["even"]
    assert _said(caplog, "topic odd/c++/x: publications on it stay here: an MQTT topic has no + and no #") == 1
    assert _said(caplog, "topic $mine/x: publications on it stay here: topics that begin with $ are the MQTT") == 1
    native.close()


def bridge_data(home: Path, queue: str) -> list[bytes]:
    from commands.qmgr.store import QueueManagerStore

    with QueueManagerStore.open(home / "qmgrs", "QM1") as store:
        return [decode(m.body, m.md).body for m in store.browse(queue)]


@needs_mosquitto
def test_a_publication_too_large_for_the_broker_is_a_dead_letter(tmp_path: Path) -> None:
    with (
        mosquitto(tmp_path / "mosquitto", "max_packet_size 2000") as broker,
        Bridge(tmp_path / "qmgrs", broker.url) as bridge,
    ):
        bridge.publish("a", b"x" * 3000)
        bridge.publish("a", b"small")
        until(lambda: bridge.depth(DEAD) == 1 and bridge.depth(OUTGOING) == 0, "the dead letter")
        (dead,) = bridge.browse(DEAD)
        assert dead.headers[0].reason == 2030  # type: ignore[attr-defined]


@needs_mosquitto
def test_a_broker_without_retained_publications_and_qos_1_is_not_asked_for_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mosquitto(tmp_path / "mosquitto", "max_qos 0", "retain_available false") as broker:
        native = Native(broker, "native", "#")
        with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
            bridge.register("in/#")
            bridge.publish("out/x", b"one", "<PubOpt>RetainPub</PubOpt>")
            bridge.put(STREAM, "<Command>DeletePub</Command><Topic>out/x</Topic>")
            bridge.publish("out/x", b"two")
            until(lambda: len(native.messages) == 2, "both publications")
            until(lambda: bridge.depth(OUTGOING) == 0)
            native.publish("in/x", "heard", qos=0)
            until(lambda: bridge.depth("S") == 1)
            assert bridge.link.adapter.mqtt.connection == 1, "the broker had no reason to hang up"
        native.close()
    assert _said(caplog, "takes nothing at QoS 1: publications may be lost") == 1
    assert _said(caplog, "topic out/x: the MQTT broker retains nothing") == 1


class _Broker:
    """A made-up client of a broker that takes *receive_maximum* at once, and answers when it is waited for."""

    client_id, connection, is_up = "bridge", 1, True

    def __init__(self, receive_maximum: int) -> None:
        self.granted = Granted(False, receive_maximum=receive_maximum)
        self.order: list[bytes] = []
        self.unanswered = self.most = 0

    def publish(self, packet: MqttPublication) -> _Broker:
        self.order.append(packet.payload)
        self.unanswered += 1
        self.most = max(self.most, self.unanswered)
        return self

    def wait(self, _timeout_s: float) -> bool:
        self.unanswered -= 1
        return True

    def refusal(self) -> None:
        return None

    def proved(self) -> None:
        pass


class _Spool:
    def __init__(self, count: int) -> None:
        self._messages = [_waiting(n) for n in range(count)]

    def take(self, limit: int) -> list[StoredMessage]:
        return self._messages[:limit]

    def done(self, _refused: object = ()) -> None:
        self._messages.clear()


def _waiting(n: int) -> StoredMessage:
    mqmd, body = rfh2_message(["<psc><Command>Publish</Command></psc>"], Mqmd(persistence=1), str(n).encode())
    published = PublishToTopic("a", Publication(decode(body, mqmd.encode()), KICK_OFF))
    put = publishing(published, "QM1", OUTGOING, local=False)
    return StoredMessage(n, OUTGOING, KICK_OFF, None, put.message.mqmd.encode(), put.body, True, 0)


@pytest.mark.parametrize("receive_maximum", [1, 3, 20, 65_535])
def test_no_more_is_on_its_way_than_the_broker_takes_at_once(receive_maximum: int) -> None:
    """MQTT 5, 3.3.4: it would hang up with 0x93, and again when all is sent again."""
    broker: Any = _Broker(receive_maximum)
    spool: Any = _Spool(50)
    adapter: Any = MqttAdapter
    pump: OutboundPump[str, MqttPublication] = OutboundPump(adapter, None, 500, threading.Event())  # type: ignore[arg-type]
    assert pump.one_batch(spool, MqttSender(broker, TopicsConfig(), threading.Event())) == 50
    assert broker.most == min(receive_maximum, 50)
    assert broker.order == [str(n).encode() for n in range(50)]


@needs_mosquitto
@pytest.mark.nightly
def test_a_password_is_nowhere_that_others_see_it(tmp_path: Path) -> None:
    """As a person runs it: neither the arguments of the process nor what it says have the password."""
    import sys

    from commands.broker.objects import QueueManager
    from commands.qmgr.store import QueueManagerStore

    settings = _users(tmp_path, "s3cret", "user bridge", "topic readwrite #")
    (tmp_path / "password").write_text("s3cret\n")
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    config = tmp_path / "bridge.toml"
    with mosquitto(tmp_path / "mosquitto", *settings) as broker:
        url = broker.url.replace("//", "//bridge@")
        config.write_text(f'[topics]\nurl = "{url}"\npassword_file = "{tmp_path}/password"\n')
        command = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(tmp_path)]
        running = subprocess.Popen([*command, "--config", str(config)], stderr=subprocess.PIPE, env=dict(os.environ))
        sessions = tmp_path / "mosquitto" / "log"
        until(lambda: "as qpubsub-QM1 " in sessions.read_text(), "the connection")
        seen = Path(f"/proc/{running.pid}/cmdline")
        arguments = seen.read_bytes() if seen.exists() else b""
        running.terminate()
        _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0
    assert b"s3cret" not in arguments + said
    assert "u'bridge'" in sessions.read_text()
