"""A real Kafka broker for tests: one process of its own jars (KRaft), which ``.ci/run`` puts in .venv/peers."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

import pytest

from tests.commands.links.mosquitto import free_port, listens
from tests.quick_java import QUICK_JAVA
from tests.waiting import PATIENCE_S, until

JARS = Path(__file__).parents[3] / ".venv" / "peers" / "kafka"
JAVA = shutil.which("java")
try:
    from confluent_kafka import Consumer, Producer, TopicPartition
except ImportError:
    Consumer = None  # type: ignore[assignment,misc]

needs_kafka = pytest.mark.skipif(
    JAVA is None or Consumer is None or not list(JARS.glob("kafka_2.13-*.jar")),
    reason="Java, Kafka's jars or confluent-kafka are missing; see .ci/run",
)


class KafkaServer:
    """One broker, its own controller; it keeps its topics when it is stopped and started again.

    advertised: the port that clients are told, where a proxy is between. settings: more lines of its file. protocol: of
    the listener for bridges, called CLIENTS. users: of SCRAM-SHA-512, with their passwords.
    """

    def __init__(
        self,
        directory: Path,
        *settings: str,
        advertised: int | None = None,
        protocol: str = "PLAINTEXT",
        users: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.directory, self.port = directory, free_port()
        directory.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        controller, within = free_port(), free_port()
        host = "127.0.0.1" if protocol == "PLAINTEXT" else "localhost"
        told = f"CLIENTS://{host}:{advertised or self.port},WITHIN://127.0.0.1:{within}"
        lines = [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{controller}",
            f"listeners=CLIENTS://127.0.0.1:{self.port},WITHIN://127.0.0.1:{within},CONTROLLER://127.0.0.1:{controller}",
            f"advertised.listeners={told}",
            f"listener.security.protocol.map=CLIENTS:{protocol},WITHIN:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name=WITHIN",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={directory}/logs",
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=1",
            "auto.create.topics.enable=false",
            *settings,
        ]
        self._file = directory / "server.properties"
        self._file.write_text("\n".join(lines) + "\n")
        self.within = within
        scram = [
            word
            for user, password in users.items()
            for word in ("--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]")
        ]
        words = ("format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(self._file), *scram)
        self._run("kafka.tools.StorageTool", *words).wait(PATIENCE_S)

    @property
    def url(self) -> str:
        return f"kafka://127.0.0.1:{self.port}"

    @property
    def servers(self) -> str:
        """For native programs: past a proxy."""
        return f"127.0.0.1:{self.within}"

    def start(self) -> None:
        self._process = self._run("kafka.Kafka", str(self._file))
        until(lambda: listens(self.port) and listens(self.within), "Kafka to listen")

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def _run(self, *words: str) -> subprocess.Popen[bytes]:
        assert JAVA is not None
        settings = ["-Xmx256m", *QUICK_JAVA.split(), "-cp", f"{JARS}/*"]
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen([JAVA, *settings, *words], stdout=log, stderr=log)


@contextmanager
def kafka_server(directory: Path, *settings: str) -> Iterator[KafkaServer]:
    server = KafkaServer(directory, *settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@dataclass(frozen=True)
class Heard:
    """A record that a native program got; topic: its topic string, ``at`` its topic of Kafka."""

    topic: str
    payload: bytes | None
    headers: dict[str, str]
    key: str
    at: str = field(compare=False)


class KafkaNative:
    """A program that knows nothing of queues: it reads committed records from the beginning, and produces.

    below: it hears what is below this topic string only. is_late: it reads from the end.
    """

    def __init__(
        self, servers: str, *topics: str, prefix: str = "qpubsub", below: str = "", is_late: bool = False
    ) -> None:
        self.messages: list[Heard] = []
        self._servers, self._prefix, self._below, self._is_late = servers, prefix, below, is_late
        self._producer = Producer(
            # The partitioner of Kafka's own clients, which the bridge has too: so one key is in one partition.
            {"bootstrap.servers": servers, "enable.idempotence": True, "partitioner": "murmur2_random", "log_level": 2}
        )
        self._stop = Event()
        self._thread: Thread | None = None
        if topics:
            self._thread = Thread(target=self._listen, args=(self.reader(*topics),), daemon=True)
            self._thread.start()

    def reader(self, *topics: str) -> Any:
        """A consumer of all that the topics have."""
        own = {"group.id": "native", "enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": 2}
        consumer = Consumer({"bootstrap.servers": self._servers, "isolation.level": "read_committed", **own})
        found: list[TopicPartition] = []

        def there() -> bool:
            about = consumer.list_topics(timeout=PATIENCE_S).topics
            found[:] = [TopicPartition(t, n, 0) for t in topics if t in about for n in about[t].partitions]
            return {each.topic for each in found} == set(topics)

        until(there, "the topics")
        for each in found if self._is_late else ():
            each.offset = consumer.get_watermark_offsets(each, timeout=PATIENCE_S)[1]
        consumer.assign(found)
        return consumer

    def publish(self, topic: str, payload: bytes | str | None, retain: bool = False, **headers: str) -> None:
        """Produce, and wait for the answer. No data and retain: a tombstone."""
        data = payload.encode() if isinstance(payload, str) else payload
        at = f"{self._prefix}.retained" if retain else self._prefix
        self.produce(at, topic.encode(), (data or None) if retain else data, headers)

    def produce(self, at: str, key: bytes | None, value: bytes | None, headers: dict[str, Any] | None = None) -> None:
        errors: list[Any] = []
        self._producer.produce(at, value, key, headers=headers or {}, on_delivery=lambda e, _m: errors.append(e))
        assert self._producer.flush(240) == 0
        assert errors == [None]

    def flood(self, topic: str, payload: bytes, count: int) -> None:
        """Produce so often, and wait for the answers at the end."""
        for _ in range(count):
            self._producer.produce(self._prefix, payload, topic.encode())
        assert self._producer.flush(240) == 0

    def retained(self) -> dict[str, bytes]:
        """What the compacted topic has."""
        consumer, found = self.reader(f"{self._prefix}.retained"), dict[str, bytes]()
        while (message := consumer.poll(1.0)) is not None:
            found.pop(message.key().decode(), None)
            if message.value() is not None:
                found[message.key().decode()] = message.value()
        consumer.close()
        return found

    def payloads(self, topic: str | None = None) -> list[str]:
        return [(m.payload or b"").decode() for m in self.messages if topic is None or m.topic == topic]

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _listen(self, consumer: Any) -> None:
        while not self._stop.is_set():
            for message in consumer.consume(500, 0.01):
                if message.error() is None:
                    headers = {name: value.decode() for name, value in reversed(message.headers() or [])}
                    key = (message.key() or b"").decode()
                    heard = Heard(headers.get("mq.Topic", key), message.value(), headers, key, message.topic())
                    if heard.topic.startswith(self._below):
                        self.messages.append(heard)
        consumer.close()
