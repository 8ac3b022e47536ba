"""NATS as the topic tree, with a real server: what it gets, what it refuses, forgets and loses."""

from __future__ import annotations

import shutil
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import parse_address
from commands.links.nats.adapter import NatsAdapter, NatsLogs
from commands.links.nats.connection import Names
from commands.qmgr.store import QueueManagerStore
from rfh2 import decode
from rfh2.errors import StoreError
from tests.certificates import make_certificates, needs_openssl
from tests.commands.links.mosquitto import free_port
from tests.commands.links.nats_server import NatsNative, NatsServer, nats_cluster, nats_server, needs_nats
from tests.commands.links.test_mqtt import STREAM, Bridge
from tests.waiting import PATIENCE_S, until

pytestmark = needs_nats

DEAD, OUTGOING = "SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.QPUBSUB.OUTGOING"
RETAIN = "<PubOpt>RetainPub</PubOpt>"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path / "nats") as running:
        yield running


def _said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


def _trouble(tmp_path: Path, url: str, **config: Any) -> str:
    adapter = NatsAdapter(parse_address(url, "--topics"), TopicsConfig(patience_s=1, **config), "QM1", tmp_path)
    try:
        with pytest.raises(StoreError) as told:
            adapter.client().prepare()
        return str(told.value)
    finally:
        adapter.stop()


# What natives get


def test_a_legacy_publication_reaches_native_subscribers_and_the_bucket(tmp_path: Path, server: NatsServer) -> None:
    with Bridge(tmp_path / "qmgrs", server.url) as bridge:
        native = NatsNative(server.url, "Sport.>")
        stamps = "<usr><colour>red</colour><size dt='i4'>5</size></usr>"
        bridge.publish("Sport/Käse a.b", b"1 \xc3\xa4", RETAIN, stamps, expiry=600, priority=3)
        until(lambda: native.messages and native.values(), "the publication")
        (message,) = native.messages
        assert (message.topic, message.payload) == ("Sport/Käse a.b", b"1 \xc3\xa4")
        wanted = {"colour": "red", "size": "5", "mq.Format": "MQSTR", "mq.Priority": "3", "mq.Retain": "1"}
        assert wanted.items() <= message.headers.items()
        assert message.headers["Nats-TTL"] in ("59s", "60s")
        bucket = native.run(native.jetstream.key_value("QPUBSUB"))
        entry = native.run(bucket.get("Sport.K=C3=A4se=20a=2Eb"))
        assert entry.value == b"1 \xc3\xa4", "clients of the key-value interface reach every topic"
        native.close()


@pytest.mark.slow
def test_a_retained_publication_expires_on_both_sides(tmp_path: Path, server: NatsServer) -> None:
    with Bridge(tmp_path / "qmgrs", server.url) as bridge:
        native = NatsNative(server.url)
        bridge.publish("out/brief", b"brief", RETAIN, expiry=10)
        bridge.publish("out/long", b"long", RETAIN, expiry=6000)
        until(lambda: "out/long" in native.values())
        ttl = {"Nats-TTL": "2s"}
        native.publish("in/brief", "brief", retain=True, **ttl)
        native.publish("in/long", "long", retain=True)
        until(lambda: set(native.values()) == {"out/long", "in/long"}, "both to expire")
        bridge.register("in/+")
        assert bridge.data("S") == [b"long"]
        native.close()


@pytest.mark.slow
def test_a_topic_of_10240_characters(tmp_path: Path) -> None:
    topic = "x/ä b" * 2_048
    with (
        nats_server(tmp_path / "nats", "max_control_line: 65536") as server,
        Bridge(tmp_path / "qmgrs", server.url, longest_subject=60_000) as bridge,
    ):
        native = NatsNative(server.url, ">")
        bridge.register("x/#")
        bridge.publish(topic, b"out", RETAIN)
        until(lambda: native.messages)
        assert [message.topic for message in native.messages] == [topic]
        native.publish(topic, "in")
        until(lambda: bridge.depth("S") == 2)
        native.close()


def test_a_subject_that_is_too_long_and_data_that_is_too_large_are_dead_letters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        nats_server(tmp_path / "nats", "max_payload: 4096") as server,
        Bridge(tmp_path / "qmgrs", server.url) as bridge,
    ):
        bridge.publish("x" * 3_501, b"too long")
        bridge.publish("a", b"x" * 5_000)
        bridge.publish("a", b"small", "", f"<usr><long>{'x' * 65_500}</long></usr>")
        bridge.publish("a", b"small")
        until(lambda: bridge.depth(DEAD) == 3 and bridge.depth(OUTGOING) == 0, "the dead letters")
        reasons = [message.headers[0].reason for message in bridge.browse(DEAD)]  # type: ignore[attr-defined]
        assert reasons == [3072, 2030, 2030]
    assert _said(caplog, "as headers, JetStream takes 65535") == 1
    assert _said(caplog, "longer than longest_subject = 3500") == 1


def test_a_native_subject_that_no_topic_string_becomes_is_a_dead_letter(tmp_path: Path, server: NatsServer) -> None:
    with Bridge(tmp_path / "qmgrs", server.url) as bridge:
        bridge.register("#")
        native = NatsNative(server.url)
        native.run(native.jetstream.publish("mq.a=2eb", b"odd"))
        native.publish("even", "even")
        until(lambda: bridge.depth("S") == 1 and bridge.depth(DEAD) == 1)
        (dead,) = bridge.browse(DEAD)
        assert dead.body.endswith(b"odd")
        native.close()


# Once, whatever breaks


@pytest.mark.faults
def test_a_publication_that_is_sent_again_is_taken_once(tmp_path: Path, server: NatsServer) -> None:
    """As after a crash between the server's answer and the end of the unit of work: the same queue is sent twice."""
    home, copy = tmp_path / "qmgrs", tmp_path / "copy"
    with Bridge(home, server.url) as bridge:
        server.stop()
        for n in range(20):
            bridge.publish("out", str(n).encode(), RETAIN)
        until(lambda: bridge.depth(OUTGOING) == 20, "publications that wait")
    shutil.copytree(home, copy)
    server.start()
    native = NatsNative(server.url, "out", lasting=True)
    for place in (home, copy):
        with Bridge(place, server.url) as bridge:
            wait_for_none_on(bridge, OUTGOING)
    native.publish("out", "end")
    until(lambda: native.payloads()[-1:] == ["end"])
    assert native.payloads() == [*map(str, range(20)), "end"]
    native.close()


def wait_for_none_on(bridge: Bridge, queue: str) -> None:
    until(lambda: bridge.depth(queue) == 0, f"none on {queue}")


@pytest.mark.faults
def test_what_natives_publish_while_the_bridge_is_down_comes_once(tmp_path: Path, server: NatsServer) -> None:
    home = tmp_path / "qmgrs"
    with Bridge(home, server.url) as bridge:
        bridge.register("in/#")
    native = NatsNative(server.url)
    for n in range(50):
        native.publish(f"in/{n % 3}", str(n))
    for _ in range(2):
        with Bridge(home, server.url) as bridge:
            until(lambda bridge=bridge: bridge.depth("S") == 50)  # type: ignore[misc]
            assert bridge.link.settle(threading.Event())
    assert [int(data) for data in bridge_data(home)] == list(range(50))
    native.close()


def bridge_data(home: Path) -> list[bytes]:
    with QueueManagerStore.open(home, "QM1") as store:
        return [decode(message.body, message.md).body for message in store.browse("S")]


@pytest.mark.faults
def test_a_new_subscription_does_not_get_what_is_older(tmp_path: Path, server: NatsServer) -> None:
    with Bridge(tmp_path / "qmgrs", server.url) as bridge:
        native = NatsNative(server.url)
        bridge.register("a")
        for n in range(10):
            native.publish("b", f"old {n}")
        bridge.register("b", "T")
        native.publish("b", "new")
        until(lambda: bridge.depth("T") >= 1)
        assert bridge.data("T") == [b"new"]
        native.close()


# docs/conformance.md: QM-18
@pytest.mark.rule("QM-18")
@pytest.mark.faults
def test_commands_whose_position_is_committed_do_not_come_again(tmp_path: Path, server: NatsServer) -> None:
    """The file of filters and the consumer are older than the queue of the position, as after a kill: it counts."""
    home, native = tmp_path / "qmgrs", NatsNative(server.url)
    with Bridge(home, server.url) as bridge:
        bridge.register("in/#")
        before = (home / "QM1" / "nats.json").read_bytes()
        for n in range(10):
            native.publish(f"in/{n}", str(n))
        until(lambda: bridge.depth("S") == 10)
    (home / "QM1" / "nats.json").write_bytes(before)
    native.run(native.jetstream.delete_consumer("QPUBSUB", "qpubsub-QM1"))
    native.publish("in/x", "10")
    with Bridge(home, server.url) as bridge:
        native.publish("in/x", "11")
        until(lambda: b"11" in bridge.data("S"))
        assert bridge.data("S") == [b"%d" % n for n in range(12)]
    native.close()


@pytest.mark.faults
def test_a_stream_that_was_made_anew_is_read_from_its_beginning(
    tmp_path: Path, server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    home, native = tmp_path / "qmgrs", NatsNative(server.url)
    with Bridge(home, server.url) as bridge:
        bridge.register("in/#")
        for n in range(5):
            native.publish("in/x", f"old {n}")
        until(lambda: bridge.depth("S") == 5)
    native.run(native.jetstream.delete_stream("QPUBSUB"))
    native.run(native.jetstream.add_stream(name="QPUBSUB", subjects=["mq.>"], allow_msg_ttl=True))
    native.publish("in/x", "new")
    with Bridge(home, server.url) as bridge:
        until(lambda: bridge.depth("S") == 6)
        assert bridge.data("S")[5] == b"new"
        assert _said(caplog, "what natives published there and had not come yet is lost") == 1
    native.close()


@pytest.mark.faults
def test_a_consumer_that_is_deleted_under_the_bridge_is_made_again(tmp_path: Path, server: NatsServer) -> None:
    with Bridge(tmp_path / "qmgrs", server.url) as bridge:
        bridge.register("in/#")
        native = NatsNative(server.url)
        native.publish("in/x", "before")
        until(lambda: bridge.depth("S") == 1)
        native.run(native.jetstream.delete_consumer("QPUBSUB", "qpubsub-QM1"))
        native.publish("in/x", "after")
        until(lambda: bridge.depth("S") >= 2, "the new consumer")
        assert bridge.data("S") == [b"before", b"after"]
        native.close()


@pytest.mark.faults
def test_a_server_that_is_away_at_regsub_greets_later(tmp_path: Path, server: NatsServer) -> None:
    speaker = NatsNative(server.url)
    with Bridge(tmp_path / "qmgrs", server.url) as bridge:
        speaker.publish("score/1", "1:0", retain=True)
        server.stop(signal.SIGKILL)
        until(lambda: bridge.link.trouble)
        bridge.register("score/#")
        bridge.publish("score/2", b"from here")
        until(lambda: bridge.depth("S") == 1)
        assert bridge.data("S") == [b"from here"], "legacy programs need no server"
        server.start()
        until(lambda: bridge.depth("S") == 2, "what natives had retained")
        until(lambda: bridge.depth(OUTGOING) == 0)
        assert bridge.data("S")[1] == b"1:0"
    speaker.close()


# Two bridges


def test_two_bridges_share_publications_and_what_is_retained(tmp_path: Path, server: NatsServer) -> None:
    with (
        Bridge(tmp_path / "1", server.url, client_id="one") as one,
        Bridge(tmp_path / "2", server.url, client_id="two") as two,
    ):
        two.register("a/#")
        one.publish("a/1", b"once", RETAIN)
        until(lambda: two.depth("S") == 1)
        one.put(STREAM, "<Command>DeletePub</Command><Topic>a/1</Topic>")
        one.publish("a/2", b"kept", RETAIN)
        until(lambda: two.depth("S") == 2 and two.processor.tally.commands >= 4, "both, and the clear")
        two.register("a/+", "LATE")
        assert (two.data("S"), two.data("LATE")) == ([b"once", b"kept"], [b"kept"])


# Rights and TLS


PERMISSIONS = """authorization {{ users: [
  {{ user: bridge, password: s3cret, permissions: {{ publish: {{ deny: ["mq.yours.>"] }} }} }}
  {{ user: admin, password: admin }}
] }}"""


def test_what_permissions_forbid_is_a_dead_letter_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    who: dict[str, Any] = {"user": "bridge", "password_file": tmp_path / "password"}
    with (
        nats_server(tmp_path / "nats", PERMISSIONS.format()) as server,
        Bridge(tmp_path / "qmgrs", server.url, **who) as bridge,
    ):
        bridge.publish("Yours/a", b"allowed, as the case of letters counts")
        bridge.publish("yours/a", b"forbidden")
        bridge.publish("mine/a", b"allowed")
        until(lambda: bridge.depth(DEAD) == 1 and bridge.depth(OUTGOING) == 0, "the dead letter")
        (dead,) = bridge.browse(DEAD)
        assert (dead.headers[0].reason, dead.body) == (2035, b"forbidden")  # type: ignore[attr-defined]
    assert _said(caplog, "permissions violation for publish") >= 1


@pytest.mark.slow
def test_a_wrong_password_is_told_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("guess")
    with nats_server(tmp_path / "nats", PERMISSIONS.format()) as server:
        told = _trouble(tmp_path, server.url, user="bridge", password_file=tmp_path / "wrong")
    assert "cannot be used: " in told
    assert "uthorization" in told
    assert "guess" not in told


@pytest.mark.faults
def test_who_is_cut_off_before_an_answer_is_told_what_that_may_mean(tmp_path: Path) -> None:
    """A server that refuses a password closes at once; what it said is lost if it had not read everything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def cut_off() -> None:
            connection, _ = listening.accept()
            connection.sendall(b'INFO {"auth_required":true,"max_payload":1048576}\r\n')
            connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

        server = threading.Thread(target=cut_off)
        server.start()
        told = _trouble(tmp_path, f"nats://127.0.0.1:{listening.getsockname()[1]}")
        server.join(PATIENCE_S)
    assert "connection reset by peer (so does a server that refuses the authorization: see user" in told


def test_what_is_wrong_with_the_address_is_told(tmp_path: Path) -> None:
    where = f"nats://127.0.0.1:{free_port()}"
    assert where in _trouble(tmp_path, where)
    assert "connect call failed" in _trouble(tmp_path, where)


@pytest.mark.slow
def test_a_server_without_jetstream_is_told(tmp_path: Path, server: NatsServer) -> None:
    conf = server.directory / "nats.conf"
    server.stop()
    lines = [line for line in conf.read_text().splitlines() if not line.startswith("jetstream")]
    conf.write_text("\n".join(lines))
    server.start()
    assert "JetStream" in _trouble(tmp_path, server.url)


@needs_openssl
def test_tls_with_an_authority_and_a_certificate_of_ones_own(tmp_path: Path) -> None:
    there = make_certificates(tmp_path)
    tls = f'tls {{ cert_file: "{there}/localhost.pem", key_file: "{there}/localhost.key",'
    tls += f' ca_file: "{there}/ca.pem", verify: true }}'
    files = {"cert_file": there / "bridge.pem", "key_file": there / "bridge.key"}
    with nats_server(tmp_path / "nats", tls) as server:
        url = f"tls://localhost:{server.port}"
        with Bridge(tmp_path / "qmgrs", url, ca_file=there / "ca.pem", **files) as bridge:
            bridge.publish("a", b"secret")
            until(lambda: bridge.processor.tally.linked == 1 and bridge.depth(OUTGOING) == 0)
        assert "its certificate is not trusted (" in _trouble(tmp_path, url, **files)


def test_credentials_are_a_file_that_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        _trouble(tmp_path, "nats://localhost", credentials_file=tmp_path / "missing.creds")


PREFIXES = ["mq", ".mq.", "m q.", "*.", "mq..", "$KV.", "mq.>."]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_that_cannot_begin_subjects(prefix: str) -> None:
    with pytest.raises(ConfigError, match="cannot begin NATS subjects"):
        Names.of(TopicsConfig(prefix=prefix), "QM1")


def test_a_stream_for_other_subjects_is_told(tmp_path: Path, server: NatsServer) -> None:
    native = NatsNative(server.url)
    native.run(native.jetstream.add_stream(name="QPUBSUB", subjects=["other.>"]))
    native.close()
    assert "stream QPUBSUB does not have the subjects mq.>" in _trouble(tmp_path, server.url)


# Clusters


@pytest.mark.parametrize("size", [1, pytest.param(3, marks=pytest.mark.nightly)])
def test_only_in_a_cluster_do_publications_on_one_subject_wait_for_one_another(tmp_path: Path, size: int) -> None:
    with nats_cluster(tmp_path / "nats", size) if size > 1 else nats_server(tmp_path / "nats") as running:
        url = running[0].url if isinstance(running, list) else running.url
        logs = NatsLogs(parse_address(url, "--topics"), TopicsConfig(), Names.of(TopicsConfig(), "QM1"))
        until(lambda: _is_ready(logs), "the streams")
        logs.close()
    assert logs.is_cluster is (size > 1)


def _is_ready(logs: NatsLogs) -> bool:
    with suppress(StoreError):
        logs.make_ready()
    return logs.is_cluster is not None


@pytest.mark.slow
@pytest.mark.faults
def test_a_cluster_of_three_loses_a_server_and_nothing_else(tmp_path: Path) -> None:
    with nats_cluster(tmp_path / "nats") as servers:
        others = tuple(f"127.0.0.1:{server.port}" for server in servers[1:])
        with Bridge(tmp_path / "qmgrs", servers[0].url, servers=others, replicas=3) as bridge:
            bridge.register("in/#")
            natives = NatsNative([server.url for server in servers], "out", lasting=True)
            for n in range(300):
                if n in (100, 200):
                    servers[n // 100 - 1].stop(signal.SIGKILL)
                if n in (150, 250):
                    servers[n // 100 - 1].start()
                bridge.publish("out", str(n).encode())
                natives.insist("in/x", str(n))
                time.sleep(0.005)
            wanted = [str(n) for n in range(300)]
            until(lambda: set(wanted) <= set(natives.payloads()), "all legacy publications")
            until(lambda: {str(n).encode() for n in range(300)} <= set(bridge.data("S")), "all native publications")
            assert natives.payloads() == wanted
            assert bridge.data("S") == [each.encode() for each in wanted]
            natives.close()
