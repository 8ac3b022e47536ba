"""What goes to Kafka and is read from it, with librdkafka's mock cluster: where there is no Java, and no broker.

The mock has no controller, so it answers no administrator: topics are there as soon as somebody names them, and nothing
is asked about their ends or settings. Nor does it keep off a producer whose name another one has taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from commands.config.settings import TopicsConfig
from commands.config.urls import parse_address
from commands.links.engine.adapter import TreeUnreachableError, Waiting
from commands.links.engine.properties import ForTree
from commands.links.kafka.adapter import KafkaReader, KafkaSender
from commands.links.kafka.cluster import KafkaCluster, Routes
from commands.qmgr.store.port import StoredMessage
from rfh2 import Mqmd
from tests.waiting import PATIENCE_S, until

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
except ImportError:
    Producer = None  # type: ignore[assignment,misc]

pytestmark = pytest.mark.skipif(Producer is None, reason="confluent-kafka is not installed")

ROUTES: Final = Routes(TopicsConfig().kafka)
PARTITIONS: Final = 4
"""Of each topic of the mock, unless it is told otherwise."""


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 2})
    (broker,) = mock.list_topics(timeout=PATIENCE_S).brokers.values()
    address = parse_address(f"kafka://{broker.host}:{broker.port}", "--topics")
    made = KafkaCluster(address, TopicsConfig(), ROUTES, "bridge")
    made._is_ready = True  # nobody can be asked
    for topic in made.topics:
        mock.list_topics(topic, timeout=PATIENCE_S)
    yield made
    mock.flush(1)


def _sender(cluster: KafkaCluster) -> KafkaSender:
    sender = KafkaSender(cluster, ROUTES, 1)
    sender._producer = cluster.producer()
    return sender


def _waiting(sender: KafkaSender, number: int, wanted: ForTree) -> Waiting[Any]:
    prepared = sender.prepare(wanted)
    assert prepared is not None
    stored = StoredMessage(number, "Q", datetime.now(UTC), None, Mqmd().encode(), b"", True, 0)
    return Waiting(stored, wanted, prepared.item)


def _read(cluster: KafkaCluster, topic: str, count: int, position: int = -1) -> list[Any]:
    """Records behind *position* in each partition."""
    reader, found = KafkaReader(cluster, {f"{topic}/{n}": position for n in range(PARTITIONS)}), list[Any]()

    def came() -> bool:
        found.extend(each for each in reader.read(100, 0.2) if each.message is not None)
        return len(found) >= count

    until(came, "the records")
    reader.close()
    return found


def test_a_transaction_has_the_publications_and_what_was_sent(cluster: KafkaCluster) -> None:
    sender = _sender(cluster)
    together = [_waiting(sender, n, ForTree("a/b", payload=b"%d" % n, retain=n == 2)) for n in range(1, 4)]
    assert [sent.reason for sent in sender._committed(together)] == [None] * 3
    came = _read(cluster, ROUTES.publications[0], 3)
    assert [(each.message.key(), each.payload) for each in came] == [(b"a/b", b"1"), (b"a/b", b"2"), (b"a/b", b"3")]
    assert [each.payload for each in _read(cluster, ROUTES.retained, 1)] == [b"2"]
    (state,) = _read(cluster, ROUTES.state, 1)
    assert state.message.key() == b"bridge"
    assert sender._marks.has(together[0].key)
    last = came[-1]
    assert [each.payload for each in _read(cluster, ROUTES.publications[0], 1, last.position - 1)] == [b"3"]


def test_the_end_of_a_partition_is_told_as_the_last_position(cluster: KafkaCluster) -> None:
    topic, ends = ROUTES.publications[0], dict[str, int]()
    reader = KafkaReader(cluster, {f"{topic}/{n}": -1 for n in range(PARTITIONS)})

    def told() -> bool:
        ends.update({each.log: each.position for each in reader.read(100, 0.2) if each.message is None})
        return len(ends) == PARTITIONS

    until(told, "the ends")
    reader.close()
    assert set(ends.values()) == {-1}, "nothing is there"


@pytest.mark.parametrize("code", ["UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"])
def test_a_topic_that_is_gone_is_made_again(cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    made: list[str] = []
    monkeypatch.setattr(cluster, "missing", lambda: [ROUTES.publications[0]])
    monkeypatch.setattr(cluster, "make", made.append)
    monkeypatch.setattr(cluster, "longest", lambda: None)
    for other in (KafkaError._TIMED_OUT, KafkaError.NOT_LEADER_FOR_PARTITION):
        with pytest.raises(TreeUnreachableError), cluster.asking():
            raise KafkaException(KafkaError(other))
    cluster.make_ready()
    assert made == []
    with pytest.raises(TreeUnreachableError), cluster.asking():
        raise KafkaException(KafkaError(getattr(KafkaError, code)))
    cluster.make_ready()
    cluster.make_ready()
    assert made == [ROUTES.publications[0]]
    # A transaction may say no more than that it failed; what became of each record says it.
    _sender(cluster)._answered({}, 0, KafkaError(getattr(KafkaError, code)), None)
    cluster.make_ready()
    assert made == 2 * [ROUTES.publications[0]]
