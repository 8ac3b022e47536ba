"""Retained publications in the database: once each, however many topics keep them; messages read when asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import LocalQueue, QueueManager
from commands.broker.puts import Put
from commands.config.home import Home
from commands.mqsc.broker import Broker
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import DATABASE
from commands.qmgr.store.reading import CACHE_BYTES, KeptMessages, StoredPublication
from rfh2 import Folder, Mqmd, Rfh2, decode, encode
from rfh2.captured import CapturedMessage
from rfh2.errors import StoreError
from streams.operations import Publication, RetainedCleared, RetainedPublication, RetainedStored

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"


@pytest.fixture
def store(home: Home) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(home, QueueManager("QM1")) as made:
        yield made


def again(store: QueueManagerStore) -> QueueManagerStore:
    return QueueManagerStore.open(store.home, store.name)


def publication(body: bytes, persistence: int = 1) -> Publication:
    return Publication(decode(body, Mqmd(persistence=persistence)), NOW)


def stored(topic: str, what: Publication) -> RetainedStored:
    return RetainedStored(RetainedPublication(topic, what))


def rows(store: QueueManagerStore) -> tuple[int, int]:
    """How many topics keep something, and how many publications there are."""
    execute = store.database.connection.execute
    (topics,), (publications,) = (
        execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("retained", "publications")
    )
    return topics, publications


def bodies(store: QueueManagerStore) -> dict[str, bytes]:
    return {each.topic_string: encode(each.publication.message) for each in store.load_state()[2]}


def command(psc: str, queue: str = STREAM, data: bytes = b"data", seq: int = 1, **mqmd: object) -> CapturedMessage:
    about = {"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd}
    body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data
    md = Mqmd(**about)  # type: ignore[arg-type]
    return CapturedMessage(seq=seq, time=NOW, queue=queue, md_hex=md.encode().hex(), body_hex=body.hex())


def publish(*topics: str, data: bytes = b"data", seq: int = 1, **mqmd: object) -> CapturedMessage:
    names = "".join(f"<Topic>{topic}</Topic>" for topic in topics)
    psc = f"<Command>Publish</Command><PubOpt>RetainPub</PubOpt>{names}"
    return command(psc, data=data, seq=seq, **mqmd)


def process(store: QueueManagerStore, *messages: CapturedMessage) -> list[Put]:
    """A processor that starts, does these and ends."""
    puts: list[Put] = []
    with store.unit_of_work() as unit:
        for message in messages:
            unit.put(message.queue, message.md, message.body)
    Processor(store, lambda: NOW, puts.append).drain()
    return puts


# Once, and gone with the last topic


def test_topics_that_keep_one_publication_share_its_row_and_its_object(store: QueueManagerStore) -> None:
    process(store, publish("a", "b", "c"))

    assert rows(store) == (3, 1)
    with again(store) as other:
        assert len({id(each.publication) for each in other.load_state()[2]}) == 1


def test_in_memory_topics_share_the_object_too() -> None:
    broker = Broker("QM1")
    broker.handle(publish("a", "b", "c"))

    assert len({id(each.publication) for each in broker.space.retained_publications()}) == 1


def test_a_publication_goes_with_its_last_topic(store: QueueManagerStore) -> None:
    process(store, publish("a", "b"))
    process(store, command("<Command>DeletePub</Command><Topic>a</Topic>"))
    assert rows(store) == (1, 1)
    process(store, publish("b", data=b"newer"))
    assert (rows(store), bodies(store)["b"][-5:]) == ((1, 1), b"newer")
    process(store, command("<Command>DeletePub</Command><Topic>#</Topic>"))
    assert rows(store) == (0, 0)


def test_a_restart_takes_non_persistent_publications_with_their_topics_8_5(store: QueueManagerStore) -> None:
    process(store, publish("a", "b", persistence=0), publish("c"))
    with store.unit_of_work() as unit:
        assert unit.discard_nonpersistent_retained() == 2

    assert rows(store) == (1, 1)


def test_one_command_that_stores_and_clears_by_turns(store: QueueManagerStore) -> None:
    one, other = publication(b"one"), publication(b"other")
    with store.unit_of_work() as unit:
        kept = unit.save_effects(
            [stored("a", one), RetainedCleared("a"), stored("b", one), stored("b", other), stored("c", one)]
        )
        assert {each.topic_string: each.publication.message.body for each in kept} == {"b": b"other", "c": b"one"}

    assert (bodies(store), rows(store)) == ({"b": b"other", "c": b"one"}, (2, 2))


def test_what_is_backed_out_leaves_neither_row_nor_message(store: QueueManagerStore) -> None:
    unit = store.unit_of_work()
    unit.save_effects([stored("a", publication(b"never"))])
    unit.backout()
    with store.unit_of_work() as unit:
        (kept,) = unit.save_effects([stored("a", publication(b"kept"))])
        assert kept.publication.message.body == b"kept"

    assert (bodies(store), rows(store)) == ({"a": b"kept"}, (1, 1))


def test_a_part_that_is_backed_out_leaves_the_rest(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        unit.save_effects([stored("a", publication(b"before"))])
        with suppress(ZeroDivisionError), unit.savepoint():
            unit.save_effects([stored("a", publication(b"never")), stored("b", publication(b"never"))])
            raise ZeroDivisionError
        unit.save_effects([stored("c", publication(b"after"))])

    assert (bodies(store), rows(store)) == ({"a": b"before", "c": b"after"}, (2, 2))


TOPICS = st.sampled_from("abcd")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(TOPICS, min_size=1), st.binary(max_size=3)),
        st.tuples(st.just("clear"), st.lists(TOPICS, min_size=1), st.just(b"")),
        st.tuples(st.just("back out"), st.lists(TOPICS, min_size=1), st.binary(max_size=3)),
    ),
    max_size=8,
)


@given(OPERATIONS)
def test_the_tables_are_what_a_dictionary_would_be(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, list[str], bytes]]
) -> None:
    """Cached == plain, too: what this connection has at hand is what another one reads."""
    expected: dict[str, tuple[int, bytes]] = {}
    with QueueManagerStore.create(tmp_path_factory.mktemp("home"), QueueManager("QM1")) as store:
        for at, (what, topics, data) in enumerate(operations):
            unit = store.unit_of_work()
            if what == "clear":
                unit.save_effects([RetainedCleared(topic) for topic in topics])
                expected = {topic: kept for topic, kept in expected.items() if topic not in topics}
            else:
                one = publication(data)
                unit.save_effects([stored(topic, one) for topic in topics])
            if what == "back out":
                unit.backout()
                continue
            unit.commit()
            if what == "publish":
                expected |= dict.fromkeys(topics, (at, data))
        assert rows(store) == (len(expected), len({at for at, _ in expected.values()}))
        with again(store) as other:
            assert bodies(store) == bodies(other) == {topic: data for topic, (_, data) in expected.items()}


@pytest.mark.rule("MB-6")
@pytest.mark.parametrize(
    ("persistence", "def_persistent", "outlives"),
    [(0, True, False), (1, False, True), (2, True, True), (2, False, False), (2, None, True)],
    ids=["not persistent", "persistent", "as queue, YES", "as queue, NO", "as queue, as the queue manager was made"],
)
def test_a_restart_keeps_what_is_retained_persistent_2_3_2_8_5(
    store: QueueManagerStore, persistence: int, def_persistent: bool | None, outlives: bool
) -> None:
    """The message is as its stream queue resolved its persistence when it was put there (guide 6.7.9)."""
    if def_persistent is not None:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(STREAM, def_persistent=def_persistent))
    process(store, publish("a", persistence=persistence))
    with again(store) as restarted:
        Processor(restarted, lambda: NOW).start()
        assert [each.topic_string for each in restarted.load_state()[2]] == (["a"] if outlives else [])


# Messages when asked for


@pytest.mark.parametrize("in_one_moment", [False, True])
def test_what_another_program_clears_meanwhile(store: QueueManagerStore, in_one_moment: bool) -> None:
    process(store, publish("a"))
    with again(store) as other, other.one_moment() if in_one_moment else nullcontext():
        (retained,) = other.load_state()[2]
        process(store, command("<Command>DeletePub</Command><Topic>a</Topic>"))
        with nullcontext() if in_one_moment else pytest.raises(StoreError, match="cleared meanwhile; try again"):
            assert encode(retained.publication.message).endswith(b"data")


def test_the_processor_holds_no_message_that_it_has_stored(store: QueueManagerStore) -> None:
    processor = Processor(store, lambda: NOW)
    with store.unit_of_work() as unit:
        for message in (publish("a", "b"), publish("b", "c", expiry=100)):
            unit.put(message.queue, message.md, message.body)
    processor.drain()

    space = processor._loaded.space
    assert space is not None
    held = space.retained_publications()
    assert [(each.topic_string, type(each.publication)) for each in held] == [
        (topic, StoredPublication) for topic in "abc"
    ]
    assert [effect.topic_string for effect in space.expire(NOW + timedelta(minutes=1))] == ["b", "c"]  # type: ignore[union-attr]


def test_the_cache_is_bounded_in_bytes_and_gives_what_the_table_has(store: QueueManagerStore) -> None:
    for number in range(8):
        process(store, publish(f"t/{number}", data=bytes([number]) * 100_000))
    with again(store) as other:
        settled: list[None] = []
        cache = KeptMessages(other.database, lambda: settled.append(None), most_bytes=250_000)
        for _ in range(2):
            for number in range(1, 9):
                assert cache.message(number).body == bytes([number - 1]) * 100_000
                assert cache._size_bytes <= 250_000
        assert len(settled) == 16
        assert cache.message(8) is cache.message(8)
        assert len(settled) == 16


def test_a_message_longer_than_the_cache_is_kept_while_it_is_in_use(store: QueueManagerStore) -> None:
    process(store, publish("a", "b", data=bytes(CACHE_BYTES + 1)), publish("c"))
    with again(store) as other:
        first, second, _ = (each.publication for each in other.load_state()[2])
        assert first.message is second.message


SUBSCRIBERS = (
    "<Topic>#</Topic><QName>S1</QName><RegOpt>InformIfRet</RegOpt>",
    "<Topic>sport/+</Topic><QName>S2</QName>",
)


def test_what_a_new_subscriber_receives_is_the_same_from_memory_from_the_store_and_after_a_restart(
    store: QueueManagerStore,
) -> None:
    published = [
        publish("sport/a", "sport/b", "c", data=b"shared"),
        publish("sport/b", data=b"newer", seq=2, persistence=2, priority=-1),
        publish("d", data=b"", seq=3, expiry=1000),
    ]
    subscribed = [
        command(f"<Command>RegSub</Command>{what}", CONTROL, seq=seq) for seq, what in enumerate(SUBSCRIBERS, 4)
    ]
    broker = Broker("QM1")
    in_memory = [put for message in (*published, *subscribed) for put in broker.handle(message)]
    without_restart = process(store, *published, *subscribed)
    with QueueManagerStore.create(store.directory / "other", QueueManager("QM1")) as other:
        before = process(other, *published)
        with again(other) as restarted:
            after_restart = before + process(restarted, *subscribed)

    assert [put.topic for put in in_memory] == ["c", "d", "sport/a", "sport/b", "sport/a", "sport/b"]
    assert without_restart == in_memory
    assert after_restart == in_memory


# Bounds


def test_the_database_grows_with_the_message_and_not_with_its_topics(tmp_path: Path) -> None:
    """SQLite's file; PostgreSQL has the same rows."""
    size, topics = 50_000, 2_000
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        _grows(store, size, topics)


def _grows(store: QueueManagerStore, size: int, topics: int) -> None:
    process(store, publish(*(f"t/{number}" for number in range(topics)), data=bytes(size)))
    store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    assert rows(store) == (topics, 1)
    # The topic strings, twice for their index, and the place that the message had on its queue.
    assert (store.directory / DATABASE).stat().st_size < 5 * size + 150 * topics


@pytest.mark.nightly
@pytest.mark.parametrize("arguments", [("mqsc",), ("topics",), ("status",), ("run", "--once")], ids=lambda a: a[0])
def test_the_memory_of_a_verb_does_not_grow_with_what_is_retained(
    store: QueueManagerStore, arguments: tuple[str, ...]
) -> None:
    def peak_kib() -> int:
        program = [sys.executable, "-m", "commands.cli", *arguments, "-m", "QM1", "--home", str(store.home)]
        process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.stdin is not None
        process.stdin.write(b"DISPLAY QMGR\n" if arguments[0] == "mqsc" else b"")
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_maxrss

    empty = peak_kib()
    for number in range(200):
        with store.unit_of_work() as unit:
            unit.save_effects([stored(f"t/{number}", publication(bytes(1_000_000)))])

    assert peak_kib() < empty + 32 * 1024
