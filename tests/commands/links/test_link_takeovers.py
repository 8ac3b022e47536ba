"""Another run takes over from one with a link: to an MQTT broker, and with the queues of IBM MQ (stand-in)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import PostgresqlHome
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import decode
from tests.commands.links.mosquitto import Native, mosquitto, needs_mosquitto
from tests.commands.links.mqi.harness import needs_mqi, stand_in
from tests.commands.links.test_mq_queues import World
from tests.postgresql import needs_postgresql
from tests.reliability.takeovers import Pair
from tests.reliability.workload import CONTROL, STREAM, put
from tests.waiting import until

pytestmark = [pytest.mark.nightly, pytest.mark.faults, needs_postgresql]

WAYS = ("kill", "stop", "stop worker")
LEASE = ("--lease", "1")


@needs_mosquitto
def test_over_mqtt_nothing_is_lost_in_either_direction(postgresql_home: PostgresqlHome, tmp_path: Path) -> None:
    """At QoS 1 something may come twice, as after a kill; what goes from program to program of queues does not."""
    QueueManagerStore.create(postgresql_home, QueueManager("QM1")).close()
    with (
        mosquitto(tmp_path / "mosquitto") as broker,
        QueueManagerStore.open(postgresql_home, "QM1", durability=Durability.NORMAL) as store,
    ):
        with store.unit_of_work() as unit:
            for queue, topic in (("FROM.NATIVES", "in/#"), ("FROM.LEGACY", "out/#")):
                unit.save_definition(LocalQueue(queue))
                put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")
        watcher, speaker = Native(broker, "watcher", "out/#", lasting=True), Native(broker, "speaker")
        pair = Pair(postgresql_home, tmp_path, "--topics", broker.url, *LEASE)
        published: list[str] = []

        def publish() -> None:
            for _ in range(10):
                published.append(str(len(published)))
                speaker.insist("in/t", published[-1])
                with store.unit_of_work() as unit:
                    put(unit, STREAM, "<Command>Publish</Command><Topic>out/t</Topic>", published[-1].encode())

        def came(queue: str) -> list[str]:
            return [decode(message.body, message.md).body.decode() for message in store.browse(queue)]

        try:
            until(lambda: store.depth(CONTROL) == 0, "the subscriptions")
            publish()
            for way in WAYS:
                pair.take(way)
                publish()
                pair.bring_back()
                publish()
            everything = set(published)
            until(lambda: everything == set(came("FROM.NATIVES")), "what natives published")
            until(lambda: everything == set(watcher.payloads()), "what legacy programs published, for natives")
            assert came("FROM.LEGACY") == published
        finally:
            pair.close()
        for native in (watcher, speaker):
            native.close()


@needs_mqi
def test_with_the_queues_of_ibm_mq_nothing_is_lost_or_doubled(postgresql_home: PostgresqlHome, tmp_path: Path) -> None:
    """IBM MQ admits one bridge, by its record's queue: one that is stopped has it until IBM MQ ends the connection."""
    with stand_in(tmp_path / "mq", {"S": {}}) as mq:
        world = World(postgresql_home, mq)
        world.register("S", "#")
        options = ("--queues", "ibmmq://127.0.0.1:1414/QM1?channel=C", *LEASE)
        pair = Pair(postgresql_home, tmp_path, *options, environment=mq.environment)
        published: list[bytes] = []

        def publish() -> None:
            for _ in range(10):
                published.append(str(len(published)).encode())
                world.publish("t", published[-1])

        try:
            until(lambda: mq.depth(CONTROL) == 0, "the subscription")
            for way in ("kill", "end"):
                publish()
                pair.take(way)
                publish()
                pair.bring_back()
            until(lambda: mq.depth("S") >= len(published), "the publications")
            assert Counter(world.data("S")) == Counter(published)
        finally:
            pair.close()
            world.close()
            world.programs.close()
