"""``run --once`` with a topic tree elsewhere ends when both sides have all that there was for them, or says why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.commands.links.mosquitto import Mosquitto, Native, mosquitto, needs_mosquitto
from tests.commands.links.mqi.harness import CONTROL, INCOMING, OUTGOING, STREAM, needs_mqi, stand_in
from tests.commands.links.nats_server import NatsNative, nats_server, needs_nats
from tests.waiting import until

MQ = "ibmmq://127.0.0.1:1414/QM1?channel=C"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as made:
        yield made


def _once(home: Path, topics: str, *more: str, patience_s: float = 5) -> Result:
    config = home / "bridge.toml"
    config.write_text(f"[topics]\npatience_s = {patience_s}\n")
    words = ["run", "-m", "QM1", "--home", str(home), "--once", "--topics", topics, "--config", str(config), *more]
    return CliRunner().invoke(main, words)


def _put(store: QueueManagerStore, queue: str, psc: str, data: bytes = b"") -> None:
    md = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app")
    with store.unit_of_work() as unit:
        unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data)


def _register(store: QueueManagerStore, topic: str, queue: str) -> None:
    _put(store, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")


def _publish(store: QueueManagerStore, topic: str, data: bytes) -> None:
    _put(store, STREAM, f"<Command>Publish</Command><Topic>{topic}</Topic>", data)


def _data(store: QueueManagerStore, queue: str) -> list[bytes]:
    return [decode(m.body, m.md).body for m in store.browse(queue)] if store.find_queue(queue) else []


def _count(store: QueueManagerStore, queue: str) -> int:
    return store.depth(queue) if store.find_queue(queue) else 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "mosquitto") as running:
        yield running


@needs_mosquitto
def test_it_ends_when_the_mqtt_broker_has_got_and_sent_all(
    tmp_path: Path, store: QueueManagerStore, broker: Mosquitto
) -> None:
    native = Native(broker, "native", "out/#")
    native.publish("in/kept", "kept", retain=True)
    _register(store, "in/#", "S")
    assert _once(tmp_path, broker.url).exit_code == 0
    assert _data(store, "S") == [b"kept"], "a RegSub is greeted with what natives retain, in the first batch too"
    # More than may be on their way at once, so that the broker sends the last ones after it has heard of the first.
    for n in range(1_500):
        native.client.publish("in/x", str(n), 1)
    until(lambda: not native.client._out_messages, "the broker to have taken them")
    for n in range(50):
        _publish(store, "out/x", str(n).encode())
    result = _once(tmp_path, broker.url)
    assert result.exit_code == 0, result.output
    assert _data(store, "S") == [b"kept", *(str(n).encode() for n in range(1_500))]
    assert _count(store, OUTGOING) == 0
    until(lambda: len(native.messages) == 50, "what went to native subscribers")
    assert native.payloads() == [str(n) for n in range(50)]
    native.close()


@needs_mosquitto
def test_with_no_broker_it_says_so_and_what_has_to_go_there_waits(
    tmp_path: Path, store: QueueManagerStore, broker: Mosquitto
) -> None:
    broker.stop()
    _register(store, "#", "S")
    _publish(store, "out/x", b"later")
    result = _once(tmp_path, broker.url, patience_s=0.3)
    assert result.exit_code == 1
    waits = f"publications to or from the topic tree still wait: the MQTT broker at {broker.url} does not answer"
    assert waits in result.stderr
    assert _data(store, "S") == [b"later"], "legacy programs reach each other without the broker"
    assert _count(store, OUTGOING) == 1
    broker.start()
    native = Native(broker, "native", "out/#")
    assert _once(tmp_path, broker.url).exit_code == 0
    until(lambda: native.payloads() == ["later"], "the publication")
    assert _count(store, OUTGOING) == 0
    native.close()


@needs_mosquitto
def test_what_the_tree_refuses_is_told_at_the_end(tmp_path: Path, store: QueueManagerStore) -> None:
    (tmp_path / "acl").write_text("topic readwrite qpubsub/#\n")
    with mosquitto(tmp_path / "mosquitto", f"acl_file {tmp_path}/acl") as broker:
        _publish(store, "out/x", b"forbidden")
        result = _once(tmp_path, broker.url)
    assert result.exit_code == 1
    assert "the topic tree refused 1 publication: see SYSTEM.DEAD.LETTER.QUEUE" in result.stderr
    assert _count(store, "SYSTEM.DEAD.LETTER.QUEUE") == 1


@needs_mosquitto
def test_a_strict_queue_manager_gets_the_queue_on_which_publications_wait(tmp_path: Path, broker: Mosquitto) -> None:
    native = Native(broker, "native", "#")
    with QueueManagerStore.create(tmp_path, QueueManager("QM1", strict=True)) as strict:
        _publish(strict, "out/x", b"strictly")
        assert _once(tmp_path, broker.url).exit_code == 0
    until(lambda: native.payloads() == ["strictly"])
    native.close()


@needs_nats
def test_it_ends_when_the_nats_server_has_got_and_sent_all(tmp_path: Path, store: QueueManagerStore) -> None:
    with nats_server(tmp_path / "nats") as server:
        _register(store, "in/#", "S")
        assert _once(tmp_path, server.url).exit_code == 0
        native = NatsNative(server.url, "out.>")
        native.flood("in/x", b"in", 1_500)
        native.publish("in/kept", "kept", retain=True)
        for n in range(50):
            _publish(store, "out/x", str(n).encode())
        result = _once(tmp_path, server.url)
        assert result.exit_code == 0, result.output
        assert sorted(_data(store, "S")) == sorted([*[b"in"] * 1_500, b"kept"])
        assert _count(store, OUTGOING) == 0
        until(lambda: len(native.messages) == 50, "what went to native subscribers")
        assert native.payloads() == [str(n) for n in range(50)]
        native.close()


@needs_mqi
@pytest.mark.parametrize("queues", [(), ("--queues", MQ)], ids=["embedded queues", "IBM MQ queues"])
def test_it_ends_when_ibm_mqs_tree_has_got_and_sent_all(tmp_path: Path, queues: tuple[str, ...]) -> None:
    from tests.commands.links.test_mq_topics import World

    with stand_in(tmp_path / "mq", {name: {} for name in ("S", "NATIVE", "REPLY")}) as mq:
        world = World(tmp_path, mq, MQ if queues else None)
        world.native_subscribe("out/#")
        psc = "<Command>RegSub</Command><Topic>in/#</Topic><QName>S</QName>"
        world.put(CONTROL, psc)
        assert _once(tmp_path, MQ, *queues).exit_code == 0
        for n in range(20):
            world.publish("out/x", str(n).encode())
            world.native_publish("in/x", str(n).encode())
        result = _once(tmp_path, MQ, *queues)
        assert result.exit_code == 0, result.output
        wanted = [str(n).encode() for n in range(20)]
        assert (world.data("S"), [m.body for m in world.natives()]) == (wanted, wanted)
        assert mq.depth(OUTGOING) == mq.depth(INCOMING) == 0
        world.close()
