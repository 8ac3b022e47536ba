"""Metrics of the processor: what is counted is what was committed, and measuring changes no put."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from commands.monitoring.metrics import ProcessorMetrics
from commands.monitoring.opening import Observing
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.errors import StoreError
from tests.commands.monitoring.traffic import CONTROL, STREAM, publish, put, queue_manager, register
from tests.commands.network.live_world import LiveWorld
from tests.commands.network.test_live_network import LINE, message
from tests.commands.results_service import capture

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Measured:
    """A processor of QM1 with metrics."""

    def __init__(self, store: QueueManagerStore) -> None:
        self.registry = CollectorRegistry()
        self.metrics = ProcessorMetrics(self.registry, "QM1")
        self.processor = Processor(store, lambda: NOW, observer=Observing(self.metrics, None))

    def value(self, series: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(series, {"qmgr": "QM1", **labels})


def _selected(unit: UnitOfWork) -> None:
    register(unit, "S", "a", "<Filter>Root.MQRFH2.usr.x = 1</Filter>")
    for n in (1, 2, 2):
        publish(unit, "a", f"<x dt='i4'>{n}</x>")


def _refused(unit: UnitOfWork) -> None:
    register(unit, "FULL", "a")
    for _ in range(3):
        publish(unit, "a")


def _wrong_queue(unit: UnitOfWork) -> None:
    put(unit, CONTROL, "<Command>Publish</Command><Topic>a</Topic>")


def _no_command(unit: UnitOfWork) -> None:
    unit.put(STREAM, None, b"RFH \2\0\0\0")


def _answered(unit: UnitOfWork) -> None:
    asks = {"msg_type": 1, "reply_to_q": "REPLY"}
    for _ in range(20):
        put(unit, STREAM, "<Command>Publish</Command><Topic>a</Topic>", **asks)


# What is put, and the series that count it.
COUNTED: list[tuple[str, Callable[[UnitOfWork], None], dict[str, float]]] = [
    (
        "a filter",
        _selected,
        {
            'commands{command="Publish",completion="ok"}': 3,
            'commands{command="RegisterSubscriber",completion="ok"}': 1,
            "published": 3,
            "delivered": 1,
            'kept_back{rule="filter"}': 2,
        },
    ),
    (
        "a full queue",
        _refused,
        {"published": 3, "delivered": 1, "dead_letters": 2, 'kept_back{rule="queue-refused"}': 2},
    ),
    (
        "a wrong queue",
        _wrong_queue,
        {
            'commands{command="Publish",completion="error"}': 1,
            'reasons{reason="3079",name="MQRCCF_INCORRECT_Q"}': 1,
            "dead_letters": 1,
        },
    ),
    ("no command", _no_command, {'commands{command="none",completion="error"}': 1, "dead_letters": 1}),
    ("answers", _answered, {"responses": 20, "published": 20, 'commands{command="Publish",completion="ok"}': 20}),
]


@pytest.mark.parametrize(("traffic", "counted"), [row[1:] for row in COUNTED], ids=[row[0] for row in COUNTED])
def test_what_a_unit_of_work_did_is_counted(
    tmp_path: Path, traffic: Callable[[UnitOfWork], None], counted: dict[str, float]
) -> None:
    with queue_manager(tmp_path) as store:
        measured = Measured(store)
        with store.unit_of_work() as unit:
            traffic(unit)
        done = measured.processor.drain()
    found = {}
    for series in counted:
        name, _, labels = series.partition("{")
        of = dict(part.split("=") for part in labels.rstrip("}").replace('"', "").split(",")) if labels else {}
        found[series] = measured.value(f"qpubsub_{name}_total", **of)
    assert found == counted
    assert measured.value("qpubsub_unit_of_work_commands_sum") == done
    assert measured.value("qpubsub_commit_seconds_count") == measured.value("qpubsub_units_of_work_total") == 1
    assert measured.value("qpubsub_in_flight") == 0


def test_what_a_neighbour_sends_is_no_publish_command(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *LINE) as world:
        world.settle()
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle(["QM2"])
        measured = Measured(world.queue_managers["QM1"].store)
        assert measured.processor.drain() == 1
    assert measured.value("qpubsub_commands_total", command="none", completion="ok") == 1
    assert not measured.value("qpubsub_commands_total", command="Publish", completion="ok")


class EachSampled(ProcessorMetrics):
    """Metrics for which each command is due."""

    @property
    def due_s(self) -> float:
        return 0.0

    @due_s.setter
    def due_s(self, _later: float) -> None:
        pass


def test_measuring_changes_no_put(tmp_path: Path) -> None:
    puts = []
    for name in ("measured", "plain"):
        with queue_manager(tmp_path / name) as store:
            with store.unit_of_work() as unit:
                for message in capture():
                    unit.put(message.queue, message.md, message.body, user=message.user)
            # Each command is due, so each is measured step by step.
            metrics = EachSampled(CollectorRegistry(), "QM1")
            observer = Observing(metrics, None) if name == "measured" else None
            Processor(store, lambda: NOW, observer=observer).drain()
            with store.unit_of_work() as unit:
                queues = sorted(queue.definition.name for queue in store.overview().queues)
                puts.append({queue: [(each.md, each.body) for each in unit.browse(queue)] for queue in queues})
    assert puts[0] == puts[1]
    assert sum(map(len, puts[0].values())) > 20


RULES = [
    ("request-only", "<RegOpt>PubOnReqOnly</RegOpt>"),
    ("filter", "<Filter>Root.MQRFH2.usr.x = 1</Filter>"),
]


@pytest.mark.parametrize(("rule", "more"), RULES, ids=[rule for rule, _ in RULES])
def test_sampled_commands_say_which_rule_kept_a_publication_back(tmp_path: Path, rule: str, more: str) -> None:
    with queue_manager(tmp_path) as store:
        measured = Measured(store)
        with store.unit_of_work() as unit:
            register(unit, "S", "a", more)
        Processor(store, lambda: NOW).drain()
        with store.unit_of_work() as unit:
            publish(unit, "a")
        measured.processor.drain()
    assert measured.value("qpubsub_sampled_total") == 1
    assert measured.value("qpubsub_sampled_kept_back_total", rule=rule) == 1
    for stage in ("decode", "match", "deliver"):
        assert measured.value("qpubsub_stage_seconds_count", stage=stage) == 1


def test_the_sampler_waits_longer_the_longer_a_command_took(tmp_path: Path) -> None:
    from commands.broker.outcome import Outcome
    from commands.monitoring.trace_context import Step

    metrics = ProcessorMetrics(CollectorRegistry(), "QM1")
    assert metrics.due_s == 0.0
    steps = (Step("decode", 100.0, 100.1), Step("match", 100.1, 100.2), Step("deliver", 100.2, 100.5))
    metrics.sampled(0.0, steps, Outcome())
    assert metrics.due_s == pytest.approx(100.5 + 0.5 * 1000)


def test_a_backout_is_counted_and_its_commands_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with queue_manager(tmp_path) as store:
        measured = Measured(store)
        with store.unit_of_work() as unit:
            register(unit, "S", "a")
        commit = EmbeddedUnitOfWork.commit

        def full(unit: EmbeddedUnitOfWork) -> None:
            unit.backout()
            raise StoreError("disk full")

        monkeypatch.setattr(EmbeddedUnitOfWork, "commit", full)
        with pytest.raises(StoreError):
            measured.processor.drain()
        assert measured.value("qpubsub_backouts_total") == 1
        assert measured.value("qpubsub_units_of_work_total") == 0
        assert measured.value("qpubsub_in_flight") == 0
        monkeypatch.setattr(EmbeddedUnitOfWork, "commit", commit)
        measured.processor.drain()
        assert measured.value("qpubsub_commands_total", command="RegisterSubscriber", completion="ok") == 1
