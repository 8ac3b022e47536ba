"""Whether a topic tree other than IBM MQ would do for the bridge: what ``qpubsub check`` finds by trying it.

Trying a queue manager as a client does: each call once, on a queue of the moment, with what was got compared.

It needs nothing prepared but the right to connect and a model queue, and leaves nothing behind.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from commands.client import pcf
from commands.client.calls import Wanted
from commands.client.connection import Connection, Place
from commands.client.errors import MqError
from commands.client.queue_manager import Queue, QueueManager
from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import TreeUnreachableError
from commands.links.kafka.cluster import KafkaCluster, Routes
from commands.links.mqtt.client import RETAIN_NEVER, MqttClient
from commands.links.mqtt.packets import EVERYTHING, FENCE, MqttPublication, Received
from commands.links.nats import connection as nats
from commands.terminal.counted import counted
from rfh2 import mqi_constants as m
from rfh2.errors import QPubSubError, StoreError
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import (
    MQCMD_PING_Q_MGR,
    MQIA_COMMAND_LEVEL,
    MQIA_CURRENT_Q_DEPTH,
    MQIA_PLATFORM,
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one test.

    subject: what was tested. ok: whether the test succeeded. what: the result, one clause. mend: the lines that correct
    it: MQSC, setmqaut, a configuration or an ACL line; none where only a person can decide.
    """

    subject: str
    ok: bool
    what: str
    mend: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


_ON_DISKS: Final = CheckResult(
    "power failure of the brokers",
    True,
    "Kafka answers before it writes to disk: what all brokers of a topic have not written by then is lost. The bridge "
    "sends with acks=all; several replicas and min.insync.replicas=2 on machines that do not fail together prevent it",
)
# A client gets none of mosquitto's settings.
_IN_MEMORY: Final = CheckResult(
    "power failure of the broker",
    True,
    "not checked, since a client cannot see it: without 'persistence true' mosquitto loses sessions and retained "
    "publications when it ends, and with it what came since its last autosave_interval (by default 30 minutes)",
)


# Whether a Kafka cluster would do for the bridge: what ``qpubsub check`` finds by trying it.
#
# It makes no topic: it asks the cluster whether it would. So it does not disturb a bridge that is running.


class KafkaCheck:
    """Tries one cluster. qmgr: whose bridge asks. Raises ConfigError."""

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str) -> None:
        self._address, self._routes = address, Routes(config.kafka)
        self._bridge = config.client_id or f"qpubsub-{qmgr}"
        self._cluster = KafkaCluster(address, config, self._routes, self._bridge)
        self._missing: list[str] = []

    def connect(self) -> CheckResult:
        """Whether the cluster answers; every other test needs that."""
        subject = f"connection to {self._address}"
        try:
            self._missing = self._cluster.missing()
        except StoreError as error:
            return CheckResult(subject, False, str(error))
        return CheckResult(subject, True, f"connected as {self._bridge}")

    def grants(self) -> Iterator[CheckResult]:
        """The topics, their settings, and what the user may do."""
        for topic in self._cluster.topics:
            yield self._new(topic) if topic in self._missing else self._there(topic)
        yield self._transactions()
        if longest := self._cluster.longest():
            yield CheckResult("size of a publication", True, f"{longest} bytes; larger ones are dead letters")
        yield _ON_DISKS

    def _new(self, topic: str) -> CheckResult:
        subject = f"topic {topic}"
        try:
            self._cluster.make(topic, check_only=True)
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._rights("Create"))
        return CheckResult(subject, True, "not there; run makes it")

    def _there(self, topic: str) -> CheckResult:
        subject, wanted = f"topic {topic}", topic not in self._routes.publications
        settings = self._cluster.settings_of(topic)
        policy = settings.get("cleanup.policy")
        if policy is None:
            return CheckResult(subject, True, "there; the user may not read its settings")
        if wanted and policy != "compact":
            return CheckResult(
                subject,
                False,
                f"cleanup.policy is {policy}: it would lose what it keeps",
                _set(topic, "cleanup.policy=compact"),
            )
        if not wanted and "compact" in policy:
            why = "it is compacted: publications that no program has read would be removed"
            return CheckResult(subject, False, why, _set(topic, "cleanup.policy=delete"))
        if settings.get("unclean.leader.election.enable") == "true":
            why = "a broker that lacks publications may become its leader, and they are lost"
            return CheckResult(subject, False, why, _set(topic, "unclean.leader.election.enable=false"))
        copies = self._cluster.copies_of(topic)
        if copies > 1 and settings.get("min.insync.replicas") == "1":
            why = f"a publication counts as sent when one of {copies} brokers has it: min.insync.replicas is 1"
            return CheckResult(subject, False, why, _set(topic, "min.insync.replicas=2"))
        partitions = counted(len(self._cluster.logs(topic)), "partition")
        return CheckResult(subject, True, f"{partitions}, cleanup.policy {policy}")

    def _transactions(self) -> CheckResult:
        """A name of its own: that of the bridge would end the transactions of one that is running."""
        subject = f"transactions as {self._bridge}-check"
        try:
            self._cluster.producer("-check")
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._rights("Write"))
        return CheckResult(subject, True, "allowed")

    def _rights(self, operation: str) -> tuple[str, ...]:
        """Lines that grant what the bridge needs."""
        add = "kafka-acls.sh --add --allow-principal User:qpubsub"
        names = f"--topic {self._cluster.topics[0]} --resource-pattern-type prefixed"
        if operation == "Create":
            return (f"{add} --operation Create --operation Read --operation Write --operation DescribeConfigs {names}",)
        return (f"{add} --operation Write --transactional-id {self._bridge} --resource-pattern-type prefixed",)


def _set(topic: str, setting: str) -> tuple[str, ...]:
    return (f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {setting}",)


# Trying an MQTT 5 broker: the connection, what it grants, and the topics that the bridge publishes and subscribes to.
#
# The check uses its own connections, without a session. So it does not disturb a bridge that is running.

# So many filters are tried; a broker's access rules are seldom finer.
_TRIED: Final = 100


class MqttCheck:
    """Tries one broker. qmgr: whose bridge asks."""

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str) -> None:
        self._address, self._config = address, config
        self._bridge = config.client_id or f"qpubsub-{qmgr}"
        self._client = MqttClient(address, config, f"{self._bridge}-check", self._received, clean=True)
        self._came_back = threading.Event()

    def connect(self) -> CheckResult:
        """Whether there is a connection; every other test needs one."""
        logging.getLogger("qpubsub.mqtt").disabled = True
        self._client.start()
        subject = f"connection to {self._address}"
        if self._client.wait_tried(self._config.patience_s):
            return CheckResult(subject, True, f"connected as {self._client.client_id}")
        return CheckResult(subject, False, self._client.trouble)

    def grants(self) -> Iterator[CheckResult]:
        """What the broker grants."""
        granted = self._client.granted or EVERYTHING
        yield CheckResult(
            "QoS 1",
            granted.max_qos >= 1,
            f"Maximum QoS is {granted.max_qos}"
            + ("" if granted.max_qos else ": persistent publications could be lost"),
        )
        what = "the broker keeps them" if granted.retain else "the broker keeps none: later subscribers get nothing"
        yield CheckResult("retained publications", granted.retain, what)
        what = "available" if granted.identifiers else "not available: overlapping subscriptions may get duplicates"
        yield CheckResult("subscription identifiers", granted.identifiers, what)
        limit = (
            "no limit" if granted.max_packet is None else f"{granted.max_packet} bytes; larger ones are dead letters"
        )
        yield CheckResult("size of a publication", True, limit)
        yield _IN_MEMORY

    def rights(self, filters: Sequence[str]) -> Iterator[CheckResult]:
        """The topics. filters: those that the subscriptions need now."""
        prefix = self._config.prefix
        yield from self._there_and_back(f"{prefix}qpubsub/{self._bridge}/fence")
        for topic_filter in (*filters[:_TRIED], *(() if filters else (f"{prefix}#",))):
            yield self._subscribe(topic_filter)
        if len(filters) > _TRIED:
            yield CheckResult("subscriptions", True, f"{len(filters) - _TRIED} more filters were not tried")

    def close(self) -> None:
        """Disconnect."""
        self._client.stop()
        logging.getLogger("qpubsub.mqtt").disabled = False

    def _received(self, received: Received) -> None:
        self._client.acknowledge(received)
        self._came_back.set()

    def _there_and_back(self, topic: str) -> Iterator[CheckResult]:
        """A broker may accept a subscription and send nothing for it if reading is forbidden: mosquitto does."""
        subscribed = self._subscribe(topic, keep=True)
        published = self._publish(topic)
        yield published
        if not subscribed.ok:
            yield subscribed
        elif published.ok:
            back = self._came_back.wait(self._config.patience_s)
            what = "comes back" if back else "does not come back: reading is forbidden"
            mend = () if back else self._acl(f"{self._config.prefix}#")
            yield CheckResult(f"receiving from {topic}", back, what, mend)

    def _publish(self, topic: str) -> CheckResult:
        subject = f"publishing on {topic}"
        try:
            sent = self._client.publish(
                MqttPublication(topic, b"check", 1, properties=((FENCE, self._client.client_id),))
            )
            if not sent.wait(self._config.patience_s):
                return CheckResult(subject, False, "the broker does not answer")
        except TreeUnreachableError as error:
            return CheckResult(subject, False, str(error))
        refusal = sent.refusal()
        if refusal is None:
            return CheckResult(subject, True, "allowed")
        code, name = refusal
        return CheckResult(subject, False, f"{name} (0x{code:02X})", self._acl(f"{self._config.prefix}#"))

    def _subscribe(self, topic_filter: str, keep: bool = False) -> CheckResult:
        subject = f"subscribing to {topic_filter}"
        try:
            ticket = self._client.subscribe(topic_filter, None, 1, RETAIN_NEVER, own=keep)
            if not ticket.wait(self._config.patience_s):
                return CheckResult(subject, False, "the broker does not answer")
            if not keep:
                self._client.unsubscribe(topic_filter)
        except TreeUnreachableError as error:
            return CheckResult(subject, False, str(error))
        if ticket.refused:
            return CheckResult(subject, False, f"{ticket.name} (0x{ticket.code:02X})", self._acl(topic_filter))
        if ticket.code == 0:
            return CheckResult(subject, False, "granted at QoS 0: native publications could be lost")
        return CheckResult(subject, True, "allowed")

    def _acl(self, topics: str) -> tuple[str, ...]:
        user = self._address.user or self._config.user
        return (f"user {user}" if user else "# before any user line", f"topic readwrite {topics}")


# Trying NATS: the connection, JetStream, the stream and the bucket, and the subjects that the bridge needs.
#
# The check uses a connection of its own, removes the streams and consumers that it made, and its messages expire
# after a second. So it does not disturb a bridge that is running.

# A client gets sync_interval neither from INFO nor from JetStream's API, so this is said to everybody.
_ON_DISK: Final = CheckResult(
    "power failure of the server",
    True,
    "not checked, since a client cannot see sync_interval: by default the server answers before it writes to disk, so "
    "publications that count as sent can be lost; 'sync_interval: always' in its jetstream block prevents that",
)
_BRIEFLY: Final = {"Nats-TTL": "1s"}


class NatsCheck:
    """Tries one server. qmgr: whose bridge asks. Raises ConfigError."""

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str) -> None:
        self._address, self._config, self._names = address, config, nats.Names.of(config, qmgr)
        self._connection = nats.NatsConnection(address, config, f"{self._names.bridge}-check")
        self._made: list[str] = []

    def connect(self) -> CheckResult:
        """Whether there is a connection; every other test needs one."""
        logging.getLogger("qpubsub.nats").disabled = True
        subject = f"connection to {self._address}"
        try:
            self._connection.call(nats.nothing, 2 * self._config.patience_s)
        except StoreError as error:
            return CheckResult(subject, False, str(error))
        return CheckResult(subject, True, f"connected as {self._connection.name}")

    def grants(self) -> Iterator[CheckResult]:
        """JetStream, the stream and the bucket, and what the user may do."""
        jetstream = self._tried("JetStream", lambda session: session.jetstream.account_info(), "available")
        yield jetstream
        if not jetstream.ok:
            return
        for wanted, subject in zip(nats.configs_of(self._config, self._names), self._subjects, strict=True):
            name = str(wanted.name)
            yield self._stream(wanted)
            yield self._tried(f"publishing on {subject}", self._publication(subject), "allowed")
            yield self._tried(f"consumer of stream {name}", self._consumer(name, subject), "allowed")
        most = self._connection.max_payload
        yield CheckResult("size of a publication", True, f"{most} bytes; larger ones are dead letters")
        yield _ON_DISK

    def close(self) -> None:
        """Remove what was made, and disconnect."""
        with suppress(StoreError):
            self._connection.call(self._remove)
        self._connection.close()
        logging.getLogger("qpubsub.nats").disabled = False

    async def _remove(self, session: nats.NatsSession) -> None:
        for name in self._made:
            await session.jetstream.delete_stream(name)

    @property
    def _subjects(self) -> tuple[str, str]:
        own = f"qpubsub.{self._names.bridge}.check"
        return self._names.prefix + own, self._names.keys + own

    def _stream(self, wanted: Any) -> CheckResult:
        subject = f"stream {wanted.name}"
        try:
            about, is_new = self._connection.call(lambda session: nats.make_stream(session, wanted))
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._permissions)
        if is_new:
            self._made.append(wanted.name)
            return CheckResult(subject, True, "not there; run makes it")
        why = nats.why_unfit(about, wanted)
        return CheckResult(subject, why is None, why or f"{about.config.num_replicas} replicas")

    def _publication(self, subject: str) -> Callable[[nats.NatsSession], Coroutine[Any, Any, Any]]:
        return lambda session: session.jetstream.publish(subject, b"check", headers=dict(_BRIEFLY))

    def _consumer(self, stream: str, subject: str) -> Callable[[nats.NatsSession], Coroutine[Any, Any, Any]]:
        async def work(session: nats.NatsSession) -> None:
            name = self._connection.name
            await session.jetstream.add_consumer(stream, name=name, durable_name=name, filter_subjects=[subject])
            await session.jetstream.delete_consumer(stream, name)

        return work

    def _tried(
        self, subject: str, work: Callable[[nats.NatsSession], Coroutine[Any, Any, Any]], what: str
    ) -> CheckResult:
        try:
            self._connection.call(work)
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._permissions)
        return CheckResult(subject, True, what)

    @property
    def _permissions(self) -> tuple[str, ...]:
        """Lines of the server's file, for the user of the bridge."""
        subjects = ", ".join(f'"{each}"' for each in (f"{self._names.prefix}>", f"{self._names.keys}>", "$JS.API.>"))
        return (f'permissions: {{ publish: [{subjects}], subscribe: ["_INBOX.>"] }}',)


_LONG_BYTES: Final = 300_000
_WAIT_S: Final = 1.0


class ClientCheck:
    """Tests of one queue manager. model: a model queue that the user may open."""

    def __init__(self, place: Place, model: str = pcf.MODEL_QUEUE) -> None:
        self._place, self._model = place, model
        self._qmgr: QueueManager | None = None

    def results(self) -> Iterator[CheckResult]:
        """Each test. The first that fails may be the last: without a connection or a queue there is nothing to try."""
        subject = f"connection to channel {self._place.channel}"
        try:
            self._qmgr = QueueManager(self._place)
        except MqError as error:
            yield CheckResult(subject, False, str(error))
            return
        with self._qmgr as qmgr:
            yield CheckResult(subject, True, self._terms(qmgr.connection))
            yield self._tried("MQINQ of the queue manager", lambda: self._level(qmgr))
            yield self._tried("a second conversation", lambda: self._conversation(qmgr))
            yield self._tried("PCF Ping Queue Manager", lambda: self._ping(qmgr))
            try:
                options = m.MQOO_INPUT_EXCLUSIVE | m.MQOO_BROWSE | m.MQOO_OUTPUT | m.MQOO_INQUIRE
                queue = qmgr.queue(self._model, options, dynamic="QPUBSUB.*")
            except QPubSubError as error:
                yield CheckResult(f"a queue from {self._model}", False, str(error))
                return
            with queue:
                yield CheckResult(f"a queue from {self._model}", True, queue.name)
                for name, test in self._of_a_queue(qmgr, queue):
                    yield self._tried(name, test)
            yield self._tried("MQSUB, MQPUT to a topic, MQGET", lambda: self._topic(qmgr))

    def _of_a_queue(self, qmgr: QueueManager, queue: Queue) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "MQPUT, MQGET", lambda: self._same(queue, b"\0\x01qpubsub check\xff")
        yield "MQPUT, MQGET of several segments", lambda: self._same(queue, os.urandom(_LONG_BYTES))
        yield "browse, and MQGET by CorrelId", lambda: self._chosen(queue)
        yield "MQGET that waits in vain", lambda: self._waits(queue)
        yield "MQBACK, MQCMIT", lambda: self._units(qmgr, queue)
        yield "MQGMO_CONVERT", lambda: self._converted(queue)
        yield "properties of a message", lambda: self._properties(queue)
        yield "MQINQ of a queue", lambda: f"{self._depth(queue)} messages"

    def _tried(self, subject: str, test: Callable[[], str]) -> CheckResult:
        try:
            return CheckResult(subject, True, test())
        except QPubSubError as error:
            return CheckResult(subject, False, str(error))

    @staticmethod
    def _terms(connection: Connection) -> str:
        terms = connection.terms
        return (
            f"{terms.qmgr} ({terms.identifier}), level {terms.fap}, {terms.sharing} conversations, segments of "
            f"{terms.largest} bytes, messages of {terms.longest_message}, heartbeat {terms.heartbeat_s} s"
        )

    @staticmethod
    def _level(qmgr: QueueManager) -> str:
        found = qmgr.inquire([MQIA_COMMAND_LEVEL, MQIA_PLATFORM])
        return f"command level {found[MQIA_COMMAND_LEVEL]}, platform {found[MQIA_PLATFORM]}"

    @staticmethod
    def _conversation(qmgr: QueueManager) -> str:
        with qmgr.another() as other:
            return "on the same socket" if other.connection.shares(qmgr.connection) else "on a socket of its own"

    @staticmethod
    def _ping(qmgr: QueueManager) -> str:
        qmgr.pcf(MQCMD_PING_Q_MGR)
        return "answered"

    @staticmethod
    def _same(queue: Queue, data: bytes) -> str:
        queue.put(data)
        got = queue.get(_WAIT_S)
        _require(got is not None and got.data == data, "the message that was put did not come back")
        return f"{len(data):,} bytes came back"

    @staticmethod
    def _chosen(queue: Queue) -> str:
        queue.put(b"one", mqmd=Mqmd(version=2, correl_id=b"1" * 24))
        queue.put(b"two", mqmd=Mqmd(version=2, correl_id=b"2" * 24))
        seen = [message.data for message in queue.browse()]
        second = queue.get(correl_id=b"2" * 24)
        rest = [message.data for message in queue.messages()]
        _require(seen == [b"one", b"two"], f"browse showed {len(seen)} messages")
        _require(second is not None and second.data == b"two" and rest == [b"one"], "another message came")
        return "as they were put"

    @staticmethod
    def _waits(queue: Queue) -> str:
        began_s = time.monotonic()
        _require(queue.get(_WAIT_S) is None, "a message came")
        took_s = time.monotonic() - began_s
        _require(took_s >= 0.9 * _WAIT_S, f"it ended after {took_s:.2f} of {_WAIT_S:g} s")
        return f"{m.MQRC_NO_MSG_AVAILABLE} after {took_s:.2f} s"

    @staticmethod
    def _units(qmgr: QueueManager, queue: Queue) -> str:
        handle = queue.handle(m.MQOO_OUTPUT)
        md = Mqmd(version=2).encode()
        qmgr.connection.put(handle, md, b"backed out", m.MQPMO_SYNCPOINT)
        qmgr.backout()
        _require(qmgr.connection.get(handle, Wanted(options=m.MQGMO_BROWSE_FIRST)) is None, "MQBACK left a message")
        qmgr.connection.put(handle, md, b"committed", m.MQPMO_SYNCPOINT)
        qmgr.commit()
        got = qmgr.connection.get(handle, Wanted(options=m.MQGMO_SYNCPOINT))
        qmgr.backout()
        again = queue.get()
        _require(got is not None and again is not None and again.data == b"committed", "the message is gone")
        return "commit and backout work"

    @staticmethod
    def _converted(queue: Queue) -> str:
        queue.put("déjà vu".encode("cp037"), mqmd=Mqmd(version=2, coded_char_set_id=37, format="MQSTR"))
        got = queue.get(_WAIT_S, convert=True, ccsid=1_208)
        _require(got is not None and got.data == "déjà vu".encode(), "the text was not converted")
        return "text of CCSID 37 came as UTF-8"

    @staticmethod
    def _properties(queue: Queue) -> str:
        given: dict[str, str | int | bool] = {"Colour": "red", "Size": 42, "Sold": True}
        queue.put("text", properties=given)
        got = queue.get(_WAIT_S)
        _require(got is not None and got.properties == given and got.text == "text", "they came back changed")
        return "the same"

    @staticmethod
    def _depth(queue: Queue) -> int:
        return int(queue.inquire([MQIA_CURRENT_Q_DEPTH])[MQIA_CURRENT_Q_DEPTH])

    @staticmethod
    def _topic(qmgr: QueueManager) -> str:
        topic = f"QPUBSUB/check/{os.getpid()}"
        with qmgr.subscribe(topic) as subscription:
            qmgr.publish(topic, b"qpubsub check")
            got = subscription.get(10 * _WAIT_S)
            _require(got is not None and got.data == b"qpubsub check", "the publication did not arrive")
            try:
                subscription.request_retained()
            except MqError as error:
                if error.reason != m.MQRC_NO_RETAINED_MSG:
                    raise
        return "the publication arrived"


class _DiffersError(QPubSubError):
    """What came is not what was put."""


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise _DiffersError(why)
