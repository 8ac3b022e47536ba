"""Databases of earlier schemas: opened, they have all that they had, in the tables of this one."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.broker.counts import SubscriptionCounts, TopicCounts
from commands.broker.objects import DEFAULT_MODELS, DEFAULT_QUEUES, LocalQueue, state_of
from commands.disk.lock import exclusive
from commands.network.topology import Link
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerInUseError, QueueManagerStore, StoreDamagedError, schema
from commands.qmgr.store.message_table import undelivered_overview
from commands.qmgr.store.opening import DATABASE
from rfh2 import encode
from streams.operations import RetainedCleared
from streams.topic_objects import DEFAULT_TOPIC_OBJECTS

FIXTURES = Path(__file__).parents[3] / "fixtures" / "databases"
PUBLISHED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def old(home: Path, version: int) -> Path:
    """A home with the queue manager QM1 as schema *version* had it; the path of its database."""
    path = home / "QM1" / DATABASE
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript((FIXTURES / f"schema-{version}.sql").read_text(encoding="utf-8"))
    connection.close()
    return path


def reopen(home: Path) -> QueueManagerStore:
    return QueueManagerStore.open(home, "QM1", clock=lambda: PUBLISHED)


def test_every_schema_has_its_golden_database() -> None:
    found = sorted(path.name for path in FIXTURES.glob("schema-*.sql"))
    assert found == [f"schema-{version}.sql" for version in range(1, len(schema.MIGRATIONS) + 1)]


def test_schema_1_what_is_retained_is_there_and_once(tmp_path: Path) -> None:
    old(tmp_path, 1)
    for _ in range(2):
        with reopen(tmp_path) as store:
            retained = store.load_state()[2]
            assert [(r.topic_string, encode(r.publication.message)[-6:], r.publication.local) for r in retained] == [
                ("c", b"shared", False),
                ("d", b"estart", True),
                ("sport/a", b"shared", False),
                ("sport/b", b" newer", False),
            ]
            assert retained[0].publication is retained[2].publication
            assert {r.publication.published_at for r in retained} == {PUBLISHED}
            assert retained[1].publication.expires_at == PUBLISHED + timedelta(hours=2, minutes=46, seconds=40)
            execute = store.database.connection.execute
            assert execute("SELECT count(*) FROM publications").fetchone() == (3,)
            assert execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)


def test_schema_1_what_is_retained_goes_as_in_a_new_one(tmp_path: Path) -> None:
    old(tmp_path, 1)
    with reopen(tmp_path) as store:
        with store.unit_of_work() as unit:
            assert unit.discard_nonpersistent_retained() == 1
            unit.save_effects([RetainedCleared("c")])
        count = "SELECT count(*) FROM publications"
        assert store.database.connection.execute(count).fetchone() == (2,)
        with store.unit_of_work() as unit:
            unit.save_effects([RetainedCleared("sport/a")])
        assert store.database.connection.execute(count).fetchone() == (1,)


@pytest.mark.parametrize(
    ("queue", "persistent"),
    [
        ("SYSTEM.BROKER.DEFAULT.STREAM", True),
        ("SYSTEM.BROKER.ADMIN.STREAM", False),  # its definition was changed
        ("SYSTEM.BROKER.CONTROL.QUEUE", False),
        ("OWN", False),
    ],
)
def test_schema_1_stream_queues_that_nobody_changed_become_persistent(
    tmp_path: Path, queue: str, persistent: bool
) -> None:
    old(tmp_path, 1)
    with reopen(tmp_path) as store:
        found = store.load_state()[0].queues[queue]
        assert (found.def_persistent, found.max_depth == 10) == (persistent, "ADMIN" in queue)


def test_an_older_schema_is_left_while_a_processor_works_on_it(tmp_path: Path) -> None:
    path = old(tmp_path, 1)
    with exclusive(path.with_name("run.lock"), "QM1"), pytest.raises(QueueManagerInUseError):
        reopen(tmp_path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()
    with reopen(tmp_path) as store:
        assert len(store.load_state()[2]) == 4


def test_a_newer_schema_is_refused_by_its_number_and_left(tmp_path: Path) -> None:
    path = old(tmp_path, 1)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 77")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreDamagedError, match="schema 77"):
        reopen(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [1, 2])
def test_the_default_objects_of_now_are_there(tmp_path: Path, version: int) -> None:
    """Once: one that is deleted does not come back."""
    path = old(tmp_path, version)
    connection = sqlite3.connect(path)
    taken = LocalQueue("SYSTEM.JMS.MODEL.QUEUE")  # by a queue of another kind
    connection.execute("INSERT INTO definitions VALUES ('qlocal', ?, ?)", (taken.name, state_of(taken)))
    connection.commit()
    connection.close()
    with reopen(tmp_path) as store:
        objects = store.load_state()[0]
        models = {model.name for model in DEFAULT_MODELS}
        assert set(objects.models) == models - {taken.name}
        assert {queue.name for queue in DEFAULT_QUEUES} < set(objects.queues)
        assert all(objects.topics.get(topic.name) is not None for topic in DEFAULT_TOPIC_OBJECTS)
        with store.unit_of_work() as unit:
            unit.delete_definition("qmodel", "SYSTEM.DEFAULT.MODEL.QUEUE")
    with reopen(tmp_path) as store:
        assert "SYSTEM.DEFAULT.MODEL.QUEUE" not in store.load_state()[0].models
        with store.connect() as program:
            assert program.open("SYSTEM.JMS.TEMPQ.MODEL").made


def test_schema_2_everything_stays_and_counting_begins(tmp_path: Path) -> None:
    old(tmp_path, 2)
    with reopen(tmp_path) as store:
        subscriptions = store.load_state()[1]
        assert sorted((s.name, s.topic_string, s.dest_queue) for s in subscriptions if s.name) == [
            ("score", "sport/a", "SCORES")
        ]
        assert [store.depth(queue) for queue in ("BOARD", "SCORES")] == [2, 1]
        assert store.counts() == ({}, {})
        Processor(store, lambda: PUBLISHED).drain()
        of_subscriptions, of_topics = store.counts()
        by_queue = {s.dest_queue: of_subscriptions.get(s.sub_id) for s in subscriptions}
        assert by_queue == {"BOARD": SubscriptionCounts(1, PUBLISHED), "SCORES": None}
        assert of_topics == {"sport/b": TopicCounts(1, PUBLISHED)}


def test_schema_3_what_is_owed_stays(tmp_path: Path) -> None:
    old(tmp_path, 3)
    with reopen(tmp_path) as store:
        dynamic = "SCORES.695735A500000001"
        assert undelivered_overview(store.database.connection) == [("FAR", 3, int(PUBLISHED.timestamp()) * 1_000_000)]
        Processor(store, lambda: PUBLISHED).drain()
        assert store.counts()[1] == {"sport/a": TopicCounts(2, PUBLISHED)}
        assert [store.depth(queue) for queue in ("BOARD", dynamic)] == [2, 2]


def test_schema_4_no_epoch_has_begun(tmp_path: Path) -> None:
    old(tmp_path, 4)
    with reopen(tmp_path) as store:
        assert store.database.read_epoch() == 0
        Processor(store, lambda: PUBLISHED).drain()
        assert [message.body[-7:] for message in store.browse("BOARD")][-1] == b"waiting"


def test_schema_5_the_parent_is_not_asked_yet(tmp_path: Path) -> None:
    old(tmp_path, 5)
    with reopen(tmp_path) as store:
        assert store.load_state()[0].qmgr.parent == "ABOVE"
        with store.unit_of_work() as unit:
            assert unit.neighbours.all() == []
        Processor(store, lambda: PUBLISHED).drain()
        with store.unit_of_work() as unit:
            found = [(each.qmgr, each.status.value) for each in unit.neighbours.all()]
            assert found == [("ABOVE", "STARTING")]
            assert "t/2" in unit.neighbours.sent_proxies(Link("ABOVE"))
        assert len(list(store.browse("ABOVE"))) == 2  # attach, and all proxy subscriptions


@pytest.mark.parametrize("version", [6, 7])
def test_schema_7_neighbours_are_those_of_a_hierarchy(tmp_path: Path, version: int) -> None:
    connection = sqlite3.connect(old(tmp_path, version))
    before = connection.execute("SELECT qmgr, relation, status FROM neighbours").fetchall()
    sent = {topic for (topic,) in connection.execute("SELECT topic FROM sent_proxies WHERE neighbour = 'ABOVE'")}
    connection.close()
    assert "t/2" in sent
    with reopen(tmp_path) as store, store.unit_of_work() as unit:
        found = unit.neighbours.all()
        assert [(each.qmgr, each.relation, each.status) for each in found] == before
        assert [each.link for each in found] == [Link("ABOVE")]
        assert unit.neighbours.sent_proxies(Link("ABOVE")) == sent
        assert unit.neighbours.repository() == []
