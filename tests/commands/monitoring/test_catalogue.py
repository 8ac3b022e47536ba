"""The table of metrics: what is served is what it says, with these labels and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from commands.broker.objects import LocalQueue
from commands.monitoring.catalogue import METRICS, PLATFORM, Kind
from commands.monitoring.metrics import Chosen, EventCounter, ProcessorMetrics, StateCollector, chosen
from commands.monitoring.opening import Observing
from commands.monitoring.server import Health
from commands.qmgr.link_port import LinkState
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.errors import StoreError
from rfh2.mqi_constants import MQOO_OUTPUT
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient
from tests.commands.monitoring.test_server import Signs
from tests.commands.monitoring.traffic import CONTROL, DEAD, publish, put, queue_manager, register

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERYTHING = Chosen(topics=("*",), subscriptions=("*",))


class Link:
    """What a link counts."""

    state = LinkState(True)
    received, sent, refused = 5, 6, 1


def _scrape(registry: CollectorRegistry) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All that is served of a queue manager where everything has happened."""
    home = tmp_path_factory.mktemp("home")
    registry, link = CollectorRegistry(), Link()
    metrics = ProcessorMetrics(registry, "QM1")
    signs = Signs()
    metrics.show(Health("QM1", signs, 10.0, link), signs, lambda: 0.0)
    EventCounter(metrics)
    collector = StateCollector(lambda: QueueManagerStore.open(home, "QM1"), "QM1", EVERYTHING, link)  # type: ignore[arg-type]
    registry.register(collector)
    with queue_manager(home) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(DEAD, max_depth=1))
            register(unit, "FULL", "a")
            register(unit, "REQUESTED", "a", "<RegOpt>PubOnReqOnly</RegOpt>")
            put(unit, CONTROL, "<Command>Publish</Command><Topic>a</Topic>")
        Processor(store, lambda: NOW).drain()
        with store.unit_of_work() as unit:
            for _ in range(3):
                publish(unit, "a")
            put(
                unit, CONTROL, "<Command>DeregSub</Command><Topic>b</Topic><QName>Q</QName>", msg_type=1, reply_to_q="R"
            )
        Processor(store, lambda: NOW, observer=Observing(metrics, None)).drain()
    with listener_at(home) as port, MqiClient(port) as client:
        client.connect()
        client.opened("FULL", MQOO_OUTPUT)
        return _scrape(registry)


def test_every_metric_is_served_and_no_other(families: dict[str, Any]) -> None:
    assert sorted(families) == sorted(metric.name for metric in METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=[metric.name for metric in METRICS])
def test_each_has_its_type_its_text_and_its_labels(families: dict[str, Any], metric: Any) -> None:
    family = families[metric.name]
    assert (family.type, family.documentation) == (metric.kind.value, metric.text)
    assert {each.name for each in family.samples} == set(metric.series)
    for each in family.samples:
        assert set(each.labels) - {"le"} == set(metric.all_labels)
        assert each.labels["qmgr"] == "QM1"
        assert each.labels.get("platform") == (PLATFORM if metric.is_ibms else None)
    assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM)


# Series, labels, value: what the state has, in IBM's names.
VALUES = [
    ("ibmmq_queue_depth", {"queue": "FULL"}, 1),
    ("ibmmq_queue_attribute_max_depth", {"queue": "FULL"}, 1),
    ("ibmmq_queue_depth", {"queue": DEAD}, 1),
    ("qpubsub_owed", {"queue": "FULL"}, 2),
    ("ibmmq_topic_messages_published", {"topic": "a", "type": "pub"}, 3),
    ("ibmmq_topic_subscriber_count", {"topic": "a", "type": "sub"}, 2),
    ("ibmmq_topic_publisher_count", {"topic": "a", "type": "pub"}, 1),
    ("ibmmq_topic_messages_received", {"topic": "a", "type": "sub"}, 3),
    ("ibmmq_qmgr_channel_initiator_status", {}, 2),
    ("ibmmq_channel_cur_inst", {"channel": "APP.SVRCONN"}, 1),
    ("ibmmq_channel_status", {"channel": "APP.SVRCONN", "type": "SVRCONN"}, 3),
    ("qpubsub_subscriptions", {}, 2),
    ("qpubsub_link_sent", {}, 6),
    ("qpubsub_link_connected", {}, 1),
    ("qpubsub_state_read", {}, 1),
    ("ibmmq_qmgr_status", {}, 1),
    ("ibmmq_queue_output_handles", {"queue": "FULL"}, 1),
]


@pytest.mark.parametrize(("name", "labels", "value"), VALUES, ids=[f"{name} {labels}" for name, labels, _ in VALUES])
def test_values(families: dict[str, Any], name: str, labels: dict[str, str], value: float) -> None:
    found = [each.value for each in families[name].samples if labels.items() <= each.labels.items()]
    assert found == [value]


PATTERNS = [
    ("SCORES", ("*",), True),
    ("SCORES", (), False),
    ("SCORES", ("A*", "S*"), True),
    ("SYSTEM.X", ("!SYSTEM.*", "*"), False),
    ("SYSTEM.X", ("SYSTEM.X", "!SYSTEM.*"), True),
    ("scores", ("S*",), False),
]


@pytest.mark.parametrize(("name", "patterns", "is_chosen"), PATTERNS)
def test_patterns(name: str, patterns: tuple[str, ...], is_chosen: bool) -> None:
    assert chosen(name, patterns) is is_chosen


def test_a_state_that_cannot_be_read_is_a_value_and_no_error() -> None:
    def damaged() -> QueueManagerStore:
        raise StoreError("damaged")

    registry = CollectorRegistry()
    registry.register(StateCollector(damaged, "QM1", Chosen(), None))
    assert {name: family.samples[0].value for name, family in _scrape(registry).items()} == {"qpubsub_state_read": 0}
