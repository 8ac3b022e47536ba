"""Any workload gives the same puts, queues and counters in a directory and in PostgreSQL."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import Home, PostgresqlHome
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.errors import StoreError
from rfh2.mqmd import Mqmd
from tests.commands.qmgr.test_dynamic_queues import CONTROL, STREAM, send
from tests.postgresql import empty, needs_postgresql

pytestmark = needs_postgresql
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOPICS = st.sampled_from(("a", "a/b", "a/b/c", "x", "é/%_", "long/" + "0123456789abcdef" * 200))
QUEUES = st.sampled_from(("Q1", "Q2", "LITTLE"))
STEPS = st.one_of(
    st.tuples(st.just("register"), TOPICS, QUEUES),
    st.tuples(st.just("deregister"), TOPICS, QUEUES),
    st.tuples(st.just("publish"), TOPICS, st.sampled_from(("", "RetainPub"))),
    st.tuples(st.just("delete"), TOPICS, st.just("")),
    st.tuples(st.just("get"), st.just(""), QUEUES),
    st.tuples(st.just("put"), st.sampled_from(("short", "expires", "urgent")), QUEUES),
    st.tuples(st.just("back out"), st.just(""), QUEUES),
    st.tuples(st.just("part"), st.just(""), QUEUES),
    st.tuples(st.just("process"), st.just(""), st.just("")),
)


class World:
    """A queue manager and its processor, with a clock that goes on by a second with each step."""

    def __init__(self, home: Home) -> None:
        self.now = START
        self.store = QueueManagerStore.create(home, QueueManager("QM1"), clock=lambda: self.now)
        self.got: list[object] = []
        with self.store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("LITTLE", max_depth=2))

    def step(self, kind: str, text: str, word: str) -> None:
        self.now += timedelta(seconds=1)
        store = self.store
        commands = {
            "register": (CONTROL, f"<Command>RegSub</Command><Topic>{text}</Topic><QName>{word}</QName>"),
            "deregister": (CONTROL, f"<Command>DeregSub</Command><Topic>{text}</Topic><QName>{word}</QName>"),
            "publish": (STREAM, f"<Command>Publish</Command><Topic>{text}</Topic><PubOpt>{word}</PubOpt>"),
            "delete": (STREAM, f"<Command>DeletePub</Command><Topic>{text}</Topic>"),
        }
        if kind in commands:
            queue, psc = commands[kind]
            send(store, queue, psc.replace("<PubOpt></PubOpt>", ""))
        elif kind == "process":
            Processor(store, lambda: self.now).drain()
        elif kind == "get":
            with store.unit_of_work() as unit, suppress(StoreError):
                self.got.append(unit.get(word))
        elif kind == "put":
            fields: dict[str, Any] = {"expires": {"expiry": 20}, "urgent": {"priority": 9}}.get(text, {})
            with store.unit_of_work() as unit, suppress(StoreError):
                self.got.append(unit.put(word, Mqmd(**fields).encode(), text.encode()))
        elif kind == "back out":
            unit = store.unit_of_work()
            with suppress(StoreError):
                unit.put("Q1", None, b"never")
                unit.get(word)
            unit.backout()
        else:
            with store.unit_of_work() as unit:
                unit.put("Q2", None, b"before")
                with suppress(StoreError, ZeroDivisionError), unit.savepoint():
                    unit.get(word)
                    unit.put("Q1", None, b"never")
                    list(unit.browse("Q1"))
                    raise ZeroDivisionError
                unit.put("Q2", None, b"behind")

    def end(self) -> tuple[object, ...]:
        """All that can be seen of it."""
        with self.store as store:
            queues = {queue.name: list(store.browse(queue.name)) for queue in store.local_queues()}
            _, subscriptions, retained = store.load_state()
            kept = [(each.topic_string, each.publication.message) for each in retained]
            counted = [(each.definition.name, each.depth, each.counts) for each in store.overview().queues]
            return self.got, queues, subscriptions, kept, store.counts(), counted, store.overview().totals


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=25))
def test_any_workload_gives_the_same(
    postgresql_home: PostgresqlHome, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    ends = []
    homes: tuple[Home, Home] = (Path(tmp_path_factory.mktemp("home")), postgresql_home)
    try:
        for home in homes:
            world = World(home)
            for step in steps:
                world.step(*step)
            world.step("process", "", "")
            ends.append(world.end())
    finally:
        empty(postgresql_home)
    assert ends[0] == ends[1]
