"""The engine of all links, with a tree in memory: what holds whatever the tree, and what goes by its capabilities.

A new kind of tree has an adapter like ``memory_tree``, and its own row in the tests against a server of its kind
(``test_same_puts``). What is here it has from the engine.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import DEAD_LETTER_QUEUE, QueueManager
from commands.config.settings import Config, TopicsConfig
from commands.links.engine.adapter import TreeArrivals, UnansweredError
from commands.links.engine.filters import Positions
from commands.links.engine.inbound_writer import InboundWriter, NativePublication, NewerTopics, TreeRetained, Unreadable
from commands.links.engine.link import Link
from commands.links.engine.properties import publishing
from commands.links.engine.pumps import InboundPump, OutboundPump
from commands.links.opening import Places
from commands.qmgr.link_port import Feature, How
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2.constants import MQRC_FORMAT_ERROR, MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED, MQRCCF_TOPIC_ERROR
from rfh2.errors import StoreError
from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd
from streams.operations import Publication, PublishToTopic
from streams.topic_objects import TopicObjects
from tests.commands.links.engine.memory_tree import (
    ANSWERS_FOR_EACH,
    UNITS_OF_WORK,
    Filter,
    MemoryAdapter,
    MemoryCalls,
    MemoryTree,
    Nature,
)
from tests.commands.links.test_mqtt import CONTROL, STREAM, Bridge
from tests.waiting import PATIENCE_S, until

OUTGOING = TopicsConfig().outgoing_queue
RETAIN = "<PubOpt>RetainPub</PubOpt>"
NATURES = [pytest.param(nature, id=nature.name) for nature in (ANSWERS_FOR_EACH, UNITS_OF_WORK)]


class World(Bridge):
    """A queue manager linked to *tree*, with its processor in a thread. settings: of [topics]."""

    def __init__(
        self,
        home: Path,
        tree: MemoryTree,
        nature: Nature,
        patience_s: float = 1.5,
        qmgr: str = "QM1",
        **settings: Any,
    ) -> None:
        self.home, self.qmgr, self.tree = home, qmgr, tree
        if not (home / qmgr).exists():
            QueueManagerStore.create(home, QueueManager(qmgr)).close()
        self.store = QueueManagerStore.open(home, qmgr, durability=Durability.NORMAL)
        config = Config(topics=TopicsConfig(patience_s=patience_s, batch=10, **settings))
        places = Places.of(home, qmgr, config, None, "mqtt://nowhere", Durability.NORMAL)
        self.stores, self.writes = places.stores(DEAD_LETTER_QUEUE), 0
        self.failing = 0
        self.adapter = MemoryAdapter(tree, nature)
        stores = replace(self.stores, writer=self._writer)
        self.link: Link[Filter, Any] = Link(self.adapter, config.topics, qmgr, stores)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _writer(self) -> InboundWriter:
        """A writer that fails as often as ``failing`` says."""
        world, real = self, self.stores.writer()

        class Writer(InboundWriter):
            def put(self, natives: Sequence[NativePublication | Unreadable], position: Positions | None = None) -> None:
                if world.failing:
                    world.failing -= 1
                    raise StoreError("injected: the queue is full")
                world.writes += 1
                real.put(natives, position)

            def close(self) -> None:
                real.close()

        return Writer(real._queues, self.stores.putter, TopicsConfig().position_queue)

    def clear(self, topic: str) -> None:
        self.put(STREAM, f"<Command>DeletePub</Command><Topic>{topic}</Topic>")

    def done(self) -> None:
        """Wait until both sides have all there was."""
        until(lambda: self.depth(CONTROL) == self.depth(STREAM) == 0, "the processor")
        assert self.link.settle(threading.Event())
        until(lambda: self.depth(CONTROL) == self.depth(STREAM) == 0, "the processor")


@pytest.fixture
def tree() -> MemoryTree:
    return MemoryTree()


@pytest.fixture(params=NATURES)
def nature(request: pytest.FixtureRequest) -> Nature:
    found: Nature = request.param
    return found


@pytest.fixture
def world(tmp_path: Path, tree: MemoryTree, nature: Nature) -> Iterator[World]:
    with World(tmp_path, tree, nature) as running:
        yield running


# Both ways


def test_publications_go_both_ways_in_order_and_none_comes_back(world: World, tree: MemoryTree) -> None:
    world.register("a/#")
    for n in range(25):
        world.publish("a/out", b"%d" % n)
        tree.publish("a/in", b"%d" % n)
    until(lambda: world.depth("S") == 50, "the subscriber")
    world.done()
    assert [data for _, data in tree.published] == [b"%d" % n for n in range(25)]
    arrived = [message.body for message in world.browse("S")]
    assert sorted(arrived) == sorted(2 * [b"%d" % n for n in range(25)])
    assert world.depth(OUTGOING) == 0
    assert not tree.inbox


def test_a_clear_is_done_behind_what_was_published_before_it_and_before_what_came_after(
    world: World, tree: MemoryTree
) -> None:
    tree.go()
    world.publish("a", b"1", RETAIN)
    world.clear("a")
    world.publish("b", b"2", RETAIN)
    until(lambda: world.depth(OUTGOING) == 3)
    tree.come()
    world.done()
    assert (tree.published, tree.cleared, list(tree.retained)) == ([("a", b"1"), ("b", b"2")], ["a"], ["b"])


@pytest.mark.parametrize("accepts", [True, False], ids=["accepted", "not accepted"])
def test_what_was_got_in_one_unit_of_work_with_the_queues_is_put_in_it(
    tmp_path: Path, tree: MemoryTree, accepts: bool
) -> None:
    world = World(tmp_path, tree, UNITS_OF_WORK)
    unit = world.store.unit_of_work()
    stop = threading.Event()

    class Together:
        is_waiting = False

        def take(self, limit: int, timeout_s: float) -> TreeArrivals:
            stop.set()
            return TreeArrivals([NativePublication("a", b"data")], 1, unit)

        def accept(self) -> None:
            if not accepts:
                raise StoreError("injected")
            unit.commit()

        def undo(self) -> None:
            unit.backout()

        def close(self) -> None:
            pass

    InboundPump(Together(), world.stores, 10, world.adapter.log, stop, NewerTopics()).run()
    assert world.depth(STREAM) == accepts
    assert world.writes == 0, "put by another unit of work"
    world.store.close()


# Refusals

REFUSALS: list[tuple[str, Callable[[World], None], int | None]] = [
    ("the tree refuses the topic", lambda world: world.publish("refused", b"x"), MQRC_NOT_AUTHORIZED),
    ("the tree has no such topics", lambda world: world.publish("a blank", b"x"), MQRCCF_TOPIC_ERROR),
    ("a fault of the adapter", lambda world: world.publish("a", b"a fault"), MQRCCF_COMMAND_FAILED),
    ("no message of the bridge", lambda world: world.put(OUTGOING, "<Command>Publish</Command>"), MQRC_FORMAT_ERROR),
    ("the topic is the tree's own", lambda world: world.publish("$own", b"x"), None),
]


@pytest.mark.parametrize(("cause", "reason"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_what_is_refused_is_a_dead_letter_and_what_is_behind_it_passes(
    world: World, tree: MemoryTree, cause: Callable[[World], None], reason: int | None
) -> None:
    tree.refused_topics.add("refused")
    world.publish("a", b"before")
    until(lambda: tree.published)
    cause(world)
    world.publish("a", b"behind")
    until(lambda: len(tree.published) == 2)
    world.done()
    assert [data for _, data in tree.published] == [b"before", b"behind"]
    reasons = [message.headers[0].reason for message in world.browse(DEAD_LETTER_QUEUE)]  # type: ignore[attr-defined]
    assert reasons == ([] if reason is None else [reason])
    assert world.link.refused == len(reasons)


class Rounds:
    """The work of the thread outward, a round at a time."""

    def __init__(self, tmp_path: Path, tree: MemoryTree, batch: int = 3) -> None:
        self.tree = tree
        self.store = QueueManagerStore.create(tmp_path, QueueManager("QM1"), durability=Durability.NORMAL)
        adapter = MemoryAdapter(tree, ANSWERS_FOR_EACH)
        config = Config(topics=TopicsConfig(batch=batch))
        stores = Places.of(tmp_path, "QM1", config, None, "mqtt://nowhere", Durability.NORMAL).stores(DEAD_LETTER_QUEUE)
        self.pump: OutboundPump[Filter, Any] = OutboundPump(adapter, stores, batch, threading.Event())
        self.spool = stores.spool()
        self.sender = adapter.sender(self.spool, threading.Event())

    def publish(self, topic: str, data: bytes, retain: bool = False) -> None:
        message = Message(Mqmd(), (), data)
        publication = Publication(message, datetime(2026, 1, 2, tzinfo=UTC))
        put = publishing(PublishToTopic(topic, publication, retain), "QM1", OUTGOING, False)
        with self.store.unit_of_work() as unit:
            unit.put(put.queue, put.message.mqmd.encode(), put.body)

    def round(self) -> bool:
        """Whether the tree answered for all."""
        try:
            self.pump.one_batch(self.spool, self.sender)
        except UnansweredError:
            self.spool.undo()
            return False
        return True

    def data(self) -> list[bytes]:
        return [data for _, data in self.tree.published]

    def dead(self) -> list[int]:
        if self.store.find_queue(DEAD_LETTER_QUEUE) is None:
            return []
        return [decode(each.body, each.md).headers[0].reason for each in self.store.browse(DEAD_LETTER_QUEUE)]  # type: ignore[attr-defined]


@pytest.fixture
def rounds(tmp_path: Path, tree: MemoryTree) -> Iterator[Rounds]:
    made = Rounds(tmp_path, tree)
    yield made
    made.spool.close()
    made.store.close()


def test_what_has_no_answer_while_those_behind_it_have_is_set_aside(rounds: Rounds, tree: MemoryTree) -> None:
    tree.unanswered.add("odd")
    rounds.publish("odd", b"odd")
    for n in range(3):
        rounds.publish("a", b"%d" % n)
        assert not rounds.round()
        assert rounds.data() == [b"%d" % n for n in range(n + 1)]
    assert rounds.dead() == []
    assert rounds.round()
    assert (rounds.dead(), rounds.store.depth(OUTGOING)) == ([MQRCCF_COMMAND_FAILED], 0)
    assert rounds.data() == [b"0", b"1", b"2"]


def test_it_does_not_keep_more_than_a_batch_waiting(rounds: Rounds, tree: MemoryTree) -> None:
    tree.unanswered.add("odd")
    rounds.publish("odd", b"odd")
    for n in range(20):
        rounds.publish("a", b"%d" % n)
    assert [rounds.round() for _ in range(4)] == [False, False, False, True]
    while rounds.store.depth(OUTGOING):
        assert rounds.round()
    assert rounds.data() == [b"%d" % n for n in range(20)]
    assert rounds.dead() == [MQRCCF_COMMAND_FAILED]


@pytest.mark.parametrize("why", ["nothing is behind it", "only others are behind it", "it would be taken later"])
def test_what_may_be_the_trees_fault_stays(rounds: Rounds, tree: MemoryTree, why: str) -> None:
    """A tree that keeps what is retained in a place of its own may not answer for that alone."""
    (tree.busy if why == "it would be taken later" else tree.unanswered).add("odd")
    rounds.publish("odd", b"odd", retain=why == "only others are behind it")
    for n in range(6):
        if why != "nothing is behind it":
            rounds.publish("a", b"%d" % n)
        assert not rounds.round()
    tree.unanswered.clear()
    tree.busy.clear()
    while rounds.store.depth(OUTGOING):
        assert rounds.round()
    assert rounds.dead() == []
    assert rounds.data().count(b"odd") == 1


def test_a_filter_that_is_refused_is_tried_again_when_it_may_be_granted(
    tmp_path: Path, tree: MemoryTree, nature: Nature, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commands.links.engine.link.RETRY_REJECTED_S", 0.5)
    tree.refused_filters.add("a/#")
    with World(tmp_path, tree, nature) as world:
        world.register("a/#")
        tree.publish("a/x", b"not for us", retain=True)
        assert not tree.filters
        tree.refused_filters.clear()
        until(lambda: tree.filters, "another try")
        until(lambda: world.depth("S") == 1, "what is retained there")


# Catching up


def test_what_was_retained_before_is_not_put_after_what_came_meanwhile(
    tmp_path: Path, tree: MemoryTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulation (seed 21): the keeper looked at the tree, and another one was quicker to the queue."""
    looked = MemoryCalls.retained
    with World(tmp_path, tree, ANSWERS_FOR_EACH) as world:
        world.register("score/#")
        world.done()
        tree.go()
        tree.publish("score/1", b"old", retain=True)

        def meanwhile(calls: MemoryCalls, filters: Sequence[Filter]) -> TreeRetained:
            monkeypatch.undo()
            there = looked(calls, filters)
            tree.publish("score/1", b"new", retain=True)
            until(lambda: world.data("S") == [b"new"], "what came meanwhile")
            return there

        monkeypatch.setattr(MemoryCalls, "retained", meanwhile)
        tree.come(remembers=False)
        until(lambda: world.data("S") == [b"new"], "what came meanwhile")
        world.done()
        assert world.data("S") == [b"new"]


def test_a_subscriber_is_greeted_with_what_natives_retain(world: World, tree: MemoryTree) -> None:
    tree.publish("score/1", b"1:0", retain=True)
    world.register("score/#", options="<RegOpt>InformIfRet</RegOpt>")
    assert world.data("S") == [b"1:0"]


def test_what_changed_while_the_tree_could_not_be_reached_is_caught_up(world: World, tree: MemoryTree) -> None:
    world.register("left/#")
    tree.go()
    until(lambda: not tree.is_there)
    world.register("score/#")
    world.put(CONTROL, "<Command>DeregSub</Command><Topic>left/#</Topic><QName>S</QName>")
    world.publish("score/2", b"legacy")
    tree.publish("score/1", b"native", retain=True)
    until(lambda: world.data("S") == [b"legacy"], "legacy programs among themselves")
    assert not world.link.settle(threading.Event()), "the tree does not have all"
    tree.come()
    until(lambda: sorted(world.data("S")) == [b"legacy", b"native"], "what was retained meanwhile")
    until(lambda: {topic for topic, _ in tree.filters} == {"score/#"}, "the filters as the subscriptions are")
    world.done()
    assert tree.published == [("score/2", b"legacy")]


def test_a_tree_that_has_forgotten_is_subscribed_to_again(tmp_path: Path, tree: MemoryTree) -> None:
    with World(tmp_path, tree, ANSWERS_FOR_EACH) as world:
        for topic in "abcdefg":
            world.register(f"{topic}/#")
        tree.go()
        tree.publish("a/1", b"kept", retain=True)
        tree.come(remembers=False)
        until(lambda: len(tree.filters) == 7, "all filters, some at a time")
        until(lambda: world.data("S") == [b"kept"])


def test_nothing_is_unsubscribed_before_the_subscriptions_are_known(tmp_path: Path, tree: MemoryTree) -> None:
    with World(tmp_path, tree, UNITS_OF_WORK) as world:
        world.register("a/#")
    again = World(tmp_path, tree, UNITS_OF_WORK)
    with _started(again):
        threading.Event().wait(0.3)
    again.store.close()
    assert {topic for topic, _ in tree.filters} == {"a/#"}


# A connection that breaks


@pytest.mark.parametrize("at", [0, 7, 19])
def test_a_connection_that_breaks_loses_nothing_and_sends_nothing_twice_that_was_answered(
    world: World, tree: MemoryTree, at: int
) -> None:
    tree.go()
    tree.breaks_at = b"%d" % at
    for n in range(20):
        world.publish("a", b"%d" % n)
    until(lambda: world.depth(OUTGOING) == 20)
    tree.come()
    until(lambda: len(tree.published) == 20, "all of them")
    world.done()
    assert tree.breaks_at is None, "nothing broke"
    assert [data for _, data in tree.published] == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize("fault", ["it cannot be put", "it cannot be acknowledged"])
def test_what_cannot_be_taken_from_the_tree_is_taken_again(world: World, tree: MemoryTree, fault: str) -> None:
    world.register("a")
    world.done()
    if fault == "it cannot be put":
        world.failing = 2
    else:
        real = tree.called
        left = [2]

        def called(name: str) -> None:
            if name == "accept" and left[0]:
                left[0] -= 1
                raise StoreError("injected: not acknowledged")
            real(name)

        tree.called = called  # type: ignore[method-assign]
    for n in range(3):
        tree.publish("a", b"%d" % n)
    until(lambda: not tree.inbox and world.depth(STREAM) == 0 and world.depth("S") >= 3, "all of them")
    arrived = world.data("S")
    assert list(dict.fromkeys(arrived)) == [b"0", b"1", b"2"]
    assert (len(arrived) == 3) == (fault == "it cannot be put"), "twice only what was committed and not acknowledged"


# Its life


def test_what_is_not_sent_by_the_end_waits_for_the_next_start(tmp_path: Path, tree: MemoryTree, nature: Nature) -> None:
    with World(tmp_path, tree, nature, patience_s=0.5) as world:
        tree.go()
        world.publish("a", b"kept")
        until(lambda: world.depth(OUTGOING) == 1)
        assert not world.link.settle(threading.Event())
        until(lambda: world.link.trouble)
        assert not world.link.state.connected
    assert not [each for each in threading.enumerate() if each.name in ("qpubsub-inward", "qpubsub-outward")]
    tree.come()
    with World(tmp_path, tree, nature) as world:
        world.done()
        assert (world.link.trouble, world.link.state.connected) == ("", True)
    assert tree.published == [("a", b"kept")]


def test_settle_ends_when_it_is_told_to_stop(tmp_path: Path, tree: MemoryTree, nature: Nature) -> None:
    stop = threading.Event()
    stop.set()
    with World(tmp_path, tree, nature) as world:
        assert not world.link.settle(stop)


@pytest.mark.parametrize(
    ("thread", "broken"),
    [("inward", "receiver().take"), ("outward", "wait_up"), ("keeper", "client().prepare")],
)
def test_a_thread_that_ends_by_a_fault_ends_the_link(
    tmp_path: Path, tree: MemoryTree, thread: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bool:
        raise ZeroDivisionError("injected")

    owner = {"receiver().take": "MemoryReceiver", "wait_up": "MemoryAdapter", "client().prepare": "MemoryCalls"}[broken]
    monkeypatch.setattr(f"tests.commands.links.engine.memory_tree.{owner}.{broken.rsplit('.', 1)[-1]}", fails)
    ended = threading.Event()
    world = World(tmp_path, tree, UNITS_OF_WORK)
    world.link.start(ended.set)
    world.link.load([], TopicObjects())
    assert ended.wait(PATIENCE_S)
    world.link.stop()
    world.store.close()
    assert world.link.fault.startswith(f"thread {thread} of the link"), world.link.fault


# By the table of capabilities


@pytest.mark.parametrize(("how", "asked"), [(How.DOES, True), (How.EMULATED, False)])
def test_req_update_looks_there_where_nobody_says_what_was_cleared(
    tmp_path: Path, tree: MemoryTree, how: How, asked: bool
) -> None:
    with World(tmp_path, tree, UNITS_OF_WORK.but(Feature.REQUEST, how)) as world:
        world.register("a", options="<RegOpt>PubOnReqOnly</RegOpt>")
        world.done()
        before = tree.calls.count("retained")
        world.put(CONTROL, "<Command>ReqUpdate</Command><Topic>a</Topic><QName>S</QName>")
        world.done()
    assert (tree.calls.count("retained") > before) is asked


def test_a_tree_that_retains_nothing_is_not_asked_what_it_retains(tmp_path: Path, tree: MemoryTree) -> None:
    nature = ANSWERS_FOR_EACH.but(Feature.RETAIN, How.LOST).but(Feature.CLEAR, How.NOT_CARRIED)
    with World(tmp_path, tree, nature) as world:
        world.register("a/#")
        world.publish("a/x", b"1", RETAIN)
        world.clear("a/x")
        world.done()
        tree.go()
        tree.come(remembers=False)
        until(lambda: tree.filters, "the filter again")
        world.done()
    assert "retained" not in tree.calls
    assert tree.cleared == []
    assert tree.published == [("a/x", b"1")]


def test_a_processor_and_the_link_agree_on_a_drain(tmp_path: Path, tree: MemoryTree, nature: Nature) -> None:
    """As ``run --once``: what is waiting on both sides is over when it ends."""
    world = World(tmp_path, tree, nature)
    world.put(CONTROL, "<Command>RegSub</Command><Topic>a/#</Topic><QName>S</QName>")
    world.publish("a/out", b"out")
    with _started(world), QueueManagerStore.open(tmp_path, "QM1", durability=Durability.NORMAL) as store:
        processor = Processor(store, lambda: datetime.now(UTC), link=world.link)
        processor.start()
        processor.drain(threading.Event())
        tree.publish("a/in", b"in")
        assert world.link.settle(threading.Event())
        assert processor.drain(threading.Event()) == 1
    assert (world.data("S"), tree.published) == ([b"out", b"in"], [("a/out", b"out")])
    world.store.close()


@contextmanager
def _started(world: World) -> Iterator[None]:
    world.link.start()
    try:
        yield
    finally:
        world.link.stop()


# docs/conformance.md: DIS-26
@pytest.mark.rule("DIS-26")
def test_a_parent_that_is_set_while_it_works_has_no_effect_and_is_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "qpubsub.processor")
    world.register("a")
    with world.store.unit_of_work() as unit:
        unit.save_definition(replace(unit.queue_manager(), parent="QM9"))
    for n in range(2):
        world.publish("a", b"%d" % n)
        until(lambda: world.data("S")[-1:] == [b"%d" % n], "the publication")  # noqa: B023 - called at once
    said = [record.getMessage() for record in caplog.records if "PARENT" in record.getMessage()]
    assert said == ["PARENT(QM9) has no effect: the queues or the topic tree are elsewhere"]
    assert world.store.find_queue("QM9") is None
