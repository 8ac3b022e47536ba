"""What is counted of subscriptions, topics and queues: exact, kept over restarts, and nothing of what was backed out.

What a kill -9 leaves is compared in test_crash.py, the cached way with the whole way in
test_processor_templates.py.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.counts import Counts, QueueCounts, SubscriptionCounts, TopicCounts
from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import Home
from commands.disk.errors import UndeliverableError
from commands.qmgr.delivery import Backlog
from commands.qmgr.observer import forget_unused_topics
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.counters import MOST_TOPICS
from rfh2 import Folder, Mqmd, Rfh2
from streams.operations import SubscriptionRemoved
from streams.topic_objects import TopicObject
from tests.commands.qmgr.test_processor import CONTROL, DEAD, NOW, STREAM, _put, _register

LATER = NOW + timedelta(minutes=5)


def _store(home: Home, **attributes: Any) -> QueueManagerStore:
    definition = QueueManager("QM1", **attributes)
    return QueueManagerStore.create(home, definition, durability=Durability.NORMAL, clock=lambda: NOW)


def _do(store: QueueManagerStore, *commands: str, now: datetime = NOW, batch: int = 1000) -> None:
    """Commands in words: ``reg`` or ``dereg`` QUEUE TOPIC [FILTER], ``pub`` or ``retain`` TOPIC [COLOUR]."""
    with store.unit_of_work() as unit:
        for command in commands:
            verb, *rest = command.split(" ", 3 if command.startswith("reg ") else 2)
            if verb in ("reg", "dereg"):
                queue, topic, *selector = rest
                chosen = f"<Filter>{selector[0]}</Filter>" if selector else ""
                word = "RegSub" if verb == "reg" else "DeregSub"
                _put(unit, CONTROL, f"<Command>{word}</Command><Topic>{topic}</Topic>{chosen}<QName>{queue}</QName>")
            else:
                topic, *colour = rest
                retain = "<PubOpt>RetainPub</PubOpt>" if verb == "retain" else ""
                psc = f"<psc><Command>Publish</Command>{retain}<Topic>{topic}</Topic></psc>"
                usr = f"<usr><colour>{colour[0]}</colour></usr>" if colour else "<usr><n>1</n></usr>"
                folders = (Folder.of(psc), Folder.of(usr))
                md = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app")
                unit.put(STREAM, md.encode(), Rfh2(folders, format="MQSTR").encode() + b"data")
    Processor(store, lambda: now, settings=ProcessorSettings(batch=batch)).drain()


def _of_queues(store: QueueManagerStore) -> dict[str, SubscriptionCounts]:
    """What was counted of subscriptions, by the queue of each."""
    counts = store.counts()[0]
    return {s.dest_queue: counts[s.sub_id] for s in store.load_state()[1] if s.sub_id in counts}


def _queue(store: QueueManagerStore, name: str) -> QueueCounts | None:
    with store.unit_of_work() as unit:
        return unit.counters.queues().get(name)


CASES = [
    pytest.param(["reg S a", "pub a", "pub a", "pub b"], {"S": (2, 0, 0)}, {"a": 2, "b": 1}, id="what-it-is-sent"),
    pytest.param(["reg S a", "reg T #", "pub a"], {"S": (1, 0, 0), "T": (1, 0, 0)}, {"a": 1}, id="each-subscriber"),
    pytest.param(["retain a", "reg S a"], {"S": (1, 0, 0)}, {"a": 1}, id="retained-before"),
    pytest.param(
        ["reg S a colour = 'red'", "pub a red", "pub a green", "pub a green", "pub a"],
        {"S": (1, 3, 0)},
        {"a": 4},
        id="kept-away-by-its-filter",
    ),
    pytest.param(
        ["retain a green", "retain b red", "reg S # colour = 'red'"],
        {"S": (1, 1, 0)},
        {"a": 1, "b": 1},
        id="retained-and-filtered",
    ),
    pytest.param(["reg FULL a", "pub a", "pub a", "pub a"], {"FULL": (1, 0, 2)}, {"a": 3}, id="dead-letters"),
    pytest.param(["reg FULL a", *["pub a"] * 6], {"FULL": (1, 0, 5)}, {"a": 6}, id="dead-letters-of-cached-ones"),
    pytest.param(["reg S a", "pub a", "dereg S a", "pub a"], {}, {"a": 2}, id="gone-with-the-subscription"),
    pytest.param(["reg S a", "pub a", "dereg S a", "reg S a"], {}, {"a": 1}, id="a-new-one-begins-anew"),
    pytest.param(["reg S a", "pub a", "reg S a", "pub a"], {"S": (2, 0, 0)}, {"a": 2}, id="registered-again"),
    pytest.param(["reg S a", "pub a/#", "pub"], {}, {}, id="refused-commands"),
]


@pytest.mark.rule("ST-1")
@pytest.mark.parametrize(("commands", "subscriptions", "topics"), CASES)
@pytest.mark.parametrize("batch", [1, 1000])
def test_counts_of_subscriptions_and_topics(
    home: Home,
    commands: list[str],
    subscriptions: dict[str, tuple[int, int, int]],
    topics: dict[str, int],
    batch: int,
) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("FULL", max_depth=1))
        for command in commands:
            # The control queue and the stream queue are in no order between them: one after the other.
            _do(store, command if command != "pub" else "pub ", batch=batch)
    with QueueManagerStore.open(home, "QM1") as store:
        found = {queue: (c.delivered, c.filtered, c.dead_letters) for queue, c in _of_queues(store).items()}
        assert found == subscriptions
        assert {topic: counts.publications for topic, counts in store.counts()[1].items()} == topics
        for queue, counts in _of_queues(store).items():
            assert store.depth(queue) == counts.delivered


def test_the_last_moment_is_that_of_the_last_publication(home: Home) -> None:
    with _store(home) as store:
        _do(store, "reg S a", "reg RED # colour = 'red'")
        _do(store, *["pub a red"] * 4)
        _do(store, "pub a green", "pub b green", now=LATER)
        assert _of_queues(store) == {"S": SubscriptionCounts(5, LATER), "RED": SubscriptionCounts(4, NOW, filtered=2)}
        assert store.counts()[1] == {"a": TopicCounts(5, LATER), "b": TopicCounts(1, LATER)}


def test_the_order_in_which_a_batch_is_summed_does_not_matter(home: Home) -> None:
    """Publications that the cache knew are added last; one that it did not know may be newer."""
    now = NOW

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    with _store(home) as store:
        _do(store, "reg S #")
        with store.unit_of_work() as unit:
            for number in ("", "", "", "<SeqNum>7</SeqNum>"):
                _put(unit, STREAM, f"<Command>Publish</Command><Topic>a</Topic>{number}")
        Processor(store, clock).drain()
        newest = max(message.time for message in store.browse("S"))
        assert _of_queues(store)["S"] == SubscriptionCounts(4, newest)
        assert store.counts()[1]["a"] == TopicCounts(4, newest)


def test_what_is_owed_counts_when_it_is_kept(home: Home) -> None:
    with _store(home) as store:
        _do(store, "reg S a")
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S", put_enabled=False))
            unit.save_definition(LocalQueue(DEAD, put_enabled=False))
        _do(store, "pub a")
        assert _of_queues(store) == {"S": SubscriptionCounts(1, NOW)}
        assert _queue(store, "S") is None
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S"))
        Processor(store, lambda: LATER).drain()
        assert _of_queues(store) == {"S": SubscriptionCounts(1, NOW)}
        assert _queue(store, "S") == QueueCounts(1, LATER)


@pytest.mark.rule("ST-4")
def test_queues_are_counted_whoever_puts_and_gets(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            for _ in range(3):
                unit.put("Q", None, b"x", time=LATER)
        with store.unit_of_work() as unit:
            assert unit.get("Q") is not None
            assert unit.counters.queues()["Q"] == QueueCounts(3, LATER, 1, NOW)
        assert _queue(store, "Q") == QueueCounts(3, LATER, 1, NOW)
        with store.unit_of_work() as unit:
            assert unit.clear_queue("Q") == 2  # taken off, not got
        assert _queue(store, "Q") == QueueCounts(3, LATER, 1, NOW)
        with store.unit_of_work() as unit:
            unit.delete_definition("qlocal", "Q")
        with store.unit_of_work() as unit:
            unit.put("Q", None, b"x")
        assert _queue(store, "Q") == QueueCounts(1, NOW)


def test_an_expired_message_is_not_got(home: Home) -> None:
    now = NOW
    with QueueManagerStore.create(home, QueueManager("QM1"), clock=lambda: now) as store:
        with store.unit_of_work() as unit:
            unit.put("Q", Mqmd(expiry=10).encode(), b"a second")
        now = LATER
        with store.unit_of_work() as unit:
            assert unit.get("Q") is None
        assert _queue(store, "Q") == QueueCounts(1, NOW)


# What one unit of work does, a part at a time: how many messages the part puts and gets, and whether it is backed out.
PARTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans(), st.booleans()), max_size=6)


@pytest.mark.rule("ST-7")
@given(units=st.lists(st.tuples(PARTS, st.booleans()), max_size=4))
def test_what_is_backed_out_counts_nothing(units: list[tuple[list[tuple[int, int, bool, bool]], bool]]) -> None:
    """Puts less gets are what is on the queue, however units of work and their parts ended."""
    with TemporaryDirectory() as home, _store(Path(home)) as store:
        expected: Counter[str] = Counter()
        for parts, done in units:
            in_unit: Counter[str] = Counter()
            with store.unit_of_work() as unit:
                for puts, gets, settles, kept in parts:
                    in_part: Counter[str] = Counter()
                    try:
                        with unit.savepoint():
                            for _ in range(puts):
                                unit.put("Q", None, b"x")
                            in_part["puts"] += puts
                            if settles:
                                unit.local_queues()
                            for _ in range(gets):
                                in_part["gets"] += unit.find_queue("Q") is not None and unit.get("Q") is not None
                            counts = Counts()
                            counts.add_delivered(b"s", NOW)
                            counts.add_published("t", NOW)
                            unit.counters.add(counts)
                            in_part["added"] += 1
                            if not kept:
                                raise KeyError
                    except KeyError:
                        continue
                    in_unit += in_part
                found = unit.counters.queues().get("Q", QueueCounts())
                assert (found.puts, found.gets) == ((expected + in_unit)["puts"], (expected + in_unit)["gets"])
                assert unit.counters.topics().get("t", TopicCounts()).publications == (expected + in_unit)["added"]
                if not done:
                    unit.backout()
            expected += in_unit if done else Counter()
        with store.unit_of_work() as unit:
            found = unit.counters.queues().get("Q", QueueCounts())
            assert (found.puts, found.gets) == (expected["puts"], expected["gets"])
            assert unit.counters.subscriptions().get(b"s", SubscriptionCounts()).delivered == expected["added"]
            assert found.puts - found.gets == (unit.depth("Q") if unit.find_queue("Q") else 0)


def test_a_command_that_has_to_wait_is_not_counted(home: Home) -> None:
    with _store(home) as store:
        _do(store, "reg T a", "reg S a")
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S", put_enabled=False))
            unit.save_definition(LocalQueue(DEAD, put_enabled=False))
            _put(unit, STREAM, "<Command>Publish</Command><Topic>a</Topic>")
        with pytest.raises(UndeliverableError):
            Processor(store, lambda: NOW, backlog=Backlog(lambda: NOW, 1.0, most_messages=0)).drain()
        assert store.counts() == ({}, {})
        assert _queue(store, "T") is None
        assert _queue(store, STREAM) == QueueCounts(1, NOW)


def test_counts_of_a_subscription_that_goes_in_the_unit_of_work_that_counted_it(home: Home) -> None:
    with _store(home) as store:
        _do(store, "reg S a", "reg T a")
        [one, other] = store.load_state()[1]
        counts = Counts()
        for sub_id in (one.sub_id, other.sub_id):
            counts.add_delivered(sub_id, NOW)
        with store.unit_of_work() as unit:
            unit.save_effects([SubscriptionRemoved(one)])
            unit.counters.add(counts)
            with suppress(KeyError), unit.savepoint():
                unit.save_effects([SubscriptionRemoved(other)])
                raise KeyError
        assert store.counts()[0] == {other.sub_id: SubscriptionCounts(1, NOW)}


def _forget(store: QueueManagerStore, now: datetime) -> list[str]:
    with store.unit_of_work() as unit:
        processor = Processor(store, lambda: now)
        forget_unused_topics(unit, processor._loaded.of(unit), now)
        return sorted(unit.counters.topics())


@pytest.mark.rule("ST-3")
def test_2_5_3_1_an_unused_topic_leaves_the_tree_after_treelife(home: Home) -> None:
    with _store(home, treelife=60) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(TopicObject("OBJECT", "object"))
            _register(unit, "S", "subscribed")
        _do(store, *(f"pub {topic}" for topic in ("unused", "object", "subscribed")), "retain retained")
        _do(store, "pub used", now=NOW + timedelta(seconds=30))
        everything = ["object", "retained", "subscribed", "unused", "used"]
        assert _forget(store, NOW + timedelta(seconds=60)) == everything
        everything.remove("unused")
        assert _forget(store, NOW + timedelta(seconds=61)) == everything
        everything.remove("used")
        assert _forget(store, NOW + timedelta(seconds=91)) == everything


@pytest.mark.rule("ST-3")
def test_2_5_3_1_a_processor_that_runs_looks_for_unused_topics(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    now, stop = NOW, threading.Event()

    def later(_timeout_s: float) -> bool:
        nonlocal now
        now += timedelta(seconds=45)
        if now > NOW + timedelta(seconds=200):
            stop.set()
        return False

    with _store(home, treelife=60) as store:
        _do(store, "pub unused", "reg S subscribed", "pub subscribed")
        monkeypatch.setattr(store, "wait_for_change", later)
        Processor(store, lambda: now).run(stop)
        assert list(store.counts()[1]) == ["subscribed"]


@pytest.mark.rule("ST-3")
def test_2_5_3_1_treelife_0_keeps_topics_for_ever(home: Home) -> None:
    with _store(home, treelife=0) as store:
        _do(store, "pub a")
        assert _forget(store, NOW + timedelta(days=10_000)) == ["a"]


def test_of_more_topics_than_are_kept_those_go_that_rested_longest(home: Home) -> None:
    with _store(home) as store:
        for n in range(5):
            _do(store, f"pub t/{n}", now=NOW + timedelta(seconds=n))
        with store.unit_of_work() as unit:
            assert unit.counters.forget_topics(None, set, MOST_TOPICS) == 0
            assert unit.counters.forget_topics(None, lambda: {"t/0"}, 3) == 2
            assert sorted(unit.counters.topics()) == ["t/0", "t/3", "t/4"]
            assert unit.counters.forget_topics(NOW + timedelta(seconds=4), lambda: {"t/0"}, 1) == 2
            assert sorted(unit.counters.topics()) == ["t/0"]
