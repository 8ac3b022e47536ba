"""The short way of publications like one before leaves every queue, byte for byte, as the whole way does."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import AliasQueue, LocalQueue, Objects, QueueManager
from commands.broker.outcome import Outcome
from commands.disk.errors import UndeliverableError
from commands.headers.response import Completion
from commands.mqsc.execute import run_setup
from commands.qmgr.delivery import Backlog
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.reading import definitions_in
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from commands.templates.templates import PublicationTemplates
from rfh2 import Mqmd
from rfh2.captured import CapturedMessage
from streams.operations import SubscriptionAdded
from streams.topic_space import TopicSpace
from tests.commands.qmgr.test_processor import CONTROL, DEAD, NOW, STREAM, _command, _publish, _register

Left = dict[str, Any]


class Manager:
    """A queue manager and its processor. whole: all goes the whole way, as where puts are recorded."""

    def __init__(self, home: Path, setup: str, whole: bool) -> None:
        self.now = NOW
        self.store = QueueManagerStore.create(
            home, QueueManager("QM1"), durability=Durability.NORMAL, clock=lambda: self.now
        )
        self.processor = Processor(self.store, lambda: self.now, record=(lambda _put: None) if whole else None)
        objects = Objects(QueueManager("QM1"))
        space = TopicSpace(objects.topics)
        run_setup(setup, objects, space, NOW)
        with self.store.unit_of_work() as unit:
            for definition in definitions_in(objects):
                unit.save_definition(definition)
            unit.save_effects(SubscriptionAdded(each) for each in space.subscriptions())

    def put(self, messages: list[CapturedMessage]) -> None:
        with self.store.unit_of_work() as unit:
            for message in messages:
                unit.put(message.queue, message.md, message.body, time=message.time, user=message.user)

    def drain(self, now: datetime) -> None:
        self.now = now
        self.processor.drain()

    def left(self) -> Left:
        objects, subscriptions, retained = self.store.load_state()
        queues = {name: [(m.seq, m.md, m.body) for m in self.store.browse(name)] for name in objects.queues}
        with self.store.unit_of_work() as unit:
            counters = unit.counters
            counts = counters.subscriptions(), counters.topics(), counters.queues()
        return {"queues": queues, "subscriptions": subscriptions, "retained": retained, "counts": counts}


def by_template(outcome: Outcome) -> bool:
    """Whether a template made it."""
    return outcome.completion is Completion.OK and outcome.command is None


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """What went the short way."""
    made: list[Outcome] = []
    process = PublicationTemplates.process

    def noting(self: PublicationTemplates, arrival: Any, parts: Any = None) -> Any:
        outcome = process(self, arrival, parts)
        if by_template(outcome):
            made.append(outcome)
        return outcome

    monkeypatch.setattr(PublicationTemplates, "process", noting)
    return made


OF_ALL_KINDS = {"control": 0.1, "errors": 0.05, "strays": 0.05, "several": 0.1, "rfh1": 0.3, "filters": 0.3}
OF_ALL_KINDS |= {"properties": 0.5, "expiring": 0.5, "retained": 0.5, "per_second": 20.0}
WORKLOADS = [pytest.param({}, 200, id="mostly-publications"), pytest.param(OF_ALL_KINDS, 20, id="of-all-kinds")]


@pytest.mark.parametrize(("knobs", "least"), WORKLOADS)
def test_every_queue_is_left_as_by_the_whole_way(
    tmp_path: Path, again: list[Outcome], knobs: dict[str, Any], least: int
) -> None:
    wanted = WorkloadOptions(**{"messages": 1000, "topics": 20, "subscribers": 40, "zipf": 1.5, **knobs})
    setup = setup_script(wanted) + "DEFINE QLOCAL(SHORT) MAXDEPTH(200)\nDEFINE SUB(ALL) TOPICSTR('#') DEST(SHORT)\n"
    whole, short = Manager(tmp_path / "whole", setup, True), Manager(tmp_path / "short", setup, False)
    messages = list(Workload(wanted).messages())
    for start in range(0, len(messages), 200):
        some = messages[start : start + 200]
        now = some[-1].time or NOW
        for manager in (whole, short):
            manager.put(some)
            manager.drain(now)
    assert short.left() == whole.left()
    of_subscriptions, of_topics, of_queues = short.left()["counts"]
    assert sum(each.publications for each in of_topics.values()) > 500
    sent = sum(each.delivered + each.dead_letters for each in of_subscriptions.values())
    assert sent > whole.processor.tally.publications / 2
    assert sum(each.dead_letters for each in of_subscriptions.values()) > 0
    assert any(each.filtered for each in of_subscriptions.values())
    assert sum(each.gets for each in of_queues.values()) == whole.processor.tally.commands
    assert short.processor.tally == whole.processor.tally
    assert len(again) > least


@pytest.mark.parametrize("record", [None, lambda _put: None], ids=["short", "whole"])
def test_what_it_put_itself_on_a_stream_queue_is_not_published_again(
    tmp_path: Path, again: list[Outcome], record: Any
) -> None:
    """An alias was altered after the subscriptions were made: each publication would become two, without end."""
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        processor = Processor(store, lambda: NOW, record)
        with store.unit_of_work() as unit:
            unit.save_definition(AliasQueue("TO.ME", "S"))
            _register(unit, "TO.ME", "a/#")
            _register(unit, "TO.ME", "a/+")
        processor.drain()
        with store.unit_of_work() as unit:
            unit.save_definition(AliasQueue("TO.ME", STREAM))
            for _ in range(5):
                _publish(unit, "a/b")
        processor.drain()
        assert (store.depth(STREAM), store.depth(DEAD)) == (0, 10)
        assert processor.tally.publications == 10
        assert bool(again) is (record is None)


def test_a_full_queue_is_a_dead_letter_on_the_short_way_too(tmp_path: Path, again: list[Outcome]) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S", max_depth=3))
            _register(unit, "S")
            _register(unit, "T")
            for _ in range(6):
                _publish(unit)
        processor = Processor(store, lambda: NOW)
        processor.drain()
        assert [store.depth(queue) for queue in ("S", "T", DEAD)] == [3, 6, 3]
        assert (processor.tally.publications, processor.tally.dead_letters) == (9, 3)
        assert len(again) == 4


def test_with_no_way_out_it_waits_on_the_short_way_too(tmp_path: Path, again: list[Outcome]) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S", max_depth=3))
            unit.save_definition(LocalQueue(DEAD, put_enabled=False))
            _register(unit, "T")
            _register(unit, "S")
            for _ in range(6):
                _publish(unit)
        processor = Processor(store, lambda: NOW, backlog=Backlog(lambda: NOW, 1.0, most_messages=0))
        assert processor.drain(stop=OnceOnly()) == 5
        for _ in range(2):
            with pytest.raises(UndeliverableError):
                processor.drain()
        assert [store.depth(queue) for queue in (STREAM, "S", "T", DEAD)] == [3, 3, 3, 0]
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(DEAD))
        processor.drain()
        assert [store.depth(queue) for queue in (STREAM, "S", "T", DEAD)] == [0, 3, 6, 3]
        assert len(again) > 1


def test_what_is_owed_keeps_its_order_on_the_short_way_too(tmp_path: Path, again: list[Outcome]) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S", max_depth=3))
            unit.save_definition(LocalQueue(DEAD, put_enabled=False))
            _register(unit, "T")
            _register(unit, "S")
            for _ in range(6):
                _publish(unit)
        processor = Processor(store, lambda: NOW)
        assert processor.drain() == 8
        assert [store.depth(queue) for queue in (STREAM, "S", "T", DEAD)] == [0, 3, 6, 0]
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S"))
        processor.drain()
        assert [store.depth(queue) for queue in (STREAM, "S", "T", DEAD)] == [0, 6, 6, 0]
        of = {queue: [message.body for message in store.browse(queue)] for queue in ("S", "T")}
        assert of["S"] == of["T"]
        assert len(again) > 1


class OnceOnly:
    """One batch, and stop."""

    def __init__(self) -> None:
        self._asked = False

    def is_set(self) -> bool:
        asked, self._asked = self._asked, True
        return asked

    def wait(self, timeout: float | None = None) -> bool:
        return True


def test_what_expires_while_it_goes_the_short_way_is_kept_as_gone(tmp_path: Path, again: list[Outcome]) -> None:
    now = NOW
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: now) as store:
        processor = Processor(store, lambda: now)
        with store.unit_of_work() as unit:
            md = Mqmd(format="MQHRF2", expiry=10, user_identifier="app")
            _register(unit, "S")
            soon = "<Command>RegSub</Command><Topic>a</Topic><QName>SOON</QName>"
            unit.put(CONTROL, md.encode(), _command(soon)[1])
            for _ in range(4):
                _publish(unit)
        processor.drain()
        assert [store.depth(queue) for queue in ("S", "SOON")] == [4, 4]
        assert len(again) == 2
        now += timedelta(seconds=2)
        with store.unit_of_work() as unit:
            _publish(unit)
        processor.drain()
        assert [store.depth(queue) for queue in ("S", "SOON")] == [5, 4]
        assert [each.dest_queue for each in store.load_state()[1]] == ["S"]
